"""Table functions of SQL over a table's log: ``delta_history('/data/events')`` and ``delta_detail('/data/events')``.

They are for users of SQL alone. A function runs in one task, so that task resolves its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import udtf

from delta_pyds.catalog.opening import table_storage
from delta_pyds.commands.describe import DETAIL_SCHEMA, HISTORY_SCHEMA, detail_table, history_table
from delta_pyds.errors import OptionError
from delta_pyds.spark.registration import register
from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.storage.resolve import hadoop_path
from delta_pyds.storage.table_path import absolute_table_path
from delta_pyds.table.detail import table_detail
from delta_pyds.table.history import history
from delta_pyds.table.snapshot import Snapshot, open_snapshot


def register_functions(spark: SparkSession) -> None:
    """Give this session the table functions ``delta_history(path [, limit])`` and ``delta_detail(path)``.

    Their rows are those of ``DeltaTable.history`` and ``detail``. SQL takes them like any table function, on Spark
    Connect too. Paths are absolute; options of a store come from the workers' environment. A second call changes
    nothing. A query raises Spark's exception: ``delta_pyds.error_of`` gives the DeltaError.

    Args:
        spark: The session, classic or of Spark Connect.

    Raises:
        WorkerPythonError: Spark's workers run a Python without this package.
        OptionError: ``spark`` is not a session.

    >>> delta_pyds.register_functions(spark)
    >>> spark.sql("SELECT version, operation FROM delta_history('/data/events', 5) WHERE operation <> 'WRITE'").show()
    >>> spark.sql("SELECT numFiles, sizeInBytes FROM delta_detail('/data/events')").show()
    """
    register(spark)
    handlers: tuple[Any, ...] = (DeltaHistory, DeltaDetail)
    for handler in handlers:
        # without rows Spark Connect has no types
        schema = spark.createDataFrame(pa.Table.from_pylist([{}], handler.schema)).schema
        function: Any = udtf(handler, returnType=schema, useArrow=False)
        spark.udtf.register(handler.name, function)


class DeltaHistory:
    """Spark makes one in a task, and asks it for the rows of each call."""

    name = "delta_history"
    schema = HISTORY_SCHEMA

    @leaves_worker
    def eval(self, path: str, limit: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Newest first. Raises: OptionError; what opening the table raises."""
        if isinstance(limit, bool) or not isinstance(limit, int | None):
            raise OptionError(f"the limit of delta_history is {limit!r:.200}, but must be a number.", option="limit")
        snapshot = _open(path, self.name)
        records = history(
            snapshot.storage,
            snapshot.table_root,
            None if limit is None else max(limit, 0),
            properties_of_latest=snapshot.configuration.properties,
        )
        for record in records:
            yield from _rows(history_table([record]))


class DeltaDetail:
    """The same for the one row of a table's detail."""

    name = "delta_detail"
    schema = DETAIL_SCHEMA

    @leaves_worker
    def eval(self, path: str) -> Iterator[tuple[Any, ...]]:
        """Raises: OptionError; what opening the table raises."""
        detail = table_detail(_open(path, self.name))
        yield from _rows(detail_table(detail, hadoop_path(detail.location)))


def _open(path: Any, function: str) -> Snapshot:
    if not isinstance(path, str):
        raise OptionError(f"{function} takes the path of a table, as {function}('/data/events').", option="path")
    # the working directory of a task is unknown
    root = absolute_table_path(path, remote=True)
    return open_snapshot(table_storage(root, {}), root)


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """As Spark takes them of a function: maps are dicts."""
    maps = {field.name for field in table.schema if pa.types.is_map(field.type)}
    for row in table.to_pylist():
        yield tuple(_value(value, is_map=name in maps) for name, value in row.items())


def _value(value: Any, *, is_map: bool) -> Any:
    if is_map and value is not None:
        return dict(value)
    return tuple(value.values()) if isinstance(value, Mapping) else value
