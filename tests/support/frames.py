"""Short forms over DataFrames."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from tests.support.table_builder import TableBuilder


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


def ids_at(spark: SparkSession, path: str) -> list[int]:
    return sorted(row["id"] for row in delta_pyds.read(spark, path, columns="id").collect())


def physical(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def native(spark: SparkSession, table: TableBuilder, **options: Any) -> DataFrame:
    return delta_pyds.read(spark, str(table.path), engine="native", **options)
