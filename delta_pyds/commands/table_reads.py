"""Record which rows of its own table a command reads beside those that it changes.

A merge's source, a subquery or the rows of a write may come from the table. Then a change of these rows by others is a
conflict.
"""

from __future__ import annotations

from delta_pyds.errors import DeltaError
from delta_pyds.expr.nodes import TRUE, Expr
from delta_pyds.table.scan.partition_match import partition_part
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.transaction import Transaction


def record_reads(transaction: Transaction, snapshot: Snapshot, where: str | None, *, time_zone: str) -> None:
    """Record that the result depends on the partitions with rows for which ``where`` holds.

    Invariant: no file is listed, so a commit costs the same on a table of any size.
    All rows count if ``where`` is None, is not over this table's columns, or selects no partitions.
    """
    part = _partitions(snapshot, where, time_zone)
    if part == TRUE:
        transaction.record_whole_table()
    else:
        transaction.record_where(part, time_zone=time_zone, all_files=True)


def _partitions(snapshot: Snapshot, where: str | None, time_zone: str) -> Expr:
    columns = snapshot.configuration.partition_columns
    if where is None or not where.strip() or not columns:
        return TRUE
    try:
        [predicate] = plan_scan(snapshot, where=where, time_zone=time_zone).filters
    except DeltaError:
        return TRUE
    return partition_part(predicate, columns)
