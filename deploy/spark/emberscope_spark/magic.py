"""`%%emberscope`: runs a cell, and shows what the CPU did in the Spark application meanwhile.

In: a cell, options, a daemon that samples this machine (or an `emberscope serve` over many). Out: the cell's own output and errors,
as without the magic, and below it the flame graph of the application in the windows that the cell lay in, and the queries that began
in it. The daemon closes a window each ten seconds, so the graph comes as much later. What stands in the way of the profile is said, and never in the way of
the cell.
"""

import argparse
import shlex
import sys
import time

from . import queries
from .daemon import Daemon, DaemonError, token_of
from .drawing import UNITS, instant
from .flame import NODES
from .selection import nanoseconds

#: Seconds that are waited for the cell's last window, unless told.
WAIT = 60.0
#: Seconds between two looks.
_LOOK = 0.5
#: Seconds by which the clocks of notebook and daemon may differ, unsaid.
_SKEW = 0.5


class _Parser(argparse.ArgumentParser):
    """Says what is wrong instead of ending the process."""

    def error(self, message):
        raise DaemonError("%s (%%%%emberscope --help lists the options)" % message)

    def exit(self, status=0, message=None):
        raise _Told()


class _Told(Exception):
    """The help was shown."""


def parser():
    """The options of both magics."""
    out = _Parser(prog="%%emberscope", description="Profiles the Spark application while the cell runs.", allow_abbrev=False)
    out.add_argument("--url", help="daemon to ask; else EMBERSCOPE_URL, else this machine's socket")
    out.add_argument("--token-file", help="file with the token for a URL; else EMBERSCOPE_TOKEN")
    out.add_argument("--app", help="id of the application, where it is not the active SparkSession's")
    out.add_argument("--type", default="cpu", choices=sorted(UNITS), help="kind of samples")
    out.add_argument("--group", default="", help="labels that stand before each stack: stage, or stage,thread_class")
    out.add_argument("--max-nodes", type=int, default=NODES, help="most nodes of the graph")
    out.add_argument("--wait", type=float, default=WAIT, help="most seconds to wait for the cell's last window")
    out.add_argument("--save", help="file to write the graph to, as a page or (.folded) as folded stacks")
    out.add_argument("--into", help="name of a variable that gets the graph")
    out.add_argument("--queries", type=int, default=queries.LISTED, help="most queries of the cell to list below the graph; 0 asks for none")
    return out


def application():
    """The id of the active session's application; None where there is none, or where Spark Connect does not say."""
    spark = sys.modules.get("pyspark")
    context = getattr(getattr(spark, "SparkContext", None), "_active_spark_context", None)
    try:
        return context.applicationId if context is not None else None
    except Exception:  # a context whose JVM has gone
        return None


def _local():
    """Whether the application's executors are on this machine; True where that is not known."""
    context = getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), "_active_spark_context", None)
    try:
        return context is None or str(context.master).startswith("local")
    except Exception:
        return True


def seconds_of(text):
    """Unix seconds of a time as the API writes it."""
    return nanoseconds(text) / 1e9


class Watch:
    """The time of a cell, by the daemon's clock."""

    def __init__(self, daemon, wait):
        self._daemon, self._wait = daemon, wait
        self.node, self.begun, self.ended = "", 0.0, 0.0
        asked = time.time()
        status = daemon.get("/api/v1/status")
        self.node = str(status.get("node") or "")
        self._ahead = seconds_of(status["time"]) - (asked + time.time()) / 2 if status.get("time") else 0.0
        self.skewed = abs(self._ahead) > _SKEW
        if not self.skewed:
            self._ahead = 0.0
        self.windows = float((status.get("store") or {}).get("window_seconds") or 10.0)

    def begin(self):
        """The cell begins."""
        self.begun = time.time() + self._ahead

    def end(self):
        """It has ended."""
        self.ended = time.time() + self._ahead

    def closed(self):
        """Waits until the cell's last window can be asked for."""
        until, last = time.monotonic() + self._wait, None
        while True:
            span = self._daemon.get("/api/v1/apps", [("from", self._ms(self.begun)), ("until", self._ms(self.ended) + 1)])["span"]
            last = span["until"] if span else None
            if last and seconds_of(last) >= self.ended:
                return
            if time.monotonic() > until:
                raise DaemonError(
                    "the window in which the cell ended (%s) is not closed after %d s; the newest ends at %s. Is the daemon "
                    "sampling (emberscope status)? --wait says how long else" % (self.clock(self.ended), self._wait, last or "none")
                )
            time.sleep(_LOOK)

    @staticmethod
    def _ms(seconds):
        return int(seconds * 1000)

    @staticmethod
    def clock(seconds):
        """`18:20:44`, UTC."""
        return instant(int(seconds * 1e9))[11:19]

    def graph(self, apps, options):
        """The FlameGraph of the cell. An application that has just begun may be known a little later than its windows."""
        times = {"since": self._ms(self.begun), "until": self._ms(self.ended) + 1}
        group = tuple(name for name in options.group.split(",") if name)
        until = time.monotonic() + min(self._wait, 2 * self.windows + 5)
        while True:
            try:
                return self._daemon.flamegraph(
                    kind=options.type, group=group, max_nodes=options.max_nodes, app=sorted(apps), **times
                )
            except DaemonError as error:
                if error.code != "unknown_app" or time.monotonic() > until:
                    raise
            time.sleep(_LOOK)

    def queries(self, apps, options):
        """The Queries that began in the cell."""
        span = [("from", self._ms(self.begun)), ("until", self._ms(self.ended) + 1)]
        # The driver of this notebook's session has this machine's clock.
        ahead = 0.0 if options.app else self._ahead
        within = (self.begun - ahead, self.ended - ahead)
        listed = min(options.queries, queries.MOST_LISTED)
        return queries.asked(self._daemon, apps, span, self.ended, within, self._wait, listed)

    def lines(self, graph):
        """What the numbers are of."""
        took = self.ended - self.begun
        begin, end = (seconds_of(graph.answer["range"][name]) for name in ("from", "until"))
        out = [
            "The cell took %.1f s, from %s to %s UTC; windows are taken whole: %s to %s, %.0f s."
            % (took, *map(self.clock, (self.begun, self.ended, begin, end)), end - begin)
        ]
        if took < self.windows:
            out.append(
                "That is less than a window of %.0f s: what else the application did in it is in these numbers, too." % self.windows
            )
        if graph.answer["unit"] == "ns" and end > begin:
            seconds = graph.answer["total"] / 1e9
            what = {"cpu": "CPU time", "wall": "Wall time"}.get(graph.answer.get("type"), "Waiting")
            out.append("%s: %.2f s, which is %.2f threads at a time." % (what, seconds, seconds / (end - begin)))
        if not graph.samples:
            out.append(str(graph.answer.get("note") or "There are no samples of it in this time: it did not use the CPU, as far as 99 samples a second tell."))
        if not _local() and self._daemon.url.startswith("unix:"):
            out.append("Of %s alone: what ran on other nodes is not in it. `emberscope serve` answers for all (--url)." % self.node)
        if self.skewed:
            out.append("The daemon's clock and this one differ by %.1f s; the times are the daemon's." % abs(self._ahead))
        return out


def _known(apps):
    if apps:
        return apps
    if "pyspark" in sys.modules and "pyspark.sql.connect.session" in sys.modules:
        raise DaemonError("a Spark Connect session does not say its application's id: name it, %%emberscope --app ID")
    raise DaemonError(
        "there is no SparkSession, neither before nor after the cell: make one (SparkSession.builder.getOrCreate()), "
        "or name an application that runs elsewhere with --app"
    )


def begin(options):
    """A Watch of the daemon that options name."""
    token = token_of(options.token_file) if options.token_file else None
    return Watch(Daemon(options.url, token), options.wait)


def profile(watch, apps, options):
    """Waits, and makes the FlameGraph."""
    apps = _known(apps)
    watch.closed()
    try:
        graph = watch.graph(apps, options)
    except DaemonError as error:
        if error.code != "unknown_app":
            raise
        raise DaemonError(
            "the daemon of %s has no sample of %s: is it the daemon of the machine where it runs? A driver in local mode is "
            "known by its web UI (spark.ui.enabled). It said: %s" % (watch.node, ", ".join(sorted(apps)), error)
        ) from error
    graph.title = "Cell of %s" % ", ".join(sorted(apps))
    graph.lines[:0] = watch.lines(graph)
    return graph


def words(line, defaults):
    """The options of a line, over those that `%emberscope` set."""
    return parser().parse_args(defaults + shlex.split(line))
