"""Emberscope's blocks as Spark DataFrames.

    from emberscope_spark import Profiles

    profiles = Profiles(spark, "s3a://bucket/emberscope")
    profiles.flame_graph(app="app-20261122-0001", stage="3").show()

In a notebook, `profiles.flamegraph(...)` draws, and `%load_ext emberscope_spark` has `%%emberscope`, which profiles a cell.
docs/spark-sql.md and docs/notebook.md are the guides, docs/store.md the format of the blocks.
"""

from .blocks import BlockError
from .daemon import Daemon, DaemonError
from .flame import FlameGraph
from .profiles import Profiles
from .selection import LABELS, TOLD, Selection

__all__ = ["BlockError", "Daemon", "DaemonError", "FlameGraph", "LABELS", "Profiles", "Selection", "TOLD"]
__version__ = "0.2.0"


def load_ipython_extension(shell):
    """`%load_ext emberscope_spark`."""
    from . import extension

    extension.load(shell)
