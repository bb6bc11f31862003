"""Temporary views for SQL.

In: Profiles. Out: views PREFIX_blocks, _windows, _lost, _label_sets, _totals, _samples, _stacks, _frames, _ledger,
_processes, and _spark_* of what Spark said. They are lazy: nothing is read before a query needs it, and only the columns that it needs.
"""

from pyspark.sql import functions as F

from . import tables, words
from .selection import LABELS, TOLD

_BLOCKS = (
    "path STRING, key STRING, from_ns BIGINT, until_ns BIGINT, windows BIGINT, rows BIGINT, samples BIGINT, bytes BIGINT"
)


def _blocks(profiles):
    lines = [block[:8] for block in profiles.blocks]
    frame = profiles.spark.createDataFrame(lines, _BLOCKS)
    return frame.select(tables.block_of(F.col("key")).alias("block"), *[c for c in frame.columns if c != "key"])


def _label_sets(profiles):
    return words.with_told(tables.label_sets(profiles.spark, profiles.blocks), profiles.spark, profiles.telling)


def _of_sets(profiles, table, sets):
    """A table with the labels of its label sets."""
    lines = tables.read(profiles.spark, profiles.blocks, table)
    return lines.join(sets, ["block", "label_set"]).drop("label_set")


def _frames(profiles):
    return {
        "blocks": _blocks(profiles),
        "windows": tables.read(profiles.spark, profiles.blocks, "windows"),
        "lost": tables.read(profiles.spark, profiles.blocks, "lost"),
        "label_sets": _label_sets(profiles),
        "frames": tables.read(profiles.spark, profiles.blocks, "frames"),
        # Processes are of no stage.
        "processes": _of_sets(profiles, "processes", tables.label_sets(profiles.spark, profiles.blocks)),
        "ledger": _of_sets(profiles, "ledger", _label_sets(profiles)).join(
            tables.read(profiles.spark, profiles.blocks, "windows"), ["block", "window"]
        ),
        "totals": _totals(profiles),
        "samples": _samples(profiles),
        "stacks": profiles.stacks(),
        **{name: of(profiles.spark, profiles.telling) for name, of in words.VIEWS.items()},
    }


def _every_kind(profiles):
    spark, blocks = profiles.spark, profiles.blocks
    groups = tables.read(spark, blocks, "groups").join(tables.read(spark, blocks, "windows"), ["block", "window"])
    return groups.join(_label_sets(profiles), ["block", "label_set"])


def _shown(frame, *more):
    time = F.timestamp_seconds(F.col("from_ns") / 1e9).alias("time")
    weight = tables.exact_weight().alias("weight")
    return frame.select("block", time, "from_ns", "until_ns", "kind", *LABELS, *TOLD, *more, "count", weight)


def _totals(profiles):
    return _shown(_every_kind(profiles))


def _samples(profiles):
    groups = _every_kind(profiles).drop("count", "rest")
    rows = tables.read(profiles.spark, profiles.blocks, "samples").join(groups, ["block", "group"])
    return _shown(rows, "stack")


def register(profiles, prefix):
    """Makes the views. Out: their names."""
    names = []
    for name, frame in _frames(profiles).items():
        names.append("%s_%s" % (prefix, name))
        frame.createOrReplaceTempView(names[-1])
    return names
