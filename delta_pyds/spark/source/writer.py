"""The batch writer: planned in a planner process, run in the tasks, committed in yet another process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.other_engines import engine_here, require_distinct_identities, runs_in_spark
from delta_pyds.spark.settings import ANSI, TIME_ZONE
from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.tasks.write_state import TaskOutput, WriteState

if TYPE_CHECKING:
    from delta_pyds.commands.layout.auto_compact import AutoCompaction
    from delta_pyds.commands.write.write import WritePlan
    from delta_pyds.data.write.task import TaskSession


@dataclass
class WrittenMessage(WriterCommitMessage):
    """A task's message for the commit: its files, and the session's setting for compaction after it."""

    output: TaskOutput
    auto_compact: dict[str, str] = field(default_factory=dict)
    is_numbered: bool = True


class DeltaWriter(DataSourceArrowWriter):
    """Writes the rows of one ``df.write`` and commits them as one version.

    Invariant: tasks get ``state`` alone; the plan, which needs the log's
    classes, stays pickled until the commit asks for it. ``result_id``: the name
    to store the result under; None if nobody asks for it.
    """

    def __init__(self, plan: WritePlan, result_id: str | None = None) -> None:
        import pickle

        self._result_id = result_id
        self.state: WriteState | None = plan.state
        self._plan = pickle.dumps(plan)

    @leaves_worker
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from delta_pyds.data.write.task import write

        if self.state is None:
            return WrittenMessage(TaskOutput())
        output = write(self.state, iterator, task_session())
        return WrittenMessage(output, session_auto_compact(), is_numbered=runs_in_spark())

    @leaves_worker
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from delta_pyds.commands.write.write import commit_write, compact_written, discard_write
        from delta_pyds.spark.source.write_result import leave_result, result_of

        plan, outputs = self._planned(), _outputs(messages)
        if not all(message.is_numbered for message in messages if isinstance(message, WrittenMessage)):
            try:
                require_distinct_identities(engine_here(), outputs, plan.request.table_root)
            except UnsupportedOperationError:
                discard_write(plan, outputs)
                raise
        committed = commit_write(plan, outputs, compact=False)
        if self._result_id is not None:
            leave_result(self._result_id, result_of(committed, plan.nothing_to_do))
        settings = [message.auto_compact for message in messages if isinstance(message, WrittenMessage)]
        compact_written(plan, committed, rule=rule_of(settings), separate_process=True)

    @leaves_worker
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        from delta_pyds.commands.write.write import discard_write

        # if all messages are here, a commit was tried: it may have happened, and it cleans up after itself
        if any(message is None for message in messages):
            discard_write(self._planned(), _outputs(messages))

    def _planned(self) -> WritePlan:
        import pickle

        plan: WritePlan = pickle.loads(self._plan)
        return plan


def _outputs(messages: Sequence[WriterCommitMessage | None]) -> list[TaskOutput]:
    return [message.output for message in messages if isinstance(message, WrittenMessage)]


def session_auto_compact() -> dict[str, str]:
    """The settings of the session that runs the query. Only a task of Spark sees them."""
    from delta_pyds.spark.options.auto_compact import auto_compact_settings

    context = TaskContext.get()
    return {} if context is None else auto_compact_settings(context.getLocalProperty)


def rule_of(settings_of_tasks: Sequence[dict[str, str]]) -> AutoCompaction | None:
    """The session's rule, from the messages of the tasks; None if the session has no rule."""
    settings = next((one for one in settings_of_tasks if one), None)
    if settings is None:
        return None
    from delta_pyds.spark.options.auto_compact import auto_compaction

    return auto_compaction(settings.get)


def task_session() -> TaskSession:
    """The facts about the session that a task knows and a planner does not.

    A task of another engine knows nothing: it has the number 0, and ANSI mode. Names of files are unique without it.
    """
    from delta_pyds.data.write.task import TaskSession

    context = TaskContext.get()
    if context is None:
        return TaskSession(0)
    ansi = context.getLocalProperty(ANSI) or os.environ.get("SPARK_ANSI_SQL_MODE") or "true"
    return TaskSession(
        partition_id=context.partitionId(),
        ansi=ansi.strip().lower() == "true",
        time_zone=context.getLocalProperty(TIME_ZONE),
    )
