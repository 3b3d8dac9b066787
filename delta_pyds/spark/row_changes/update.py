"""Update: by our own evaluator if it supports condition and values, else by a query of Spark.

Invariant: in one version of the table, all rows for which the condition is true change. Values see the old row, and are
computed once.

Protocol: "Deletion Vectors", "Row Tracking", "Change Data Files", "Generated Columns".
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.assignments import plan_updated_columns
from delta_pyds.commands.row_changes.commit_rows import commit_rows, run_again
from delta_pyds.commands.row_changes.mend import CommandOnRows
from delta_pyds.commands.row_changes.plan import (
    CommandOptions,
    RowChangePlan,
    change_state,
    files_state,
    mends_races,
    target_files,
)
from delta_pyds.commands.row_changes.resolved import Assignment, MadeColumns, ResolvedCommand
from delta_pyds.commands.row_changes.result import Place, RowChangeResult, Timing
from delta_pyds.commands.row_changes.update import plan_update, run_update
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import VOID, StructField, StructType
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.row_changes.apply import apply_rows
from delta_pyds.spark.row_changes.assignment import Assigned, StoreAssignment
from delta_pyds.spark.row_changes.binding import require_values_of_one_row
from delta_pyds.spark.row_changes.computed import complete_changes
from delta_pyds.spark.row_changes.expressions import refuse_internal_names
from delta_pyds.spark.row_changes.file_rows import file_rows
from delta_pyds.spark.row_changes.found_rows import chosen_rows, find
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.place import (
    command_options,
    place_of_supported,
    require_shared_files,
    require_supported,
    rewrite_runner,
    with_subqueries_of,
)
from delta_pyds.spark.row_changes.repeatable import (
    errors_of_mends,
    names_of,
    require_independent_decisions,
    require_repeatable,
    texts_of,
)
from delta_pyds.spark.row_changes.resolution import Given, own_plan, resolved_update
from delta_pyds.spark.row_changes.session_settings import SessionSettings
from delta_pyds.spark.row_changes.target_frame import by_either_reader
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import (
    ACTION_COLUMN,
    FILE_COLUMN,
    NEW_PREFIX,
    OLD_PREFIX,
    POSITION_COLUMN,
    ROW_ID_COLUMN,
    Action,
)
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.write_state import TaskOutput

_VALUE = "_deltapy_value_"


def update_rows(
    target: TableHandle, condition: Column | str | None, assignments: Mapping[str, Column | str]
) -> RowChangeResult:
    """Set columns, or fields of them, in the rows for which the condition is true; in all rows without a condition.

    Raises: the DeltaError of planning, of a task or of the commit; errors of Spark for the expressions.
    """
    with errors_as_they_were():
        return run_again(target.max_runs, lambda: _update(target, condition, assignments))


def _update(
    target: TableHandle, condition: Column | str | None, assignments: Mapping[str, Column | str]
) -> RowChangeResult:
    snapshot, options = target.open(), command_options(target)
    command = resolved_update(target, snapshot, condition, assignments)
    reason = "the user chose engine 'spark'"
    if target.engine != "spark":
        plan, reason = own_plan(target, command, lambda texts: plan_update(texts, options))
        if plan is not None:
            return run_update(plan, *place_of_supported(target, plan.bytes_to_read))
        require_supported(target, reason)
    return by_either_reader(target, lambda chosen: _by_spark(chosen, command, options, reason))


def _by_spark(
    target: TableHandle, command: ResolvedCommand[Given], options: CommandOptions, reason: str
) -> RowChangeResult:
    require_shared_files(target)
    snapshot, assignments = command.snapshot, command.clauses[0].assignments
    refuse_internal_names(command.expressions(), snapshot)
    timing, settings = Timing(time.monotonic()), SessionSettings(target.spark)
    configuration = snapshot.configuration
    changed = _ChangedColumns(
        snapshot,
        assignments,
        StoreAssignment(options.ansi, table=snapshot.table_root, fields="by position where names differ"),
    )
    found = find(target, snapshot, command.condition, changed.of, columns=None, row_ids=configuration.has_row_tracking)
    ingest = plan_updated_columns(snapshot, changed.brought, options, spark=True)
    files = target_files(snapshot, found.table.files, options, found.table.names)
    write = files_state(snapshot, options, ingest.columns, ingest.checks)
    completed = complete_changes(found.frame, write, written=F.lit(True))
    state = change_state(files, completed.write, with_origins=mends_races(snapshot, options))

    def query(now: RowChangePlan, files: Sequence[TableFile]) -> DataFrame:
        rows = file_rows(target.spark, now, files, row_ids=configuration.has_row_tracking)
        frame = chosen_rows(target, rows, command.condition, changed.of)
        return complete_changes(frame, write, written=F.lit(True)).frame

    def check(now: RowChangePlan) -> None:
        with errors_of_mends(settings):
            require_independent_decisions(query(now, ()), command.expressions())

    def run_on(now: RowChangePlan, files: Sequence[TableFile]) -> list[TaskOutput]:
        with errors_of_mends(settings):
            frame = query(now, files)
            require_repeatable(frame, command.expressions(), of_table=texts_of(write), names=names_of(target, snapshot))
            return apply_rows(frame, now.state)

    plan = RowChangePlan(
        "UPDATE",
        files,
        state,
        with_subqueries_of(options, completed.frame, snapshot.table_root),
        parameters=command.parameters,
        read=found.read,
    )
    outputs = apply_rows(completed.frame, state, read_bytes=found.read_bytes) if files.files else []
    return commit_rows(
        plan,
        outputs,
        runner=rewrite_runner(target, found.read_bytes),
        place=Place("spark", reason),
        timing=timing.found(),
        on_rows=CommandOnRows(run_on, found.table.scan, Action.UPDATE, check=check, confirm=settings.require_same),
    )


class _ChangedColumns:
    """The new values of rows. ``brought``: the columns that rows bring; other columns are computed from these."""

    def __init__(
        self, snapshot: Snapshot, assignments: Sequence[Assignment[Column | str]], storing: StoreAssignment
    ) -> None:
        configuration = snapshot.configuration
        self._schema = snapshot.schema
        self._table = snapshot.table_root
        self._assignments = assignments
        self._storing = storing
        self._with_old = configuration.properties.change_data_feed
        self._with_ids = configuration.has_row_tracking
        made = MadeColumns.of(configuration).generated
        self._set = {one.path[0] for one in assignments}
        self.brought = [
            f for f in snapshot.schema if f.data_type != VOID and (f.name in self._set or f.name not in made)
        ]

    def of(self, rows: DataFrame) -> DataFrame:
        """``rows``: the table's, with their files and positions. Returns: the columns of ``tasks.changed_rows``."""
        values = [F.expr(one.value) if isinstance(one.value, str) else one.value for one in self._assignments]
        require_values_of_one_row(rows, values, f"an update of table {self._table}")
        # values are computed first, because a cast may evaluate its value twice
        rows = rows.select("*", *(value.alias(f"{_VALUE}{n}") for n, value in enumerate(values)))
        types = [field.dataType for field in rows.schema.fields[-len(values) :]] if values else []
        tree: dict[str, Assigned] = {}
        for n, (one, given) in enumerate(zip(self._assignments, types, strict=True)):
            wanted = to_spark(StructType((StructField("c", one.data_type),))).fields[0].dataType
            column = ".".join(one.path)
            value = self._storing.assign(F.col(f"{_VALUE}{n}"), given, wanted, column)
            Assigned(value).put(tree, one.path)
        action = F.lit(int(Action.UPDATE)).cast("tinyint").alias(ACTION_COLUMN)
        positions = {f.name: i for i, f in enumerate(self._schema)}
        new = [self._new(f, tree.get(f.name)).alias(f"{NEW_PREFIX}{positions[f.name]}") for f in self.brought]
        old = [
            F.col(quote_name(f.name)).alias(f"{OLD_PREFIX}{positions[f.name]}") for f in self._schema if self._with_old
        ]
        ids = [F.col(ROW_ID_COLUMN)] if self._with_ids else []
        return rows.select(F.col(FILE_COLUMN), F.col(POSITION_COLUMN), action, *ids, *new, *old)

    def _new(self, field: StructField, assigned: Assigned | None) -> Column:
        column = F.col(quote_name(field.name))
        if assigned is None:
            return column
        return assigned.of(column, to_spark(StructType((field,))).fields[0].dataType)
