"""Update: by our own evaluator where it knows condition and values, else by a query of Spark.

Invariant: rows change for which the condition is true, of one version of the table; values see the row as it was, and
are computed once.

Protocol: "Deletion Vectors", "Row Tracking", "Change Data Files", "Generated Columns".
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.commit_rows import commit_rows, run_again
from delta_pyds.commands.row_changes.plan import (
    CommandOptions,
    RowChangePlan,
    change_state,
    check_may_change,
    files_state,
    target_files,
)
from delta_pyds.commands.row_changes.result import Place, RowChangeResult, Timing
from delta_pyds.commands.row_changes.update import UpdatePlan, plan_update, run_update
from delta_pyds.errors import ColumnNotFoundError, ExpressionError
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import GENERATION_EXPRESSION, VOID, StructField, StructType
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.row_changes.apply import apply_rows
from delta_pyds.spark.row_changes.assignment import Assigned, StoreAssignment
from delta_pyds.spark.row_changes.binding import require_values_of_one_row
from delta_pyds.spark.row_changes.computed import complete_changes
from delta_pyds.spark.row_changes.expressions import certain_text, refuse_internal_names, shown_text
from delta_pyds.spark.row_changes.found_rows import find
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.place import (
    command_options,
    place_of_known,
    require_known,
    require_shared_files,
    runner_beside_spark,
)
from delta_pyds.spark.row_changes.set_columns import SetColumn, set_columns
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.table.definition.ingest_plan import IngestPlan, plan_ingest
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import condition_for_the_log
from delta_pyds.tasks.changed_rows import (
    ACTION_COLUMN,
    FILE_COLUMN,
    NEW_PREFIX,
    OLD_PREFIX,
    POSITION_COLUMN,
    ROW_ID_COLUMN,
    Action,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_VALUE = "_deltapy_value_"


def update_rows(
    target: TableHandle, condition: Column | str | None, assignments: Mapping[str, Column | str]
) -> RowChangeResult:
    """Set columns, or fields inside of them, of the rows for which the condition is true; of all without one.

    Raises: what planning, a task and the commit raise, each its own DeltaError; what Spark raises for the expressions.
    """
    with errors_as_they_were():
        return run_again(target.max_runs, lambda: _update(target, condition, assignments))


def _update(
    target: TableHandle, condition: Column | str | None, assignments: Mapping[str, Column | str]
) -> RowChangeResult:
    snapshot, options = target.open(), command_options(target)
    check_may_change(snapshot, "UPDATE")
    setting = set_columns(target.spark, snapshot.configuration, assignments, target.alias)
    reason = "a query of Spark was asked for"
    if target.engine != "spark":
        plan, reason = _known(target, snapshot, condition, setting, options)
        if plan is not None:
            return run_update(plan, *place_of_known(target, plan.bytes_to_read))
        require_known(target, reason)
    return _by_spark(target, snapshot, condition, setting, options, reason)


def _known(
    target: TableHandle,
    snapshot: Snapshot,
    condition: Column | str | None,
    setting: Sequence[SetColumn],
    options: CommandOptions,
) -> tuple[UpdatePlan | None, str]:
    """The plan of our own evaluator; else why it is Spark's."""
    given = [*([] if condition is None else [condition]), *(one.value for one in setting)]
    texts: list[str] = []
    for expression in given:
        text = certain_text(target.spark, expression, snapshot.schema, target.alias)
        if text is None:
            return None, f"what {shown_text(expression)} means is for Spark alone to say."
        texts.append(text)
    known = None if condition is None else texts.pop(0)
    values = {quote_name(*one.path): text for one, text in zip(setting, texts, strict=True)}
    try:
        shown = None if condition is None else shown_text(condition)
        return plan_update(snapshot, known, values, options, shown_condition=shown), ""
    except (ExpressionError, ColumnNotFoundError) as e:
        return None, f"our evaluator does not know every expression: {e.message}"


def _by_spark(
    target: TableHandle,
    snapshot: Snapshot,
    condition: Column | str | None,
    setting: Sequence[SetColumn],
    options: CommandOptions,
    reason: str,
) -> RowChangeResult:
    require_shared_files(target)
    refuse_internal_names([condition, *(one.value for one in setting)], snapshot)
    timing = Timing(time.monotonic())
    configuration = snapshot.configuration
    changed = _ChangedColumns(
        snapshot,
        setting,
        StoreAssignment(options.ansi, table=snapshot.table_root, fields="by place where names differ"),
    )
    found = find(target, snapshot, condition, changed.of, columns=None, row_ids=configuration.has_row_tracking)
    ingest = _ingest(snapshot, changed, options)
    files = target_files(snapshot, found.table.files, options, found.table.names)
    write = files_state(snapshot, options, ingest.columns, ingest.checks)
    completed = complete_changes(found.frame, write, written=F.lit(True))
    state = change_state(files, completed.write)
    plan = RowChangePlan(
        "UPDATE",
        files,
        state,
        options,
        parameters={"predicate": [] if condition is None else [condition_for_the_log(shown_text(condition))]},
        read=found.read,
    )
    outputs = apply_rows(completed.frame, state, read_bytes=found.read_bytes) if files.files else []
    return commit_rows(
        plan,
        outputs,
        runner=runner_beside_spark(target, found.read_bytes),
        place=Place("spark", reason),
        timing=timing.found(),
    )


class _ChangedColumns:
    """The rows of a table as they become. ``brought``: the columns that they bring; others are made of these."""

    def __init__(self, snapshot: Snapshot, setting: Sequence[SetColumn], assignment: StoreAssignment) -> None:
        configuration = snapshot.configuration
        self._schema = snapshot.schema
        self._table = snapshot.table_root
        self._setting = setting
        self._assignment = assignment
        self._with_old = configuration.properties.change_data_feed
        self._with_ids = configuration.has_row_tracking
        made = configuration.supports(Feature.GENERATED_COLUMNS)
        self._set = {one.path[0] for one in setting}
        self.brought = [
            f
            for f in snapshot.schema
            if f.data_type != VOID and (f.name in self._set or not (made and GENERATION_EXPRESSION in f.metadata))
        ]

    def of(self, rows: DataFrame) -> DataFrame:
        """``rows``: of the table, with their places. Returns: the columns of ``tasks.changed_rows``."""
        values = [F.expr(one.value) if isinstance(one.value, str) else one.value for one in self._setting]
        require_values_of_one_row(rows, values, f"an update of table {self._table}")
        # computed first, and once: a cast may look at a value twice
        rows = rows.select("*", *(value.alias(f"{_VALUE}{n}") for n, value in enumerate(values)))
        types = [field.dataType for field in rows.schema.fields[-len(values) :]] if values else []
        tree: dict[str, Assigned] = {}
        for n, (one, given) in enumerate(zip(self._setting, types, strict=True)):
            wanted = to_spark(StructType((StructField("c", one.data_type),))).fields[0].dataType
            column = ".".join(one.path)
            value = self._assignment.assign(F.col(f"{_VALUE}{n}"), given, wanted, column)
            _place(tree, one.path, Assigned(value))
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


def _place(tree: dict[str, Assigned], path: Sequence[str], assigned: Assigned) -> None:
    if len(path) == 1:
        tree[path[0]] = assigned
        return
    fields = dict((tree.get(path[0]) or Assigned(fields={})).fields or {})
    _place(fields, path[1:], assigned)
    tree[path[0]] = Assigned(fields=fields)


def _ingest(snapshot: Snapshot, changed: _ChangedColumns, options: CommandOptions) -> IngestPlan:
    """How changed rows become rows of the table: what they bring is kept, and what is generated of it is made anew."""
    configuration = snapshot.configuration

    def supports(feature: str) -> bool:
        # an updated row keeps its identity values: to it these are columns like others
        return feature != Feature.IDENTITY_COLUMNS and configuration.supports(feature)

    return plan_ingest(
        snapshot.schema,
        configuration=configuration.configuration,
        incoming=StructType(tuple(changed.brought)),
        time_zone=options.time_zone,
        supports=supports,
        table=snapshot.table_root,
        spark=True,
    )
