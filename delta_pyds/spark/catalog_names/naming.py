"""Names of tables: given, updated, changed and removed.

Invariants: the view is created last and dropped first. A process that dies in between leaves an entry without a
name, but never a name with another meaning. A name that another process took meanwhile, or that is not ours, is neither
overwritten nor dropped.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_pyds.errors import DeltaError, UnsupportedOperationError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.catalog_names.lookup import find, look_up
from delta_pyds.spark.catalog_names.texts import (
    MARK,
    SESSION_CATALOG,
    NamedTable,
    column_texts,
    entry_schema,
    has_columns,
    new_entry,
    next_entry,
)
from delta_pyds.spark.other_engines import other_engine
from delta_pyds.spark.plain_calls import plain_calls, plain_sql
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.statements.spark_statements import name_of

logger = safe_logger(__name__)
_PLAIN = re.compile(r"\w{1,128}", re.ASCII)


def full_name(spark: SparkSession, name: str | tuple[str, ...]) -> tuple[str, str]:
    """The schema and the name of a table to create; without a schema, the session's current one.

    Raises: UnsupportedOperationError for another catalog than the session's own, and for a name that this cannot have.
    """
    parts = name_of(name) if isinstance(name, str) else name
    if not parts or len(parts) > 3 or not all(map(_PLAIN.fullmatch, parts[-2:])):
        raise UnsupportedOperationError(
            f"{name!r:.200} cannot be a name in Spark's session catalog. Its names have ASCII letters, digits and '_', "
            "and may begin with the name of a schema: sales.orders.",
            code="INVALID_SCHEMA_OR_RELATION_NAME",
            name=str(name),
        )
    catalog = parts[0] if len(parts) == 3 else spark.catalog.currentCatalog()
    if (engine := other_engine(spark)) is not None:
        raise UnsupportedOperationError(
            f"{engine} has no session catalog of Spark, so delta_pyds cannot create the name {'.'.join(parts)!r:.200} "
            "there. Name the table by its path, as in delta.`/data/events`, or manage it with delta_pyds.catalog.",
            name=".".join(parts),
        )
    if catalog.lower() != SESSION_CATALOG:
        raise UnsupportedOperationError(
            f"the name {'.'.join(parts)!r:.200} belongs to the catalog {catalog!r:.200}, but delta_pyds creates names "
            f"only in Spark's session catalog, such as {SESSION_CATALOG}.{'.'.join(parts[-2:])}.",
            name=".".join(parts),
        )
    # catalogs keep names of schemas in lower case
    return (parts[-2].lower() if len(parts) > 1 else spark.catalog.currentDatabase()), parts[-1]


def give_name(
    spark: SparkSession, name: tuple[str, str], location: str, schema: StructType, *, managed: bool = False
) -> NamedTable:
    """Give the table at a location a free name.

    Raises: UserError (TABLE_OR_VIEW_ALREADY_EXISTS); UnsupportedOperationError for a path or columns that no view can
        have; Spark's exceptions, for a missing schema for instance.
    """
    columns = _columns(schema, location)
    table = NamedTable(*name, location, new_entry(name[1], columns), managed)
    select = table.select  # checks the location before any entry is created
    require_free(spark, name)
    _make_entry(spark, table, schema, columns)
    mark = "managed" if managed else "external"
    try:
        plain_sql(spark, f"CREATE VIEW {table.quoted} TBLPROPERTIES ('{MARK}' = '{mark}') AS {select}")
    except PySparkException:
        drop_entry(spark, table)
        require_free(spark, name)
        raise
    found = find(spark, (SESSION_CATALOG, *name))
    if found is None or found.select.lower() != select.lower() or found.location != location:
        plain_sql(spark, f"DROP VIEW IF EXISTS {table.quoted}")
        drop_entry(spark, table)
        raise UnsupportedOperationError(
            f"the session's catalog changes the text of the location {location!r:.500}, so the table cannot have a "
            "name there. Read and write it by its path.",
            table=location,
        )
    return found


def require_free(spark: SparkSession, name: tuple[str, str]) -> None:
    """Raises: UserError (TABLE_OR_VIEW_ALREADY_EXISTS) if anything has the name."""
    found = look_up(spark, (SESSION_CATALOG, *name))
    if found is None:
        return
    what = f"the Delta table at {found.location}" if isinstance(found, NamedTable) else found.kind
    raise UserError(
        f"the name {'.'.join(name)} is taken by {what}. Choose another, or free it first "
        "(delta_pyds.drop_table(spark, name)).",
        code="TABLE_OR_VIEW_ALREADY_EXISTS",
        table=".".join(name),
    )


def update_entry(spark: SparkSession, table: NamedTable, schema: StructType) -> NamedTable:
    """Give the table's entry the current columns, if they differ.

    An error is only logged: the table itself is correct.
    """
    try:
        columns = _columns(schema, table.location)
        return table if has_columns(table.holder, columns) else _with_columns(spark, table, schema, columns)
    except (PySparkException, DeltaError) as error:
        logger.warning(
            "The columns of %s have changed, but its entry in Spark's catalog could not be updated. Spark without "
            "delta_pyds may see the old columns. %s",
            table.name,
            error,
        )
        return table


def repair_entry(spark: SparkSession, table: NamedTable, schema: StructType) -> NamedTable:
    """``update_entry``, which also recreates a missing entry. Raises: Spark's exceptions."""
    columns = _columns(schema, table.location)
    with plain_calls():
        there = spark.catalog.tableExists(table.quoted_entry)
    return table if there and has_columns(table.holder, columns) else _with_columns(spark, table, schema, columns)


def change_name(spark: SparkSession, table: NamedTable, name: tuple[str, str]) -> None:
    """Rename a table. Raises: UserError for a name that is taken; UnsupportedOperationError for another schema."""
    if name[0].lower() != table.schema.lower():
        raise UnsupportedOperationError(
            f"{table.name} cannot be renamed to {'.'.join(name)}: a rename cannot change the schema.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=table.name,
        )
    require_free(spark, name)
    plain_sql(spark, f"ALTER VIEW {table.quoted} RENAME TO {quote_name(*name)}")


def point_at(spark: SparkSession, table: NamedTable, location: str, schema: StructType) -> NamedTable:
    """Point the name at the table at another location. Dropping the name does not delete that table's data.

    Raises: UnsupportedOperationError for a path or columns that no view can have; UserError if another process
        changed the name meanwhile; Spark's exceptions.
    """
    columns = _columns(schema, location)
    if table.managed:
        # set before the location: if this process dies here, DROP TABLE must not delete the other table's data
        plain_sql(spark, f"ALTER VIEW {table.quoted} SET TBLPROPERTIES ('{MARK}' = 'external')")
        table = replace(table, managed=False)
    moved = _with_columns(spark, table, schema, columns, location)
    if moved.location != location:
        raise UserError(
            f"another process changed the name {table.name} meanwhile. Now it means {moved.location}. Run the "
            "statement again.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=table.name,
        )
    return moved


def take_name(spark: SparkSession, table: NamedTable) -> None:
    """Remove the name from the catalog. The table at the location stays."""
    plain_sql(spark, f"DROP VIEW {table.quoted}")
    drop_entry(spark, table)


def _with_columns(
    spark: SparkSession, table: NamedTable, schema: StructType, columns: str, location: str | None = None
) -> NamedTable:
    """Replace the entry of a name. A reader sees the old entry or the new one.

    All processes that change the same entry to the same columns create the same new entry, even after one of them
    died. ``location``: the new location, if the name shall mean another table.
    """
    whole = (SESSION_CATALOG, table.schema, table.table)
    found = find(spark, whole)
    if found != table:
        return found or table
    if location is None:
        new = replace(table, holder=next_entry(table.holder, table.table, columns))
    else:
        new = replace(table, holder=new_entry(table.table, columns), location=location)
    select = new.select  # checks the location before any entry is created
    _make_entry(spark, new, schema, columns)
    try:
        if find(spark, whole) == table:
            plain_sql(spark, f"ALTER VIEW {table.quoted} AS {select}")
    finally:
        found = find(spark, whole)
        if found is not None and found.holder == new.holder:
            drop_entry(spark, table)
        elif found is None:  # else another process may be about to use it
            drop_entry(spark, new)
    return found or table


def _columns(schema: StructType, location: str) -> str:
    """Raises: UnsupportedOperationError for a table without columns."""
    if not schema.fields:
        raise UnsupportedOperationError(
            f"the table at {location} has no columns yet, and Spark's catalog requires at least one. Add a column "
            "first.",
            table=location,
        )
    return column_texts(to_spark(schema))


def make_entry(spark: SparkSession, view: tuple[str, str], schema: StructType, location: str) -> NamedTable:
    """Create an entry, in the schema of a user's view, for a table that the view reads by its path.

    Raises: UnsupportedOperationError for a table without columns; Spark's exceptions.
    """
    columns = _columns(schema, location)
    table = NamedTable(*view, location, new_entry(view[1], columns))
    _make_entry(spark, table, schema, columns)
    return table


def _make_entry(spark: SparkSession, table: NamedTable, schema: StructType, columns: str) -> None:
    if "${" not in columns:
        plain_sql(spark, f"CREATE TABLE IF NOT EXISTS {table.quoted_entry} ({columns}) USING deltapy")
        return
    # not by a statement, in which Spark would replace variables
    with plain_calls():
        if not spark.catalog.tableExists(table.quoted_entry):
            spark.catalog.createTable(table.quoted_entry, source="deltapy", schema=entry_schema(to_spark(schema)))


def drop_entry(spark: SparkSession, table: NamedTable) -> None:
    plain_sql(spark, f"DROP TABLE IF EXISTS {table.quoted_entry}")
