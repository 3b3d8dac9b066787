"""The history and the detail of a table as DataFrames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_pyds.commands.describe import detail_table, history_table
from delta_pyds.spark.native.files import spark_path
from delta_pyds.table.detail import TableDetail
from delta_pyds.table.history import CommitRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# as Arrow a few rows are a local relation: no job to show them


def history_frame(spark: SparkSession, records: Iterable[CommitRecord]) -> DataFrame:
    """One row for each commit, in the order given."""
    return spark.createDataFrame(history_table(records))


def detail_frame(spark: SparkSession, detail: TableDetail) -> DataFrame:
    """One row."""
    return spark.createDataFrame(detail_table(detail, spark_path(detail.location)))
