"""CACHE TABLE over a query and over a table, UNCACHE TABLE, REFRESH TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import StorageLevel

from delta_pyds.errors import UserError
from delta_pyds.spark.sql import cached_rows
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.statements.kinds import CachedView, CacheTable, Refresh

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def cached_view(context: StatementContext, statement: CachedView) -> DataFrame:
    """A temporary view over the tables as they are now, whose rows Spark keeps."""
    if len(statement.name.parts) != 1:
        raise UserError(
            f"a cached view has a name without dots, and {statement.name.text!r:.200} is another.",
            code="TEMP_VIEW_NAME_TOO_MANY_NAME_PARTS",
        )
    context.query(statement.query, stays=False).createTempView(statement.name.parts[0])
    lazy = "LAZY " if statement.lazy else ""
    try:
        context.spark.sql(f"CACHE {lazy}TABLE {statement.name.text} {statement.options}")
    except BaseException:
        context.spark.catalog.dropTempView(statement.name.parts[0])
        raise
    return context.nothing()


def cache_table(context: StatementContext, statement: CacheTable) -> DataFrame:
    """Rows that shall be let go of need not be kept.

    Raises: what reading the table raises; UserError for a level that is none.
    """
    root = context.root(statement.target)
    if not statement.keeps:
        cached_rows.forget(context.spark, root)
        return context.nothing()
    level = _level(statement.level)
    path = context.names.by_path(statement.target).path or ""
    frame = cached_rows.cache(context.spark, path, context.snapshot(statement.target), level)
    if not statement.lazy:
        frame.count()
    return context.nothing()


def _level(name: str | None) -> StorageLevel:
    if name is None:
        return StorageLevel.MEMORY_AND_DISK_DESER
    # what PySpark keeps is serialized unless it is said otherwise, and has no word for it
    found = getattr(StorageLevel, name.upper().removesuffix("_SER"), None)
    if not isinstance(found, StorageLevel):
        raise UserError(f"the storage level {name!r:.200} is none of Spark's: MEMORY_AND_DISK is one.")
    return found


def refresh(context: StatementContext, statement: Refresh) -> DataFrame:
    """Each statement reads a table as it is then, but rows that Spark keeps. Raises: TableNotFoundError."""
    context.table(statement.target)
    named = context.names.find(statement.target)
    if named is not None:
        context.names.refresh(named)
    return context.nothing()
