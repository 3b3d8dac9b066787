"""The changes as both kinds of SCD use them: the columns of the table, the sequence, and whether a row is a delete.

Invariant: a row with a null in a key or in its sequence fails where its sequence is used, and it always is.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - the same

from delta_pyds.errors import UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.apply_changes.refusals import NULL_KEY, NULL_SEQUENCE, raising
from delta_pyds.spark.apply_changes.rules import DELETED_COLUMN, SEQUENCE_COLUMN, ChangeRules, Expression
from delta_pyds.spark.apply_changes.target import ChangeColumns
from delta_pyds.spark.spark_errors import explained


def prepared_changes(changes: DataFrame, rules: ChangeRules, columns: ChangeColumns) -> DataFrame:
    """Keys, values, ``SEQUENCE_COLUMN`` and ``DELETED_COLUMN``. Of a delete only the keys and the sequence stay.

    Raises: UserError for an expression that Spark cannot resolve in the changes.
    """
    sequence = _column(rules.sequence_by)
    deletes = F.lit(False) if rules.delete_when is None else _column(rules.delete_when)
    chosen = [F.col(quote_name(name)).alias(name) for name in columns.all]
    try:
        with_both = changes.select(*chosen, sequence.alias(SEQUENCE_COLUMN), deletes.alias(DELETED_COLUMN))
        schema = with_both.schema
    except AnalysisException:
        _refuse_unresolved(changes, rules)
        raise
    deleted = F.coalesce(F.col(DELETED_COLUMN), F.lit(False))
    if not isinstance(schema[DELETED_COLUMN].dataType, T.BooleanType):
        raise UserError(
            f"the argument delete_when has the type {schema[DELETED_COLUMN].dataType.simpleString().upper()}: give a "
            "condition.",
            option="delete_when",
        )
    kind = schema[SEQUENCE_COLUMN].dataType
    if not _has_order(kind):
        raise UserError(
            f"the argument sequence_by has the type {kind.simpleString().upper()}, which has no order: give numbers, "
            "dates, texts, or a struct of them.",
            option="sequence_by",
        )
    no_key = _any(F.col(quote_name(name)).isNull() for name in columns.keys)
    no_sequence = _any(part.isNull() for part in _parts(F.col(SEQUENCE_COLUMN), kind))
    checked = (
        F.when(no_key, F.expr(raising(NULL_KEY, columns.keys)))
        .when(no_sequence, F.expr(raising(NULL_SEQUENCE, columns.keys)))
        .otherwise(F.col(SEQUENCE_COLUMN))
    )
    return with_both.select(
        *(F.col(quote_name(name)) for name in columns.keys),
        *(_value(name, columns, deleted) for name in columns.values),
        checked.alias(SEQUENCE_COLUMN),
        deleted.alias(DELETED_COLUMN),
    )


def comparable(names: Iterable[str], schema: T.StructType) -> Column:
    """A struct of the columns that differs if one of them does. A map has no order, so its text stands for it."""
    kinds = {one.name: one.dataType for one in schema.fields}
    columns = ((F.col(quote_name(name)), kinds[name]) for name in names)
    # a struct without fields has no order
    return F.struct(F.lit(0), *(one if _has_order(kind) else F.to_json(F.struct(one)) for one, kind in columns))


def _value(name: str, columns: ChangeColumns, deleted: Column) -> Column:
    """A deleted row leaves no value behind, but its sequence."""
    value = F.col(quote_name(name))
    return value if name == columns.sequence else F.when(~deleted, value).alias(name)


def _refuse_unresolved(changes: DataFrame, rules: ChangeRules) -> None:
    """Raises: UserError with the argument whose expression Spark cannot resolve."""
    for argument, given in (("sequence_by", rules.sequence_by), ("delete_when", rules.delete_when)):
        if given is None:
            continue
        try:
            _ = changes.select(_column(given)).schema
        except AnalysisException as error:
            raise UserError(
                f"the argument {argument} cannot be resolved in the changes: {explained(error).message}",
                option=argument,
                multiline=True,
            ) from None


def _column(expression: Expression) -> Column:
    return F.expr(expression) if isinstance(expression, str) else expression


def _has_order(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return all(_has_order(one.dataType) for one in kind.fields)
    if isinstance(kind, T.ArrayType):
        return _has_order(kind.elementType)
    return not isinstance(kind, (T.MapType, T.VariantType, T.NullType, T.UserDefinedType))


def _parts(value: Column, kind: T.DataType) -> list[Column]:
    """A value, and the fields of a struct at any depth."""
    inside = kind.fields if isinstance(kind, T.StructType) else []
    return [value, *(part for one in inside for part in _parts(value.getField(one.name), one.dataType))]


def _any(conditions: Iterable[Column]) -> Column:
    found = F.lit(False)
    for condition in conditions:
        found = found | condition
    return found
