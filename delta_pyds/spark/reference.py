"""Whether the reference, Delta's own JAR, is in a session: the format ``delta`` there is the reference's."""

from __future__ import annotations

import uuid
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.other_engines import other_engine
from delta_pyds.spark.plain_calls import plain_calls

DELTA = "delta"
_SOURCE = "org.apache.spark.sql.delta.sources.DeltaDataSource"
# a session may name the reference's catalog without having it
_ABSENT = ("DATA_SOURCE_NOT_FOUND", "CANNOT_LOAD_CATALOG")
# of a JVM (its SparkContext), or of a session of Spark Connect
_answers: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def has_reference(spark: SparkSession) -> bool:
    """Whether Spark itself knows the format ``delta``. Asked once of a JVM, and once of a session of Spark Connect."""
    key = spark if is_remote(spark) else spark.sparkContext
    if key not in _answers:
        _answers[key] = _answered(spark) if is_remote(spark) else _loaded(spark)
    return _answers[key]


def _loaded(spark: Any) -> bool:
    from py4j.protocol import Py4JJavaError

    lang = spark._jvm.java.lang
    # as Spark looks for a format: what --jars and --packages bring is known to the thread's loader alone
    loader = lang.Thread.currentThread().getContextClassLoader() or lang.ClassLoader.getSystemClassLoader()
    try:
        loader.loadClass(_SOURCE)
    except Py4JJavaError:
        return False
    return True


def _answered(spark: SparkSession) -> bool:
    """Whether the server knows it, by its error for a table that does not exist.

    Another engine may have its own format ``delta``. That is not the reference.
    """
    if other_engine(spark) is not None:
        return False
    with plain_calls():
        try:
            _ = spark.read.format(DELTA).load(f"file:///{uuid.uuid4().hex}").schema
        except PySparkException as e:
            condition = e.getCondition()
            if condition is None:
                raise  # the server did not answer, and only answers are cached
            return not condition.startswith(_ABSENT)
    return True
