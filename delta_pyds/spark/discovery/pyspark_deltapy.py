"""Installed as a top-level module: Spark looks for ``pyspark_*`` modules with a ``DefaultSource``."""

from delta_pyds.spark.datasource import DeltaDataSource as DefaultSource

__all__ = ["DefaultSource"]
