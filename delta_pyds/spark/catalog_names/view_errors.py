"""Errors of row changes that Spark tries itself: on a user's view, and by EXECUTE IMMEDIATE.

Invariant: an error of Spark stays unless it is about a view. Without an error Spark is asked nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from delta_pyds.errors import DeltaError, UnsupportedOperationError
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.statements.kinds import Delete, Insert, Merge, PassThrough, Truncate, Update
from delta_pyds.statements.parse import parse_statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHANGES = (Delete, Insert, Merge, Truncate, Update)
# parts of Spark's errors about a view over a table that it cannot change itself
_MESSAGES = ("TABLE_OPERATION", "does not support deletes", "does not support truncates", "Unexpected table relation")


@contextmanager
def errors_about_views(spark: SparkSession, text: Any, args: Any = None) -> Iterator[None]:
    """Replace Spark's errors about a change of rows through a view. The reference supports views of one table.

    Raises: UnsupportedOperationError instead of Spark's error about the tables below the view.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, DeltaError) or not any(words in str(error) for words in _MESSAGES):
            raise
        refused = _refused(spark, text, args)
        if refused is None:
            raise
        raise refused from None


def _refused(spark: SparkSession, text: Any, args: Any) -> UnsupportedOperationError | None:
    try:
        statement = parse_statement(text, args).statement
        if isinstance(statement, PassThrough) and statement.immediate:
            return UnsupportedOperationError(
                "EXECUTE IMMEDIATE of a statement that changes rows of a Delta table is not supported by this version "
                "of delta_pyds. Give spark.sql the statement itself.",
                feature="EXECUTE IMMEDIATE",
            )
        if not isinstance(statement, _CHANGES) or statement.target.path is not None:
            return None
        name = statement.target.text
        with plain_calls():
            found = spark.catalog.getTable(name)
    except (DeltaError, PySparkException):
        return None
    if not (found.isTemporary or found.tableType == "VIEW"):
        return None
    verb = type(statement).__name__.upper()
    return UnsupportedOperationError(
        f"{verb} of {name!r:.200}, which is a view, is not supported by this version of delta_pyds. Name the table "
        "itself, by its name or as delta.`/its/path`. The source of a MERGE and the query of an INSERT may be views.",
        code="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
        feature=f"{verb} of a view",
    )
