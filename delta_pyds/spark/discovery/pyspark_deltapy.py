"""Installed as a top-level module: Spark looks for ``pyspark_*`` modules with a ``DefaultSource``."""

from delta_pyds.spark.source.datasource import DeltaDataSource as DefaultSource

__all__ = ["DefaultSource"]
