"""A table by name, opened for a user's command."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from delta_pyds.spark.catalog_names.locations import entry_updater
from delta_pyds.spark.catalog_names.lookup import require
from delta_pyds.spark.catalog_names.naming import update_entry
from delta_pyds.spark.catalog_names.texts import NamedTable
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.table_commands.identifiers import path_if_in_name
from delta_pyds.spark.table_commands.opening import open_path
from delta_pyds.statements.qualified_names import QualifiedTable


@dataclass(frozen=True)
class OpenTable:
    """``called``: the name that may qualify the table's columns in expressions; None for a table by path."""

    handle: TableHandle
    called: QualifiedTable | None = None


def open_name(spark: SparkSession, name: str, **options: Any) -> OpenTable:
    """The table of a name, or of a path as ``delta.`/data/events```. ``options``: see ``open_path``.

    Raises: as ``require`` and ``open_path``.
    """
    path = path_if_in_name(name)
    if path is not None:
        return OpenTable(open_path(spark, path, **options))
    return open_named(spark, require(spark, name), **options)


def open_named(spark: SparkSession, named: NamedTable, **options: Any) -> OpenTable:
    """The table of a name that has been looked up. Its catalog entry gets the table's current columns.

    ``options``: see ``open_path``. Raises: as ``open_path``.
    """
    opened = open_path(spark, named.location, **options)
    handle = replace(opened, on_schema_change=entry_updater(spark, named), alias=named.table)
    update_entry(spark, named, handle.open().schema)
    return OpenTable(handle, QualifiedTable.of_schema(named.schema, named.table, lambda: handle.open().schema.names))
