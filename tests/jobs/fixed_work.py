"""A Spark job of a fixed number of calls, run again and again on request.

When a file `go.N` appears in the working directory, the job is run once, in the same, warm session, and
`fact run.N=` gives JSON: wall seconds, the task threads' CPU seconds as Spark itself measured them
(executorCpuTime), and the executors' CPU seconds from /proc. A file `stop` ends it.

Arguments: rows per run (the fixed number of calls).
"""

import json
import os
import sys
import time
import urllib.request

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

TICK = os.sysconf("SC_CLK_TCK")


def executor_pids(app_id):
    """Pids of this application's executors on this host."""
    pids = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if b"--executor-id" in words and app_id.encode() in words:
            pids.append(int(name))
    return sorted(pids)


def cpu_seconds(pids):
    """utime + stime of the processes, seconds (10 ms ticks)."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def spark_cpu_seconds(spark):
    """Sum of executorCpuTime of all stages so far, from the driver's REST API."""
    sc = spark.sparkContext
    port = sc.uiWebUrl.rsplit(":", 1)[1]
    url = f"http://127.0.0.1:{port}/api/v1/applications/{sc.applicationId}/stages"
    with urllib.request.urlopen(url, timeout=30) as answer:
        stages = json.load(answer)
    return sum(s["executorCpuTime"] for s in stages) / 1e9


def job(spark, rows):
    """Hashing, arithmetic, an aggregation with a shuffle and a sort: the same calls each time."""
    numbers = spark.range(0, rows, 1, 8)
    mixed = numbers.select(
        (F.col("id") % 5000).alias("key"),
        F.xxhash64("id", F.col("id") * 31).alias("h"),
        F.sqrt(F.col("id").cast("double")).alias("r"),
        F.sha2(F.col("id").cast("string"), 256).alias("digest"),
    )
    grouped = mixed.groupBy("key").agg(F.sum("h").alias("h"), F.avg("r").alias("r"), F.max("digest").alias("d"))
    return grouped.orderBy("d").agg(F.sum("h"), F.max("d"), F.count("*")).collect()[0]


def measured(spark, rows, expected, pids):
    """One run: its figures."""
    spark_before, proc_before, start = spark_cpu_seconds(spark), cpu_seconds(pids), time.monotonic()
    assert job(spark, rows) == expected
    wall = time.monotonic() - start
    proc_after = cpu_seconds(pids)
    time.sleep(0.3)  # the status store takes the last task's end a moment later
    return {
        "wall_s": wall,
        "thread_cpu_s": spark_cpu_seconds(spark) - spark_before,
        "process_cpu_s": proc_after - proc_before,
    }


def main():
    rows = int(sys.argv[1])
    spark = (
        SparkSession.builder.appName("fixed work")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.ui.retainedStages", "100000")
        .config("spark.sql.adaptive.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    expected = job(spark, rows)
    pids = executor_pids(spark.sparkContext.applicationId)
    print(f"fact executors={','.join(map(str, pids))}", flush=True)
    print(f"fact app={spark.sparkContext.applicationId}", flush=True)
    run = 1
    while not os.path.exists("stop"):
        if os.path.exists(f"go.{run}"):
            print(f"fact run.{run}={json.dumps(measured(spark, rows, expected, pids))}", flush=True)
            run += 1
        time.sleep(0.05)
    spark.stop()
    print("fact done=yes", flush=True)


main()
