"""Merge by our own evaluator, in the user's process: the source in memory, a hash join, and Arrow from end to end.

    command = resolve_merge(snapshot, "t.id = s.id", clauses, source=schema.names, target_alias="t", source_alias="s")
    rules = bind_merge(command, schema, options)    # ExpressionError: only Spark can evaluate it
    plan = plan_merge(replace(command, source=schema, rules=rules), rows, options)
    plan.bytes_to_read                              # the size of the files that the source's keys do not rule out
    result = run_merge(plan, Place("process", "..."))

Invariant: each row of the source counts once, with the given values.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import deserialize, serialize
from delta_pyds.columnar.row_origins import pack, unpack
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.commands.commit import discard_files
from delta_pyds.commands.row_changes.commit_rows import commit_rows, counts_by_action, local_runner
from delta_pyds.commands.row_changes.find_rows import file_bundles, table_files
from delta_pyds.commands.row_changes.footer_check import bounds_hold, split_keys
from delta_pyds.commands.row_changes.mend import CommandOnRows
from delta_pyds.commands.row_changes.merge_pruning import key_conditions, own_conditions
from delta_pyds.commands.row_changes.plan import (
    CommandOptions,
    RowChangePlan,
    change_state,
    files_state,
    scan_of,
    target_files,
)
from delta_pyds.commands.row_changes.resolved import ResolvedCommand
from delta_pyds.commands.row_changes.result import Place, RowChangeResult, Timing
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.data.columns import record_batch
from delta_pyds.data.row_changes.join import JoinedSource
from delta_pyds.data.row_changes.merge_files import InsertRows, MergeFiles, insert_rows, merge_files
from delta_pyds.data.write.store_assignment import plan_assignment
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import ExpressionError, UserError
from delta_pyds.expr.logic import and_
from delta_pyds.expr.nodes import Expr
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import IDENTITY_START, StructType
from delta_pyds.table.definition.ingest_plan import plan_ingest
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import Scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.merge import MergeRules
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.scan_state import ScanState
from delta_pyds.tasks.write_state import Check, ColumnSource, TaskOutput


@dataclass(frozen=True)
class MergePlan:
    """A merge whose files are known. ``bytes_to_read``: the size of files that may have rows it changes or matches.

    ``candidates``: rules out files of later versions. Their footers are not checked, so it relies on the log for the
    keys of partition columns only. Footers rule out row groups.
    """

    change: RowChangePlan
    rules: MergeRules
    source: JoinedSource
    scan: ScanState
    candidates: Scan
    timing: Timing

    @property
    def bytes_to_read(self) -> int:
        return sum(file.size for file in self.change.target.files)

    @property
    def num_files(self) -> int:
        return len(self.change.target.files)


def plan_merge(command: ResolvedCommand[Any], rows: pa.Table, options: CommandOptions) -> MergePlan:
    """Plan the merge: the files of the table that may match the source's keys, and what tasks do with their rows.

    ``command``: has its ``rules``. ``rows``: the rows of the source, columns by position.
    Raises: ExpressionError if our evaluator cannot compute the keys of the source.
    """
    timing = Timing(time.monotonic())
    snapshot, rules, columns = command.snapshot, command.rules, command.source
    assert rules is not None and columns is not None
    joined = JoinedSource(_one_batch(rows, columns), rules.on)
    conditions, scan = _scan(snapshot, rules, joined, options)
    exact, _ = split_keys(conditions, snapshot.configuration.partition_columns)
    candidates = () if rules.not_matched_by_source else (*exact, *own_conditions(rules.on))
    target = target_files(snapshot, list(live_files(scan)), options)
    updates, inserts, checks = _column_sources(snapshot, options)
    state = change_state(
        target,
        files_state(snapshot, options, updates, checks),
        one_match=rules.one_match,
        insert_columns=inserts,
        with_origins=True,
    )
    change = RowChangePlan("MERGE", target, state, options, command.parameters, read=and_(conditions))
    # row groups are skipped like files
    skipping = replace(target.scan, skip=scan.state.skip, inputs=scan.state.inputs)
    return MergePlan(change, rules, joined, skipping, scan_of(snapshot, options, candidates), timing)


def _scan(
    snapshot: Snapshot, rules: MergeRules, source: JoinedSource, options: CommandOptions
) -> tuple[tuple[Expr, ...], Scan]:
    """Conditions on all rows that the merge may match, and the files that may hold such rows."""

    scan = partial(scan_of, snapshot, options)
    if rules.not_matched_by_source:
        return (), scan()
    own = own_conditions(rules.on)
    keys = key_conditions(rules.on, source.keys)
    conditions, kept = (*keys, *own), scan((*keys, *own))
    exact, in_files = split_keys(keys, snapshot.configuration.partition_columns)
    if in_files:
        before = scan((*exact, *own))
        if not bounds_hold(before, kept, in_files):
            # row groups are skipped by all of them
            return conditions, replace(before, selection=replace(before.selection, state=kept.state))
    return conditions, kept


def run_merge(plan: MergePlan, place: Place, runner: TaskRunner | None = None) -> RowChangeResult:
    """Run the tasks and commit their changes; nothing is committed if no row changes.

    ``runner``: runs tasks in this process, whose memory holds the source; None runs in threads.
    Raises: as ``merge_files`` and ``commit_rows``.
    """
    change = plan.change
    runner = runner or local_runner(change)
    tasks = _Tasks(plan, runner)
    outputs = tasks.change_rows(change, table_files(change.target, plan.scan))
    timing = plan.timing.found()
    source = _Source(tasks, outputs)
    if plan.rules.not_matched:
        try:
            outputs += source.insert_unmatched(change)
        except BaseException:
            discard_files(change.target.snapshot.table_root, change.options.storage_options, outputs)
            raise
    return commit_rows(
        change,
        outputs,
        runner=runner,
        place=place,
        timing=timing,
        source_rows=plan.source.rows.num_rows,
        on_rows=CommandOnRows(
            tasks.change_rows, plan.candidates, source=source, changes_each_match=_changes_each_match(plan.rules)
        ),
    )


def _changes_each_match(rules: MergeRules) -> bool:
    """Whether all rows that matter to the result are changed: each match is, or matches insert nothing."""
    return not rules.not_matched or (bool(rules.matched) and rules.matched[-1].condition is None)


class _Tasks:
    """Runs the tasks of one merge. Each task gets another number, because numbers make identity values unique."""

    def __init__(self, plan: MergePlan, runner: TaskRunner) -> None:
        self.plan = plan
        self._runner = runner
        self._numbers = count()

    def change_rows(self, now: RowChangePlan, files: Sequence[TableFile], *, dry_run: bool = False) -> list[TaskOutput]:
        """Match these rows with the source, and change them by the clauses."""
        plan, state = self.plan, replace(now.state, dry_run=dry_run)
        tasks = [
            MergeFiles(plan.scan, some, plan.rules, state, self._session(), plan.source)
            for some in file_bundles(files, self._runner)
        ]
        return self._runner.run(merge_files, tasks)

    def insert(self, now: RowChangePlan, matched: BitMap64) -> list[TaskOutput]:
        """Insert the rows of the source that are not in ``matched``."""
        plan = self.plan
        return self._runner.run(insert_rows, [InsertRows(plan.rules, now.state, self._session(), plan.source, matched)])

    def _session(self) -> TaskSession:
        options = self.plan.change.options
        return TaskSession(next(self._numbers), options.ansi, options.time_zone)


class _Source:
    """The number of rows of the table that each row of the source matches. See ``mend.SourceRows``.

    ``_matched``: rows with a match. ``_more``: the number of further matches, counted after the first lost race.
    """

    def __init__(self, tasks: _Tasks, outputs: Sequence[TaskOutput]) -> None:
        self._tasks = tasks
        self._outputs = tuple(outputs)
        self._matched = matched_source_rows(outputs)
        self._more: Counter[int] | None = None

    def insert_unmatched(self, plan: RowChangePlan) -> list[TaskOutput]:
        """Insert the rows of the source without a match."""
        return self._tasks.insert(plan, self._matched)

    def first_result(self, plan: RowChangePlan, files: Sequence[TableFile]) -> TaskOutput:
        outputs = self._tasks.change_rows(plan, files, dry_run=True) if files else []
        matched, more = _matches(outputs)
        every = [row for row in matched for _ in range(1 + more[row])]
        return TaskOutput(
            counts=counts_by_action(outputs),
            matched_source_rows=serialize(matched),
            source_matches=pack(pa.array(every, pa.int64())),
        )

    def settle(
        self, plan: RowChangePlan, lost: TaskOutput, brought: Sequence[TaskOutput]
    ) -> tuple[BitMap64, list[TaskOutput]]:
        if not self._tasks.plan.rules.not_matched:
            return BitMap64(), []
        if self._more is None:
            self._more = _matches(self._outputs)[1]
        (fewer, fewer_more), (new, new_more) = _matches([lost]), _matches(brought)
        met, unmet = BitMap64(), BitMap64()
        for row in fewer | new:
            before = (row in self._matched) + self._more[row]
            after = before - (row in fewer) - fewer_more[row] + (row in new) + new_more[row]
            if after and not before:
                met.add(row)
            elif before and not after:
                unmet.add(row)
            self._more[row] = max(0, after - 1)
        self._matched = (self._matched | met) - unmet
        total = self._tasks.plan.source.rows.num_rows
        return met, self._tasks.insert(plan, BitMap64(range(total)) - unmet) if unmet else []


def matched_source_rows(outputs: Sequence[TaskOutput]) -> BitMap64:
    """The rows of the source that matched rows of the table in any file."""
    found = BitMap64()
    for output in outputs:
        if output.matched_source_rows is not None:
            found |= deserialize(output.matched_source_rows)
    return found


def _matches(outputs: Sequence[TaskOutput]) -> tuple[BitMap64, Counter[int]]:
    """The rows of the source with a match in any output, and the number of their further matches."""
    found, more = BitMap64(), Counter[int]()
    for output in outputs:
        if output.matched_source_rows is None:
            continue
        rows = deserialize(output.matched_source_rows)
        if output.source_matches:
            for one in unpack(output.source_matches).value_counts().to_pylist():
                more[one["values"]] += one["counts"] - 1
        more.update(found & rows)
        found |= rows
    return found, more


def _column_sources(
    snapshot: Snapshot, options: CommandOptions
) -> tuple[tuple[ColumnSource, ...], tuple[ColumnSource, ...], tuple[Check, ...]]:
    """The column sources of updated rows and of inserted rows, and the checks of both."""
    configuration = snapshot.configuration
    schema, numbers = configuration.schema, configuration.supports(Feature.IDENTITY_COLUMNS)
    numbered = {f.name for f in schema if numbers and IDENTITY_START in f.metadata}
    ingest = plan_ingest(
        schema,
        configuration=configuration.configuration,
        # clauses give all columns their values, except identity columns
        incoming=StructType(tuple(f for f in schema if f.name not in numbered)),
        time_zone=options.time_zone,
        supports=configuration.supports,
        table=snapshot.table_root,
    )
    inserts = tuple(replace(c, input=None if c.field.name in numbered else i) for i, c in enumerate(ingest.columns))
    updates = tuple(
        ColumnSource(c.field, "input", i) if c.field.name in numbered else replace(c, input=i)
        for i, c in enumerate(ingest.columns)
    )
    return updates, inserts, ingest.checks


def _one_batch(rows: pa.Table, source: StructType) -> pa.RecordBatch:
    """The rows, cast to the types of our evaluator. Raises: ExpressionError if a column cannot be cast."""
    columns: list[pa.Array] = []
    for number, column in enumerate(source):
        chunks = rows.column(number)
        try:
            convert = plan_assignment(chunks.type, column.data_type, column.name).convert
        except UserError as e:
            raise ExpressionError(
                f"the source's column '{column.name}' has the type {chunks.type}: {e.message}"
            ) from None
        parts = [chunk if convert is None else convert(chunk) for chunk in chunks.chunks]
        columns.append(pa.concat_arrays(parts) if parts else pa.array([], arrow_type(column.data_type)))
    schema = pa.schema([pa.field(f.name, c.type) for f, c in zip(source, columns, strict=True)])
    return record_batch(columns, schema, rows.num_rows)
