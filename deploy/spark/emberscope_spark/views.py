"""Temporary views for SQL.

In: Profiles. Out: views PREFIX_blocks, _windows, _lost, _label_sets, _totals, _samples, _stacks, _frames, _ledger and
_processes. They are lazy: nothing is read before a query needs it, and only the columns that it needs.
"""

from pyspark.sql import functions as F

from . import tables
from .selection import LABELS

_BLOCKS = (
    "path STRING, key STRING, from_ns BIGINT, until_ns BIGINT, windows BIGINT, rows BIGINT, samples BIGINT, bytes BIGINT"
)


def _blocks(profiles):
    lines = [block[:8] for block in profiles.blocks]
    frame = profiles.spark.createDataFrame(lines, _BLOCKS)
    return frame.select(tables.block_of(F.col("key")).alias("block"), *[c for c in frame.columns if c != "key"])


def _of_sets(profiles, table):
    """A table with the labels of its label sets."""
    lines = tables.read(profiles.spark, profiles.blocks, table)
    return lines.join(tables.label_sets(profiles.spark, profiles.blocks), ["block", "label_set"]).drop("label_set")


def _frames(profiles):
    return {
        "blocks": _blocks(profiles),
        "windows": tables.read(profiles.spark, profiles.blocks, "windows"),
        "lost": tables.read(profiles.spark, profiles.blocks, "lost"),
        "label_sets": tables.label_sets(profiles.spark, profiles.blocks),
        "frames": tables.read(profiles.spark, profiles.blocks, "frames"),
        "processes": _of_sets(profiles, "processes"),
        "ledger": _of_sets(profiles, "ledger").join(
            tables.read(profiles.spark, profiles.blocks, "windows"), ["block", "window"]
        ),
        "totals": _totals(profiles),
        "samples": _samples(profiles),
        "stacks": profiles.stacks(),
    }


def _every_kind(profiles):
    spark, blocks = profiles.spark, profiles.blocks
    groups = tables.read(spark, blocks, "groups").join(tables.read(spark, blocks, "windows"), ["block", "window"])
    return groups.join(tables.label_sets(spark, blocks), ["block", "label_set"])


def _shown(frame, *more):
    time = F.timestamp_seconds(F.col("from_ns") / 1e9).alias("time")
    weight = tables.exact_weight().alias("weight")
    return frame.select("block", time, "from_ns", "until_ns", "kind", *LABELS, *more, "count", weight)


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
