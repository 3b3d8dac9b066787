"""An expression of a table as a column of Spark, after it was tried on no rows.

Invariants: its names are the table's columns, never other columns of a frame, hidden ones, variables of the session or
aliases; its functions are Spark's own; it has no subquery, aggregate, window or generator, so that it computes a value
of a row from that row. What does not hold is refused before any row is read.

Spark itself is asked: a frame without rows has the table's columns, and twice each other name that the text could mean,
so that a reference to one is ambiguous. A condition of rows takes no aggregate, no window and no generator, and a
lambda in it no subquery and no Python function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

from delta_pyds.errors import ColumnNotFoundError, DeltaError, ExpressionError
from delta_pyds.table.definition.spark_expressions import called_functions, possible_names

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

# Spark takes them for calls where no column has the name
_CALLS_WITHOUT_PARENTHESES = frozenset(
    {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
    | {"current_user", "session_user", "user"}
)
_SPARKS_OWN = "org.apache.spark.sql.catalyst.expressions."
_BUILTIN = ("builtin", "system.builtin")


def try_expression(
    spark: SparkSession,
    sql: str,
    schema: spark_types.StructType,
    what: str,
    use: Callable[[Column], Column] = lambda value: value,
) -> spark_types.DataType:
    """The type of the expression over rows of that schema, whose names are the only ones that it may use.

    ``what``: whose expression it is, for messages. ``use``: what its value is needed for, which may be refused too.

    Raises: ColumnNotFoundError for another name; ExpressionError for anything else that is refused, by us or Spark.
    """
    _check_functions(spark, sql, what)
    columns = {name.lower() for name in schema.names}
    others = sorted(possible_names(sql) - columns - _CALLS_WITHOUT_PARENTHESES)
    none = F.lit(None).cast("int")
    try:
        rows = spark.createDataFrame([], schema).select("*", *(none.alias(name) for name in others for _ in range(2)))
        in_lambda = F.transform(F.array(F.lit(0)), lambda _: F.expr(sql))
        tried = rows.where(in_lambda.isNotNull()).select(F.expr(sql), use(F.expr(sql)))
        return tried.schema.fields[0].dataType
    except PySparkException as e:
        raise _refusal(e, sql, schema, what) from None


def _check_functions(spark: SparkSession, sql: str, what: str) -> None:
    """Refuse functions that are not Spark's own, whatever their name."""
    for parts in sorted(called_functions(sql)):
        qualifier, name = ".".join(parts[:-1]).lower(), parts[-1]
        if qualifier and qualifier not in _BUILTIN:
            raise _not_sparks(f"{qualifier}.{name}", sql, what)
        try:
            found = spark.catalog.getFunction("`" + name.replace("`", "``") + "`")
        except PySparkException:
            continue  # there is none: it is no call, or Spark says so
        if not (found.className or "").startswith(_SPARKS_OWN):
            raise _not_sparks(name, sql, what)


def _not_sparks(function: str, sql: str, what: str) -> ExpressionError:
    return ExpressionError(
        f"nothing can be written: {what}, {sql}, calls {function}, which is no function of Spark's own here: an "
        "expression of a table may not call functions of users.",
        code="DELTA_UDF_IN_CHECK_CONSTRAINT",
        expression=sql,
    )


def _refusal(e: PySparkException, sql: str, schema: spark_types.StructType, what: str) -> DeltaError:
    condition = (e.getCondition() or "").split(".")[0]
    if condition in ("AMBIGUOUS_REFERENCE", "UNRESOLVED_COLUMN"):
        parameters = e.getMessageParameters() or {}
        name = parameters.get("name") or parameters.get("objectName") or "a name"
        return ColumnNotFoundError(
            f"nothing can be written: {what}, {sql}, names {name}, which is none of the columns that it can use: "
            f"{', '.join(schema.names) or 'there are none'}.",
            code="UNRESOLVED_COLUMN",
            expression=sql,
        )
    first = next(iter(str(e).strip().splitlines()), "")
    return ExpressionError(
        f"nothing can be written: {what}, {sql}, cannot be computed by Spark for a row: {first}",
        code=condition or None,
        expression=sql,
    )
