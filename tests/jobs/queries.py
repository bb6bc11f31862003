"""A Spark job of queries as analysts write them, over tables of a shop that it makes first; and queries of which most is one
operator's work, each with the same query without it.

Each runs as often as --times says. What it is called, and the number of the time, describe its execution of Spark SQL:
`star_join 1`; of a pair `sort with 2`, `sort without 2`. Prints the facts `app` and `done`; ends when a file `stop` is
there.

    queries.py [--rows 1000000] [--times 2] [--pair-times 4] [--only NAME]...
"""

import argparse
import os
import time

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType


def fact(name, value):
    print(f"fact {name}={value}", flush=True)


def noop(frame):
    frame.write.format("noop").mode("overwrite").save()


class Shop:
    """The tables: sales and returns of them by item, customer, day and shop."""

    def __init__(self, spark, base, rows):
        self.spark, self.base, self.rows = spark, base, rows

    def prepare(self):
        number = lambda salt, below: (F.abs(F.hash(F.col("id"), F.lit(salt))) % below)
        sales = self.spark.range(0, self.rows, 1, 4).select(
            F.col("id").alias("ticket"),
            number(1, 18_000).alias("item"),
            number(2, 100_000).alias("customer"),
            number(3, 1_800).alias("day"),
            number(4, 12).alias("shop"),
            (number(5, 100) + 1).alias("quantity"),
            (number(6, 20_000) / 100.0).alias("price"),
            F.concat_ws(" ", *[F.element_at(WORDS, number(salt, len(WORD)) + 1) for salt in range(7, 13)]).alias("note"),
        )
        sales.write.mode("overwrite").parquet(f"{self.base}/sales")
        self.read("sales").where("ticket % 10 = 3").select(
            "ticket", "item", "customer", (F.col("day") + 7).alias("day"), (F.col("price") * 0.9).alias("refund")
        ).write.mode("overwrite").parquet(f"{self.base}/returns")
        items = self.spark.range(0, 18_000, 1, 1).select(
            F.col("id").alias("item"),
            F.concat(F.lit("brand "), F.col("id") % 700).alias("brand"),
            F.concat(F.lit("class "), F.col("id") % 90).alias("class"),
            F.concat(F.lit("category "), F.col("id") % 10).alias("category"),
        )
        items.write.mode("overwrite").parquet(f"{self.base}/items")
        customers = self.spark.range(0, 100_000, 1, 1).select(
            F.col("id").alias("customer"),
            F.concat(F.lit("state "), F.col("id") % 50).alias("state"),
            (F.col("id") % 80 + 1930).alias("born"),
        )
        customers.write.mode("overwrite").parquet(f"{self.base}/customers")
        days = self.spark.range(0, 1_830, 1, 1).select(
            F.col("id").alias("day"), (F.col("id") / 365).cast("int").alias("year"), (F.col("id") / 30 % 12).cast("int").alias("month")
        )
        days.write.mode("overwrite").parquet(f"{self.base}/days")
        for name in ("sales", "returns", "items", "customers", "days"):
            self.read(name).createOrReplaceTempView(name)

    def read(self, name):
        return self.spark.read.parquet(f"{self.base}/{name}")

    def sql(self, text):
        noop(self.spark.sql(text))


WORD = "blue green heavy light cheap dear late early good bad fair".split()
WORDS = F.array


class Queries(Shop):
    def star_join(self):
        self.sql("""SELECT year, brand, sum(price * quantity) AS amount FROM sales JOIN items USING (item) JOIN days USING (day)
                    WHERE month = 11 OR month = 5 GROUP BY year, brand ORDER BY year, amount DESC LIMIT 100""")

    def sort_merge_join(self):
        self.sql("""SELECT /*+ MERGE(r) */ s.shop, count(*) AS n, sum(r.refund / s.price) AS part
                    FROM sales s JOIN returns r ON s.ticket = r.ticket AND s.item = r.item WHERE s.price > 1 GROUP BY s.shop""")

    def rank(self):
        self.sql("""SELECT * FROM (SELECT category, class, brand, amount, rank() OVER (PARTITION BY category ORDER BY amount DESC) AS place
                    FROM (SELECT category, class, brand, shop, sum(price * quantity) AS amount FROM sales JOIN items USING (item)
                    GROUP BY category, class, brand, shop)) WHERE place <= 100""")

    def rollup(self):
        self.sql("""SELECT category, class, shop, sum(price), avg(quantity) FROM sales JOIN items USING (item)
                    GROUP BY ROLLUP (category, class, shop)""")

    def distinct(self):
        self.sql("""SELECT shop, month, count(DISTINCT customer), count(DISTINCT item) FROM sales JOIN days USING (day)
                    GROUP BY shop, month""")

    def subquery(self):
        self.sql("""SELECT state, count(*) FROM sales s JOIN items i USING (item) JOIN customers USING (customer)
                    WHERE s.price > 1.2 * (SELECT avg(price) FROM sales t JOIN items j USING (item) WHERE j.category = i.category)
                    GROUP BY state HAVING count(*) > 10""")

    def semi_join(self):
        self.sql("""SELECT state, born, count(*) FROM customers c WHERE EXISTS (SELECT 1 FROM returns r WHERE r.customer = c.customer AND r.refund > 50)
                    AND EXISTS (SELECT 1 FROM sales s WHERE s.customer = c.customer AND s.quantity > 20) GROUP BY state, born""")

    def anti_join(self):
        self.sql("""SELECT shop, sum(price) FROM sales s WHERE NOT EXISTS (SELECT 1 FROM returns r WHERE r.ticket = s.ticket) GROUP BY shop""")

    def full_outer_join(self):
        self.sql("""SELECT sum(if(b.item IS NULL, 1, 0)), sum(if(a.item IS NULL, 1, 0)), count(*) FROM
                    (SELECT customer, item FROM sales WHERE shop < 6 GROUP BY customer, item) a FULL OUTER JOIN
                    (SELECT customer, item FROM sales WHERE shop >= 6 GROUP BY customer, item) b
                    ON a.customer = b.customer AND a.item = b.item""")

    def sort_all(self):
        self.sql("SELECT * FROM sales ORDER BY note, price DESC")

    def self_join(self):
        self.sql("""WITH year_total AS (SELECT customer, year, sum(price * quantity) AS amount FROM sales JOIN days USING (day) GROUP BY customer, year)
                    SELECT a.customer FROM year_total a JOIN year_total b ON a.customer = b.customer AND b.year = a.year + 1
                    WHERE b.amount / a.amount > 2 ORDER BY a.customer LIMIT 100""")

    def running_sums(self):
        self.sql("""SELECT item, day, sum(amount) OVER (PARTITION BY item ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto,
                    avg(amount) OVER (PARTITION BY item ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week
                    FROM (SELECT item, day, sum(price) AS amount FROM sales GROUP BY item, day)""")

    def intersect(self):
        self.sql("""SELECT count(*) FROM (SELECT customer, day FROM sales WHERE shop = 1 INTERSECT SELECT customer, day FROM sales WHERE shop <> 1)""")

    def union(self):
        self.sql("""SELECT shop, sum(amount), sum(back) FROM (SELECT shop, price AS amount, 0 AS back FROM sales UNION ALL
                    SELECT ticket % 12 AS shop, 0 AS amount, refund AS back FROM returns) GROUP BY shop""")

    def python_udf(self):
        bucket = F.udf(lambda price: "dear" if price > 150 else "cheap" if price < 20 else "fair", StringType())
        noop(self.read("sales").where("ticket % 4 = 0").groupBy(bucket("price")).agg(F.sum("quantity")))

    def pandas_udf(self):
        taxed = F.pandas_udf(lambda price, quantity: price * quantity * 1.19, DoubleType())
        noop(self.read("sales").groupBy("shop").agg(F.sum(taxed("price", "quantity"))))

    def statistics(self):
        self.sql("""SELECT item, stddev(price), var_samp(quantity), corr(price, quantity), percentile_approx(price, 0.9) FROM sales GROUP BY item""")

    def hash_join_and_sets(self):
        self.sql("""SELECT /*+ SHUFFLE_HASH(c) */ state, size(collect_set(s.item)), max_by(s.note, s.price) FROM sales s
                    JOIN customers c USING (customer) GROUP BY state""")

    def write_partitions(self):
        rows = self.spark.sql("SELECT s.*, i.category FROM sales s JOIN items i USING (item)")
        rows.repartition("category").write.mode("overwrite").partitionBy("category").parquet(f"{self.base}/by_category")

    def words(self):
        self.sql("""SELECT word, length(word) AS length, count(*) AS n FROM (SELECT explode(split(upper(note), ' ')) AS word FROM sales)
                    GROUP BY word ORDER BY n DESC""")


class Pairs(Shop):
    """Each gives the query with its operator, and without (or with little of it), to be run without whole-stage code: there an
    operator's loop is in another's method, and which of them it works for nothing tells. Rows that only one of the two has are
    dropped at once, if that is no work of its own. A function is a query that writes."""

    def numbers(self, times):
        return self.spark.range(0, self.rows * times, 1, 2)

    def text(self):
        return F.concat(F.lit("the same beginning of every text "), F.reverse(F.col("id").cast("string"))).alias("text")

    def sort(self):
        rows = self.numbers(2).select(self.text())
        return rows.sortWithinPartitions("text"), rows

    def hash_aggregate(self):
        rows = self.numbers(6).select((F.col("id") * 7919 % 1000).alias("k"), "id")
        return rows.groupBy("k").agg(F.sum("id"), F.max("id"), F.avg("id"), F.stddev("id")), rows.where("k < 0")

    def window(self):
        rows = self.numbers(1).withColumn("k", F.col("id") % 4).repartition(2, "k").sortWithinPartitions("k", "id")
        over = Window.partitionBy("k").orderBy("id").rowsBetween(-60, 60)
        return rows.withColumn("most", F.max("id").over(over)), rows

    def generate(self):
        text = F.concat(F.lit("some,words," * 20), F.col("id").cast("string"))
        rows = self.numbers(1).select(F.split(text, ",").alias("words"))
        return rows.select(F.explode("words").alias("word")).where("word < ''"), rows

    def exchange(self):
        rows = self.numbers(10)
        return rows.repartition(3, "id"), rows

    def merge_join(self):
        """Of each key 16 rows on both sides, of which none fit together in the end."""
        side = lambda name: (
            self.numbers(1).select((F.col("id") / 16).cast("long").alias("k"), F.col("id").alias(name)).repartition(2, "k").sortWithinPartitions("k")
        )
        left, right = side("l"), side("r")
        return left.join(right.hint("merge"), "k").where("l + r < 0"), left.union(right)

    def hash_join(self):
        """Likewise, of a row and 20 of a small table."""
        small = self.spark.range(0, 20_000, 1, 1).select((F.col("id") % 1000).alias("k"), F.col("id").alias("r"))
        rows = self.numbers(1).select((F.col("id") % 1000).alias("k"), F.col("id").alias("l"))
        return rows.join(F.broadcast(small), "k").where("l + r < 0"), rows

    def scan(self):
        """All columns, and one of them."""
        return self.read("sales"), self.read("sales").select("shop")

    def write(self):
        rows = self.numbers(1).select(self.text(), "id")
        return lambda: rows.write.mode("overwrite").parquet(f"{self.base}/written"), rows

    def python(self):
        rows = self.spark.range(0, self.rows // 4, 1, 2)
        digits = F.udf(lambda number: sum(map(int, str(number))), LongType())
        return rows.select(digits("id").alias("digits")), rows


SHARED = {name for name in vars(Shop)}
named = lambda of: [name for name in vars(of) if not name.startswith("_") and name not in SHARED | {"numbers", "text"}]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--pair-times", type=int, default=4)
    parser.add_argument("--only", action="append", choices=named(Queries) + named(Pairs))
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("queries of a shop").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    fact("app", spark.sparkContext.applicationId)
    global WORDS
    WORDS = F.array(*[F.lit(word) for word in WORD])
    base = os.path.abspath("tables")
    describe = spark.sparkContext.setJobDescription
    wanted = lambda name: not arguments.only or name in arguments.only
    queries, pairs = [of(spark, base, arguments.rows) for of in (Queries, Pairs)]
    describe("prepare")
    queries.prepare()
    for name in filter(wanted, named(Queries)):
        for number in range(1, arguments.times + 1):
            describe(f"{name} {number}")
            getattr(queries, name)()
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    for name in filter(wanted, named(Pairs)):
        for number in range(1, arguments.pair_times + 1):
            for which, frame in zip(("with", "without"), getattr(pairs, name)()):
                describe(f"{name} {which} {number}")
                frame() if callable(frame) else noop(frame)
    fact("done", 1)
    while not os.path.exists("stop"):
        time.sleep(0.05)
    spark.stop()


main()
