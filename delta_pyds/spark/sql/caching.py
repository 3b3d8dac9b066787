"""CACHE TABLE over a query and over a table, UNCACHE TABLE, REFRESH TABLE."""

from __future__ import annotations

from pyspark import StorageLevel

from delta_pyds.errors import UserError
from delta_pyds.spark.sql import cached_rows
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.statements.kinds import CachedView, CacheTable, Refresh


def cached_view(context: StatementContext, statement: CachedView) -> None:
    """Create a temporary view over the current tables. Spark caches its rows."""
    if len(statement.name.parts) != 1:
        raise UserError(
            f"the name of a cached view must have no dots, but {statement.name.text!r:.200} has one.",
            code="TEMP_VIEW_NAME_TOO_MANY_NAME_PARTS",
        )
    context.query(statement.query, stays=False).createTempView(statement.name.parts[0])
    lazy = "LAZY " if statement.lazy else ""
    try:
        context.spark.sql(f"CACHE {lazy}TABLE {statement.name.text} {statement.options}")
    except BaseException:
        context.spark.catalog.dropTempView(statement.name.parts[0])
        raise


def cache_table(context: StatementContext, statement: CacheTable) -> None:
    """CACHE TABLE and UNCACHE TABLE. UNCACHE TABLE succeeds without cached rows, too.

    Raises: UserError for an invalid storage level; as a read of the table.
    """
    root = context.root(statement.target)
    if not statement.keeps:
        cached_rows.forget(context.spark, root)
        return
    level = _level(statement.level)
    path = context.names.by_path(statement.target).path or ""
    frame = cached_rows.cache(context.spark, path, context.snapshot(statement.target), level)
    if not statement.lazy:
        frame.count()


def _level(name: str | None) -> StorageLevel:
    if name is None:
        return StorageLevel.MEMORY_AND_DISK_DESER
    # PySpark's levels are serialized by default, although their names do not say so
    found = getattr(StorageLevel, name.upper().removesuffix("_SER"), None)
    if not isinstance(found, StorageLevel):
        raise UserError(f"Spark has no storage level {name!r:.200}. MEMORY_AND_DISK is one of its levels.")
    return found


def refresh(context: StatementContext, statement: Refresh) -> None:
    """Refresh rows that Spark has cached. Other reads need no refresh: they see the current table.

    Raises: TableNotFoundError.
    """
    context.table(statement.target)
    named = context.names.find(statement.target)
    if named is not None:
        context.names.refresh(named)
