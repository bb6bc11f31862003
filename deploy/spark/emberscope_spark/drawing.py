"""Draws a selection of blocks: a FlameGraph with the numbers that it rests on.

In: Profiles and a selection. Out: a FlameGraph in memory of the driver. Stacks are summed by Spark; the driver takes the
heaviest MOST_STACKS of them and says what the others were. Its figures are the daemon's for the same question.
"""

from datetime import datetime, timezone

from pyspark.sql import functions as F

from . import tables
from .flame import FlameGraph, grown

#: Stacks that the driver takes, the heaviest first: the others are narrower than a pixel.
MOST_STACKS = 20_000
#: Stacks that reach the first frame of their thread, or have none to reach.
_WHOLE_ENDS = ("root", "kernel_thread")
#: Reasons in `lost` that are samples.
_SAMPLES_LOST = ("ring_full_sample", "no_scratch")
#: What weights of a kind count.
UNITS = {"cpu": "ns", "off-cpu": "ns", "lock": "ns", "wall": "ns", "page-faults": "faults", "major-faults": "faults", "context-switches": "switches", "event": "events", "block-io": "ns", "alloc": "bytes", "contentions": "contentions", "alloc-objects": "objects"}


def instant(ns):
    """RFC 3339, in milliseconds and UTC."""
    time = datetime.fromtimestamp(ns // 1_000_000_000, timezone.utc)
    return time.strftime("%Y-%m-%dT%H:%M:%S") + ".%03dZ" % (ns // 1_000_000 % 1000)


def quality(profiles, blocks, selection):
    """What the daemon's answers say under `quality`, of some blocks."""
    spark = profiles.spark
    sets = profiles._sets(blocks, selection).select("block", "label_set")
    windows = profiles._windows(blocks, selection)
    groups = tables.read(spark, blocks, "groups").where(F.col("kind") == selection.kind)
    groups = groups.join(windows.select("block", "window"), ["block", "window"]).join(sets, ["block", "label_set"])
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("count", "frames", "approximate")]
    whole = groups.agg(*sums).collect()[0]
    # `count` of a row is a tuple's method.
    samples, frames, approximate = whole["count"], whole["frames"], whole["approximate"]
    flaws = tables.read(spark, tables.having(blocks, "flaws"), "flaws").join(groups.select("block", "group"), ["block", "group"])
    told = flaws.groupBy("flaw", "reason").agg(F.sum("count").alias("n")).collect()
    by = lambda flaw: {row["reason"]: row["n"] for row in told if row["flaw"] == flaw}
    ends, unnamed = by("end"), by("unnamed")
    ends["root"] = samples - sum(ends.values())
    losses = tables.read(spark, tables.having(blocks, "lost"), "lost").join(windows, ["block", "window"])
    lost = {row["reason"]: row["n"] for row in losses.groupBy("reason").agg(F.sum("count").alias("n")).collect()}
    return {
        "samples": samples,
        "frames": frames,
        "approximate": approximate,
        "truncated": sum(n for reason, n in ends.items() if reason not in _WHOLE_ENDS),
        "ends": ends,
        "unnamed_frames": sum(unnamed.values()),
        "unnamed": unnamed,
        "lost": sum(lost.get(reason, 0) for reason in _SAMPLES_LOST),
        "lost_by_reason": {reason: n for reason, n in lost.items() if n},
        "missing": 0,
        "missing_parts": [],
    }


def _stacks(profiles, blocks, selection, group):
    """Sums of whole stacks, the heaviest first."""
    sums = profiles._sums(blocks, selection, group)
    paths = tables.paths(profiles.spark, blocks, "drawn")
    whole = sums.join(paths, ["block", "stack"]).groupBy("path", *group)
    sums = whole.agg(F.sum("count").alias("samples"), F.sum("weight").cast("decimal(38, 0)").alias("weight"))
    return sums.orderBy(F.desc("weight"), F.desc("samples")).limit(MOST_STACKS)


def draw(profiles, blocks, selection, group, most, title):
    """The FlameGraph."""
    told = quality(profiles, blocks, selection)
    taken = []
    for row in _stacks(profiles, blocks, selection, group).toLocalIterator():
        head = tuple(("label", "%s=%s" % (label, "(none)" if row[label] is None else row[label]), None) for label in group)
        frames = tuple((frame["kind"] or "native", frame["name"] or "", frame["module"]) for frame in row["path"] or ())
        taken.append((head + frames, int(row["weight"]), row["samples"]))
    lines = []
    drawn = sum(samples for _, _, samples in taken)
    if drawn < told["samples"]:
        lines.append(
            "Of {:,} samples the {:,} of the {:,} heaviest stacks are drawn.".format(told["samples"], drawn, len(taken))
        )
    silent = len(blocks) - len(tables.having(blocks, "flaws"))
    if silent:
        lines.append("%d of %d blocks do not tell how their stacks ended." % (silent, len(blocks)))
    spans = profiles._windows(blocks, selection).agg(
        F.min("from_ns").alias("begin"), F.max("until_ns").alias("end"), F.count("*").alias("windows")
    )
    span = spans.collect()[0]
    answer = {
        "type": selection.kind,
        "unit": UNITS.get(selection.kind, "units"),
        "windows": span["windows"],
        "range": {"from": instant(span["begin"] or 0), "until": instant(span["end"] or 0)},
        "quality": told,
        **grown(taken, most),
    }
    return FlameGraph(answer, title or _words(selection, len(blocks)), lines)


def _words(selection, blocks):
    named = ["%s %s" % (label, " or ".join(values)) for label, values in sorted(selection.labels.items())]
    return " · ".join(named) or "all of %d blocks" % blocks
