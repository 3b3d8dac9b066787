"""The changes as both kinds of SCD use them: the columns of the table, the sequence, and whether a row is a delete.

Invariant: a row with a null in a key or in its sequence raises an error when its sequence is evaluated. Every query
evaluates it. Frames are made of SQL text: on a classic session each Column costs some calls to Spark's driver.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from delta_pyds.errors import UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.apply_changes.refusals import NULL_KEY, NULL_SEQUENCE, raising
from delta_pyds.spark.apply_changes.rules import DELETED_COLUMN, SEQUENCE_COLUMN, ChangeRules, Expression
from delta_pyds.spark.apply_changes.target import ChangeColumns
from delta_pyds.spark.spark_errors import explained


@dataclass(frozen=True)
class PreparedChanges:
    """``frame``: keys, values, ``SEQUENCE_COLUMN`` and ``DELETED_COLUMN``. ``schema``: its columns."""

    frame: DataFrame
    schema: T.StructType

    @property
    def sequence_type(self) -> T.DataType:
        return self.schema[SEQUENCE_COLUMN].dataType


def prepared_changes(changes: DataFrame, rules: ChangeRules, columns: ChangeColumns) -> PreparedChanges:
    """The changes with checked keys and sequences. A delete keeps only its keys and its sequence.

    Raises: UserError for an expression that Spark cannot resolve in the changes, or of the wrong type.
    """
    names = [quote_name(name) for name in columns.all]
    try:
        chosen = _with_sequence_and_delete(changes, rules, names)
        schema = chosen.schema
    except AnalysisException:
        _refuse_unresolved(changes, rules)
        raise
    if not isinstance(schema[DELETED_COLUMN].dataType, T.BooleanType):
        raise UserError(
            f"the argument delete_when has the type {schema[DELETED_COLUMN].dataType.simpleString().upper()}: give a "
            "condition.",
            option="delete_when",
        )
    kind = schema[SEQUENCE_COLUMN].dataType
    if not has_order(kind):
        raise UserError(
            f"the argument sequence_by has the type {kind.simpleString().upper()}, which has no order: give numbers, "
            "dates, texts, or a struct of them.",
            option="sequence_by",
        )
    deleted = f"coalesce({DELETED_COLUMN}, false)"
    if rules.delete_when is None:
        values = [quote_name(name) for name in columns.values]
    else:
        values = [_value(name, columns, deleted) for name in columns.values]
    no_key = " OR ".join(f"{quote_name(name)} IS NULL" for name in columns.keys)
    no_sequence = " OR ".join(f"{part} IS NULL" for part in _parts(SEQUENCE_COLUMN, kind))
    checked = (
        f"CASE WHEN {no_key} THEN {raising(NULL_KEY, columns.keys)} "
        f"WHEN {no_sequence} THEN {raising(NULL_SEQUENCE, columns.keys)} ELSE {SEQUENCE_COLUMN} END"
    )
    frame = chosen.selectExpr(
        *names[: len(columns.keys)], *values, f"{checked} AS {SEQUENCE_COLUMN}", f"{deleted} AS {DELETED_COLUMN}"
    )
    return PreparedChanges(frame, schema)


def comparable(names: Iterable[str], schema: T.StructType) -> str:
    """The SQL of a struct of the columns that differs if one of them does.

    A map has no order, so its text stands for it.
    """
    kinds = {one.name: one.dataType for one in schema.fields}
    # a struct without fields has no order
    parts = ["0"]
    for name in names:
        column = quote_name(name)
        parts.append(column if has_order(kinds[name]) else f"to_json(struct({column}))")
    return f"struct({', '.join(parts)})"


def _with_sequence_and_delete(changes: DataFrame, rules: ChangeRules, names: Iterable[str]) -> DataFrame:
    """The columns of the table, the sequence and the condition of deletes as the user gave them."""
    deletes = "false" if rules.delete_when is None else rules.delete_when
    texts = {SEQUENCE_COLUMN: rules.sequence_by, DELETED_COLUMN: deletes}
    columns = {name: given for name, given in texts.items() if isinstance(given, Column)}
    frame = changes.withColumns(columns) if columns else changes
    # a comment in the text ends with its line
    own = (name if name in columns else f"({given}\n\n) AS {name}" for name, given in texts.items())
    return frame.selectExpr(*names, *own)


def _value(name: str, columns: ChangeColumns, deleted: str) -> str:
    """Null for a delete, except for the sequence."""
    value = quote_name(name)
    return value if name == columns.sequence else f"CASE WHEN NOT {deleted} THEN {value} END AS {value}"


def _refuse_unresolved(changes: DataFrame, rules: ChangeRules) -> None:
    """Raises: UserError with the argument whose expression Spark cannot resolve."""
    given: tuple[tuple[str, Expression | None], ...] = (
        ("sequence_by", rules.sequence_by),
        ("delete_when", rules.delete_when),
    )
    for argument, expression in given:
        if expression is None:
            continue
        try:
            one = changes.selectExpr(expression) if isinstance(expression, str) else changes.select(expression)
            _ = one.schema
        except AnalysisException as error:
            raise UserError(
                f"the argument {argument} cannot be resolved in the changes: {explained(error).message}",
                option=argument,
                multiline=True,
            ) from None


def has_order(kind: T.DataType) -> bool:
    """Whether Spark can compare values of the type."""
    if isinstance(kind, T.StructType):
        return all(has_order(one.dataType) for one in kind.fields)
    if isinstance(kind, T.ArrayType):
        return has_order(kind.elementType)
    return not isinstance(kind, (T.MapType, T.VariantType, T.NullType, T.UserDefinedType))


def _parts(value: str, kind: T.DataType) -> list[str]:
    """A value, and the fields of a struct at any depth."""
    inside = kind.fields if isinstance(kind, T.StructType) else []
    return [value, *(part for one in inside for part in _parts(f"{value}.{quote_name(one.name)}", one.dataType))]
