"""The word DEFAULT as the value of a column: in UPDATE, MERGE and INSERT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.protocol.schema import (
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    StructField,
)
from delta_pyds.spark.row_changes.column_default import column_default
from delta_pyds.spark.row_changes.stored_values import spark_field
from delta_pyds.statements.default_values import default_values, has_star, reads
from delta_pyds.statements.kinds import SqlText
from delta_pyds.table.snapshot import Snapshot


def default_text(spark: SparkSession, snapshot: Snapshot, field: StructField | None, column: str) -> str:
    """The expression of a column's default; NULL without a default, as in ``DeltaTable.update``.

    ``column``: as the statement names it.
    Raises: UnsupportedOperationError for a field of a struct, and for a column that the table computes;
        ExpressionError for a default that is refused (see ``row_changes.table_expression``).
    """
    if field is None or GENERATION_EXPRESSION in field.metadata or IDENTITY_START in field.metadata:
        raise UnsupportedOperationError(
            f"DEFAULT as the value of {column!r:.200} is not supported: it is not a column, or the table computes it. "
            "Write the value, or omit the column.",
            column=column,
        )
    return column_default(spark, snapshot.configuration, field) or "NULL"


def _inserted(spark: SparkSession, snapshot: Snapshot, field: StructField | None, column: str) -> str:
    """The text that replaces DEFAULT in an INSERT.

    For an identity column this is NULL, as in the reference: only rows that leave the column out get a number.
    Raises: UserError (DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED) for one that is GENERATED ALWAYS; as
        ``default_text``.
    """
    if field is None or IDENTITY_START not in field.metadata:
        return default_text(spark, snapshot, field, column)
    if field.metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT):
        return "NULL"
    raise UserError(
        f"the column '{field.name}' of table {snapshot.table_root} is GENERATED ALWAYS AS IDENTITY, so an INSERT "
        "cannot give a value for it, not even DEFAULT. Omit it from the list of columns: then the table numbers the "
        "rows.",
        code="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
        table=snapshot.table_root,
        column=field.name,
    )


@dataclass(frozen=True)
class Defaults:
    """``pieces``: start and end of each DEFAULT in the query of an INSERT, with the text of its value.
    ``may_be_columns``: the query may read a column called DEFAULT, which has precedence."""

    pieces: tuple[tuple[int, int, str], ...] = ()
    may_be_columns: bool = False


def defaults_of(spark: SparkSession, snapshot: Snapshot, query: SqlText, columns: Sequence[str] | None) -> Defaults:
    """The values of each DEFAULT. For a DEFAULT elsewhere in the query, Spark reports an unknown column.

    ``columns``: the table's columns, in the order of the query's; None if they are matched by name.
    Raises: UnsupportedOperationError for a DEFAULT whose column is unknown; as ``default_text``.
    """
    tokens = tokenize(query.text, statement=True)
    found = default_values(tokens)
    if not found or columns is None:
        return Defaults()
    if has_star(tokens):
        raise UnsupportedOperationError(
            "this version of delta_pyds does not support DEFAULT beside a star in the values of INSERT. Name the "
            "columns instead of the star, or omit the column from the list of columns: then it gets its default.",
            feature="DEFAULT",
        )
    pieces = []
    for one in found:
        # the later check of the number of columns refuses surplus values
        if one.column >= len(columns):
            value = "NULL"
        else:
            field = snapshot.schema.find(columns[one.column])
            text = _inserted(spark, snapshot, field, columns[one.column])
            assert field is not None
            value = text if text == "NULL" else f"CAST(({text}) AS {spark_field(field).dataType.simpleString()})"
        pieces.append((one.start, one.end, value))
    return Defaults(tuple(pieces), reads(tokens))
