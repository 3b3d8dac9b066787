"""Delete, update and merge by each engine, for the model of rows."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.row_model.harness import Counts
from tests.support.row_model.steps import SQL_TYPES, Delete, Merge, Overwrite, Update, type_of, with_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession


class ReferenceEngine:
    """The reference: commands by SQL, and its writer."""

    counts_source = False

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def delete(self, path: Path, step: Delete) -> Counts:
        (row,) = self._run(step.sql(_name(path)))
        return None, row["num_affected_rows"], None

    def update(self, path: Path, step: Update) -> Counts:
        (row,) = self._run(step.sql(_name(path)))
        return row["num_affected_rows"], None, None

    def merge(self, path: Path, step: Merge, columns: Sequence[str]) -> Counts:
        source_of(self.spark, step, columns).createOrReplaceTempView("merge_source")
        (row,) = self._run(step.sql(_name(path), "merge_source"))
        return row["num_updated_rows"], row["num_deleted_rows"], row["num_inserted_rows"]

    def append(self, path: Path, columns: Sequence[str], tasks: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        """``columns``, ``tasks``: as of ``rows_to_write``."""
        self._writer(columns, tasks).mode("append").option("mergeSchema", "true").save(str(path))

    def overwrite(
        self, path: Path, step: Overwrite, columns: Sequence[str], tasks: Sequence[Sequence[Mapping[str, Any]]]
    ) -> None:
        writer = self._writer(columns, tasks).mode("overwrite")
        if step.where is not None:
            writer = writer.option("replaceWhere", step.where.sql())
        if step.dynamic:
            writer = writer.option("partitionOverwriteMode", "dynamic")
        writer.save(str(path))

    def _writer(self, columns: Sequence[str], tasks: Sequence[Sequence[Mapping[str, Any]]]) -> DataFrameWriter:
        frames = [frame_of(self.spark, rows, columns) for rows in tasks]
        return functools.reduce(lambda a, b: a.union(b), frames).write.format("delta")

    def _run(self, text: str) -> list[Any]:
        return self.spark.sql(text).collect()


def _name(path: Path) -> str:
    return f"delta.`{path}`"


def source_of(spark: SparkSession, step: Merge, columns: Sequence[str]) -> DataFrame:
    """The source of a merge into a table with these columns."""
    names = step.source_columns(columns)
    return frame_of(spark, with_columns(step.rows, names), names)


def frame_of(spark: SparkSession, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> DataFrame:
    """Rows with these columns, in one partition."""
    schema = ", ".join(f"{name} {SQL_TYPES[type_of(name)]}" for name in columns)
    return spark.createDataFrame([tuple(row[name] for name in columns) for row in rows], schema).coalesce(1)
