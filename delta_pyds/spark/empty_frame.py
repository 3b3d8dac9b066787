"""A DataFrame without rows, which Spark knows when it plans: ``collect`` and ``show`` start no job.

On a classic session ``createDataFrame`` would make a scan of a distributed collection. It starts jobs, and making it
takes more calls to Spark's driver.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from delta_pyds.spark.active_session import is_remote

_NO_COLUMNS = StructType()


def empty_frame(spark: SparkSession, schema: StructType = _NO_COLUMNS) -> DataFrame:
    """No rows, with these columns. None by default, as the reference's answer of most statements."""
    if is_remote(spark):
        return spark.createDataFrame([], schema)
    session: Any = spark
    java = session._jsparkSession
    return DataFrame(java.createDataFrame(session._jvm.java.util.ArrayList(), java.parseDataType(schema.json())), spark)
