"""Asks blocks through the Spark package, for tests/spark_sql.

    ask_blocks.py PACKAGE_DIR QUESTIONS ANSWERS

QUESTIONS is a file of JSON: [{"name", "paths": [...], "ask": [{"name", "what", "selection", ...}]}], a set of blocks each.
ANSWERS is written: for each set's name and each question's a list of rows, decimals as text and times as Unix seconds. Prints a fact
`answered-SET-NAME` for each.
"""

import datetime
import decimal
import json
import sys
import time

sys.path.insert(0, sys.argv[1])

from pyspark.sql import SparkSession  # noqa: E402

from emberscope_spark import Profiles  # noqa: E402


def rows(frame):
    def shown(value):
        if isinstance(value, datetime.datetime):
            return value.timestamp()
        return str(value) if isinstance(value, decimal.Decimal) else value

    names = frame.columns
    return [{name: shown(line[name]) for name in names} for line in frame.collect()]


def answer(profiles, question):
    what, selection = question["what"], question.get("selection", {})
    if what == "flame_graph":
        return rows(profiles.flame_graph(group=question.get("group", []), annotate=question.get("annotate", False), **selection))
    if what == "write_folded":
        return profiles.write_folded(profiles.flame_graph(**selection), question["file"])
    if what == "flamegraph":
        graph = profiles.flamegraph(**selection)
        return {"answer": graph.answer, "folded": graph.folded(), "lines": graph.lines}
    if what == "by_operator":
        return rows(profiles.by_operator(**selection))
    if what == "words":
        return rows(getattr(profiles, "spark_" + question["of"])(app=question["app"]))
    if what == "run":
        return profiles.run(question["app_name"])
    if what == "top_methods":
        return rows(profiles.top_methods(**selection))
    if what == "cpu_by_stage":
        return rows(profiles.cpu_by_stage(**selection))
    if what == "ledger":
        return rows(profiles.ledger(by=question["by"], **selection))
    if what == "series":
        return rows(profiles.series(question["step"], question["by"], **selection))
    if what == "diff":
        return rows(profiles.diff(question["left"], question["right"]))
    if what == "views":
        return sorted(profiles.register())
    if what == "sql":
        return rows(profiles.spark.sql(question["sql"]))
    if what == "refused_selection":
        try:
            profiles.flame_graph(**selection)
        except ValueError as error:
            return str(error)
        return None
    if what == "refused":
        try:
            Profiles(profiles.spark, question["path"])
        except Exception as error:
            return str(error)
        return None
    raise ValueError(what)


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        sets = json.load(file)
    spark = SparkSession.builder.appName("ask-blocks").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    answers = {}
    for blocks in sets:
        profiles = Profiles(spark, blocks["paths"])
        said = answers[blocks["name"]] = {}
        for question in blocks["ask"]:
            begun = time.monotonic()
            said[question["name"]] = answer(profiles, question)
            took = time.monotonic() - begun
            print("fact answered-%s-%s=%.1f s" % (blocks["name"], question["name"], took), flush=True)
    with open(sys.argv[3], "w", encoding="utf-8") as file:
        json.dump(answers, file)
    spark.stop()


main()
