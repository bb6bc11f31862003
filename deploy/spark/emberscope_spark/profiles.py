"""The questions: flame graphs, methods, stages, differences, the ledger, over blocks of any number of nodes and days.

In: a Spark session and paths. Out: DataFrames; the driver holds no sample. Numbers are the HTTP API's: counts are
samples, weights are in the unit of the kind (nanoseconds for `cpu`), windows are taken whole.
"""

from pyspark.sql import Window
from pyspark.sql import functions as F

from . import blocks as found
from . import drawing, operators, stacks, tables, views, words
from .flame import NODES
from .selection import LABELS, TOLD, Selection, texts

_WHOLE = "decimal(38, 0)"


class Profiles:
    """Blocks of a store, an archive, or several.

    `paths`: a path or glob, or a list: data directories, stores, directories of blocks, archives with `nodes/HOST/blocks`.
    `since` and `until` leave out blocks that have nothing in that span, here and now: later selections lie inside of it.
    """

    def __init__(self, spark, paths, since=None, until=None):
        self.spark = spark
        every, span = found.read(spark, paths), Selection(since=since, until=until)
        self.blocks = self._in_span(every, span)
        if span.until_ns is not None:
            span.until_ns += words.LAST_WORDS
        #: Blocks that may tell what Spark said of their stages.
        self.telling = self._in_span(every, span)

    @staticmethod
    def _in_span(blocks, selection):
        return [block for block in blocks if selection.touches(block.from_ns, block.until_ns) is not False]

    def _blocks_of(self, selection):
        """Blocks that have anything of a selection. Asks the label sets, where it names labels."""
        blocks = self._in_span(self.blocks, selection)
        if not blocks or not (selection.labels or selection.where is not None):
            return blocks
        self._ensure_one_app(blocks, selection)
        sets = self._sets(blocks, selection)
        having = {line.key for line in sets.select("block").distinct().select(F.col("block").alias("key")).collect()}
        numbers = self.spark.createDataFrame([(block.key,) for block in blocks], "key STRING")
        numbers = numbers.select("key", tables.block_of(F.col("key")).alias("block")).collect()
        keys = {line.key for line in numbers if line.block in having}
        return [block for block in blocks if block.key in keys]

    def _sets(self, blocks, selection, by=()):
        """The label sets of a selection, with the labels that stages tell where they are asked for."""
        sets = tables.label_sets(self.spark, blocks)
        if selection.is_told() or not set(TOLD).isdisjoint(by):
            sets = words.with_told(sets, self.spark, self.telling)
        return selection.of_labels(sets)

    def _ensure_one_app(self, blocks, selection):
        """Refuses the number of a query or a job where it could be any application's."""
        named = [label for label in TOLD if label in selection.labels]
        if not named or len(selection.labels.get("app", ())) == 1:
            return
        apps = self._sets(blocks, selection.without(TOLD)).where("app != ''").select("app").distinct()
        apps = sorted(line["app"] for line in apps.limit(_MOST_NAMED).collect())
        if len(apps) > 1:
            raise ValueError("%s is a number within an application: name one with app=; there are %s" % (named[0], ", ".join(apps)))

    def _windows(self, blocks, selection):
        return selection.of_windows(tables.read(self.spark, blocks, "windows"))

    def _groups(self, blocks, selection, by=()):
        """Groups of rows with labels and window; with those of `by` that stages tell."""
        groups = tables.read(self.spark, blocks, "groups").where(F.col("kind") == selection.kind)
        groups = groups.drop("frames", "approximate")
        sets = self._sets(blocks, selection, by)
        windows = self._windows(blocks, selection)
        return groups.join(windows, ["block", "window"]).join(sets, ["block", "label_set"])

    def _sums(self, blocks, selection, by):
        """Sums by block, stack and labels; `operator` is told by the stack."""
        of_stacks, by = operators.LABEL in by, [label for label in by if label != operators.LABEL]
        groups = self._groups(blocks, selection, by).select("block", "group", "period", *by)
        rows = tables.read(self.spark, blocks, "samples").join(groups, ["block", "group"])
        sums = rows.groupBy("block", "stack", *by)
        sums = sums.agg(F.sum("count").alias("count"), tables.sum_of_weights().alias("weight"))
        if not of_stacks:
            return sums
        told = tables.paths(self.spark, blocks, "operator").select("block", "stack", F.col("path").alias(operators.LABEL))
        return sums.join(told, ["block", "stack"])

    def samples(self, selection=None, **keywords):
        """Rows with their labels: a stack, in a window, by a label set. `weight` is a decimal."""
        selection = Selection.of(selection, keywords)
        blocks = self._blocks_of(selection)
        groups = self._groups(blocks, selection, TOLD).drop("count", "rest", "label_set")
        rows = tables.read(self.spark, blocks, "samples").join(groups, ["block", "group"])
        time = F.timestamp_seconds(F.col("from_ns") / 1e9).alias("time")
        weight = tables.exact_weight().alias("weight")
        return rows.select("block", time, "from_ns", "until_ns", "kind", *LABELS, *TOLD, "stack", "count", weight)

    def stacks(self, annotate=False, selection=None, **keywords):
        """Stacks of all blocks that have anything of a selection, as folded text: block, stack, end, path."""
        selection = Selection.of(selection, keywords)
        return tables.paths(self.spark, self._blocks_of(selection), "folded", annotate)

    def flame_graph(self, selection=None, group=(), annotate=False, **keywords):
        """Folded stacks with `count` and `weight`. `group`: labels whose values stand before each stack, `operator` too."""
        selection, group = Selection.of(selection, keywords), _labels(group, operators.LABEL)
        blocks = self._blocks_of(selection)
        sums = self._sums(blocks, selection, group)
        whole = sums.join(tables.paths(self.spark, blocks, "folded", annotate), ["block", "stack"])
        prefix = [_prefix(label) for label in group]
        # Samples without any frame.
        path = F.when(F.col("path") != "", F.col("path"))
        if not group:
            path = F.coalesce(path, F.lit("(no frames)"))
        text = F.concat_ws(";", *prefix, path)
        return whole.groupBy(text.alias("stack")).agg(
            F.sum("count").alias("count"), F.sum("weight").cast(_WHOLE).alias("weight")
        )

    def flamegraph(self, selection=None, group=(), max_nodes=NODES, title="", **keywords):
        """Draws it: a FlameGraph, which a notebook shows. It is in the driver's memory, and its smallest nodes are taken together."""
        selection, group = Selection.of(selection, keywords), _labels(group, operators.LABEL)
        return drawing.draw(self, self._blocks_of(selection), selection, group, max_nodes, title)

    def top_methods(self, selection=None, **keywords):
        """Methods by the samples that ended in them (`self_*`) and in or below them (`total_*`)."""
        selection = Selection.of(selection, keywords)
        blocks = self._blocks_of(selection)
        whole = self._sums(blocks, selection, ()).join(
            tables.paths(self.spark, blocks, "methods"), ["block", "stack"]
        )
        each = whole.select("count", "weight", F.explode("path").alias("of"))
        own = lambda name: F.sum(F.when(F.col("of.own"), F.col(name)).otherwise(F.lit(0).cast(_WHOLE)))
        methods = each.groupBy(F.col("of.name").alias("name")).agg(
            F.min("of.module").alias("module"),
            own("count").cast("bigint").alias("self_count"),
            own("weight").cast(_WHOLE).alias("self_weight"),
            F.sum("count").alias("total_count"),
            F.sum("weight").cast(_WHOLE).alias("total_weight"),
        )
        return methods.orderBy(F.desc("self_weight"), F.desc("total_weight"), "name")

    def totals(self, by, selection=None, **keywords):
        """Sums by labels. Reads no rows: groups have their sums."""
        selection, by = Selection.of(selection, keywords), _labels(by)
        groups = self._groups(self._blocks_of(selection), selection, by)
        sums = groups.groupBy("block", *by).agg(
            F.sum("count").alias("count"), tables.sum_of_weights().alias("weight")
        )
        return sums.groupBy(*by).agg(F.sum("count").alias("count"), F.sum("weight").cast(_WHOLE).alias("weight"))

    def cpu_by_stage(self, selection=None, **keywords):
        """Sampled CPU time of stages, the most first."""
        of_stages = self.totals(("app", "stage", "stage_attempt"), selection, **keywords).where("stage IS NOT NULL")
        seconds = (F.col("weight") / F.lit(10**9)).cast("double").alias("cpu_seconds")
        return of_stages.select("*", seconds).orderBy(F.desc("weight"), "app", "stage", "stage_attempt")

    def by_operator(self, by=(), selection=None, **keywords):
        """Sampled CPU time of operators of Spark SQL, the most first, and by labels: docs/operators.md."""
        selection, by = Selection.of(selection, keywords), ("operator", *_labels(by))
        sums = self._sums(self._blocks_of(selection), selection, by).groupBy(*by)
        whole = sums.agg(F.sum("count").alias("count"), F.sum("weight").cast(_WHOLE).alias("weight"))
        return whole.orderBy(F.desc("weight"), *by)

    def runs(self, selection=None, **keywords):
        """The runs of jobs: a line for each application, `run` counting back from the newest of its job, which is -1.

        The job is what the label app_run says, else the application's name.
        """
        selection = Selection.of(selection, keywords)
        groups = self._groups(self._blocks_of(selection), selection).where("app != 'unknown'")
        sums = groups.groupBy("block", "app").agg(
            F.max("app_run").alias("app_run"),
            F.max("app_name").alias("app_name"),
            F.min("from_ns").alias("begin"),
            F.max("until_ns").alias("end"),
            F.sum("count").alias("count"),
            tables.sum_of_weights().alias("weight"),
        )
        time = lambda column: F.timestamp_seconds(column / 1e9)
        whole = sums.groupBy("app").agg(
            F.coalesce(F.max("app_run"), F.max("app_name")).alias("job"),
            F.max("app_name").alias("app_name"),
            time(F.min("begin")).alias("first"),
            time(F.max("end")).alias("last"),
            F.sum("count").alias("count"),
            F.sum("weight").cast(_WHOLE).alias("weight"),
        )
        newest = Window.partitionBy(F.coalesce("job", "app")).orderBy(F.desc("first"), F.desc("app"))
        number = (-F.row_number().over(newest)).alias("run")
        return whole.select("job", "app_name", "app", number, *whole.columns[3:])

    def run(self, job, number=-1):
        """The id of a run of a job: -1 is the newest, -2 the one before it."""
        lines = self.runs().where(F.col("job") == job).select("app", "run").collect()
        found = [line["app"] for line in lines if line["run"] == number]
        if not found:
            raise ValueError("of %r there are %d runs here, and %r is none of them" % (job, len(lines), number))
        return found[0]

    def series(self, step, by=(), selection=None, **keywords):
        """Sums by steps of so many seconds and by labels; a window counts in the step in which it begins."""
        selection, by = Selection.of(selection, keywords), _labels(by)
        groups = self._groups(self._blocks_of(selection), selection, by)
        length = int(step * 1_000_000_000)
        begin = F.expr("from_ns - from_ns %% %dL" % length).alias("step_ns")
        sums = groups.groupBy("block", begin, *by).agg(
            F.sum("count").alias("count"), tables.sum_of_weights().alias("weight")
        )
        whole = sums.groupBy("step_ns", *by).agg(
            F.sum("count").alias("count"), F.sum("weight").cast(_WHOLE).alias("weight")
        )
        time = F.timestamp_seconds(F.col("step_ns") / 1e9).alias("time")
        return whole.select(time, "step_ns", *by, "count", "weight").orderBy("step_ns", *by)

    def ledger(self, by=("app", "stage", "stage_attempt", "task"), selection=None, **keywords):
        """What the kernel counted, exact, by labels: CPU, waiting for a core, switches, faults, I/O."""
        selection, by = Selection.of(selection, keywords), _labels(by)
        blocks = self._blocks_of(selection)
        lines = tables.read(self.spark, blocks, "ledger").join(self._windows(blocks, selection), ["block", "window"])
        sets = self._sets(blocks, selection, by)
        sums = [F.sum(name).alias(name) for name in tables.LEDGER]
        return lines.join(sets, ["block", "label_set"]).groupBy(*by).agg(*sums)

    def diff(self, left, right):
        """Methods of two selections, those first whose share of all samples' weight changed most.

        `left` and `right` are Selections or dicts of their keywords. A share is of the side's whole.
        """
        sides = []
        for name, selection in (("left", left), ("right", right)):
            selection = Selection.of(selection, {})
            renamed = [F.col(c).alias("%s_%s" % (name, c)) for c in _NUMBERS]
            methods = self.top_methods(selection).select("name", F.col("module").alias(name + "_module"), *renamed)
            whole = self.totals((), selection).select(F.col("weight").alias(name + "_whole"))
            sides.append(methods.crossJoin(F.broadcast(whole)))
        both = sides[0].join(sides[1], "name", "full_outer")
        number = lambda name: F.coalesce(F.col(name), F.lit(0))
        share = lambda side: F.coalesce(
            F.col(side + "_self_weight").cast("double") / F.col(side + "_whole").cast("double"), F.lit(0.0)
        )
        change = share("right") - share("left")
        rows = both.select(
            "name",
            F.least("left_module", "right_module").alias("module"),
            *[number("%s_%s" % (side, c)).alias("%s_%s" % (side, c)) for side in ("left", "right") for c in _NUMBERS],
            share("left").alias("left_share"),
            share("right").alias("right_share"),
            change.alias("change"),
        )
        return rows.orderBy(F.desc(F.abs("change")), "name")

    def _said(self, of, app):
        lines = of(self.spark, self.telling)
        return lines if app is None else lines.where(F.col("app").isin(texts(app)))

    def spark_stages(self, app=None):
        """Attempts of stages as Spark told them, with their call sites, jobs and queries; of some applications or of all."""
        return self._said(words.stages, app)

    def spark_jobs(self, app=None):
        """Jobs as Spark told them, with their stages and queries."""
        return self._said(words.jobs, app)

    def spark_queries(self, app=None):
        """Executions of Spark SQL as Spark told them, with their descriptions and jobs."""
        return self._said(words.queries, app)

    def spark_operators(self, app=None):
        """Operators of the queries' plans as Spark told them, and to which of them each gives its rows."""
        return self._said(words.operators, app)

    def spark_executors(self, app=None):
        """Executors as Spark told them: when they came and went, and why."""
        return self._said(words.executors, app)

    def spark_settings(self, app=None):
        """Settings of applications: of a closed list."""
        return self._said(words.settings, app)

    def register(self, prefix="emberscope"):
        """Makes temporary views of this session, for SQL: docs/spark-sql.md lists them. Out: their names."""
        return views.register(self, prefix)

    @staticmethod
    def write_folded(flame_graph, file, weight=False):
        """Writes a flame graph's DataFrame to a file of this machine, as folded stacks, sorted. Out: lines written.

        Rows come one partition at a time: only one of them is in memory.
        """
        number = "weight" if weight else "count"
        lines = 0
        with open(file, "w", encoding="utf-8") as out:
            for line in flame_graph.where(F.col(number) > 0).orderBy("stack").toLocalIterator():
                out.write("%s %d\n" % (line["stack"], int(line[number])))
                lines += 1
        return lines


#: Applications that an error names.
_MOST_NAMED = 5
_NUMBERS = ("self_count", "self_weight", "total_count", "total_weight")


def _labels(names, *more):
    names = (names,) if isinstance(names, str) else tuple(names)
    known = LABELS + TOLD + more
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError("%r is no label; there are: %s" % (unknown[0], ", ".join(known)))
    return names


def _prefix(label):
    """`stage=3`, or `stage=(none)`, as a line of folded stacks can carry it."""
    text = F.concat(F.lit(label + "="), F.coalesce(F.col(label), F.lit("(none)")))
    return F.trim(F.regexp_replace(F.translate(text, ";", ":"), stacks.UNFIT, " "))
