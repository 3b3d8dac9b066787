"""The user's expressions, resolved once in the frame whose names they may use.

Invariant: a resolved expression means the same in every later frame that has the columns, even if one of its names
would be ambiguous there. Spark Connect does not return resolved expressions. There the user's own are used, analyzed
once for errors and types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import DataType

from delta_pyds.errors import UserError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.jvm_plans import analyzed
from delta_pyds.spark.spark_errors import fragment_of

_OF_MANY_ROWS = ("INVALID_WHERE_CONDITION", "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE", "UNSUPPORTED_GENERATOR")
_UNRESOLVED = ("UNRESOLVED_COLUMN", "UNRESOLVED_FIELD", "MISSING_ATTRIBUTES", "CANNOT_RESOLVE_DATAFRAME_COLUMN")


@dataclass(frozen=True)
class BoundExpression:
    """``column``: usable in frames with the same columns. ``sql``: Spark's text with all names qualified, or the user's
    text; None if neither is available. ``calls_python``: it calls a Python function of the user, which Spark supports
    in inner joins only."""

    column: Column
    data_type: DataType
    sql: str | None
    calls_python: bool = False


def bind(
    frame: DataFrame, expressions: Sequence[Column | str], *, what: str, table: str, given: Sequence[str] | None = None
) -> list[BoundExpression]:
    """Resolve expressions in the names of ``frame``.

    ``what``: the part of the command, for messages. ``given``: names of the available columns, for messages.
    Raises: UserError with DELTA_MERGE_UNRESOLVED_EXPRESSION for an unknown name, with
        DELTA_AGGREGATION_NOT_SUPPORTED for a value of several rows; other errors as Spark raises them.
    """
    if not expressions:
        return []
    columns = [F.expr(e) if isinstance(e, str) else e for e in expressions]
    remote = is_remote(frame.sparkSession)
    try:
        resolved = (_where_any_is_null(frame, columns) if remote else frame).select(
            *(column.alias(f"_{i}") for i, column in enumerate(columns))
        )
        types = [field.dataType for field in resolved.schema.fields]
    except AnalysisException as e:
        if remote and (e.getCondition() or "").startswith(_OF_MANY_ROWS):
            raise _of_many_rows(f"{what} of a merge into {table}", "DELTA_AGGREGATION_NOT_SUPPORTED") from None
        raise _explained(e, frame, what, table, given) from None
    if remote:
        texts = [e if isinstance(e, str) else None for e in expressions]
        return [BoundExpression(*one) for one in zip(columns, types, texts, strict=True)]
    return _of_plan(frame, resolved, types, what, table)


def require_values_of_one_row(frame: DataFrame, values: Sequence[Column], what: str) -> None:
    """Check that each value is computed from one row. Later steps find other errors in the values.

    Raises: UserError (UNSUPPORTED_EXPR_FOR_OPERATOR) for a value that is computed from several rows.
    """
    try:
        _ = _where_any_is_null(frame, values).schema
    except AnalysisException as error:
        if (error.getCondition() or "").startswith(_OF_MANY_ROWS):
            raise _of_many_rows(what, "UNSUPPORTED_EXPR_FOR_OPERATOR") from None


def _where_any_is_null(frame: DataFrame, values: Sequence[Column]) -> DataFrame:
    """A filter with the values: Spark allows no aggregate, window or generator in one."""
    return frame.where(reduce(Column.__or__, (value.isNull() for value in values)))


def _of_many_rows(what: str, code: str) -> UserError:
    return UserError(
        f"{what} is computed from one row at a time, so it cannot use aggregates, window functions or generators. "
        "Compute them in the source of a merge.",
        code=code,
    )


def _of_plan(
    frame: DataFrame, resolved: DataFrame, types: Sequence[DataType], what: str, table: str
) -> list[BoundExpression]:
    from pyspark.sql.classic.column import Column as ClassicColumn

    spark: Any = frame.sparkSession
    to_column = spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column
    python = spark._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    plan = analyzed(resolved)
    if plan.getClass().getSimpleName() != "Project" or not plan.child().sameResult(analyzed(frame)):
        raise _of_many_rows(f"{what} of a merge into {table}", "DELTA_AGGREGATION_NOT_SUPPORTED")
    found = []
    for i, data_type in enumerate(types):
        expression = plan.projectList().apply(i).child()
        column, sql = ClassicColumn(to_column(expression)), str(expression.sql())
        found.append(BoundExpression(column, data_type, sql, bool(expression.containsPattern(python))))
    return found


def _explained(
    error: AnalysisException, frame: DataFrame, what: str, table: str, given: Sequence[str] | None
) -> Exception:
    code = error.getCondition() or ""
    if not code.startswith(_UNRESOLVED):
        return error
    parameters = error.getMessageParameters() or {}
    name = parameters.get("objectName") or parameters.get("fieldName") or parameters.get("missingAttributes") or ""
    shown = ", ".join(given if given is not None else frame.columns)
    return UserError(
        f"Cannot resolve {name} in {what} given columns {shown}. Nothing was changed in {table}.",
        code="DELTA_MERGE_UNRESOLVED_EXPRESSION",
        table=table,
        name=name,
        fragment=fragment_of(error),
    )
