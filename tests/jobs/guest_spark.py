"""A small PySpark application whose time is known by stage: one that the JVM computes, one that Python does.

For a machine that is emulated, so that seconds of CPU are few and the application is one JVM (local mode) with one Python worker
for each core. Runs until each stage has used about so many seconds of CPU. Prints facts: `app`, for both stages its number and what
Spark itself measured of its tasks (`jvm.stage`, `jvm.cpu_ns`, `python.stage`, `python.cpu_ns`), the clocks of the Python workers
over their stage (`python.workers_ns`), and `done`.

    guest_spark.py SECONDS
"""

import json
import os
import sys
import time
import urllib.request

from pyspark.sql import SparkSession


def fact(name, value):
    print(f"fact {name}={value}", flush=True)


def burn(seconds):
    """Computes for so many seconds of this process's CPU time; how often it looked at the clock."""
    end = time.process_time() + seconds
    rounds = 0
    while time.process_time() < end:
        rounds += 1
        sum(range(2000))
    return rounds


def partition_of(seconds):
    def burns(rows):
        rounds = burn(seconds)
        # Of a worker that was forked for this stage, which is all that it used.
        yield (time.process_time_ns(), rounds)

    return burns


def newest_stages(spark, count):
    """The newest stages that ended, as Spark's REST API tells them; one is there a moment after its end."""
    time.sleep(2)
    app = spark.sparkContext.applicationId
    url = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{app}/stages?status=complete"
    with urllib.request.urlopen(url, timeout=60) as answer:
        stages = json.load(answer)
    return sorted(stages, key=lambda stage: stage["stageId"])[-count:]


def told(name, stage):
    fact(f"{name}.stage", stage["stageId"])
    fact(f"{name}.cpu_ns", stage["executorCpuTime"] + stage["executorDeserializeCpuTime"])


def main():
    seconds = float(sys.argv[1])
    cores = os.cpu_count()
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("guest")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.network.timeout", "600s")
        .config("spark.executor.heartbeatInterval", "60s")
        .config("spark.python.worker.reuse", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    fact("app", spark.sparkContext.applicationId)

    def computed(rows):
        """The stage that computes over so many rows; after it comes one that adds the partitions' results up."""
        spark.range(0, rows, 1, cores).selectExpr("xxhash64(id) % 1000003 AS h").agg({"h": "max"}).collect()
        return max(newest_stages(spark, 2), key=lambda stage: stage["executorCpuTime"])

    # More rows each time, until they take a fourth of what is asked; by then all is compiled.
    rows = 1_000_000
    while (stage := computed(rows))["executorCpuTime"] < seconds / 4 * 1e9:
        rows *= 4
    told("jvm", computed(int(rows * seconds * 1e9 / stage["executorCpuTime"])))

    context = spark.sparkContext
    spent = context.parallelize(range(cores), cores).mapPartitions(partition_of(seconds / cores)).collect()
    told("python", newest_stages(spark, 1)[0])
    fact("python.workers_ns", sum(of_one for of_one, _ in spent))
    fact("done", "yes")
    spark.stop()


main()
