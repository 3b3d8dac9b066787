"""DESCRIBE and SHOW: answers of a few rows, with the reference's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.statements.kinds import DescribeDetail, DescribeHistory, ShowColumns, ShowProperties
from delta_pyds.table.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def history(context: StatementContext, statement: DescribeHistory) -> DataFrame:
    return context.table(statement.target).history(statement.limit)


def detail(context: StatementContext, statement: DescribeDetail) -> DataFrame:
    return context.table(statement.target).detail()


def show_columns(context: StatementContext, statement: ShowColumns) -> DataFrame:
    """Returns: ``col_name``."""
    context.table(statement.target)
    names = list(context.snapshot(statement.target).schema.names)
    return context.spark.createDataFrame(pa.table({"col_name": pa.array(names, pa.string())}))


def show_properties(context: StatementContext, statement: ShowProperties) -> DataFrame:
    """Returns: ``key`` and ``value``, by key; the versions and features of the protocol are among them."""
    context.table(statement.target)
    found = _properties(context.snapshot(statement.target))
    if statement.key is not None:
        missing = f"Table {statement.target.text} does not have property: {statement.key}"
        found = {statement.key: found.get(statement.key, missing)}
    rows = sorted(found.items())
    return context.spark.createDataFrame(
        pa.table(
            {
                "key": pa.array([key for key, _ in rows], pa.string()),
                "value": pa.array([value for _, value in rows], pa.string()),
            }
        )
    )


def _properties(snapshot: Snapshot) -> dict[str, str]:
    protocol = snapshot.protocol
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return {
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        **{f"delta.feature.{name}": "supported" for name in features},
        **{key: value for key, value in (snapshot.metadata.configuration or {}).items() if value is not None},
    }
