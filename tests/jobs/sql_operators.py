"""A Spark job of queries of which most is one operator's work.

Each query runs as often as --rows has numbers, on that many times its rows: an execution of Spark SQL each, described
by its name and that number. Prints the facts `app`, `NAME.ended` (Unix milliseconds) of each query, and `done`; ends when
a file `stop` is there.

    sql_operators.py [--rows 1 64] [--only NAME]...
"""

import argparse
import os
import time

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType


def fact(name, value):
    print(f"fact {name}={value}", flush=True)


def text(column):
    """Text of a number, with a long beginning that all have."""
    return F.concat(F.lit("the same beginning of every text "), F.reverse(column.cast("string")))


class Queries:
    """The queries. Each works on so many times its rows, without a result."""

    def __init__(self, spark, base):
        self.spark, self.base = spark, base

    def prepare(self):
        rows = self.spark.range(0, 300_000, 1, 2)
        rows.select("id", (F.col("id") % 97).alias("k"), text(F.col("id")).alias("text")).write.parquet(self.file())

    def file(self):
        return f"{self.base}/read"

    def rows(self, count):
        return self.spark.range(0, count, 1, 2)

    def noop(self, frame):
        frame.write.format("noop").mode("overwrite").save()

    def hash_aggregate(self, n):
        key = (F.col("id") * 7919 % 1000).alias("k")
        self.noop(self.rows(n * 1_000_000).groupBy(key).agg(F.sum("id"), F.max("id"), F.avg("id"), F.stddev("id")))

    def sort(self, n):
        self.noop(self.rows(n * 60_000).select(text(F.col("id")).alias("k")).sortWithinPartitions("k"))

    def sort_merge_join(self, n):
        # With whole-stage code its loop is in the method of all that stage.
        self.spark.conf.set("spark.sql.codegen.wholeStage", "false")
        left = self.rows(n * 4_000).select((F.col("id") % (n * 20)).alias("k"), F.col("id").alias("left"))
        right = self.rows(n * 4_000).select((F.col("id") % (n * 20)).alias("k"), F.col("id").alias("right"))
        self.noop(left.join(right, "k").where("left + right < 0"))
        self.spark.conf.unset("spark.sql.codegen.wholeStage")

    def window(self, n):
        rows = self.rows(n * 40_000).withColumn("k", F.col("id") % 2)
        over = Window.partitionBy("k").orderBy("id").rowsBetween(-60, 60)
        self.noop(rows.withColumn("most", F.max(F.col("id") * 3).over(over)))

    def broadcast_hash_join(self, n):
        small = self.rows(1000).select((F.col("id") * 3).alias("k"), F.col("id").alias("value"))
        rows = self.rows(n * 2_000_000).withColumn("k", F.col("id") * 7919 % 3000)
        self.noop(rows.join(F.broadcast(small), "k").agg(F.sum("value")))

    def exchange(self, n):
        # Nothing is worked out: making a text would take as long as sending it.
        self.noop(self.rows(n * 300_000).repartition(3, "id"))

    def scan_parquet(self, n):
        # A file as often as it takes.
        self.noop(self.spark.read.schema("id long, k long, text string").parquet(*[self.file()] * n))

    def write_parquet(self, n):
        # Numbers: making a text would take as long as writing it.
        numbers = [(F.col("id") * factor).alias(f"times_{factor}") for factor in (3, 5, 7, 11, 13)]
        rows = self.rows(n * 60_000).select("id", *numbers)
        rows.write.mode("overwrite").parquet(f"{self.base}/written")

    def batch_eval_python(self, n):
        worked = F.udf(lambda number: sum(range(number % 50)), LongType())
        self.noop(self.rows(n * 40_000).select(worked("id")))

    def generate(self, n):
        words = F.split(F.repeat(F.lit("some,words,"), 40), ",")
        self.noop(self.rows(n * 10_000).select(F.explode(words).alias("word")))


OTHERS = ("file", "noop", "prepare", "rows")
NAMES = [name for name in vars(Queries) if not name.startswith("_") and name not in OTHERS]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--only", action="append", choices=NAMES)
    arguments = parser.parse_args()

    builder = SparkSession.builder.appName("sql operators")
    builder = builder.config("spark.sql.autoBroadcastJoinThreshold", "-1").config("spark.sql.shuffle.partitions", "2")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    fact("app", spark.sparkContext.applicationId)
    queries = Queries(spark, os.path.abspath("tables"))
    spark.sparkContext.setJobDescription("prepare")
    queries.prepare()
    for name in arguments.only or NAMES:
        query = getattr(queries, name)
        for rows in arguments.rows:
            spark.sparkContext.setJobDescription(f"{name} {rows}")
            query(rows)
        fact(f"{name}.ended", int(time.time() * 1000))
    fact("done", 1)
    while not os.path.exists("stop"):
        time.sleep(0.05)
    spark.stop()


main()
