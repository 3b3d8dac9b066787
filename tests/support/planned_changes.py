"""Deletes, updates and merges of SQL texts, planned for our own evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_pyds.commands.row_changes.commit_rows import local_runner
from delta_pyds.commands.row_changes.delete import DeletePlan, plan_delete, run_delete
from delta_pyds.commands.row_changes.merge import MergePlan, plan_merge
from delta_pyds.commands.row_changes.merge_binding import bind_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolve import resolve_delete, resolve_merge, resolve_update
from delta_pyds.commands.row_changes.resolved import MergeClause, ResolvedCommand
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.commands.row_changes.update import UpdatePlan, plan_update
from delta_pyds.protocol.schema import StructType
from delta_pyds.table.snapshot import Snapshot, load_snapshot


def planned_delete(snapshot: Snapshot, condition: str | None, options: CommandOptions) -> DeletePlan:
    return plan_delete(resolve_delete(snapshot, condition), options)


def delete(path: Path, condition: str | None, *, threads: int = 1, **options: Any) -> RowChangeResult:
    plan = planned_delete(load_snapshot(str(path)), condition, CommandOptions(**options))
    return run_delete(plan, Place("process", "a test says so"), local_runner(plan.change, threads))


def planned_update(
    snapshot: Snapshot, condition: str | None, assignments: Mapping[str, str], options: CommandOptions
) -> UpdatePlan:
    return plan_update(resolve_update(snapshot, condition, assignments), options)


def planned_merge(
    snapshot: Snapshot,
    condition: str,
    clauses: Sequence[MergeClause[str]],
    rows: pa.Table,
    source: StructType,
    options: CommandOptions,
    **more: Any,
) -> MergePlan:
    """``rows``: of the source. The tables are called ``t`` and ``s``. ``more``: as ``resolve_merge`` takes it."""
    aliases = {"target_alias": "t", "source_alias": "s"}
    command: ResolvedCommand[str] = resolve_merge(
        snapshot, condition, clauses, source=source.names, **{**aliases, **more}
    )
    command = replace(command, source=source, rules=bind_merge(command, source, options))
    return plan_merge(command, rows, options)
