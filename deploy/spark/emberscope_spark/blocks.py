"""Finds blocks and chooses their files.

In: paths or globs of any file system that this Spark reads: a block, a directory of blocks, a daemon's data directory
or its store, an archive of many nodes. Out: Block values. Manifests are read by Spark's executors; the driver keeps a
few hundred bytes a block, and no sample. A block of another format, or a manifest that makes no sense, is an error that
names it. Names that begin with a dot are not finished or on their way out, and are passed over; so are blocks that one
beside them took the place of (`merged`).
"""

import json
from collections import namedtuple
from urllib.parse import unquote

from pyspark.sql import functions as F

#: The format that this package reads.
FORMAT = 1

#: Where manifests are below a path that is given.
PLACES = (
    "manifest.json",
    "*/manifest.json",
    "blocks/*/manifest.json",
    "store/blocks/*/manifest.json",
    "v1/nodes/*/blocks/*/manifest.json",
    "nodes/*/blocks/*/manifest.json",
)

#: A directory of Parquet files. `key` is its path as Spark tells it (`_metadata.file_path`), `files` is by table.
Block = namedtuple("Block", "path key from_ns until_ns windows rows samples bytes files")


class BlockError(Exception):
    """A block cannot be read, or there is none."""


def find(spark, paths):
    """Paths of all manifests, sorted."""
    paths = [paths] if isinstance(paths, str) else list(paths)
    jvm = spark.sparkContext._jvm
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    found = set()
    for path in paths:
        for place in PLACES:
            pattern = jvm.org.apache.hadoop.fs.Path(path.rstrip("/") + "/" + place)
            statuses = pattern.getFileSystem(configuration).globStatus(pattern)
            found.update(str(status.getPath().toString()) for status in statuses or ())
    kept = sorted(path for path in found if not path.rsplit("/", 2)[-2].startswith("."))
    if not kept:
        raise BlockError("there is no block at %s: a block is a directory with a manifest.json" % ", ".join(paths))
    return kept


def directory_of(column):
    """Column: the directory of a file's path."""
    return F.regexp_replace(column, "/[^/]*$", "")


def table_of(file):
    """`frames` of `frames.parquet` and of `frames-2.parquet`."""
    name = file[: -len(".parquet")]
    head, dash, number = name.rpartition("-")
    return head if dash and number.isdigit() else name


def _block(key, path, text):
    try:
        manifest = json.loads(text)
        if manifest["format"] != FORMAT:
            raise BlockError(
                "%s is a block of format %s, and this package knows format %d" % (path, manifest["format"], FORMAT)
            )
        files = {table_of(file): file for file in manifest["files"] if file.endswith(".parquet")}
        size = sum(facts["bytes"] for facts in manifest["files"].values())
        numbers = [int(manifest[name]) for name in ("from_ns", "until_ns", "windows", "rows", "samples")]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BlockError("%s/manifest.json makes no sense: %r" % (path, error)) from error
    return Block(path, key, *numbers, size, files)


def merged(path, text):
    """Paths of the blocks that one took the place of: they are on their way out."""
    beside = path.rsplit("/", 1)[0]
    return {"%s/%s" % (beside, name) for name in json.loads(text).get("merged") or ()}


def read(spark, paths):
    """All blocks below the paths, by path."""
    found = find(spark, paths)
    texts = spark.read.option("recursiveFileLookup", "true").text(found, wholetext=True)
    lines = texts.select(directory_of(F.col("_metadata.file_path")).alias("key"), "value").toLocalIterator()
    listed = {path.rsplit("/", 1)[0] for path in found}
    plain = {path.split(":", 1)[-1].lstrip("/"): path for path in listed}
    blocks, old = [], set()
    for line in lines:
        # Spark tells `file:///a%20b` of what Hadoop lists as `file:/a b`.
        path = next((way for way in (line.key, unquote(line.key)) if way in listed), None)
        if path is None:
            path = plain.get(unquote(line.key).split(":", 1)[-1].lstrip("/"), unquote(line.key))
        blocks.append(_block(line.key, path, line.value))
        old |= merged(path, line.value)
    return sorted((block for block in blocks if block.path not in old), key=lambda block: block.path)
