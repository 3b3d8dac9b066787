"""``spark.read.format("deltapy").load(...)`` and ``spark.read.table(name)``, as ``delta_pyds.read`` reads.

Spark hands a Python source neither the columns nor the filters of a query, and no time zone. So Spark's own Parquet
reader reads the table if it certainly returns the same rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.errors import TableNotFoundError, UnsupportedOperationError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.catalog_names.locations import refresh_entry
from delta_pyds.spark.changes_api import read_changes
from delta_pyds.spark.install.formats import DELTAPY, delta_is_ours, prepare
from delta_pyds.spark.install.names import load_tracked, named_if_ours, read_named
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.install.recorded_options import (
    RecordedOptions,
    for_ours,
    format_method,
    recorded,
    recording,
    session_of,
)
from delta_pyds.spark.loading import load_by_options
from delta_pyds.spark.options.read import parse_read_options
from delta_pyds.spark.options.values import storage_options
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.planning.driver import open_table
from delta_pyds.spark.same_files import shared_path
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands.identifiers import partition_of_table, path_in_name
from delta_pyds.storage.table_path import absolute_table_path
from delta_pyds.table.scan.read_report import remember, report_of

_CODES_OF_LOAD = {
    "DELTA_PATH_DOES_NOT_EXIST": "PATH_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE": "DELTA_TABLE_NOT_FOUND",
}
# the value null in the name of a partition's directory
_OF_NULL = "__HIVE_DEFAULT_PARTITION__"


def _load(
    original: Method, /, self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any
) -> Any:
    if not for_ours(self, format):
        return original(self, path, format, schema, **options)
    with errors_of_spark():
        self.format((recorded(self).format or DELTAPY) if format is None else format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        calls = recorded(self)
        one = path[0] if isinstance(path, list) and len(path) == 1 else path
        one = path = os.fspath(one) if isinstance(one, os.PathLike) else one
        root = calls.option("path") if one is None else one
        twice = one is not None and calls.option("path") is not None
        if twice or calls.schema is not None or not isinstance(root, str) or not root.strip():
            # the source raises the error for several paths, no path, a path given twice, or the user's schema
            return original(self, path)
        spark = session_of(self)
        partition = _partition(spark, root, calls)
        if partition is not None:
            return _rows_of_partition(spark, *partition, calls.options("path"))
        try:
            return load_tracked(spark, shared_path(spark, root), calls.options("path"))
        except TableNotFoundError as error:
            # the code of ``load`` in the reference, for programs that check whether a table exists
            code = _CODES_OF_LOAD.get(error.code, error.code)
            raise TableNotFoundError(error.message, code=code, **error.parameters) from error.__cause__


def _partition(spark: SparkSession, path: str, calls: RecordedOptions) -> tuple[str, dict[str, str]] | None:
    """The table and the values of a path such as ``/data/events/day=2026-01-01``. Other paths need no request."""
    directory = path.rstrip("/").rpartition("/")[2]
    if "=" not in directory or "@" in directory:
        return None
    given = {key.lower(): text for key, text in calls.options("path").items()}
    return partition_of_table(absolute_table_path(path, remote=is_remote(spark)), storage_options(given))


def _rows_of_partition(
    spark: SparkSession, root: str, values: Mapping[str, str], options: Mapping[str, str]
) -> DataFrame:
    """Raises: UserError (DELTA_NON_PARTITION_COLUMN_SPECIFIED) for a column that the table is not partitioned by."""
    frame = load_by_options(spark, shared_path(spark, root), options)
    found = open_table(parse_read_options({**options, "path": root}, quiet=True)).snapshot.configuration
    partitioned = [name.lower() for name in found.partition_columns]
    strange = next((name for name in values if name.lower() not in partitioned), None)
    if strange is not None:
        raise UserError(
            f"the path names a directory {strange}={values[strange]} of the table {root}, which is not partitioned by "
            f"'{strange}'. Load the table, and filter its rows by where.",
            code="DELTA_NON_PARTITION_COLUMN_SPECIFIED",
            table=root,
            column=strange,
        )
    shown = frame
    for name, value in values.items():
        column = F.col(quote_name(name))
        shown = shown.where(column.isNull() if value == _OF_NULL else column == value)
    report = report_of(frame)
    if report is not None:
        remember(shown, report)
    return shown


def _table(original: Method, /, self: Any, tableName: str) -> Any:
    found = _table_of_ours(session_of(self), tableName, recorded(self).options("path"))
    return original(self, tableName) if found is None else found


def _table_of_session(original: Method, /, self: Any, tableName: str) -> Any:
    found = _table_of_ours(self, tableName, {})
    if found is not None:
        return found
    with plain_calls():  # on Spark Connect it calls the reader, which would look the name up again
        return original(self, tableName)


def _table_of_ours(spark: SparkSession, name: str, options: Mapping[str, str]) -> DataFrame | None:
    """The rows of a table by path or name; None if it is not ours."""
    prepare(spark)
    tracked_views.refresh(spark, name)
    path = path_if_ours(spark, name)
    named = named_if_ours(spark, name) if path is None else None
    with errors_of_spark():
        if path is not None:
            return load_tracked(spark, shared_path(spark, path), options)
        return None if named is None else read_named(spark, named, options)


def path_if_ours(spark: SparkSession, name: Any) -> str | None:
    """The path in ``deltapy.`/data/events```; also in ``delta.`...```, if delta_pyds handles ``delta``."""
    if not isinstance(name, str) or "/" not in name:
        return None
    try:
        path = path_in_name(name)
    except UnsupportedOperationError:
        return None
    ours = name.strip().lower().startswith(DELTAPY) or delta_is_ours(spark)
    return path if ours and "/" in path else None


def _changes(original: Method, /, self: Any, tableName: str) -> Any:
    found = changes_if_ours(self, tableName, read_changes)
    return original(self, tableName) if found is None else found


def changes_if_ours(reader: Any, name: Any, read: Callable[..., DataFrame]) -> DataFrame | None:
    """The changes of a table by path or name, with the options of a reader; None if Spark answers.

    ``read``: ``read_changes`` or ``stream_changes``.
    """
    spark, calls = session_of(reader), recorded(reader)
    if calls.schema is not None:
        return None  # Spark refuses the user's schema
    path = path_if_ours(spark, name)
    named = named_if_ours(spark, name) if path is None else None
    if path is None and named is None:
        return None
    with errors_of_spark():
        if named is None:
            return read(spark, shared_path(spark, path or ""), calls.options("path"))
        refresh_entry(spark, named)
        return read(spark, shared_path(spark, named.location), calls.options("path"), alias=named.table)


READER: dict[str, Replacement] = {
    "format": format_method,
    "option": recording(RecordedOptions.add_option),
    "options": recording(RecordedOptions.add_options),
    "schema": recording(RecordedOptions.set_schema),
    "load": _load,
    "table": _table,
    "changes": _changes,
}
SESSION: dict[str, Replacement] = {"table": _table_of_session}
