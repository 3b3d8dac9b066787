"""Names of Spark's catalog in PySpark's own methods: those that ``delta_pyds.create_table`` gave, and new ones.

Invariant: a call with a free name, or the name of another table or view, goes to Spark, unless it names our format.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.catalog_names.locations import refresh_entry
from delta_pyds.spark.catalog_names.lookup import find, find_quietly
from delta_pyds.spark.catalog_names.texts import NamedTable
from delta_pyds.spark.delta_table.table import DeltaTable
from delta_pyds.spark.loading import load_by_options
from delta_pyds.spark.options.values import storage_options
from delta_pyds.spark.same_files import shared_path
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.storage.table_path import PathLike, absolute_table_path
from delta_pyds.table.scan.column_selection import parse_column_list
from delta_pyds.table.scan.read_report import remember, report_of

# options that read another state than the current table
_OF_THE_PAST = {"versionasof", "timestampasof", "readchangefeed", "readchangedata"}
# options that keep all rows and all columns
_OF_PLACES = {"storageoptions", "allowedroots", "timezone", "minpartitions"}


def named_if_ours(spark: SparkSession, name: Any) -> NamedTable | None:
    """The table that has the name; None for other tables and views, and for an invalid name, which Spark reports.

    Raises: CatalogError if Spark does not answer the lookup.
    """
    if not isinstance(name, str) or "/" in name:
        return None
    with errors_of_spark():
        return find_quietly(spark, name)


def load_tracked(spark: SparkSession, path: PathLike, options: Mapping[str, str]) -> DataFrame:
    """The result of ``load_by_options``. Its temporary view tracks the table, unless it shows a version or changes."""
    frame = load_by_options(spark, path, options)
    given = {key.lower() for key in options}
    if not given & _OF_THE_PAST and "@" not in str(path).rpartition("/")[2]:
        storage = storage_options({key.lower(): text for key, text in options.items()})
        source = tracked_views.Source(absolute_table_path(path, remote=is_remote(spark)), storage)
        if has_scheme(path):
            source = tracked_views.Source(str(path), storage)
        tracked_views.remember(
            frame,
            tracked_views.Origin(
                (source,),
                partial(load_by_options, spark, path, dict(options)),
                whole=given <= _OF_PLACES,
                version=report_of(frame).version,
            ),
        )
    return frame


def read_named(spark: SparkSession, table: NamedTable, options: Mapping[str, str]) -> DataFrame:
    """The table as ``delta_pyds.read`` reads it. Its name may qualify its columns."""
    refresh_entry(spark, table)
    frame = load_tracked(spark, shared_path(spark, table.location), options)
    shown = frame.alias(table.table)
    report = report_of(frame)
    if report is not None:
        remember(shown, report)
    tracked_views.remember_same(shown, frame)
    return shown


def new_table(spark: SparkSession, name: str, frame: DataFrame, layout: Mapping[str, str], path: str | None) -> str:
    """Create a table of the frame's columns for a stream, unless it exists. Returns: its location."""
    builder = DeltaTable.createIfNotExists(spark).tableName(name).addColumns(frame.schema)
    if path is not None:
        builder.location(path)
    if "partitionBy" in layout:
        builder.partitionedBy(*(column[0] for column in parse_column_list(layout["partitionBy"], "partitionBy")))
    if "clusterBy" in layout:
        builder.clusterBy(*(quote_name(*column) for column in parse_column_list(layout["clusterBy"], "clusterBy")))
    builder.execute()
    found = find(spark, name)
    assert found is not None
    return found.location
