"""The location of a table by name, existing or new.

Invariant: rows are written before a name is given. A name that any table has is refused before
anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from delta_pyds.catalog.address import DEFAULT_CATALOG
from delta_pyds.catalog.opening import table_storage
from delta_pyds.catalog.settings import is_configured
from delta_pyds.errors import (
    ConcurrentWriteError,
    DeltaError,
    FileNotFoundInStorageError,
    ProtocolError,
    TableNotFoundError,
    UserError,
)
from delta_pyds.log.segment import latest_version
from delta_pyds.protocol.paths import LOG_DIRECTORY, resolve_data_path
from delta_pyds.protocol.properties import CATALOG_PREFIXES, FEATURE_PREFIX
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import without_secrets
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names.lookup import find, look_up, require
from delta_pyds.spark.catalog_names.naming import full_name, give_name, take_name, update_entry
from delta_pyds.spark.catalog_names.texts import SESSION_CATALOG, NamedTable
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.planning.driver import open_table
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.same_files import root_for_server, shared_path
from delta_pyds.storage.resolve import has_scheme, scheme_of
from delta_pyds.storage.table_path import PathLike, absolute_table_path
from delta_pyds.table.definition.clustering import logical_clustering_columns
from delta_pyds.table.definition.statistics_columns import lower_path
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot, open_snapshot

_NOT_COMPARED = (
    *(prefix.lower() for prefix in (FEATURE_PREFIX, "delta.minReaderVersion", "delta.minWriterVersion")),
    *("delta.columnmapping.maxcolumnid", "delta.rowtracking.materialized", "delta.incommittimestampenablement"),
    *CATALOG_PREFIXES,
)


@dataclass(frozen=True)
class Location:
    """The location of a table by name. ``table``: None if the name is free; then the table at ``path`` will get it."""

    path: str
    name: tuple[str, str]
    table: NamedTable | None = None
    managed: bool = False


def is_name_of_session(path: Any, table: Any, catalog: Any) -> bool:
    """Whether the arguments of a call name a table of Spark's catalog. Our catalog called default comes first."""
    return path is None and isinstance(table, str) and catalog is None and not is_configured(DEFAULT_CATALOG)


def location_of(
    spark: SparkSession, name: str | tuple[str, ...], location: str | None = None, *, stays: bool = False
) -> Location:
    """The location of the table of that name. A new table gets ``location``, or the default location of its schema.

    ``stays``: whether an existing table of that name does not change; it may have any location.
    Raises: UserError if the table of that name has another location, or if a new table's default location is not empty;
        UnsupportedOperationError for a table or view that is not ours.
    """
    found = look_up(spark, name)
    if found is None:
        target = full_name(spark, name)
        if location is not None:
            return Location(location, target)
        managed = managed_location(spark, target)
        _require_empty(managed, target)
        return Location(managed, target, managed=True)
    table = found if isinstance(found, NamedTable) else require(spark, name)
    if location is not None and not stays and not _same(location, table.location):
        raise UserError(
            f"the table {table.name} is at {table.location}, but the location '{location}' was given.",
            code="DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            table=table.name,
        )
    return Location(table.location, (table.schema, table.table), table, table.managed)


def settle(spark: SparkSession, location: Location, storage_options: Mapping[str, Any] | None = None) -> NamedTable:
    """After the table has been written: give it its name, or update the entry of the name.

    A managed table that was dropped while it was written gets its name again.
    Raises: as ``give_name``; ConcurrentWriteError if DROP TABLE deleted rows that were written.
    """
    lost = location.managed and location.table is not None and not is_there(spark, location.table)
    try:
        snapshot = open_shared(spark, location.path, storage_options)
        if lost:
            _require_files(snapshot)
    except (TableNotFoundError, ProtocolError, FileNotFoundInStorageError) as error:
        raise _dropped(location) if lost else error from None
    if location.table is not None and not lost:
        return update_entry(spark, location.table, snapshot.schema)
    try:
        given = give_name(spark, location.name, location.path, snapshot.schema, managed=location.managed)
    except UserError:
        # another process may have given the same table this name meanwhile
        found = find(spark, (SESSION_CATALOG, *location.name))
        if found is None or not _same(found.location, location.path):
            raise
        return found
    if lost and not _is_table(location.path):
        take_name(spark, given)
        raise _dropped(location)
    return given


def is_there(spark: SparkSession, table: NamedTable) -> bool:
    """Whether anything has the name."""
    with plain_calls():
        return spark.catalog.tableExists(table.quoted)


def take_if_empty(spark: SparkSession, table: NamedTable) -> None:
    """Remove a name that ``settle`` gave after the data was deleted, if no table is at its location."""
    found = find(spark, (SESSION_CATALOG, table.schema, table.table)) if is_there(spark, table) else None
    if found is not None and found.location == table.location and not _is_table(found.location):
        take_name(spark, found)


def _require_files(snapshot: Snapshot) -> None:
    """Raises: FileNotFoundInStorageError if a file of the table is missing."""
    for file in live_files(plan_scan(snapshot), ("path",)):
        snapshot.storage.status(resolve_data_path(snapshot.table_root, file.path))


def _dropped(location: Location) -> ConcurrentWriteError:
    name = ".".join(location.name)
    return ConcurrentWriteError(
        f"the table {name} was dropped while it was written, and the drop deleted files of this write. Delete the rest "
        f"of the directory {location.path}, and run the statement again.",
        table=name,
    )


def refresh_entry(spark: SparkSession, table: NamedTable, storage_options: Mapping[str, Any] | None = None) -> None:
    """Update the entry of a name after changes by others. A table that cannot be opened fails when it is read."""
    location = shared_path(spark, table.location)
    root = absolute_table_path(location)
    if is_remote(spark) and scheme_of(root) == "file" and not has_scheme(location):
        return  # the server may have other files
    try:
        # cached for the read that follows
        schema = open_table(ReadOptions(root, storage_options=storage_options or {})).snapshot.schema
    except DeltaError:
        return
    update_entry(spark, table, schema)


def entry_updater(spark: SparkSession, table: NamedTable) -> Any:
    """A function that updates the entry of the name to a snapshot, while the name still means that table."""

    def update(snapshot: Snapshot) -> None:
        known = find(spark, (SESSION_CATALOG, table.schema, table.table))
        if known is not None and known.location == table.location:
            update_entry(spark, known, snapshot.schema)

    return update


def open_shared(spark: SparkSession, location: PathLike, storage_options: Mapping[str, Any] | None) -> Snapshot:
    """The table at a location.

    Raises: UnsupportedOperationError on Spark Connect for a path without a scheme that is not the same on the server;
        as ``open_snapshot``.
    """
    root = root_for_server(spark, location)
    return open_snapshot(table_storage(root, storage_options or {}), root)


def managed_location(spark: SparkSession, name: tuple[str, str]) -> str:
    """The path that Spark would choose for a table of that name."""
    with plain_calls():
        schema = spark.catalog.getDatabase(f"{SESSION_CATALOG}.`{name[0]}`").locationUri
    base = absolute_table_path(schema)
    return f"{base.rstrip('/')}/{name[1].lower()}"


def _require_empty(location: str, name: tuple[str, str]) -> None:
    """Raises: UserError for a location that is not empty: DROP TABLE would delete its content."""
    try:
        entry = next(iter(table_storage(location, {}).list_directory(location)), None)
    except FileNotFoundInStorageError:
        return
    if entry is None:
        return
    is_table = entry.name == LOG_DIRECTORY or _is_table(location)
    what = "A Delta table" if is_table else f"The file or directory {entry.name!r:.100}"
    raise UserError(
        f"{what} is at {location}, where the table {'.'.join(name)} would be created. If it is a Delta table, name it: "
        f"delta_pyds.create_table(spark, '{'.'.join(name)}', '{location}'). Otherwise give another LOCATION.",
        code="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
        table=".".join(name),
    )


def _is_table(location: str) -> bool:
    try:
        latest_version(table_storage(location, {}), location)
    except TableNotFoundError:
        return False
    return True


def _same(one: str, other: str) -> bool:
    return absolute_table_path(one) == absolute_table_path(other)


# --- names that CREATE and REPLACE find or miss


def refuse_existing(mode: str, name: str) -> None:
    """Raises: UserError if the mode forbids that a table has the name."""
    if mode == "create":
        raise UserError(
            f"the table {name} already exists. DeltaTable.createIfNotExists leaves it unchanged, "
            "DeltaTable.createOrReplace replaces it.",
            code="TABLE_OR_VIEW_ALREADY_EXISTS",
            table=name,
        )


def no_table_to_replace(name: str) -> TableNotFoundError:
    return TableNotFoundError(
        f"the table {name} does not exist, so it cannot be replaced. DeltaTable.createOrReplace creates it.",
        code="TABLE_OR_VIEW_NOT_FOUND",
        table=name,
    )


def is_same_table(
    root: str,
    storage_options: Mapping[str, Any] | None,
    columns: StructType,
    partition_columns: tuple[str, ...],
    clustering: tuple[tuple[str, ...], ...],
    properties: Mapping[str, str],
) -> bool:
    """Whether a table is at the path. Only the given columns, partitions, clustering and properties are compared.

    Raises: UserError for a table with other columns, partitions, clustering columns or properties.
    """
    try:
        snapshot = open_snapshot(table_storage(root, storage_options or {}), root)
    except TableNotFoundError:
        return False
    wanted = [(field.name, to_spark(StructType((field,))).fields[0].dataType, field.nullable) for field in columns]
    has = [
        (field.name, shown.dataType, field.nullable)
        for field, shown in zip(snapshot.schema, to_spark(snapshot.schema).fields, strict=True)
    ]
    layout = tuple(snapshot.configuration.partition_columns)
    same_columns = not wanted or wanted == has
    if not same_columns or ((wanted or partition_columns) and partition_columns != layout):
        raise UserError(
            f"the table at {root} has the columns ({', '.join(name for name, *_ in has)}) and the partitions "
            f"({', '.join(layout)}), but others were given. Omit the columns to name the table as it is.",
            code=f"DELTA_CREATE_TABLE_{'WITH_DIFFERENT_PARTITIONING' if same_columns else 'SCHEME_MISMATCH'}",
            table=root,
        )
    clustered = logical_clustering_columns(snapshot.schema, snapshot.domain_metadata)
    if (wanted or clustering) and [lower_path(path) for path in clustering] != [lower_path(path) for path in clustered]:
        raise UserError(
            f"the table at {root} is clustered by ({', '.join(map('.'.join, clustered))}), but "
            f"({', '.join(map('.'.join, clustering))}) was given. Omit the columns to name the table as it is.",
            code="DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING",
            table=root,
        )
    specified, existing = _compared(properties), _compared(snapshot.configuration.configuration)
    if properties and specified != existing:
        raise UserError(
            f"the table at {root} has the properties {_shown(existing)}, but {_shown(specified)} were given. Omit them "
            "to name the table as it is. Then ALTER TABLE ... SET TBLPROPERTIES can change them.",
            code="DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
            table=root,
        )
    return True


def _compared(properties: Mapping[str, str | None]) -> dict[str, str | None]:
    """The properties without those of the protocol and of the table's own. Delta's names are case-insensitive."""
    named = {key.lower() if key.lower().startswith("delta.") else key: value for key, value in properties.items()}
    return {key: value for key, value in named.items() if not key.startswith(_NOT_COMPARED)}


def _shown(properties: Mapping[str, str | None]) -> str:
    return "{" + ", ".join(f"{key}={without_secrets(str(value))}" for key, value in sorted(properties.items())) + "}"
