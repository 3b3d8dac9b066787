"""Checks of the expressions that a user gives to a table, before the table has them.

Invariant: every session can compute an expression of a table for each row from that row alone, with the same value
each time.

Protocol: "Generated Columns", "CHECK Constraints", "Default Columns".
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from delta_pyds.errors import ColumnNotFoundError, ExpressionError, UserError
from delta_pyds.expr.types import is_numeric
from delta_pyds.protocol.schema import (
    BOOLEAN,
    CURRENT_DEFAULT,
    DATE,
    GENERATION_EXPRESSION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    display,
    nullable_throughout,
)
from delta_pyds.spark.planning.types import from_spark, to_spark
from delta_pyds.spark.row_changes.table_expression import Trial, try_expressions
from delta_pyds.table.definition.spark_expressions import function_names, spark_expression

# Functions with another value each time, or in each session. Spark calls some deterministic within one query.
_CHANGING = frozenset(
    {"rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"}
    | {"spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length"}
    | {"current_date", "curdate", "current_timestamp", "now", "localtimestamp", "current_time", "localtime"}
    | {"current_timezone", "current_user", "session_user", "user", "current_database", "current_schema"}
    | {"current_catalog", "version", "unix_timestamp", "read_files", "ai_query"}
)
_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_CLOCK = frozenset({"current_date", "current_timestamp", "localtimestamp", "current_user", "session_user", "user"})


def check_generated(spark: SparkSession, schema: StructType) -> None:
    """Try the expressions of all generated columns of a schema.

    Raises: UserError (DELTA_INVALID_GENERATED_COLUMN_REFERENCES,
        DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN,
        DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH); ExpressionError for other text than an expression of a row.
    """
    generated = [f for f in schema if GENERATION_EXPRESSION in f.metadata]
    given = StructType(tuple(f for f in schema if GENERATION_EXPRESSION not in f.metadata))
    for f in generated:
        text = str(f.metadata[GENERATION_EXPRESSION])
        what = f"the generated column '{f.name}'"
        _check_same_each_time(text, what, "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN", clock=True)
        try:
            found = _type_of(spark, given, text, what)
        except ColumnNotFoundError as e:
            raise UserError(
                f"{what} has the expression {text}, which may use only columns of the table that are not generated: "
                f"{e.message}",
                code="DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
                column=f.name,
            ) from None
        _check_type(f, found, text)


def check_condition(spark: SparkSession, schema: StructType, name: str, text: str) -> None:
    """Try a CHECK constraint.

    Raises: UserError (DELTA_NON_BOOLEAN_CHECK_CONSTRAINT, DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT);
        ColumnNotFoundError; ExpressionError for other text than a condition of a row.
    """
    what = f"the CHECK constraint '{name}'"
    _check_same_each_time(text, what, "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT", clock=False)
    found = _type_of(spark, schema, text, what)
    if found not in (BOOLEAN, VOID):
        raise UserError(
            f"{what}, {text}, has the type {display(found)}, but must be a condition.",
            code="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
            constraint=name,
        )


def check_default(spark: SparkSession, field: StructField) -> None:
    """Try the default of a column: a value without columns that Spark would store in one of its type.

    Raises: UserError (INVALID_DEFAULT_VALUE.DATA_TYPE, INVALID_DEFAULT_VALUE.NOT_CONSTANT); ExpressionError.
    """
    text = str(field.metadata[CURRENT_DEFAULT])
    what = f"the default of the column '{field.name}'"
    try:
        found = _type_of(spark, StructType(()), text, what)
    except ColumnNotFoundError as e:
        raise UserError(
            f"{what}, {text}, must not use a column: {e.message}",
            code="INVALID_DEFAULT_VALUE.NOT_CONSTANT",
            column=field.name,
        ) from None
    if not _is_stored_as(found, field.data_type):
        raise UserError(
            f"{what}, {text}, has the type {display(found)}, which cannot be stored in a column of type "
            f"{display(field.data_type)}. Cast it.",
            code="INVALID_DEFAULT_VALUE.DATA_TYPE",
            column=field.name,
        )


def _check_same_each_time(text: str, what: str, code: str, *, clock: bool) -> None:
    try:
        names = function_names(text)
    except ExpressionError:
        return  # the next check refuses it
    found = sorted(names & (_CHANGING if clock else _CHANGING - _CLOCK))
    if found:
        raise UserError(
            f"{what}, {text}, calls {', '.join(found)}, which gives another value each time.",
            code=code,
            expression=text,
        )


def _type_of(spark: SparkSession, schema: StructType, text: str, what: str) -> DataType:
    spark_expression(text, schema, what)
    [found] = try_expressions(spark, to_spark(schema), [Trial(text, what, lambda value: value)])
    [field] = from_spark(spark_types.StructType([spark_types.StructField("c", found)])).fields
    return field.data_type


def _check_type(f: StructField, found: DataType, text: str) -> None:
    if nullable_throughout(found) != nullable_throughout(f.data_type):
        raise UserError(
            f"the generated column '{f.name}' has the type {display(f.data_type)}, but its expression, {text}, has "
            f"{display(found)}. Cast the expression, or give the column that type.",
            code="DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
            column=f.name,
        )


def _is_stored_as(found: DataType, wanted: DataType) -> bool:
    """Whether Spark's store assignment with ANSI rules takes a constant of this type."""
    if found == VOID or nullable_throughout(found) == nullable_throughout(wanted):
        return True
    if isinstance(found, (StructType, ArrayType, MapType)) or isinstance(wanted, (StructType, ArrayType, MapType)):
        return type(found) is type(wanted)
    if is_numeric(found) and is_numeric(wanted):
        return True
    return wanted == STRING or (found in _TIMES and wanted in _TIMES)
