"""Delete, update and merge in this process, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.merge import run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.support.planned_changes import planned_delete, planned_merge, planned_update
from tests.support.row_model.core_upkeep import keep
from tests.support.row_model.harness import Counts, take_as_core
from tests.support.row_model.model import Model
from tests.support.row_model.steps import (
    Clause,
    Delete,
    Merge,
    Overwrite,
    Step,
    Update,
    Upkeep,
    schema_of,
    with_columns,
)
from tests.support.table_writes import struct, write_rows

_HERE = Place("process", "a test says so.")


class CoreEngine:
    """Our own evaluator, in a few threads. ``version``: of the last command's commit, None where it made none.

    ``pause`` is between what a command plans and what it does; in an overwrite it is before the commit.
    """

    counts_source = True

    def __init__(self, options: CommandOptions | None = None, pause: Callable[[], None] = lambda: None) -> None:
        self.options, self._pause = options or CommandOptions(), pause
        self.version: int | None = None

    def opened(self, path: Path | str) -> Snapshot:
        """The latest version of the table."""
        return load_snapshot(str(path), storage_options=self.options.storage_options)

    def delete(self, path: Path | str, step: Delete) -> Counts:
        condition = None if step.condition is None else step.condition.sql()
        plan = planned_delete(self.opened(path), condition, self.options)
        self._pause()
        result = run_delete(plan, _HERE)
        assert result.num_affected_rows == result.num_deleted_rows
        return self._told(result)

    def update(self, path: Path | str, step: Update) -> Counts:
        condition = None if step.condition is None else step.condition.sql()
        assignments = {name: value.sql() for name, value in step.assignments}
        plan = planned_update(self.opened(path), condition, assignments, self.options)
        self._pause()
        result = run_update(plan, _HERE)
        assert result.num_affected_rows == result.num_updated_rows
        return self._told(result)

    def merge(self, path: Path | str, step: Merge, columns: Sequence[str]) -> Counts:
        names = step.source_columns(columns)
        schema = struct(schema_of(names))
        rows = pa.Table.from_pylist(with_columns(step.rows, names), schema=arrow_schema(schema))
        kinds = (
            ("matched", step.matched), ("not_matched", step.not_matched),
            ("not_matched_by_source", step.not_matched_by_source),
        )  # fmt: skip
        clauses = [_text_of(kind, clause) for kind, found in kinds for clause in found]
        plan = planned_merge(self.opened(path), step.condition.sql(), clauses, rows, schema, self.options)
        self._pause()
        return self._told(run_merge(plan, _HERE))

    def overwrite(
        self, path: Path | str, step: Overwrite, columns: Sequence[str], tasks: Sequence[Sequence[Mapping[str, Any]]]
    ) -> None:
        committed = write_rows(
            path,
            schema_of(columns),
            tasks,
            reads_table=False,
            isolation_level=self.options.isolation_level,
            user_metadata=self.options.user_metadata,
            storage_options=self.options.storage_options,
            pause=self._pause,
            **step.request,
        )
        self.version = None if committed is None else committed.version

    def _told(self, result: RowChangeResult) -> Counts:
        self.version = result.version
        return result.num_updated_rows, result.num_deleted_rows, result.num_inserted_rows


def take_in_place(path: Path, model: Model, step: Step) -> None:
    """Any step after which the table is where it was. ``model``: of the table, which has not taken it yet."""
    core = CoreEngine()
    if isinstance(step, Delete):
        core.delete(path, step)
    elif isinstance(step, Update):
        core.update(path, step)
    elif isinstance(step, Merge):
        core.merge(path, step, model.columns)
    elif isinstance(step, Upkeep):
        assert keep(path, step, model) == path
    else:
        take_as_core(path, model, step)


def _text_of(kind: Any, clause: Clause) -> MergeClause[str]:
    condition = None if clause.condition is None else clause.condition.sql()
    given = None if clause.assignments is None else {name: value.sql() for name, value in clause.assignments}
    return MergeClause(kind, clause.action, condition, given)
