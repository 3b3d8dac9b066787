"""SCD 2: the history of each key, merged into the table.

Invariant: the rows of a key are a function of the set of its changes, so neither order nor batches matter. The changes
are all in the rows again:

- an upsert is a row from its sequence to that of the next change
- a delete is the end of a row that no other row continues
- a delete that ends no row is a row without values that ends where it starts: its tombstone

So a late upsert splits a row, and one before a delete ends there.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - the same

from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.apply_changes.newest import same_values
from delta_pyds.spark.apply_changes.prepared import PreparedChanges, comparable
from delta_pyds.spark.apply_changes.refusals import NO_START, REPEATED, TIE, raising
from delta_pyds.spark.apply_changes.rules import DELETED_COLUMN, END_COLUMN, SEQUENCE_COLUMN, START_COLUMN
from delta_pyds.spark.apply_changes.target import CHANGES_ALIAS, TARGET_ALIAS, ChangeColumns, qualified

_ACTION, _REPEATED = "_deltapy_change", "_deltapy_repeated"
_AT, _ROW, _DIFFERS, _NEXT, _BEFORE = (
    "_deltapy_at", "_deltapy_row", "_deltapy_differs", "_deltapy_next", "_deltapy_before",
)  # fmt: skip
# what happens at a sequence: of the changes an upsert or a delete; of the table a row, a tombstone or an end
_UPSERT, _DELETE, _RECORD, _TOMBSTONE, _END = "upsert", "delete", "record", "tombstone", "end"
_KINDS = (_UPSERT, _DELETE, _RECORD, _TOMBSTONE, _END)
_KIND, _OLD_END, _TIE, _SEEN = "_deltapy_kind", "_deltapy_old_end", "_deltapy_tie", "_deltapy_"


def changed_history(prepared: PreparedChanges, rows: DataFrame, columns: ChangeColumns, *, compares: bool) -> DataFrame:
    """The rows of the table that must change, each with its ``_ACTION``.

    ``rows``: keys, start and end of the table's rows that have a key of the changes, in the names of ``prepared``.
    ``compares``: the merge compares the values of a change that has the sequence of a row. Else such a change fails.
    """
    keys = [quote_name(name) for name in columns.keys]
    values = [quote_name(name) for name in columns.values]
    events = _of_changes(prepared, columns).unionByName(_of_rows(rows, columns), allowMissingColumns=True)
    is_upsert = f"WHEN {_KIND} = '{_UPSERT}' THEN"
    compared = f"CASE {is_upsert} {comparable(columns.values, prepared.schema)} END"
    at = events.groupBy(*keys, _AT).agg(
        F.expr(f"first(CASE {is_upsert} struct({', '.join([*values, _KIND])}) END, true) AS {_ROW}"),
        F.expr(f"NOT (min({compared}) <=> max({compared})) AS {_DIFFERS}"),
        F.expr(f"max({_OLD_END}) AS {_OLD_END}"),
        *(F.expr(f"coalesce(bool_or({_KIND} = '{kind}'), false) AS {_SEEN}{kind}") for kind in _KINDS),
    )
    upsert, delete, record, tombstone, ended = (f"{_SEEN}{kind}" for kind in _KINDS)
    upserts, deletes, there = f"({upsert} OR {record})", f"({delete} OR {tombstone})", f"({record} OR {tombstone})"
    in_order = f"OVER (PARTITION BY {', '.join(keys)} ORDER BY {_AT})"
    # the end of a row is a delete if no row starts there
    tie = f"{_DIFFERS} OR ({upserts} AND {deletes}) OR ({ended} AND {upsert} AND NOT {record})"
    ordered = at.selectExpr(
        "*", f"{tie} AS {_TIE}", f"lead({_AT}) {in_order} AS {_NEXT}", f"lag({upserts}) {in_order} AS {_BEFORE}"
    )
    wanted = f"({upserts} OR NOT coalesce({_BEFORE}, false))"
    end = f"CASE WHEN {upserts} THEN {_NEXT} ELSE {_AT} END"
    repeated = f"({record} AND {upsert})"
    again = "" if compares else f"WHEN {repeated} THEN {raising(REPEATED, columns.keys)} "
    action = (
        f"CASE WHEN {_TIE} THEN {raising(TIE, columns.keys)} {again}"
        f"WHEN {wanted} AND NOT {there} THEN 'insert' WHEN NOT {wanted} AND {there} THEN 'delete' "
        f"WHEN {there} AND NOT (({end}) <=> {_OLD_END}) THEN 'update' WHEN {repeated} THEN 'compare' END"
    )
    return ordered.selectExpr(
        *keys,
        *(f"{_ROW}.{name} AS {name}" for name in values),
        f"{_AT} AS {START_COLUMN}",
        f"{end} AS {END_COLUMN}",
        f"{repeated} AS {_REPEATED}",
        f"{action} AS {_ACTION}",
    ).where(f"{_ACTION} IS NOT NULL")


def merge_of_history(
    columns: ChangeColumns, changes: T.StructType, table: StructType, *, compares: bool
) -> tuple[str, list[MergeClause[Column | str]]]:
    """The condition and the clauses of the merge. ``changes``, ``table``: their columns."""
    condition = " AND ".join(
        f"{qualified(TARGET_ALIAS, name)} = {qualified(CHANGES_ALIAS, name)}" for name in (*columns.keys, START_COLUMN)
    )
    action = qualified(CHANGES_ALIAS, _ACTION)
    updates = f"{action} = 'update'"
    same = same_values(columns, changes, table) if compares else []
    if same:
        # a change that came before must have the values of its row
        is_same = f"NOT {qualified(CHANGES_ALIAS, _REPEATED)} OR ({' AND '.join(same)})"
        updates = f"CASE WHEN {is_same} THEN {updates} ELSE {raising(TIE, columns.keys, CHANGES_ALIAS)} END"
    end: dict[str, Column | str] = {END_COLUMN: qualified(CHANGES_ALIAS, END_COLUMN)}
    values: dict[str, Column | str] = {
        quote_name(name): qualified(CHANGES_ALIAS, name) for name in (*columns.all, START_COLUMN, END_COLUMN)
    }
    return condition, [
        MergeClause("matched", "delete", f"{action} = 'delete'"),
        MergeClause("matched", "update", updates, end),
        MergeClause("not_matched", "insert", f"{action} = 'insert'", values),
    ]


def _of_changes(prepared: PreparedChanges, columns: ChangeColumns) -> DataFrame:
    return prepared.frame.selectExpr(
        *(quote_name(name) for name in columns.all),
        f"{SEQUENCE_COLUMN} AS {_AT}",
        f"CASE WHEN {DELETED_COLUMN} THEN '{_DELETE}' ELSE '{_UPSERT}' END AS {_KIND}",
    )


def _of_rows(rows: DataFrame, columns: ChangeColumns) -> DataFrame:
    """A row of the table begins with an event, and mostly ends with one."""
    keys = [quote_name(name) for name in columns.keys]
    start, end = START_COLUMN, END_COLUMN
    begins = f"CASE WHEN {start} IS NULL THEN {raising(NO_START, columns.keys)} ELSE {start} END"
    is_tombstone = f"coalesce({start} = {end}, false)"
    kind = f"CASE WHEN {is_tombstone} THEN '{_TOMBSTONE}' ELSE '{_RECORD}' END"
    first = f"struct({begins} AS {_AT}, {kind} AS {_KIND}, {end} AS {_OLD_END})"
    last = f"struct({end} AS {_AT}, '{_END}' AS {_KIND}, nullif({end}, {end}) AS {_OLD_END})"
    both = f"CASE WHEN {end} IS NULL OR {is_tombstone} THEN array({first}) ELSE array({first}, {last}) END"
    exploded = rows.selectExpr(*keys, f"explode({both}) AS {_ROW}")
    return exploded.selectExpr(*keys, *(f"{_ROW}.{name} AS {name}" for name in (_AT, _KIND, _OLD_END)))
