"""``spark.readStream`` and ``df.writeStream``: ``delta`` as a name of the format, tables by path, partitions of a sink.

Spark hands a Python sink neither ``partitionBy`` nor ``clusterBy``, so we pass them as options.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from pyspark.sql import DataFrame

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names.locations import refresh_entry
from delta_pyds.spark.changes_api import stream_changes
from delta_pyds.spark.install.batch_reads import changes_if_ours, path_if_ours
from delta_pyds.spark.install.batch_writes import layout
from delta_pyds.spark.install.formats import DELTAPY, delta_is_ours, is_ours
from delta_pyds.spark.install.names import named_if_ours, new_table
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.install.recorded_options import (
    RecordedOptions,
    for_ours,
    format_method,
    recorded,
    recording,
    session_of,
)
from delta_pyds.spark.other_engines import require_streams
from delta_pyds.spark.registration import is_registered, register
from delta_pyds.spark.spark_errors import errors_of_spark

Install = Callable[..., Any]


def _load(
    original: Method, /, self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any
) -> Any:
    if not for_ours(self, format):
        return original(self, path, format, schema, **options)
    with errors_of_spark():
        require_streams(session_of(self))
        register(session_of(self))
        # without a format, the session's default is ours
        self.format(format or recorded(self).format or DELTAPY)
        return original(self, _text_of(path), None, schema, **options)


def _table(original: Method, /, self: Any, tableName: str) -> Any:
    spark = session_of(self)
    path = path_if_ours(spark, tableName)
    if path is None:
        named = named_if_ours(spark, tableName)
        if named is None:
            return original(self, tableName)
        refresh_entry(spark, named)
        path = named.location
    return self.format(DELTAPY).load(path)


def _changes(original: Method, /, self: Any, tableName: str) -> Any:
    found = changes_if_ours(self, tableName, partial(stream_changes, source_name=recorded(self).name))
    return original(self, tableName) if found is None else found


def _start(
    original: Method,
    /,
    self: Any,
    path: Any = None,
    format: Any = None,
    outputMode: Any = None,
    partitionBy: Any = None,
    queryName: Any = None,
    **options: Any,
) -> Any:
    if (format is None and recorded(self).own_sink) or not for_ours(self, format):
        return original(self, path, format, outputMode, partitionBy, queryName, **options)
    with errors_of_spark():
        require_streams(session_of(self))
        _to_ours(self, format, partitionBy, options)
        return original(self, _text_of(path), None, outputMode, None, queryName)


def _text_of(path: Any) -> Any:
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def _to_table(
    original: Method,
    /,
    self: Any,
    tableName: Any,
    format: Any = None,
    outputMode: Any = None,
    partitionBy: Any = None,
    queryName: Any = None,
    **options: Any,
) -> Any:
    spark = session_of(self)
    path = path_if_ours(spark, tableName)
    calls = recorded(self).format if format is None else format
    named = named_if_ours(spark, tableName) if path is None else None
    if path is None and not for_ours(self, format) and (named is None or calls is not None):
        return original(self, tableName, format, outputMode, partitionBy, queryName, **options)
    with errors_of_spark():
        if path is None and named is not None:
            path = named.location
        elif path is None:
            self.options(**options)
            if partitionBy is not None:
                self.partitionBy(partitionBy)
            path = new_table(spark, tableName, _frame_of(self), layout(recorded(self)), recorded(self).option("path"))
        if recorded(self).own_sink or (calls is not None and not is_ours(spark, calls)):
            raise UnsupportedOperationError(
                f"the table {tableName!r:.200} is a Delta table, but the query's sink is {calls or 'a function'}: "
                "give no format, or deltapy.",
                feature="toTable",
            )
    return self.start(path, DELTAPY, outputMode, partitionBy, queryName, **options)


def _frame_of(writer: Any) -> DataFrame:
    """The rows of a ``df.writeStream``. On Spark Connect the writer has only the plan."""
    if not is_remote(session_of(writer)):
        found: DataFrame = writer._df
        return found
    from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

    return cast("DataFrame", ConnectDataFrame(writer._write_stream._child, writer._session))


def _to_ours(writer: Any, format: Any, partition_by: Any, options: dict[str, Any]) -> None:
    register(session_of(writer))
    writer.options(**options)
    if partition_by is not None:
        writer.partitionBy(partition_by)
    writer.format(format or recorded(writer).format or DELTAPY)
    calls = recorded(writer)
    for name, text in layout(calls).items():
        writer.option(name, text)
    # Spark must not resolve them itself
    if calls.partition_by:
        writer.partitionBy([])
    if calls.cluster_by:
        writer.clusterBy([])


READER: dict[str, Replacement] = {
    "format": format_method,
    "option": recording(RecordedOptions.add_option),
    "options": recording(RecordedOptions.add_options),
    "schema": recording(RecordedOptions.set_schema),
    "name": recording(RecordedOptions.set_name),
    "load": _load,
    "table": _table,
    "changes": _changes,
}
WRITER: dict[str, Replacement] = {
    "format": format_method,
    "option": recording(RecordedOptions.add_option),
    "options": recording(RecordedOptions.add_options),
    "partitionBy": recording(RecordedOptions.set_partitions),
    "clusterBy": recording(RecordedOptions.set_clusters),
    "foreach": recording(RecordedOptions.set_own_sink),
    "foreachBatch": recording(RecordedOptions.set_own_sink),
    "start": _start,
    "toTable": _to_table,
}


@dataclass(frozen=True)
class InstalledThere:
    """The user's function, which installs delta_pyds first. cloudpickle sends the function, and ``install`` by name."""

    function: Callable[[Any, int], Any]
    install: Install
    delta: bool

    def __call__(self, batch: Any, number: int) -> Any:
        self.install(batch.sparkSession, delta=self.delta)
        return self.function(batch, number)


def batch_functions(install: Install) -> dict[str, Replacement]:
    """``writeStream.foreachBatch`` on Spark Connect, where the user's function runs in a process of the server.

    Invariant: if delta_pyds is installed here, it is also installed there before the function's first batch.
    """

    def foreach_batch(original: Method, /, self: Any, func: Any) -> Any:
        spark = session_of(self)
        # a server that may lack this package gets the function unchanged
        known = is_registered(spark) and callable(func)
        result = original(self, InstalledThere(func, install, delta_is_ours(spark)) if known else func)
        recorded(self).set_own_sink()
        return result

    return {"foreachBatch": foreach_batch}
