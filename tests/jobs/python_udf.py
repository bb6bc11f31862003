"""A Spark job with a Python function whose input costs CPU time in the JVM.

Up to Spark 3.5 all that is upstream of the function runs in a thread that the task's own thread starts
(`stdout writer for python3`); from 4.0 on in the task's own. Prints the facts `app`, `started`, `ended` (Unix
milliseconds) and `done`; ends when a file `stop` is there.

    python_udf.py [--rounds 3]
"""

import argparse
import os
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType


def fact(name, value):
    print(f"fact {name}={value}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds

    spark = SparkSession.builder.appName("python function").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    fact("app", spark.sparkContext.applicationId)
    length = F.udf(lambda text: len(text), IntegerType())

    def work(rows):
        digest = F.sha2(F.sha2(F.sha2(F.col("id").cast("string"), 512), 512), 256)
        spark.range(0, rows, 1, 8).select(length(digest).alias("n")).agg(F.sum("n")).collect()

    work(50_000)
    fact("started", int(time.time() * 1000))
    for _ in range(rounds):
        work(1_500_000)
    fact("ended", int(time.time() * 1000))
    fact("done", rounds)
    while not os.path.exists("stop"):
        time.sleep(0.05)
    spark.stop()


main()
