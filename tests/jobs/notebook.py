"""Runs a notebook in a real Jupyter kernel, with the cells of a person who profiles queries, for tests/notebook.rs.

    notebook.py PACKAGE_DIR SOCKET URL STORE OUT

PACKAGE_DIR has emberscope_spark, SOCKET and URL are a daemon's (the URL wants a token), STORE is a directory with a block of an
application `app-1`. OUT is written: the executed notebook (nbformat 4), and beside it what its cells save. Prints the fact `ran`.
"""

import os
import sys

import nbformat
from nbclient import NotebookClient

#: Name, source. Outputs are found by the name, in the cell's metadata.
CELLS = [
    ("load", "import sys; sys.path.insert(0, {package!r})\n%load_ext emberscope_spark\n%emberscope --url unix:{socket}"),
    ("no-session", "%%emberscope\nprint(6 * 7)"),
    (
        "session",
        "from pyspark.sql import SparkSession, functions as F\n"
        "spark = SparkSession.builder.appName('notebook').getOrCreate()\n"
        "spark.sparkContext.setLogLevel('ERROR')\n"
        "print('app', spark.sparkContext.applicationId)",
    ),
    ("before", "spark.range(1_000_000).selectExpr('sum(hash(id))').collect()"),
    (
        "hostile",
        "from pyspark.sql.types import LongType\n"
        "def burn(n):\n"
        "    x = n\n"
        "    for _ in range(3000):\n"
        "        x = (x * 31 + 7) % 1000003\n"
        "    return x\n"
        "name = '</script><img src=x onerror=parent.evil=window.evil=1>'\n"
        "code = burn.__code__.replace(co_name=name)\n"
        "if hasattr(code, 'co_qualname'): code = code.replace(co_qualname=name)\n"
        "burn.__code__ = code\n"
        "burning = F.udf(burn, LongType())",
    ),
    (
        "profiled",
        "%%emberscope --into graph --save {dir}/cell.html\n"
        "import time; until = time.time() + 6\n"
        "while time.time() < until:\n"
        "    rows = spark.range(0, 400_000, 1, 2)\n"
        "    rows.groupBy((F.col('id') * 7919 % 1000).alias('k')).agg(F.sum('id'), F.stddev('id')).count()\n"
        "    spark.range(0, 10_000, 1, 2).select(burning('id').alias('x')).agg(F.sum('x')).collect()\n"
        "rows.count()",
    ),
    ("numbers", "graph.save({dir!r} + '/cell.folded')\nprint(graph.samples, graph.quality['lost'])\nprint(graph)"),
    ("queries", "import json; print(json.dumps(graph.queries.rows))\nprint(graph.queries.notes)"),
    ("nobody", "%%emberscope --url unix:{dir}/nobody.sock\nprint('it ran')"),
    ("no-token", "%%emberscope --url {url}\nprint('it ran, too')"),
    ("short", "%%emberscope\n40 + 2"),
    ("fails", "%%emberscope\nspark.range(1_000_000).selectExpr('sum(hash(id))').collect()\nraise KeyError('the cell fails')"),
    ("broken", "%%emberscope\n1 +"),
    ("awaits", "%%emberscope\nimport asyncio\nawait asyncio.sleep(0)"),
    ("bad-option", "%%emberscope --typ nothing\nprint('it ran as well')"),
    (
        "blocks",
        "from emberscope_spark import Profiles\n"
        "of_blocks = Profiles(spark, {store!r}).flamegraph(app='app-1', group='stage', title='a block')\n"
        "of_blocks.save({dir!r} + '/block.html')\n"
        "of_blocks",
    ),
    ("cut", "Profiles(spark, {store!r}).flamegraph(app='app-1', max_nodes=10)"),
    ("done", "print(of_blocks.to_pandas()['samples'].sum()); spark.stop()"),
]


def main():
    package, socket, url, store, out = sys.argv[1:6]
    directory = os.path.dirname(out)
    os.environ.update(IPYTHONDIR=directory + "/ipython", JUPYTER_RUNTIME_DIR=directory + "/runtime")
    notebook = nbformat.v4.new_notebook()
    for name, source in CELLS:
        text = source.format(package=package, socket=socket, url=url, store=store, dir=directory)
        notebook.cells.append(nbformat.v4.new_code_cell(text, metadata={"name": name}))
    # What each says is judged by the test.
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": directory}})
    client.execute()
    nbformat.write(notebook, out)
    print("fact ran=%d" % len(notebook.cells), flush=True)


main()
