"""A client of Spark Connect: queries with a Python function of its own name, and work of its own.

Arguments: the server's port, `alpha` or `beta` (the function that its queries run), and how often. Prints the facts
`session` (the session's id) and `done`, and stays until it is killed: a client that has ended has no connection.
"""
import sys
import time

import pyspark.sql.functions as F
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType

port, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])


def alpha(x):
    total = 0.0
    for i in range(2000):
        total += (x * i) % 7
    return total


def beta(x):
    total = 0.0
    for i in range(2000):
        total += (x + i) % 5
    return total


def own_work(seconds):
    end, total = time.process_time() + seconds, 0
    while time.process_time() < end:
        for i in range(100_000):
            total += i % 3
    return total


spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
print(f"fact session={spark.session_id}", flush=True)
function = F.udf(alpha if name == "alpha" else beta, DoubleType())
for _ in range(rounds):
    numbers = spark.range(0, 6000, 1, 4).select(function(F.col("id")).alias("v"), (F.col("id") % 5).alias("k"))
    numbers.groupBy("k").agg(F.sum("v")).collect()
own_work(2.0)
print("fact done=yes", flush=True)
time.sleep(3600)
