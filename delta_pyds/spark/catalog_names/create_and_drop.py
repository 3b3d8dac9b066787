"""``delta_pyds.create_table`` and ``drop_table``: tables by name in Spark's session catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from delta_pyds.catalog.opening import table_storage
from delta_pyds.commands.maintenance.removal import check_removable, remove_table
from delta_pyds.errors import TableNotFoundError, UserError
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.arguments import flag_argument
from delta_pyds.spark.catalog_names.locations import open_shared, take_if_empty
from delta_pyds.spark.catalog_names.lookup import find, require
from delta_pyds.spark.catalog_names.naming import full_name, give_name, point_at, repair_entry, take_name
from delta_pyds.spark.catalog_names.texts import SESSION_CATALOG, NamedTable
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.registration import register
from delta_pyds.spark.same_files import root_for_server
from delta_pyds.spark.settings import ALTER_LOCATION_BYPASS
from delta_pyds.spark.spark_errors import errors_of_spark
from delta_pyds.spark.table_commands.argument_checks import text
from delta_pyds.storage.resolve import has_scheme, scheme_of
from delta_pyds.storage.table_path import PathLike, absolute_table_path
from delta_pyds.table.snapshot import Snapshot

logger = safe_logger(__name__)


def create_table(
    spark: SparkSession,
    name: str,
    path: PathLike,
    *,
    if_not_exists: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> NamedTable:
    """Give the Delta table at ``path`` a name in Spark's session catalog, for every session of its metastore.

    The name is a view that shows each query the current table. So ``spark.sql("SELECT ...")`` reads it in any session.
    ``DeltaTable.forName``, ``delta_pyds.read``, ``write`` and ``sql`` take the name, too. A second entry
    ``_deltapy_...`` holds the columns. An existing name is never overwritten.

    Args:
        spark: The session, classic or of Spark Connect.
        name: The name, with or without a schema; the default is the session's current schema.
        path: The path of the table. On Spark Connect it is absolute.
        if_not_exists: If the same table has the name already, whether to repair damaged or outdated entries instead of
            an error.
        storage_options: Options of the store, to open the table here; the catalog does not store them.

    Returns:
        The name and its location.

    Raises:
        ValueError: ``name`` is not a str.
        OptionError: Another argument is invalid.
        TableNotFoundError: No table is at the path.
        UserError: The name is taken (TABLE_OR_VIEW_ALREADY_EXISTS).
        UnsupportedOperationError: The catalog is not Spark's own, or cannot hold the name, the path or the columns.
        AnalysisException: Spark's catalog refuses the name, for instance because the schema does not exist.

    >>> delta_pyds.create_table(spark, "sales.orders", "/data/orders")
    >>> spark.sql("SELECT count(*) FROM sales.orders").show()
    """
    with errors_of_spark():
        text(name, "name")
        again = flag_argument("if_not_exists", if_not_exists)
        register(spark)
        target = full_name(spark, name)
        location, snapshot = open_at(spark, path, storage_options)
        if again:
            found = find(spark, (SESSION_CATALOG, *target))
            if found is not None and absolute_table_path(found.location) == snapshot.table_root:
                return repair_entry(spark, found, snapshot.schema)
        try:
            return give_name(spark, target, location, snapshot.schema)
        except UserError:
            # another process may have given the same name to the same table meanwhile
            found = find(spark, (SESSION_CATALOG, *target)) if again else None
            if found is None or absolute_table_path(found.location) != snapshot.table_root:
                raise
            return found


def drop_table(
    spark: SparkSession, name: str, *, data: bool = False, storage_options: Mapping[str, Any] | None = None
) -> None:
    """Remove a name that ``create_table`` gave from Spark's catalog; with ``data`` delete the table, too.

    Args:
        spark: The session, classic or of Spark Connect.
        name: The name, with or without a schema.
        data: Whether to delete everything below the table's path, even if the table has other names. It is refused if
            another table lies below the path.
        storage_options: Options of the store, to delete the data.

    Raises:
        ValueError: ``name`` is not a str.
        OptionError: ``data`` is not a bool.
        TableNotFoundError: Nothing has the name.
        UnsupportedOperationError: Another table or view has the name, or the data fills a whole bucket.
        StorageError: The data cannot be deleted.

    >>> delta_pyds.drop_table(spark, "sales.orders")
    """
    with errors_of_spark():
        text(name, "name")
        deletes = flag_argument("data", data)
        table = require(spark, name)
        if deletes:
            root = root_for_server(spark, table.location)
            check_removable(table_storage(root, storage_options or {}), root)
        take_name(spark, table)
        if deletes:
            _delete(root, storage_options)
            take_if_empty(spark, table)


def change_location(spark: SparkSession, table: NamedTable, path: str) -> NamedTable:
    """Point the name at the table at ``path``, which must have the same columns and partitions. No data changes.

    DROP TABLE then deletes no data, even if Spark's schema chose the first location.

    Raises: TableNotFoundError if one of the two tables is missing; UserError (DELTA_SET_LOCATION_SCHEMA_MISMATCH)
        unless the session's ``spark.databricks.delta.alterLocation.bypassSchemaCheck`` is true.
    """
    location, new = open_at(spark, path, None)
    if (spark.conf.get(ALTER_LOCATION_BYPASS, None) or "").lower() != "true":
        _, old = open_at(spark, table.location, None)
        now, then = _layout(old), _layout(new)
        if now != then:
            raise UserError(
                f"the table {table.name} has the columns and partitions {now}, but the table at {location} has {then}. "
                f"To let the name mean it anyway, set {ALTER_LOCATION_BYPASS} to true.",
                code="DELTA_SET_LOCATION_SCHEMA_MISMATCH",
                table=table.name,
            )
    return point_at(spark, table, location, new.schema)


def _layout(snapshot: Snapshot) -> str:
    columns = to_spark(snapshot.schema).simpleString()
    return f"{columns}, ({', '.join(snapshot.configuration.partition_columns)})"


def _delete(root: str, storage_options: Mapping[str, Any] | None) -> None:
    try:
        remove_table(table_storage(root, storage_options or {}), root)
    except TableNotFoundError:
        logger.warning("The table at %s does not exist any more, so nothing was deleted there.", root)


def open_at(spark: SparkSession, path: PathLike, storage_options: Mapping[str, Any] | None) -> tuple[str, Snapshot]:
    """The location of a table as a catalog stores it, and the table.

    Raises: as ``open_shared``.
    """
    snapshot = open_shared(spark, path, storage_options)
    root = snapshot.table_root
    return (f"file://{root}" if scheme_of(root) == "file" and has_scheme(path) else root), snapshot
