"""What Spark said of its applications, as the store keeps it beside the windows: docs/store.md#what-spark-says.

In: blocks; those of before Spark was asked have nothing of it. Out: lazy DataFrames of stages, jobs, queries, operators of plans,
executors and settings, each as it was read last; and the labels that a stage tells (TOLD). All of it is a driver's word,
and a driver is any program: what is no number is null.
"""

from pyspark.sql import functions as F

from . import tables
from .selection import TOLD

#: The value of a label of a stage of which Spark said nothing, as the daemon's answers have it.
UNKNOWN = "unknown"
#: How long after an application's last window Spark's last words of it may be kept, in nanoseconds.
LAST_WORDS = 3600 * 1_000_000_000

_KEY = ("app", "id", "attempt")
_NUMBERS = "filter(transform(split(refs, ' '), x -> try_cast(x AS BIGINT)), x -> x IS NOT NULL)"


def _facts(spark, blocks, kind):
    """Facts of a kind. One that is there more than once counts as it was read last."""
    lines = tables.read(spark, tables.having(blocks, "spark"), "spark").where(F.col("kind") == kind)
    said = [name for name in lines.columns if name not in ("block", "kind", "fetched_ns", "ended_ns", *_KEY)]
    last = F.max(F.struct("fetched_ns", "ended_ns", *said)).alias("last")
    return lines.groupBy(*_KEY).agg(last).select(*_KEY, "last.*")


def _numbers(name):
    return F.expr(_NUMBERS).alias(name)


def _time(column, name):
    """0 is a time that is not known, or has not come."""
    return F.expr("if({0} > 0, timestamp_micros({0} div 1000), NULL)".format(column)).alias(name)


def _said():
    """Who told it, and when."""
    return F.col("source"), _time("fetched_ns", "fetched")


def _queries_of_jobs(spark, blocks):
    """app, job (a number), sql (a number). Of two queries that name a job the later one has it."""
    jobs = _facts(spark, blocks, "sql").select("app", F.expr("try_cast(id AS BIGINT)").alias("sql"), _numbers("jobs"))
    jobs = jobs.select("app", "sql", F.explode("jobs").alias("job"))
    return jobs.groupBy("app", "job").agg(F.max("sql").alias("sql"))


def told(spark, blocks):
    """app, stage, known, and the labels of each stage that Spark told: a line a stage.

    As the daemon tells them (profiler/store/src/jobs): of its jobs the first, which ran it; of their queries that of the last job
    that has one; of several attempts what the last one has.
    """
    stages = _facts(spark, blocks, "stage").select("app", F.col("id").alias("stage"), "attempt", _numbers("jobs"))
    stages = stages.select("app", "stage", "attempt", F.posexplode_outer("jobs").alias("place", "job"))
    every = stages.join(_queries_of_jobs(spark, blocks), ["app", "job"], "left")
    first = F.struct("attempt", (-F.col("place")).alias("place"), F.col("job").alias("value"))
    last = F.struct("attempt", "place", F.col("sql").alias("value"))
    # Grouped by what it is joined by, so that Spark may leave the join out where none of these labels is named (SPARK-39172).
    lines = every.groupBy("app", "stage").agg(
        F.count("*").alias("known"),
        F.max(F.when(F.col("job").isNotNull(), first)).alias("first"),
        F.max(F.when(F.col("sql").isNotNull(), last)).alias("last"),
    )
    text = lambda column, name: F.col(column + ".value").cast("string").alias(name)
    return lines.select("app", "stage", "known", text("first", TOLD[0]), text("last", TOLD[1]))


def with_told(frame, spark, blocks):
    """A DataFrame with the labels `app` and `stage`, and after its columns those that the stage tells."""
    lines = frame.join(told(spark, blocks), ["app", "stage"], "left")
    of_none = F.coalesce(F.col("stage"), F.lit("")) == ""
    value = lambda name: F.when(F.col("known").isNull() & ~of_none, F.lit(UNKNOWN)).otherwise(F.col(name)).alias(name)
    return lines.select(*frame.columns, *map(value, TOLD))


def stages(spark, blocks):
    """Attempts of stages: `name` is the call site, unless the job set one."""
    lines = _facts(spark, blocks, "stage").select(
        "app",
        F.col("id").alias("stage"),
        F.col("attempt").cast("string").alias("stage_attempt"),
        "name",
        "description",
        "status",
        _numbers("jobs"),
        F.col("count").alias("tasks"),
        "executor_cpu_ns",
        "deserialize_cpu_ns",
        "run_time_ms",
        _time("begun_ns", "submitted"),
        _time("ended_ns", "completed"),
        *_said(),
    )
    named = lines.columns[:3]
    return with_told(lines, spark, blocks).select(*named, *TOLD, *lines.columns[3:])


def jobs(spark, blocks):
    """Jobs, with the query that each is of."""
    lines = _facts(spark, blocks, "job").withColumn("job", F.expr("try_cast(id AS BIGINT)"))
    lines = lines.join(_queries_of_jobs(spark, blocks), ["app", "job"], "left")
    return lines.select(
        "app",
        F.col("id").alias("spark_job"),
        F.col("sql").cast("string").alias("sql"),
        "name",
        "description",
        "status",
        _numbers("stages"),
        F.col("count").alias("tasks"),
        _time("begun_ns", "submitted"),
        _time("ended_ns", "completed"),
        *_said(),
    )


def queries(spark, blocks):
    """Executions of Spark SQL."""
    return _facts(spark, blocks, "sql").select(
        "app",
        F.col("id").alias("sql"),
        F.col("name").alias("description"),
        "status",
        _numbers("jobs"),
        _time("begun_ns", "submitted"),
        _time("ended_ns", "completed"),
        *_said(),
    )


def operators(spark, blocks):
    """Operators of the queries' plans; of a plan that is not kept one line, which says why."""
    lines = F.filter(F.split("description", "\n"), lambda line: line != "")
    plans = _facts(spark, blocks, "plan").select(
        "app",
        F.col("id").alias("sql"),
        F.when(F.col("name") != "", F.col("name")).alias("says"),
        _numbers("edges"),
        F.explode_outer(lines).alias("line"),
        *_said(),
    )
    plans = plans.select(
        "app",
        "sql",
        F.expr("try_cast(regexp_extract(line, '^([0-9]+) ', 1) AS INT)").alias("node"),
        F.expr("try_cast(regexp_extract(line, '^[0-9]+ ([0-9]+) ', 1) AS INT)").alias("codegen"),
        F.expr("nullif(regexp_extract(line, '^[0-9]+ [^ ]+ (.*)$', 1), '')").alias("operator"),
        "says",
        "edges",
        "source",
        "fetched",
    )
    # Pairs: from who gives rows to who takes them.
    pairs = "sequence(0, cast(floor(size(edges) / 2) AS INT) - 1)"
    takers = "transform(filter(%s, i -> edges[2 * i] = node), i -> cast(edges[2 * i + 1] AS INT))" % pairs
    given_to = F.expr("if(size(edges) < 2, cast(array() AS ARRAY<INT>), %s)" % takers).alias("gives_to")
    return plans.select("app", "sql", "node", "codegen", "operator", given_to, "says", "source", "fetched")


def executors(spark, blocks):
    """Executors, `driver` among them: when Spark added and removed each, and why."""
    return _facts(spark, blocks, "executor").select(
        "app",
        F.col("id").alias("executor"),
        F.col("name").alias("host"),
        F.col("count").alias("cores"),
        "status",
        _time("begun_ns", "added"),
        _time("ended_ns", "removed"),
        F.col("description").alias("reason"),
        *_said(),
    )


def settings(spark, blocks):
    """Settings of applications: of a closed list (docs/runs.md#settings)."""
    named = (F.col("id").alias("setting"), F.col("name").alias("value"))
    return _facts(spark, blocks, "setting").select("app", *named, *_said())


#: The views of it, by name.
VIEWS = {
    "spark_stages": stages,
    "spark_jobs": jobs,
    "spark_queries": queries,
    "spark_operators": operators,
    "spark_executors": executors,
    "spark_settings": settings,
}
