"""Writes of ``delta_pyds.write`` that the format cannot do: the session runs the tasks, this process commits.

Through the format, Spark plans and commits in processes without a session. Such a process would find the rows that
``replaceWhere`` replaces in its own threads. It would refuse a table's expression that our evaluator does not support.
Here a session exists, and computes the expression (``row_changes.computed``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from delta_pyds.catalog.opening import table_storage
from delta_pyds.commands.commit import reopen
from delta_pyds.commands.row_changes.mend import CommandOnRows
from delta_pyds.commands.row_changes.plan import CommandOptions, files_state, target_files
from delta_pyds.commands.write.replace_rows import ReplacedRows
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import WritePlan, commit_write, compact_written, plan_write
from delta_pyds.errors import UNKNOWN_EXPRESSION, DeltaError
from delta_pyds.spark.options.auto_compact import session_rule
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.spark.row_changes.computed import complete_frame
from delta_pyds.spark.row_changes.delete import deletion_on_rows, find_deleted
from delta_pyds.spark.row_changes.found_rows import FoundRows
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.matching import find_matching, key_columns, matching_on_rows
from delta_pyds.spark.row_changes.merge_source import materialize_source, with_materialized_source
from delta_pyds.spark.row_changes.session_settings import SessionSettings
from delta_pyds.spark.row_sources import any_depends, subqueries_depend_on_table
from delta_pyds.spark.source.write_result import WriteResult, result_of
from delta_pyds.spark.task_runner import SparkRunner
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import SOURCE_ROW_COLUMN, ChangeState
from delta_pyds.tasks.write_state import TaskOutput

# with it, whether a subquery reads the table (see ``subqueries_depend_on_table``)
_Found = tuple[FoundRows, list[TaskOutput], CommandOnRows, bool | None]
_Find = Callable[[TableHandle, Snapshot, ChangeState], _Found]


def replace_rows(frame: DataFrame, request: WriteRequest) -> WriteResult | None:
    """Write ``frame`` over the rows that ``replaceWhere`` selects; None if the format can do it as well.

    It can if ``replaceWhere`` selects whole partitions, and our evaluator supports every expression.
    Raises: DeltaError of planning, of a task or of the commit.
    """
    return _write(frame, request, always=False)


def write_computed(frame: DataFrame, request: WriteRequest) -> WriteResult:
    """Write ``frame`` to a table with expressions that the session computes.

    Raises: DeltaError of planning, of a task or of the commit.
    """
    done = _write(frame, request, always=True)
    assert done is not None
    return done


def replace_using(frame: DataFrame, request: WriteRequest) -> WriteResult:
    """Write ``frame`` over the rows whose values in the columns ``request.replace_using`` occur in it.

    Raises: DeltaError of planning, of a task or of the commit; ColumnNotFoundError for a column that the table or
        the frame lacks.
    """
    request = replace(request, incoming=from_spark(frame.schema))
    plan = plan_write(request, spark=True)
    if plan.state is None:
        return result_of(None, plan.nothing_to_do)
    if not plan.replaces_by_query:  # a new table
        return _written(frame, plan)
    target = plan.target
    assert target is not None
    keys = key_columns(request.replace_using, target.configuration.schema, request.incoming, root=request.table_root)

    def run(level: StorageLevel) -> WriteResult:
        # computed once, so that the written rows have the keys for which rows are replaced
        source = materialize_source(frame, level)

        def matching(handle: TableHandle, snapshot: Snapshot, state: ChangeState) -> _Found:
            settings = SessionSettings(handle.spark)
            found, outputs = find_matching(handle, snapshot, keys, source, state)
            return found, outputs, matching_on_rows(handle, found, keys, source, settings), False

        return _written(source.frame.drop(SOURCE_ROW_COLUMN), plan, matching)

    return with_materialized_source(run)


def needs_session(error: DeltaError) -> bool:
    """Whether a write through the format failed because only a session can compute an expression. It wrote nothing."""
    return UNKNOWN_EXPRESSION in error.parameters


def _write(frame: DataFrame, request: WriteRequest, *, always: bool) -> WriteResult | None:
    request = replace(request, incoming=from_spark(frame.schema))
    plan = plan_write(request, spark=True)
    if plan.state is None:
        return result_of(None, plan.nothing_to_do) if always else None
    if not (always or plan.replaces_rows or plan.state.needs_spark):
        return None
    if not plan.replaces_by_query:
        return _written(frame, plan)

    def leaving(handle: TableHandle, snapshot: Snapshot, state: ChangeState) -> _Found:
        condition, settings = request.replace_where or "", SessionSettings(handle.spark)
        found, outputs = find_deleted(handle, snapshot, condition, state)
        reads = subqueries_depend_on_table(found.frame, snapshot.table_root)
        return found, outputs, deletion_on_rows(handle, found, condition, settings), reads

    return _written(frame, plan, leaving)


def _written(frame: DataFrame, plan: WritePlan, find: _Find | None = None) -> WriteResult:
    """``find``: finds the replaced rows, if that takes a query."""
    request, state = plan.request, plan.state
    assert state is not None
    rows = complete_frame(frame, state)
    replaced = None
    if find is not None:
        replaced, reads = _replaced(plan, frame.sparkSession, find)
        of_all = any_depends((request.reads_table, reads))
        where = request.reads_where if reads is False else None
        plan = replace(plan, request=replace(request, reads_table=of_all, reads_where=where))
    runner = SparkRunner(frame.sparkSession, request.task_parallelism)
    outputs = runner.write(rows, state)
    committed = commit_write(plan, outputs, runner=runner, replaced=replaced, compact=False)
    rule = session_rule(lambda name: frame.sparkSession.conf.get(name, None), table_wants=True)
    if rule is not None:
        compact_written(plan, committed, runner, rule=rule)
    return result_of(committed, plan.nothing_to_do)


def _replaced(plan: WritePlan, spark: SparkSession, find: _Find) -> tuple[ReplacedRows | None, bool | None]:
    """The replaced rows, which a query of Spark finds without writing anything. And whether a subquery reads the
    table.
    """
    request, target = plan.request, plan.target
    assert target is not None
    storage = table_storage(request.table_root, request.storage_options)
    table_id = target.table_id
    snapshot = reopen(storage, request.table_root, plan.base_version, table_id, plan.segment)
    if snapshot is None:
        return None, False
    handle = TableHandle(spark, request.table_root, request.storage_options, time_zone=request.time_zone)
    options = CommandOptions(storage_options=request.storage_options, time_zone=request.time_zone)
    state = ChangeState(files_state(snapshot, options))
    found, outputs, on_rows, reads = find(handle, snapshot, state)
    target_of_rows = target_files(snapshot, found.table.files, options, found.table.names)
    return ReplacedRows(target_of_rows, outputs, found.read, on_rows), reads
