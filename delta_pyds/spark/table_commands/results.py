"""Results of commands as the DataFrames that the reference returns. ``delta_pyds.explain`` says where and why."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from delta_pyds.spark.active_session import is_remote
from delta_pyds.table.scan.read_report import remember


def numbers_frame(spark: SparkSession, result: object, names: tuple[str, ...]) -> DataFrame:
    """One row with these attributes of a command's result. ``explain`` of it shows the result."""
    numbers = [int(getattr(result, name)) for name in names]
    if is_remote(spark):
        # sent with the query that asks for the row
        columns = [pa.array([number], pa.int64()) for number in numbers]
        frame = spark.createDataFrame(pa.table(columns, list(names)))
    else:
        # a row that Spark knows when it plans needs no job; the numbers may be null, as the reference says of them
        columns_sql = ", ".join(f"nullif({name}, CAST(NULL AS BIGINT)) AS {name}" for name in names)
        values = ", ".join(f"CAST({number} AS BIGINT)" for number in numbers)
        frame = spark.sql(f"SELECT {columns_sql} FROM VALUES ({values}) AS result({', '.join(names)})")
    remember(frame, result)
    return frame
