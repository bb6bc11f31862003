"""Emberscope's blocks as Spark DataFrames.

    from emberscope_spark import Profiles

    profiles = Profiles(spark, "s3a://bucket/emberscope")
    profiles.flame_graph(app="app-20261122-0001", stage="3").show()

docs/spark-sql.md is the guide, docs/store.md the format of the blocks.
"""

from .blocks import BlockError
from .profiles import Profiles
from .selection import LABELS, Selection

__all__ = ["BlockError", "LABELS", "Profiles", "Selection"]
__version__ = "0.1.0"
