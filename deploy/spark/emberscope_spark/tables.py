"""A block's tables as DataFrames, with the number of the block that each line is from.

In: Block values. Out: lazy DataFrames. `block` is a hash of the block's path: tables are joined by it, and a place in a
list (a stack, a group) means something in its block only. Nothing here runs a job.
"""

import re

from pyspark import cloudpickle
from pyspark.sql import functions as F

from . import operators, stacks
from .blocks import BlockError, directory_of
from .selection import LABELS

# Executors that do not have this package get what they run with the job.
cloudpickle.register_pickle_by_value(stacks)
cloudpickle.register_pickle_by_value(operators)

#: Numbers of a line of the ledger.
LEDGER = (
    "cpu_ns",
    "run_delay_ns",
    "user_ns",
    "system_ns",
    "voluntary_switches",
    "involuntary_switches",
    "minor_faults",
    "major_faults",
    "read_bytes",
    "written_bytes",
    "wall_ns",
    "begun",
    "python_wait_ns",
)

#: Columns that are read, by table (docs/store.md).
SCHEMAS = {
    "samples": "group INT, stack INT, count BIGINT, rest BIGINT",
    "groups": "group INT, label_set INT, window INT, kind STRING, period BIGINT, count BIGINT, rest BIGINT, "
    "frames BIGINT, approximate BIGINT",
    "flaws": "group INT, flaw STRING, reason STRING, count BIGINT",
    "label_sets": "label_set INT, forgotten BOOLEAN, " + ", ".join(label + " STRING" for label in LABELS),
    "windows": "window INT, from_ns BIGINT, until_ns BIGINT, partial BOOLEAN",
    "lost": "window INT, reason STRING, count BIGINT",
    "stacks": "stack INT, node INT, end STRING",
    "nodes": "node INT, up INT, frame INT",
    "frames": "frame INT, kind STRING, name STRING, module STRING, signature STRING, line INT, approximate BOOLEAN, "
    "unknown STRING",
    "processes": "record INT, label_set INT, pid BIGINT, start_ticks BIGINT, host STRING, cores BIGINT, program STRING, "
    "jvm_version STRING",
    "ledger": "label_set INT, window INT, " + ", ".join(name + " BIGINT" for name in LEDGER),
    "spark": "app STRING, kind STRING, id STRING, attempt BIGINT, name STRING, description STRING, status STRING, refs STRING, "
    "count BIGINT, executor_cpu_ns BIGINT, deserialize_cpu_ns BIGINT, run_time_ms BIGINT, begun_ns BIGINT, ended_ns BIGINT, "
    "source STRING, fetched_ns BIGINT",
}

#: async-profiler's suffixes, as `annotate=1` of the HTTP API has them.
SUFFIXES = {"java": "_[j]", "java-inlined": "_[i]", "java-interpreted": "_[0]", "kernel": "_[k]"}

_PATH = {
    "folded": "STRING",
    "operator": "STRING",
    "methods": "ARRAY<STRUCT<name: STRING, module: STRING, own: BOOLEAN>>",
    "frames": "ARRAY<STRUCT<kind: STRING, name: STRING, module: STRING, line: INT>>",
    "drawn": "ARRAY<STRUCT<kind: STRING, name: STRING, module: STRING>>",
}


def block_of(path):
    """Column: the number of the block in a directory."""
    return F.xxhash64(path)


def read(spark, blocks, table):
    """A table of some blocks."""
    files = []
    for block in blocks:
        if table not in block.files:
            raise BlockError("%s has no table %s" % (block.path, table))
        # What means something in a glob stands for itself here.
        files.append(re.sub(r"([\\\[\]{}*?^])", r"\\\1", block.path + "/" + block.files[table]))
    if not files:
        return spark.createDataFrame([], "block BIGINT, " + SCHEMAS[table])
    # Directories may look like partitions (`node=a`): they are none.
    reader = spark.read.schema(SCHEMAS[table]).option("recursiveFileLookup", "true")
    own = block_of(directory_of(F.col("_metadata.file_path")))
    return reader.parquet(*files).select(own.alias("block"), *[F.col(name) for name in _names(table)])


def having(blocks, table):
    """The blocks that have a table, of one that is not in every block."""
    return [block for block in blocks if table in block.files]


def _names(table):
    return [column.split()[0] for column in SCHEMAS[table].split(", ")]


def label_sets(spark, blocks):
    """Label sets that are to be answered for."""
    return read(spark, blocks, "label_sets").where(~F.col("forgotten")).drop("forgotten")


def plain_weight():
    """Column: count * period + rest as BIGINT; null where that is not the weight, which is modulo 2^64 and unsigned."""
    weight = F.expr("try_add(try_multiply(`count`, `period`), `rest`)")
    return F.when((weight >= 0) & (F.col("count") >= 0) & (F.col("period") >= 0), weight)


def exact_weight():
    """Column: the weight as DECIMAL, whatever it is."""

    def unsigned(name):
        number = "cast(`%s` as decimal(20, 0))" % name
        return "(if(`{0}` < 0, {1} + 18446744073709551616BD, {1}))".format(name, number)

    whole = "%s * %s + %s" % tuple(map(unsigned, ("count", "period", "rest")))
    exact = F.expr("pmod(%s, 18446744073709551616BD)" % whole).cast("decimal(20, 0)")
    plain = plain_weight()
    return F.when(plain.isNotNull(), plain.cast("decimal(20, 0)")).otherwise(exact)


def sum_of_weights():
    """Column: the sum of weights of one block, as DECIMAL. Decimals are slow: nearly all rows are summed without."""
    plain = plain_weight()
    odd = F.when(plain.isNull(), exact_weight())
    zero = F.lit(0).cast("decimal(38, 0)")
    some = F.coalesce(F.sum(plain), F.lit(0)).cast("decimal(38, 0)")
    return (some + F.coalesce(F.sum(odd), zero)).cast("decimal(38, 0)")


def paths(spark, blocks, form="folded", annotate=False):
    """Stacks with their frames from the root: block, stack, end, path."""
    of = {table: read(spark, blocks, table) for table in ("frames", "nodes", "stacks")}
    none = F.lit(None).cast("string")

    def lines(frame, tag, number, a, b, text, module=none, kind=none, line=0, signature=none):
        int_of = lambda value: (F.lit(value) if isinstance(value, int) else F.col(value)).cast("int")
        columns = [
            F.col("block"),
            F.lit(tag).alias("tag"),
            int_of(number).alias("id"),
            int_of(a).alias("a"),
            int_of(b).alias("b"),
            text.alias("text"),
            module.alias("module"),
            kind.alias("kind"),
            int_of(line).alias("line"),
            signature.alias("signature"),
            F.lit(int(tag != stacks.FRAME)).alias("phase"),
        ]
        return frame.select(columns)

    columns = (F.col("name"), F.col("module"), F.col("kind"), "line", F.col("signature"))
    every = lines(of["frames"], stacks.FRAME, "frame", 0, 0, *columns)
    every = every.union(lines(of["nodes"], stacks.NODE, "node", "up", "frame", none))
    every = every.union(lines(of["stacks"], stacks.STACK, "node", "stack", 0, F.col("end")))
    partitions = max(1, min(len(blocks), int(spark.conf.get("spark.sql.shuffle.partitions"))))
    # A block's lines in one partition, in the order in which they are walked.
    every = every.repartition(partitions, "block").sortWithinPartitions("block", "phase", "id", "tag").drop("phase")
    more = operators.rules() if form == "operator" else SUFFIXES if annotate else {}
    made = operators.of_frames if form == "operator" else stacks.FORMS[form]
    schema = "block BIGINT, stack INT, end STRING, path " + _PATH[form]
    return spark.createDataFrame(_walked(spark, every, made, more), schema, verifySchema=False)


def _walked(spark, every, made, more):
    # With adaptive execution an RDD's shuffles run when it is made; here nothing shall run before it is asked for.
    adaptive = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        lines = every.rdd
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    walk = stacks.paths
    return lines.mapPartitions(lambda part: walk(part, made, more))
