"""The queries of a cell: executions of Spark SQL that began while it ran, with the CPU time of their tasks and the operators that
used most of it.

In: the daemon's `/api/v1/sql` for the cell's applications and windows, and the cell's time by the driver's clock. Out: Queries, which
a notebook shows. Spark is asked by the daemon, and each answer of it holds for a while: what it has not told yet is waited for.
Limits: MOST_LISTED queries, each asked for by itself; MOST_OPERATORS operators a query.
"""

import html
import re
import time

from .daemon import DaemonError
from .selection import nanoseconds
from .stacks import UNFIT

#: Queries that are listed, unless told: the largest by CPU time.
LISTED = 10
#: Most that may be listed.
MOST_LISTED = 100
#: Operators that are named of a query.
MOST_OPERATORS = 3
#: Rows of one answer.
_ROWS = 1000
#: Seconds that are waited for Spark's word: the daemon asks a driver anew each 5 to 30 s (docs/internals.md).
_TOLD_WITHIN = 35.0
#: Seconds between two looks.
_LOOK = 2.0
#: States of Spark's word in which waiting tells no more.
_SILENT = ("unreachable", "not-asked")
#: Characters of a description that are shown.
_DESCRIBED = 80
_COLUMNS = ("Query", "CPU s", "Took s", "Operators", "Description")


class Queries:
    """Queries of a cell, the largest first. `rows` are dicts; in a notebook it shows itself as a table."""

    def __init__(self, rows, notes=()):
        self.rows = rows
        #: Sentences below the table.
        self.notes = list(notes)

    def _cells(self):
        several = len({row["app"] for row in self.rows}) > 1
        for row in self.rows:
            took = "runs" if row["seconds"] is None else "%.1f" % row["seconds"]
            operators = ", ".join("%s %.2f s" % (one["operator"], one["cpu_seconds"]) for one in row["operators"])
            number = "%s %s" % (row["app"], row["execution"]) if several else str(row["execution"])
            described = _line(row["description"])
            yield (number, _cost(row), took, _line(operators), described)

    def __bool__(self):
        return bool(self.rows or self.notes)

    def __repr__(self):
        lines = list(self._cells())
        wide = [max(map(len, column)) for column in zip(_COLUMNS, *lines)] if lines else []
        table = ["  ".join(cell.ljust(width) for cell, width in zip(line, wide)).rstrip() for line in (_COLUMNS, *lines)]
        return "\n".join([*(table if lines else ()), *self.notes])

    def _repr_html_(self):
        row = lambda tag, cells: "<tr>%s</tr>" % "".join(
            '<%s style="text-align:left">%s</%s>' % (tag, html.escape(cell), tag) for cell in cells
        )
        lines = [row("td", cells) for cells in self._cells()]
        table = "<table><caption>Queries that began in the cell</caption>%s%s</table>" % (row("th", _COLUMNS), "".join(lines))
        notes = "".join("<p>%s</p>" % html.escape(note) for note in self.notes)
        return (table if lines else "") + notes

    def to_pandas(self):
        """A pandas DataFrame with a line for each query and operator."""
        import pandas

        named = ("app", "execution", "description", "begun", "seconds", "cpu_seconds", "samples")
        rows = []
        for row in self.rows:
            of_query = [row[name] for name in named]
            for one in row["operators"] or [{"operator": None, "cpu_seconds": None}]:
                rows.append([*of_query, one["operator"], one["cpu_seconds"]])
        return pandas.DataFrame(rows, columns=[*named, "operator", "operator_cpu_seconds"])


def _cost(row):
    error = row["sampling_error"]
    return "%.2f" % row["cpu_seconds"] + ("" if error is None else " ± %.0f %%" % (100 * error))


def _line(text):
    text = re.sub(UNFIT, " ", text or "").strip()
    return text if len(text) <= _DESCRIBED else text[: _DESCRIBED - 1] + "…"


def _ms(text):
    return nanoseconds(text) // 1_000_000 if text else None


def began_within(queries, begun, ended):
    """Those of the answer's queries that began within a time (Unix seconds, of the driver's clock).

    What is told is when a query's first sampled stage was submitted. Numbers go up with time: one that is lower than that of a query
    from before the cell began before it too, whenever its stages did.
    """
    first, last = int(begun * 1000), int(ended * 1000)
    known = [row for row in queries if row.get("execution") is not None and row.get("begun")]
    older = {}
    for row in known:
        if _ms(row["begun"]) < first:
            older[row["app"]] = max(older.get(row["app"], -1), row["execution"])
    return [
        row for row in known if first <= _ms(row["begun"]) <= last and row["execution"] > older.get(row["app"], -1)
    ]


def _told(answer, ended):
    """Whether no later answer has more: every stage's query is known, or Spark was asked after the cell, or cannot be."""
    spark = answer.get("spark") or {}
    untold = any(row.get("execution") is None for row in answer["queries"])
    fetched = _ms(spark.get("fetched"))
    return not untold or spark.get("state") in _SILENT or fetched is not None and fetched >= ended * 1000


def _operators(daemon, row, span):
    try:
        of_app = [("app", row["app"])] if row["app"] else []
        answer = daemon.get("/api/v1/sql", [*of_app, *span, ("execution", row["execution"])])
    except DaemonError:
        # The daemon has gone, or it is too much for it: the query's own line holds all the same.
        return []
    found = [one for one in answer.get("operators") or () if one["samples"]]
    return [{"operator": one["operator"], "cpu_seconds": one["cpu_seconds"]} for one in found[:MOST_OPERATORS]]


def asked(daemon, apps, span, ended, within, wait, listed=LISTED):
    """The Queries of some applications that began `within` (Unix seconds, of the driver's clock), of the windows of `span`.

    `ended` is when the cell had ended, by the daemon's clock; `wait` how many seconds are waited at most.
    """
    until = time.monotonic() + min(wait, _TOLD_WITHIN)
    of_apps = [("app", app) for app in sorted(apps)]
    while True:
        answer = daemon.get("/api/v1/sql", [*of_apps, *span, ("limit", _ROWS)])
        if _told(answer, ended) or time.monotonic() > until:
            break
        time.sleep(_LOOK)
    found = began_within(answer["queries"], *within)
    found.sort(key=lambda row: -row["cpu_seconds"])
    rows = []
    for row in found[:listed]:
        times = [_ms(row.get(name)) for name in ("begun", "ended")]
        rows.append(
            {
                **{name: row.get(name) for name in ("app", "execution", "description", "samples", "cpu_seconds", "sampling_error")},
                "begun": times[0] / 1000,
                "seconds": None if times[1] is None else (times[1] - times[0]) / 1000,
                "operators": _operators(daemon, row, span),
            }
        )
    return Queries(rows, _notes(answer, found, listed))


def _notes(answer, found, listed):
    out = []
    if len(found) > listed:
        out.append("%d queries more, with %.2f CPU s together." % (len(found) - listed, sum(r["cpu_seconds"] for r in found[listed:])))
    untold = sum(row["cpu_seconds"] for row in answer["queries"] if row.get("execution") is None)
    if untold >= 0.005:
        says = str((answer.get("spark") or {}).get("says") or "")
        out.append(("Tasks with %.2f CPU s are of no query that Spark told. %s" % (untold, _line(says))).rstrip())
    return out
