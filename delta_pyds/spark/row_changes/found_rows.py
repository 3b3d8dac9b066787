"""The rows of a table for which Spark finds a condition true.

Invariant: the rows are of one version, and the user's own condition is evaluated once for each row. The part of it that
our parser supports only skips files without such rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.expr.nodes import TRUE, Expr
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.spark.row_changes.apply import apply_rows
from delta_pyds.spark.row_changes.expressions import prunable
from delta_pyds.spark.row_changes.frame_identity import resolving_columns_of
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.target_frame import TargetFrame, by_either_reader, target_frame
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import ChangeState
from delta_pyds.tasks.write_state import TaskOutput


@dataclass(frozen=True)
class FoundRows:
    """``frame``: the selected columns. ``read``: a predicate that every such row satisfies."""

    frame: DataFrame
    table: TargetFrame
    read: Expr

    @property
    def read_bytes(self) -> int:
        """The size of the files that may have such rows."""
        return self.table.files.num_bytes


def find(
    target: TableHandle,
    snapshot: Snapshot,
    condition: Column | str | None,
    select: Callable[[DataFrame], DataFrame],
    *,
    columns: Sequence[str] | None,
    row_ids: bool = False,
) -> FoundRows:
    """Find the rows. ``select``: of the rows, with their files and positions. ``columns``: those that the condition and
    ``select`` use; if one is missing, all are read.

    Raises: errors of Spark for the condition and for ``select``.
    """
    prune = prunable(target.spark, condition, snapshot.schema, target.alias, target.time_zone)
    read = TRUE if prune is None else parse_predicate(prune, snapshot.schema, time_zone=target.time_zone).expr

    def found(chosen: Sequence[str] | None) -> FoundRows:
        table = target_frame(
            target.spark,
            snapshot,
            prune=prune,
            columns=chosen,
            row_ids=row_ids,
            storage_options=target.storage_options,
            time_zone=target.time_zone,
            engine=target.reader,
        )
        frame = chosen_rows(target, table.frame, condition, select)
        if target.remote:
            _ = frame.schema  # the server analyzes the expressions only now
        return FoundRows(frame, table, read)

    if columns is None:
        return found(None)
    try:
        return found(columns)
    except AnalysisException:
        # perhaps the text hid a name; any other error occurs again with all columns
        return found(None)


def find_and_mark(
    target: TableHandle,
    snapshot: Snapshot,
    condition: Column | str | None,
    select: Callable[[DataFrame], DataFrame],
    *,
    columns: Sequence[str] | None,
    state: ChangeState,
) -> tuple[FoundRows, list[TaskOutput]]:
    """Find the rows, and mark them as deleted by tasks that write no file."""

    def run(chosen: TableHandle) -> tuple[FoundRows, list[TaskOutput]]:
        found = find(chosen, snapshot, condition, select, columns=columns)
        return found, apply_rows(found.frame, state, read_bytes=found.read_bytes) if found.table.files else []

    return by_either_reader(target, run)


def chosen_rows(
    target: TableHandle, rows: DataFrame, condition: Column | str | None, select: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """The selected columns of the rows for which the condition is true. ``rows``: of the table."""
    frame = named(rows, target)
    if condition is not None:
        frame = frame.filter(F.expr(condition) if isinstance(condition, str) else condition)
    return select(frame)


def named(frame: DataFrame, target: TableHandle) -> DataFrame:
    """The frame under the table's alias, in which Columns of the user's frames of the table resolve."""
    return resolving_columns_of(frame, target.known_frames, target.alias)
