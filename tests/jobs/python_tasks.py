"""A Spark job whose Python functions tell by what they run which partition they work for.

Each call of a function burns CPU time in a C library's function that is the partition's own (by partition modulo 4: crc32 of
zlib, sha512 of OpenSSL, BZ2_bzCompress of bzip2, lzma_code of xz), and notes
in `calls/PID` whose it was: kind, stage, partition, attempt, TID, the CPU time in nanoseconds, and that of the process since its
start. A phase is a kind of
function: `udf` pickled, `arrow`, `map` (mapInPandas), `apply` (applyInPandas, after a shuffle), `rdd` (mapPartitions), `foreach`
(foreachPartition of a data frame), `cogroup` (applyInPandas of two data frames), `state` (applyInPandasWithState, one micro-batch
of a stream), `source` (a data source in Python, Spark 4.0), `two` (two Python functions in one task, an RDD's below a pickled one). Prints the facts `app`, `started` and `ended` (Unix
milliseconds), `KIND.ended` and `KIND.workers_ns` (what the clocks of Python's workers and their daemon went on by) of each kind, and
`done`; ends when a file `stop` is there. With --warm, four workers are there before the first kind.

    python_tasks.py [--kinds udf,arrow,..] [--partitions 8] [--calls 40] [--ms 25] [--warm]
"""

import argparse
import os
import time

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def fact(name, value):
    print(f"fact {name}={value}", flush=True)


CLOCKS = {}


def workers_ns():
    """CPU time of tasks' Python workers and their daemon so far, nanoseconds: each process's clock (clock_getcpuclockid(3)).

    Of one that has ended what it had when it was seen last. Workers that a driver plans with (`pyspark.sql.worker...`) are of no task.
    """
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read()
            # Before 4.0 the daemon's command does not name the module that it forks for.
            is_planning = b"pyspark.sql.worker" in words
            if not is_planning and (b"pyspark.daemon" in words or b"pyspark.worker" in words):
                # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED), include/linux/posix-timers_types.h.
                CLOCKS[pid] = time.clock_gettime_ns((~int(pid) << 3) | 2)
        except OSError:
            pass
    return sum(CLOCKS.values())


def sleeps(rows):
    time.sleep(1)
    yield from rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", default="udf,rdd")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--ms", type=int, default=25)
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
    partitions, calls, ms = options.partitions, options.calls, options.ms
    notes = os.path.abspath("calls")
    os.makedirs(notes, exist_ok=True)

    def burn(kind):
        import bz2
        import hashlib
        import lzma
        import zlib

        task = TaskContext.get()
        which, begun = task.partitionId() % 4, time.process_time_ns()
        work = [zlib.crc32, hashlib.sha512, bz2.compress, lzma.compress][which]
        text = bytes(range(256)) * (32 if which == 3 else 1024)
        while time.process_time_ns() - begun < ms * 1_000_000:
            work(text)
        used = time.process_time_ns() - begun
        ids = (task.stageId(), task.partitionId(), task.attemptNumber(), task.taskAttemptId())
        with open(f"{notes}/{os.getpid()}", "a") as file:
            file.write(" ".join(map(str, (kind, *ids, used, time.process_time_ns()))) + "\n")
        return 1

    def of_udf(_):
        return burn("udf")

    def of_arrow(column):
        for _ in range(len(column)):
            burn("arrow")
        return column

    def of_map(batches):
        for batch in batches:
            for _ in range(len(batch)):
                burn("map")
            yield batch

    def of_apply(group):
        for _ in range(len(group)):
            burn("apply")
        return group

    def of_rdd(rows):
        for _ in rows:
            yield burn("rdd")

    def of_foreach(rows):
        for _ in rows:
            burn("foreach")

    def of_cogroup(left, right):
        for _ in range(len(left)):
            burn("cogroup")
        return left

    def of_state(key, groups, state):
        import pandas

        n = sum(burn("state") for group in groups for _ in range(len(group)))
        state.update((n,))
        yield pandas.DataFrame({"n": [n]})

    def of_source():
        from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

        class Reader(DataSourceReader):
            def partitions(self):
                return [InputPartition(which) for which in range(partitions)]

            def read(self, partition):
                for row in range(calls):
                    burn("source")
                    yield (row,)

        class Source(DataSource):
            @classmethod
            def name(cls):
                return "burns"

            def schema(self):
                return "id long"

            def reader(self, schema):
                return Reader()

        spark.dataSource.register(Source)
        spark.read.format("burns").load().agg(F.sum("id")).collect()

    def of_stream():
        from pyspark.sql.streaming.state import GroupStateTimeout

        stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()
        groups = stream.withColumnRenamed("value", "id").select("id").groupBy("id")
        counted = groups.applyInPandasWithState(of_state, "n long", "n long", "update", GroupStateTimeout.NoTimeout)
        writer = counted.writeStream.format("noop").outputMode("update").trigger(once=True)
        writer.option("checkpointLocation", os.path.abspath("checkpoint")).start().awaitTermination()

    def of_inner(rows):
        for row in rows:
            burn("inner")
            yield (row,)

    builder = SparkSession.builder.appName("python tasks").config("spark.sql.shuffle.partitions", str(partitions))
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "4")
    spark = builder.config("spark.sql.adaptive.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    fact("app", spark.sparkContext.applicationId)
    rows = partitions * calls
    ids = lambda: spark.range(0, rows, 1, partitions)
    arrow = lambda: F.pandas_udf(of_arrow, "long")
    kinds = {
        "udf": lambda: ids().select(F.udf(of_udf, "int")("id").alias("n")).agg(F.sum("n")).collect(),
        "arrow": lambda: ids().select(arrow()("id").alias("n")).agg(F.sum("n")).collect(),
        "map": lambda: ids().mapInPandas(of_map, "id long").agg(F.sum("id")).collect(),
        "apply": lambda: ids().groupBy("id").applyInPandas(of_apply, "id long").agg(F.sum("id")).collect(),
        "rdd": lambda: spark.sparkContext.range(rows, numSlices=partitions).mapPartitions(of_rdd).sum(),
        "cogroup": lambda: ids()
        .groupBy("id")
        .cogroup(ids().groupBy("id"))
        .applyInPandas(of_cogroup, "id long")
        .agg(F.sum("id"))
        .collect(),
        "state": of_stream,
        "source": of_source,
        "foreach": lambda: ids().foreachPartition(of_foreach),
        "two": lambda: spark.createDataFrame(
            spark.sparkContext.range(rows, numSlices=partitions).mapPartitions(of_inner), "id long"
        ).select(F.udf(of_udf, "int")("id").alias("n")).agg(F.sum("n")).collect(),
    }
    fact("started", int(time.time() * 1000))
    if options.warm:
        # Functions in SQL have workers of their own, and those of pandas import it.
        spark.sparkContext.range(4, numSlices=4).mapPartitions(sleeps).sum()
        spark.range(0, 4, 1, 4).select(F.udf(lambda n: time.sleep(1) or n, "long")("id")).collect()
        if set(options.kinds.split(",")) & {"arrow", "map", "apply", "cogroup", "state", "source"}:
            spark.range(0, 4, 1, 4).mapInPandas(sleeps, "id long").collect()
    for kind in options.kinds.split(","):
        before = workers_ns()
        kinds[kind]()
        # What a worker does once its task has ended.
        time.sleep(0.2)
        fact(f"{kind}.workers_ns", workers_ns() - before)
        fact(f"{kind}.ended", int(time.time() * 1000))
    fact("ended", int(time.time() * 1000))
    fact("done", rows)
    while not os.path.exists("stop"):
        time.sleep(0.05)
    spark.stop()


main()
