"""The registration of the format ``deltapy`` in a session."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from delta_pyds.errors import OptionError
from delta_pyds.spark.active_session import active, find_source_in_every_thread, is_remote
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.spark.worker_python import check_worker_python

_registered: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def register(spark: SparkSession) -> None:
    """Register the format ``deltapy`` in this session, in all threads. A second call does nothing.

    It is needed if Spark cannot find the format, because the package is not installed beside Spark's own Python. It is
    also needed for plain ``df.write.format("deltapy")`` in other threads than the session's own, or after Ctrl-C: Spark
    does not look for a source there.

    Args:
        spark: The session, classic or of Spark Connect.

    Raises:
        WorkerPythonError: Spark's workers run a Python without this package.
        OptionError: ``spark`` is not a session.

    >>> delta_pyds.register(spark)
    >>> spark.read.format("deltapy").load("/data/events")
    """
    if not hasattr(spark, "dataSource"):
        raise OptionError(f"spark is a {type(spark).__name__}, but must be a SparkSession.", option="spark")
    if spark in _registered:
        return
    check_worker_python(spark)
    with active(spark):
        try:
            spark.dataSource.register(DeltaDataSource)
        except AnalysisException as e:
            # Spark 4.0 refuses a source that it has found by itself, and later versions replace it
            if e.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
    if not is_remote(spark):
        find_source_in_every_thread()
    _registered[spark] = True


def is_registered(spark: SparkSession) -> bool:
    """Whether ``register`` was called for this session, so that its workers certainly have this package."""
    return spark in _registered
