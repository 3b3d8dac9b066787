"""SCD 2: the history of each key, merged into the table.

Invariant: the rows of a key are a function of the set of its changes, so neither order nor batches matter. The changes
are all in the rows again:

- an upsert is a row from its sequence to that of the next change
- a delete is the end of a row that no other row continues
- a delete that ends no row is a row without values that ends where it starts: its tombstone

So a late upsert splits a row, and one before a delete ends there.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.apply_changes.newest import same_values
from delta_pyds.spark.apply_changes.prepared import comparable
from delta_pyds.spark.apply_changes.refusals import NO_START, TIE, raising
from delta_pyds.spark.apply_changes.rules import DELETED_COLUMN, END_COLUMN, SEQUENCE_COLUMN, START_COLUMN
from delta_pyds.spark.apply_changes.target import CHANGES_ALIAS, TARGET_ALIAS, ChangeColumns, qualified

_ACTION, _REPEATED = "_deltapy_change", "_deltapy_repeated"
_AT, _ROW, _DIFFERS, _NEXT, _BEFORE = (
    "_deltapy_at", "_deltapy_row", "_deltapy_differs", "_deltapy_next", "_deltapy_before",
)  # fmt: skip
# what happens at a sequence: of the changes an upsert or a delete; of the table a row, a tombstone or an end
_UPSERT, _DELETE, _RECORD, _TOMBSTONE, _END = "upsert", "delete", "record", "tombstone", "end"
_KINDS = (_UPSERT, _DELETE, _RECORD, _TOMBSTONE, _END)
_KIND, _OLD_END = "_deltapy_kind", "_deltapy_old_end"


def changed_history(prepared: DataFrame, rows: DataFrame, columns: ChangeColumns) -> DataFrame:
    """The rows of the table that must change, each with its ``_ACTION``.

    ``rows``: keys, start and end of the table's rows that have a key of the changes, with the types of ``prepared``.
    """
    keys = [quote_name(name) for name in columns.keys]
    events = _of_changes(prepared, columns).unionByName(_of_rows(rows, columns), allowMissingColumns=True)
    row = F.when(F.col(_KIND) == _UPSERT, F.struct(*(F.col(quote_name(name)) for name in (*columns.values, _KIND))))
    compared = F.when(F.col(_KIND) == _UPSERT, comparable(columns.values, prepared.schema))
    at = events.groupBy(*keys, _AT).agg(
        F.first(row, ignorenulls=True).alias(_ROW),
        (~F.min(compared).eqNullSafe(F.max(compared))).alias(_DIFFERS),
        F.max(_OLD_END).alias(_OLD_END),
        *(F.coalesce(F.bool_or(F.col(_KIND) == kind), F.lit(False)).alias(kind) for kind in _KINDS),
    )
    upserts, deletes = F.col(_UPSERT) | F.col(_RECORD), F.col(_DELETE) | F.col(_TOMBSTONE)
    in_order = Window.partitionBy(*keys).orderBy(_AT)
    ordered = at.select("*", F.lead(_AT).over(in_order).alias(_NEXT), F.lag(upserts).over(in_order).alias(_BEFORE))
    # the end of a row is a delete if no row starts there
    tie = F.col(_DIFFERS) | (upserts & deletes) | (F.col(_END) & F.col(_UPSERT) & ~F.col(_RECORD))
    wanted = upserts | ~F.coalesce(F.col(_BEFORE), F.lit(False))
    end = F.when(upserts, F.col(_NEXT)).otherwise(F.col(_AT))
    there = F.col(_RECORD) | F.col(_TOMBSTONE)
    action = (
        F.when(tie, F.expr(raising(TIE, columns.keys)))
        .when(wanted & ~there, F.lit("insert"))
        .when(~wanted & there, F.lit("delete"))
        .when(there & ~end.eqNullSafe(F.col(_OLD_END)), F.lit("update"))
        .when(F.col(_RECORD) & F.col(_UPSERT), F.lit("compare"))
    )
    return ordered.select(
        *keys,
        *(F.col(_ROW).getField(name).alias(name) for name in columns.values),
        F.col(_AT).alias(START_COLUMN),
        end.alias(END_COLUMN),
        (F.col(_RECORD) & F.col(_UPSERT)).alias(_REPEATED),
        action.alias(_ACTION),
    ).where(F.col(_ACTION).isNotNull())


def merge_of_history(
    columns: ChangeColumns, changes: DataFrame, table: StructType
) -> tuple[str, list[MergeClause[Column | str]]]:
    """The condition and the clauses of the merge. ``table``: the table's columns."""
    condition = " AND ".join(
        f"{qualified(TARGET_ALIAS, name)} = {qualified(CHANGES_ALIAS, name)}" for name in (*columns.keys, START_COLUMN)
    )
    action = qualified(CHANGES_ALIAS, _ACTION)
    # a change that came before must have the values of its row
    same = f"NOT {qualified(CHANGES_ALIAS, _REPEATED)}"
    if compared := same_values(columns, changes, table):
        same += f" OR ({' AND '.join(compared)})"
    else:
        same = "true"
    end: dict[str, Column | str] = {END_COLUMN: qualified(CHANGES_ALIAS, END_COLUMN)}
    values: dict[str, Column | str] = {
        quote_name(name): qualified(CHANGES_ALIAS, name) for name in (*columns.all, START_COLUMN, END_COLUMN)
    }
    updates = f"CASE WHEN {same} THEN {action} = 'update' ELSE {raising(TIE, columns.keys, CHANGES_ALIAS)} END"
    return condition, [
        MergeClause("matched", "delete", f"{action} = 'delete'"),
        MergeClause("matched", "update", updates, end),
        MergeClause("not_matched", "insert", f"{action} = 'insert'", values),
    ]


def _of_changes(prepared: DataFrame, columns: ChangeColumns) -> DataFrame:
    kind = F.when(F.col(DELETED_COLUMN), F.lit(_DELETE)).otherwise(F.lit(_UPSERT))
    return prepared.select(
        *(quote_name(name) for name in columns.all), F.col(SEQUENCE_COLUMN).alias(_AT), kind.alias(_KIND)
    )


def _of_rows(rows: DataFrame, columns: ChangeColumns) -> DataFrame:
    """A row of the table begins with an event, and mostly ends with one."""
    start, end = F.col(START_COLUMN), F.col(END_COLUMN)
    begins = F.when(start.isNull(), F.expr(raising(NO_START, columns.keys))).otherwise(start)
    is_tombstone = F.coalesce(start == end, F.lit(False))
    first = F.struct(
        begins.alias(_AT),
        F.when(is_tombstone, F.lit(_TOMBSTONE)).otherwise(F.lit(_RECORD)).alias(_KIND),
        end.alias(_OLD_END),
    )
    last = F.struct(
        end.alias(_AT), F.lit(_END).alias(_KIND), F.lit(None).cast(rows.schema[END_COLUMN].dataType).alias(_OLD_END)
    )
    both = F.when(end.isNull() | is_tombstone, F.array(first)).otherwise(F.array(first, last))
    exploded = rows.select(*(quote_name(name) for name in columns.keys), F.explode(both).alias(_ROW))
    return exploded.select(*(quote_name(name) for name in columns.keys), f"{_ROW}.*")
