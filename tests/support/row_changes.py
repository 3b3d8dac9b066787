"""Tables and handles for commands that change rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta_pyds.spark.row_changes.handle import TableHandle
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = {"delta.enableDeletionVectors": "true"}
CHANGES = {"delta.enableChangeDataFeed": "true"}
_FEATURES = {
    "delta.enableDeletionVectors": "deletionVectors",
    "delta.enableChangeDataFeed": "changeDataFeed",
    "delta.columnMapping.mode": "columnMapping",
    "delta.appendOnly": "appendOnly",
}
_OF_READERS = ("deletionVectors", "columnMapping")


def small_table(path: Path, schema: Mapping[str, Any], properties: Mapping[str, str], **options: Any) -> TableBuilder:
    """An empty table with the features that its properties need."""
    wanted = [feature for name, feature in _FEATURES.items() if name in properties]
    features = ([f for f in wanted if f in _OF_READERS], wanted)
    table = TableBuilder(path, dict(schema), properties=dict(properties), features=features, **options)
    table.create()
    return table


def handle(spark: SparkSession, table: TableBuilder, **options: Any) -> TableHandle:
    """By a query of Spark where nothing else is said."""
    return TableHandle(spark, str(table.path), **{"time_zone": "UTC", "engine": "spark", **options})
