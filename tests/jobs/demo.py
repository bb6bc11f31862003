"""The demo's Spark job: about a minute of real work on two executors.

Rounds of a join with a shuffle, an aggregation, a sort, and work that burns CPU in methods whose names
one finds again in the flame graph: levenshtein distance, SHA-2, regular expressions. Prints the facts
`app`, `started`, `ended` (Unix seconds) and `done`.

    demo.py [--seconds 60]
"""

import argparse
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def fact(name, value):
    print(f"fact {name}={value}", flush=True)


def orders(spark, rows):
    """Orders with a customer, a price and some text."""
    return spark.range(rows).select(
        F.col("id").alias("order"),
        (F.hash("id") % 5000).alias("customer"),
        (F.rand(7) * 100).alias("price"),
        F.concat_ws("-", F.lit("order"), F.hex("id"), F.sha2(F.col("id").cast("string"), 256)).alias("note"),
    )


def customers(spark):
    """Customers with a name, one for each remainder of orders()."""
    return spark.range(-5000, 5000).select(
        F.col("id").alias("customer"), F.concat(F.lit("customer "), F.md5(F.col("id").cast("string"))).alias("name")
    )


def revenue(spark, rows):
    """Join, shuffle, aggregate, sort."""
    return (
        orders(spark, rows)
        .join(customers(spark).hint("shuffle_merge"), "customer")
        .groupBy("name")
        .agg(F.sum("price").alias("revenue"), F.count("*").alias("orders"), F.max("note").alias("last"))
        .orderBy(F.desc("revenue"))
    )


def text(spark, rows):
    """CPU in levenshtein distance, regular expressions and SHA-2."""
    noted = orders(spark, rows).withColumn("shown", F.regexp_replace("note", "([a-f]+)([0-9]+)", "$2$1"))
    return noted.agg(
        F.sum(F.levenshtein(F.substring("note", 1, 60), F.substring("shown", 1, 60))).alias("distance"),
        F.max(F.sha2("shown", 512)).alias("digest"),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds

    spark = SparkSession.builder.appName("emberscope-demo").config("spark.sql.shuffle.partitions", 8).getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    fact("app", spark.sparkContext.applicationId)
    fact("started", int(time.time()))
    end = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < end:
        revenue(spark, 300_000).limit(100).collect()
        text(spark, 40_000).collect()
        rounds += 1
    fact("ended", int(time.time()) + 1)
    fact("done", rounds)
    spark.stop()


main()
