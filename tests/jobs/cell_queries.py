"""The table of a cell's queries, against answers that are made up, for tests/notebook.rs. It needs pyspark, and no Spark that runs.

    cell_queries.py PACKAGE_DIR
"""

import http.server
import json
import sys
import threading
import unittest
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, sys.argv.pop(1))

from emberscope_spark import magic, queries  # noqa: E402
from emberscope_spark.daemon import Daemon, DaemonError  # noqa: E402

#: The cell's time: 2023-11-14T22:13:20 and ten seconds, in the middle of a millisecond.
BEGUN, ENDED = 1_700_000_000.0004, 1_700_000_010.0004
EVIL = "<img src=x onerror=alert(1)>\n\x1b[31m"


def clock(ms):
    """The API's word for a time, so many milliseconds after the second in which the cell began."""
    return "2023-11-14T22:13:%02d.%03dZ" % (20 + ms // 1000, ms % 1000)


def query(execution, begun, cpu, app="app-1", ended=9_000, description="count at job.py:10"):
    cost = {"samples": int(cpu * 100), "cpu_seconds": cpu, "sampling_error": 0.05 if cpu else None, "share": 0.5}
    times = {"begun": None if begun is None else clock(begun), "ended": None if ended is None else clock(ended)}
    return {"app": app, "execution": execution, "description": description, "stages": [1], **times, **cost}


def operators(*named):
    return [{"operator": name, "of": "operator", "samples": samples, "cpu_seconds": samples / 100} for name, samples in named]


class FakeDaemon:
    """Answers `/api/v1/sql`: of all queries with one answer after the other, of one with its operators."""

    def __init__(self, *answers, of=None):
        self.answers, self.of, self.asked = list(answers), of or {}, []
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                fake.asked.append(parse_qs(urlsplit(self.path).query))
                status, body = fake.answer(urlsplit(self.path).path, fake.asked[-1])
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.daemon = Daemon("http://127.0.0.1:%d" % self.server.server_port)

    def answer(self, path, params):
        if path != "/api/v1/sql":
            return 404, {"error": {"message": "no such route"}}
        if "execution" not in params:
            return 200, self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        found = self.of.get(int(params["execution"][0]))
        return (200, {"operators": found}) if found else (503, {"error": {"message": "too much", "code": "busy"}})


def answer(*rows, state="ready", fetched=20_000, says=""):
    return {"queries": list(rows), "spark": {"state": state, "fetched": fetched and clock(fetched), "says": says}}


def asked(fake, wait=5.0, listed=queries.LISTED):
    span = [("from", 1), ("until", 2)]
    return queries.asked(fake.daemon, {"app-1"}, span, ENDED, (BEGUN, ENDED), wait, listed)


class OfACell(unittest.TestCase):
    def setUp(self):
        queries._LOOK = 0.01

    def numbers(self, *rows):
        return [row["execution"] for row in queries.began_within(rows, BEGUN, ENDED)]

    def test_those_are_the_cells_that_began_in_it(self):
        # Spark's times are cut to milliseconds: that of the cell's first instant is not before it.
        self.assertEqual(self.numbers(query(5, 0, 1), query(6, 10_000, 1), query(7, 10_001, 1)), [5, 6])
        self.assertEqual(self.numbers(query(None, 5, 1), query(8, None, 1)), [])

    def test_a_number_below_one_from_before_is_from_before(self):
        before = {**query(6, 0, 1), "begun": "2023-11-14T22:13:19.999Z"}
        self.assertEqual(self.numbers(before, query(5, 3, 1), query(7, 4, 1)), [7])
        # Numbers are an application's own.
        self.assertEqual(self.numbers(before, query(5, 3, 1, app="app-2")), [5])

    def test_the_largest_stand_first_with_their_operators(self):
        all_of_7 = operators(("Sort", 80), ("Exchange (read)", 60), ("Scan parquet", 50), ("Project", 1), ("unknown", 0))
        fake = FakeDaemon(answer(query(6, 1, 0.5), query(7, 2, 2.0), query(8, 3, 0.0, ended=None)), of={7: all_of_7})
        found = asked(fake)
        self.assertEqual([row["execution"] for row in found.rows], [7, 6, 8])
        self.assertEqual([one["operator"] for one in found.rows[0]["operators"]], ["Sort", "Exchange (read)", "Scan parquet"])
        self.assertEqual((found.rows[1]["operators"], found.notes), ([], []), "its operators were refused, its line holds")
        self.assertEqual(fake.asked[0], {"app": ["app-1"], "from": ["1"], "until": ["2"], "limit": ["1000"]})
        self.assertEqual(fake.asked[1], {"app": ["app-1"], "from": ["1"], "until": ["2"], "execution": ["7"]})
        text = repr(found).split("\n")
        self.assertEqual(text[0].split(), ["Query", "CPU", "s", "Took", "s", "Operators", "Description"])
        self.assertTrue(text[1].startswith("7      2.00 ± 5 %  9.0     Sort 0.80 s, Exchange (read) 0.60 s"), text[1])
        self.assertTrue("0.00" in text[3] and "runs" in text[3], text[3])

    def test_what_spark_has_not_told_yet_is_waited_for(self):
        early = answer(query(None, None, 1.0), fetched=9_000)
        fake = FakeDaemon(early, early, answer(query(3, 1, 1.0), fetched=9_000))
        self.assertEqual([row["execution"] for row in asked(fake).rows], [3])
        # What Spark tells after the cell has no more to come: jobs without a query.
        fake = FakeDaemon(answer(query(None, None, 1.0), query(3, 1, 1.0), fetched=10_001))
        found = asked(fake)
        self.assertEqual((len(found.rows), found.notes), (1, ["Tasks with 1.00 CPU s are of no query that Spark told."]))
        silent = FakeDaemon(answer(query(None, None, 1.0), state="unreachable", fetched=None, says="The web UI is off."))
        self.assertEqual(asked(silent).notes, ["Tasks with 1.00 CPU s are of no query that Spark told. The web UI is off."])
        self.assertEqual(len(silent.asked), 1)
        late = FakeDaemon(answer(query(None, None, 1.0), state="kept", fetched=5_000))
        self.assertFalse(asked(late, wait=0.05).rows)
        self.assertGreater(len(late.asked), 1)

    def test_the_smallest_are_one_line(self):
        fake = FakeDaemon(answer(query(1, 1, 3.0), query(2, 2, 2.0), query(3, 3, 1.0)))
        found = asked(fake, listed=1)
        self.assertEqual((len(found.rows), found.notes), (1, ["2 queries more, with 3.00 CPU s together."]))
        self.assertFalse(asked(FakeDaemon(answer())), "of no query nothing is shown")

    def test_a_description_is_text(self):
        found = asked(FakeDaemon(answer(query(1, 1, 1.0, description=EVIL)), of={1: operators((EVIL, 1))}))
        shown = found._repr_html_()
        self.assertTrue("<img" not in shown and "&lt;img" in shown and "\x1b" not in shown, shown)
        self.assertEqual(repr(found).count("\n"), 1)

    def test_a_daemon_that_goes_is_an_error_that_is_said(self):
        with self.assertRaises(DaemonError):
            queries.asked(Daemon("http://127.0.0.1:1"), {"app-1"}, [], ENDED, (BEGUN, ENDED), 1.0)

    def test_a_cell_can_do_without(self):
        self.assertEqual(magic.words("--queries 0", []).queries, 0)
        self.assertEqual(magic.words("", []).queries, queries.LISTED)


if __name__ == "__main__":
    unittest.main(argv=["cell_queries"])
