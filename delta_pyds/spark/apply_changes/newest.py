"""SCD 1: the newest change of each key, merged into the table.

Invariant: the table has the change with the greatest sequence of each key, in any order of the batches. A row
remembers its sequence; a deleted key keeps a row without values, its tombstone, so a late change cannot bring it back.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.protocol.char_types import TextLimit, is_padded, text_limits
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructField, StructType
from delta_pyds.spark.apply_changes.prepared import PreparedChanges, comparable, has_order
from delta_pyds.spark.apply_changes.refusals import REPEATED, TIE, raising
from delta_pyds.spark.apply_changes.rules import DELETED_COLUMN, SEQUENCE_COLUMN
from delta_pyds.spark.apply_changes.target import CHANGES_ALIAS, TARGET_ALIAS, ChangeColumns, qualified, same_type
from delta_pyds.spark.row_changes.stored_values import spark_field

_RANK, _NUMBER, _FIRST = "_deltapy_rank", "_deltapy_number", "_deltapy_first"


def newest_changes(prepared: PreparedChanges, columns: ChangeColumns) -> DataFrame:
    """One row of each key: that of the greatest sequence. It fails if several rows have it and differ."""
    keys = [quote_name(name) for name in columns.keys]
    row = comparable((*columns.values, DELETED_COLUMN), prepared.schema)
    # one window, so that Spark limits the rows of a key before it shuffles them
    by_sequence = f"OVER (PARTITION BY {', '.join(keys)} ORDER BY {SEQUENCE_COLUMN} DESC)"
    ranked = prepared.frame.selectExpr(
        "*",
        f"rank() {by_sequence} AS {_RANK}",
        f"row_number() {by_sequence} AS {_NUMBER}",
        f"first_value({row}) {by_sequence} AS {_FIRST}",
    )
    is_first = (
        f"CASE WHEN {_NUMBER} = 1 THEN true WHEN {_RANK} > 1 OR {row} <=> {_FIRST} THEN false "
        f"ELSE {raising(TIE, columns.keys)} END"
    )
    newest = ranked.where(f"{_RANK} = 1 AND {is_first}")
    return newest.selectExpr(*map(quote_name, (*columns.all, SEQUENCE_COLUMN, DELETED_COLUMN)))


def merge_of_newest(
    columns: ChangeColumns, changes: T.StructType, table: StructType, *, compares: bool
) -> tuple[str, list[MergeClause[Column | str]]]:
    """The condition and the clauses of the merge. ``changes``, ``table``: their columns.

    ``compares``: compare the values of a change that has the sequence of its row. Else such a change fails, and the
    merge reads only keys and sequences of the table.
    """
    condition = " AND ".join(
        f"{qualified(TARGET_ALIAS, name)} = {qualified(CHANGES_ALIAS, name)}" for name in columns.keys
    )
    values: dict[str, Column | str] = {quote_name(name): qualified(CHANGES_ALIAS, name) for name in columns.all}
    if columns.sequence is None:
        values[SEQUENCE_COLUMN] = qualified(CHANGES_ALIAS, SEQUENCE_COLUMN)
    deleted = qualified(CHANGES_ALIAS, DELETED_COLUMN)
    same = [*same_values(columns, changes, table), _same_delete(table)] if compares else []
    is_newer = _is_newer(columns, same)
    if table.find(DELETED_COLUMN) is not None:
        values[DELETED_COLUMN] = deleted
        return condition, [
            MergeClause("matched", "update", is_newer, values),
            MergeClause("not_matched", "insert", None, values),
        ]
    return condition, [
        MergeClause("matched", "delete", f"{deleted} AND {is_newer}"),
        MergeClause("matched", "update", is_newer, values),
        MergeClause("not_matched", "insert", f"NOT {deleted}", values),
    ]


def _is_newer(columns: ChangeColumns, same: Sequence[str]) -> str:
    """Whether a change is newer than the row of its key. ``same``: conditions for a change that came before.

    A row without a sequence was there before any change. It counts as older than every change.
    """
    old = qualified(TARGET_ALIAS, columns.sequence or SEQUENCE_COLUMN)
    new = qualified(CHANGES_ALIAS, SEQUENCE_COLUMN)
    came_before = f"WHEN {' AND '.join(same)} THEN false" if same else ""
    refusal = raising(TIE if same else REPEATED, columns.keys, CHANGES_ALIAS)
    return (
        f"CASE WHEN {old} IS NULL OR {new} > {old} THEN true WHEN {new} < {old} THEN false {came_before} "
        f"ELSE {refusal} END"
    )


def _same_delete(table: StructType) -> str:
    deleted = qualified(CHANGES_ALIAS, DELETED_COLUMN)
    if table.find(DELETED_COLUMN) is None:
        return f"NOT {deleted}"
    return f"{deleted} = coalesce({qualified(TARGET_ALIAS, DELETED_COLUMN)}, false)"


def same_values(columns: ChangeColumns, changes: T.StructType, table: StructType) -> list[str]:
    """Conditions that hold if a change has the values of a row, once they are of the table's types.

    Variants are not compared, nor nested values of another type than the table's or with a ``char(n)`` in them.
    """
    found = []
    for one in changes.fields:
        stored = table.find(one.name) if one.name in columns.values and one.name != columns.sequence else None
        if stored is not None:
            new, old = qualified(CHANGES_ALIAS, one.name), qualified(TARGET_ALIAS, one.name)
            found += [f"{value} <=> {row}" for value, row in _compared(new, old, one.dataType, stored)]
    return found


def _compared(new: str, old: str, kind: T.DataType, stored: StructField) -> list[tuple[str, str]]:
    """The SQL of what a change and a row have in a column; nothing for a column that is not compared."""
    wanted = spark_field(stored).dataType
    if isinstance(wanted, (T.StructType, T.ArrayType, T.MapType)):
        if not same_type(kind, stored) or is_padded(stored):
            return []
        # a map has no order, so its text stands for it
        return [(new, old) if has_order(kind) else (f"to_json(struct({new} AS v))", f"to_json(struct({old} AS v))")]
    if isinstance(wanted, T.VariantType):
        return []
    value = new if same_type(kind, stored) else f"CAST({new} AS {wanted.simpleString()})"
    limit = text_limits(stored)
    return [(f"rpad({value}, {limit.length}, ' ')" if isinstance(limit, TextLimit) and limit.padded else value, old)]
