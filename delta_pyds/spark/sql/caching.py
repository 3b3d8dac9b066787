"""CACHE TABLE over a query, and REFRESH TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_pyds.errors import UserError
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.statements.kinds import CachedView, Refresh

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def cached_view(context: StatementContext, statement: CachedView) -> DataFrame:
    """A temporary view over the tables as they are now, whose rows Spark keeps."""
    if len(statement.name.parts) != 1:
        raise UserError(
            f"a cached view has a name without dots, and {statement.name.text!r:.200} is another.",
            code="TEMP_VIEW_NAME_TOO_MANY_NAME_PARTS",
        )
    context.query(statement.query).createTempView(statement.name.parts[0])
    lazy = "LAZY " if statement.lazy else ""
    try:
        context.spark.sql(f"CACHE {lazy}TABLE {statement.name.text} {statement.options}")
    except BaseException:
        context.spark.catalog.dropTempView(statement.name.parts[0])
        raise
    return context.nothing()


def refresh(context: StatementContext, statement: Refresh) -> DataFrame:
    """Each statement reads a table as it is then, but rows that Spark keeps. Raises: TableNotFoundError."""
    context.table(statement.target)
    named = context.names.find(statement.target)
    if named is not None:
        context.names.refresh(named)
    return context.nothing()
