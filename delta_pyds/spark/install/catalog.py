"""``spark.catalog`` for our tables: they appear as tables, like the reference's, not as Spark's views.

Invariant: a call without a path or name of our tables goes to Spark unchanged. The entries that hold columns are not
listed as tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import catalog as spark_catalog
from pyspark.sql.catalog import Column, Table

from delta_pyds.data.write.layout import partition_directory
from delta_pyds.errors import DeltaError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.catalog_names.create_and_drop import create_table
from delta_pyds.spark.catalog_names.listings import is_index
from delta_pyds.spark.catalog_names.locations import open_shared
from delta_pyds.spark.catalog_names.lookup import find_all
from delta_pyds.spark.catalog_names.texts import SESSION_CATALOG, NamedTable, is_entry
from delta_pyds.spark.delta_table.table import DeltaTable
from delta_pyds.spark.install.batch_reads import path_if_ours
from delta_pyds.spark.install.formats import DELTAPY, is_ours
from delta_pyds.spark.install.names import named_if_ours
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.same_files import shared_path
from delta_pyds.spark.settings import DEFAULT_FORMAT
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.sql import cached_rows
from delta_pyds.spark.sql.run import run
from delta_pyds.storage.table_path import absolute_table_path
from delta_pyds.table.definition.clustering import logical_clustering_columns


def _path_of(spark: SparkSession, name: Any) -> str | None:
    """The path of the table that a call names; None if it is not ours."""
    path = path_if_ours(spark, name)
    if path is None:
        named = named_if_ours(spark, name)
        path = None if named is None else str(shared_path(spark, named.location))
    return path


def _create(
    original: Method,
    /,
    self: Any,
    tableName: str,
    path: str | None = None,
    source: str | None = None,
    schema: Any = None,
    description: str | None = None,
    **options: str,
) -> Any:
    spark: SparkSession = self._sparkSession
    name = source or spark.conf.get(DEFAULT_FORMAT, None) or ""
    if not is_ours(spark, name):
        return original(self, tableName, path, source, schema, description, **options)
    with errors_of_spark():
        location = path or options.pop("path", None)
        strange = next((key for key in options if key.lower() != "path"), None)
        if strange is not None:
            raise UserError(f"createTable takes no option {strange!r:.200} for a Delta table.")
        if schema is None and location is not None:
            create_table(spark, tableName, location)
        else:
            builder = DeltaTable.create(spark).tableName(tableName)
            builder = builder if location is None else builder.location(location)
            builder = builder if schema is None else builder.addColumns(schema)
            (builder if description is None else builder.comment(description)).execute()
        return spark.table(tableName)


# --- cached rows


def _cache(original: Method, /, self: Any, tableName: str, storageLevel: StorageLevel | None = None) -> None:
    spark = self._sparkSession
    path = _path_of(spark, tableName)
    if path is None:
        original(self, tableName, storageLevel)
        return
    with errors_of_spark(), plain_calls():
        level = storageLevel or StorageLevel.MEMORY_AND_DISK_DESER
        cached_rows.cache(spark, path, open_shared(spark, path, None), level)


def _is_cached(original: Method, /, self: Any, tableName: str) -> Any:
    path = _path_of(self._sparkSession, tableName)
    if path is None:
        return original(self, tableName)
    return cached_rows.is_cached(self._sparkSession, absolute_table_path(path))


def _uncache(original: Method, /, self: Any, tableName: str) -> None:
    path = _path_of(self._sparkSession, tableName)
    if path is None:
        original(self, tableName)
    else:
        cached_rows.forget(self._sparkSession, absolute_table_path(path))


def _clear(original: Method, /, self: Any) -> None:
    cached_rows.forget_all(self._sparkSession)
    original(self)


# --- existing tables


def _exists(original: Method, /, self: Any, tableName: str, dbName: str | None = None) -> Any:
    path = path_if_ours(self._sparkSession, tableName) if dbName is None else None
    if path is None:
        return original(self, tableName, dbName)
    with errors_of_spark():
        return DeltaTable.isDeltaTable(self._sparkSession, path)


def _get(original: Method, /, self: Any, tableName: str) -> Any:
    spark = self._sparkSession
    named = named_if_ours(spark, tableName)
    if named is None:
        path = path_if_ours(spark, tableName)
        if path is None:
            return original(self, tableName)
        with errors_of_spark():
            metadata = open_shared(spark, str(shared_path(spark, path)), None).metadata
        return Table(path, SESSION_CATALOG, ["delta"], metadata.description, "EXTERNAL", False)
    try:
        metadata = open_shared(spark, str(shared_path(spark, named.location)), None).metadata
    except DeltaError:
        return _shown(named, None)  # a read of the table reports the error
    return _shown(named, metadata.description)


def _columns(original: Method, /, self: Any, tableName: str, dbName: str | None = None) -> Any:
    spark = self._sparkSession
    path = _path_of(spark, tableName if dbName is None else quote_name(dbName, tableName))
    if path is None:
        return original(self, tableName, dbName)
    # Spark's view of a name has no partitions, and may have columns of an earlier version
    with errors_of_spark(), plain_calls():
        described = run(spark, f"DESCRIBE TABLE {_table_of(path)}").collect()
        snapshot = open_shared(spark, str(shared_path(spark, path)), None)
    partitioned = {name.lower() for name in snapshot.configuration.partition_columns}
    clustered = {
        path[0] for path in logical_clustering_columns(snapshot.schema, snapshot.domain_metadata) if len(path) == 1
    }
    return [
        Column(
            name=field.name,
            description=row.comment,
            dataType=row.data_type,
            nullable=field.nullable,
            isPartition=field.name.lower() in partitioned,
            isBucket=False,
            isCluster=field.name in clustered,
        )
        for field, row in zip(snapshot.schema, described, strict=False)
    ]


def _list(original: Method, /, self: Any, dbName: str | None = None, pattern: str | None = None) -> Any:
    found = original(self, dbName, pattern)
    views = [one for one in found if one.tableType == "VIEW" and one.catalog == SESSION_CATALOG and one.namespace]
    named = find_all(self._sparkSession, [(SESSION_CATALOG, *one.namespace, one.name) for one in views], views=True)
    ours = {id(one): table for one, table in zip(views, named, strict=True) if table is not None}
    # a list opens no table, so it shows the description of the catalog entry, not that of the log
    shown = (one if id(one) not in ours else _shown(ours[id(one)], one.description) for one in found)
    return [one for one in shown if not (is_index if one.isTemporary else is_entry)(one.name)]


def _list_views(original: Method, /, self: Any, dbName: str | None = None, pattern: str | None = None) -> Any:
    found = [one for one in original(self, dbName, pattern) if not (one.isTemporary and is_index(one.name))]
    asked = [one for one in found if one.catalog == SESSION_CATALOG and one.namespace]
    named = find_all(self._sparkSession, [(SESSION_CATALOG, *one.namespace, one.name) for one in asked], views=True)
    tables = {id(one) for one, table in zip(asked, named, strict=True) if table is not None}
    return [one for one in found if id(one) not in tables]


def _shown(named: NamedTable, description: str | None) -> Table:
    kind = "MANAGED" if named.managed else "EXTERNAL"
    return Table(named.table, SESSION_CATALOG, [named.schema], description, kind, False)


# --- questions and changes, which run as statements


def _partitions(rows: list[Any]) -> list[spark_catalog.TablePartition]:
    found = (partition_directory(list(row.asDict()), tuple(map(_partition_text, row))) for row in rows)
    return [spark_catalog.TablePartition(text) for text in sorted(found)]


def _partition_text(value: Any) -> str | None:
    text = None if value is None else str(value)
    return text.lower() if isinstance(value, bool) and text else text


def _statement_method(statement: str, answer: Callable[[list[Any]], Any] = lambda _: None) -> Replacement:
    """A method with a name as its first argument, which runs a statement. ``answer``: its result, from the rows."""

    def method(original: Method, /, self: Any, tableName: str, *args: Any, **kwargs: Any) -> Any:
        rows = _answer(self._sparkSession, tableName, statement)
        return original(self, tableName, *args, **kwargs) if rows is None else answer(rows)

    return method


def _drop(original: Method, /, self: Any, tableName: str, ifExists: bool = False, purge: bool = False) -> None:
    if not _run(self._sparkSession, tableName, "DROP TABLE {}"):
        original(self, tableName, ifExists, purge)


def _drop_view(original: Method, /, self: Any, viewName: str, ifExists: bool = False) -> None:
    if not _run(self._sparkSession, viewName, "DROP VIEW {}"):
        original(self, viewName, ifExists)


def _drop_temporary(original: Method, /, self: Any, viewName: str) -> Any:
    tracked_views.forget(self._sparkSession, viewName)
    return original(self, viewName)


def _run(spark: SparkSession, name: Any, statement: str) -> bool:
    """Run a statement about a name, if the name is ours."""
    named = named_if_ours(spark, name)
    if named is not None:
        with plain_calls():
            run(spark, statement.format(quote_name(SESSION_CATALOG, named.schema, named.table)))
    return named is not None


def _answer(spark: SparkSession, name: Any, statement: str) -> list[Any] | None:
    """The rows of a statement about a table by path or name; None if the table is not ours."""
    path = path_if_ours(spark, name)
    named = named_if_ours(spark, name) if path is None else None
    if path is None and named is None:
        return None
    text = _table_of(path) if named is None else quote_name(SESSION_CATALOG, named.schema, named.table)
    with errors_of_spark(), plain_calls():
        return run(spark, statement.format(text)).collect()


def _table_of(path: str | None) -> str:
    return quote_name(DELTAPY, path or "")


CATALOG: dict[str, Replacement] = {
    "createTable": _create,
    "cacheTable": _cache,
    "isCached": _is_cached,
    "uncacheTable": _uncache,
    "clearCache": _clear,
    "tableExists": _exists,
    "getTable": _get,
    "listTables": _list,
    "listColumns": _columns,
    "dropTable": _drop,
    "dropView": _drop_view,
    "dropTempView": _drop_temporary,
    "listViews": _list_views,
    "listPartitions": _statement_method("SHOW PARTITIONS {}", _partitions),
    "getTableProperties": _statement_method("SHOW TBLPROPERTIES {}", lambda rows: {row.key: row.value for row in rows}),
    "getCreateTableString": _statement_method("SHOW CREATE TABLE {}", lambda rows: rows[0][0]),
    "analyzeTable": _statement_method("ANALYZE TABLE {} COMPUTE STATISTICS"),
    "recoverPartitions": _statement_method("MSCK REPAIR TABLE {}"),
    "refreshTable": _statement_method("REFRESH TABLE {}"),
    "truncateTable": _statement_method("TRUNCATE TABLE {}"),
}
