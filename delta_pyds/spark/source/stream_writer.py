"""The sink of a stream: each batch is planned in one process, run in the tasks, and committed in another process."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from delta_pyds.errors import DeltaError
from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.spark.source.writer import rule_of, session_auto_compact, task_session
from delta_pyds.spark.versions import arrow_stream_writer
from delta_pyds.tasks.write_state import StreamOrigin, TaskOutput, WriteState

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    from delta_pyds.commands.write.stream import StreamPlan

if not TYPE_CHECKING:
    DataSourceStreamArrowWriter = arrow_stream_writer()

_COMMIT_WORKER = "pyspark.sql.worker.python_streaming_sink_runner"
# Spark sets them for each task of a batch; the id stays the same when the query is restarted from its checkpoint
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


def commits_batches() -> bool:
    """Whether this process is the one in which Spark commits and aborts batches."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _COMMIT_WORKER in sys.modules or getattr(main, "name", None) == _COMMIT_WORKER


@dataclass
class StreamMessage(WriterCommitMessage):
    """The message of a task to the commit. ``plan``: the pickled ``StreamPlan``, from the task of partition 0 alone.
    ``location``: the table's root and storage options.
    """

    output: TaskOutput
    origin: StreamOrigin
    plan: bytes | None = None
    auto_compact: dict[str, str] = field(default_factory=dict)
    location: tuple[str, Mapping[str, Any]] = field(default=("", {}), repr=False)


class DeltaStreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of one batch and commits them as one version.

    Invariants: tasks get ``state`` alone; the plan stays pickled until the
    commit gets it from them. The commit has its own object, without a plan.
    """

    def __init__(self, options: Mapping[str, str], plan: StreamPlan | None = None) -> None:
        import pickle

        self._options = options
        self.state: WriteState | None = None if plan is None else plan.write.state
        self._named = plan is not None and plan.application is not None
        self._plan = None if plan is None else pickle.dumps(plan)

    @leaves_worker
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from delta_pyds.data.write.task import write

        session = task_session()
        origin = _origin()
        assert self.state is not None
        if origin.query_id is None and not self._named:
            from delta_pyds.commands.write.stream import no_application

            raise no_application(self.state.table_root)
        output = write(self.state, iterator, session)
        plan = self._plan if session.partition_id == 0 else None
        location = self.state.table_root, self.state.storage_options
        return StreamMessage(output, origin, plan, session_auto_compact(), location)

    @leaves_worker
    def commit(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        import pickle

        from delta_pyds.commands.write.stream import commit_batch
        from delta_pyds.commands.write.write import compact_written

        sent = _stream_messages(messages)
        plans = [message.plan for message in sent if message.plan is not None]
        if not plans:
            raise DeltaError(
                f"batch {batch_id} of a stream into {self._options.get('path')} was not committed: Spark handed over "
                f"the messages of {len(sent)} tasks, but not that of partition 0. Restart the query."
            )
        plan: StreamPlan = pickle.loads(plans[0])
        committed = commit_batch(plan, batch_id, [m.origin for m in sent], [m.output for m in sent], compact=False)
        compact_written(plan.write, committed, rule=rule_of([m.auto_compact for m in sent]), separate_process=True)

    @leaves_worker
    def abort(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        from delta_pyds.commands.commit import discard_files

        # if all messages are here, a commit was tried: it may have happened, and it cleans up after itself
        if any(message is None for message in messages):
            for message in _stream_messages(messages):
                discard_files(*message.location, [message.output])


def _stream_messages(messages: Sequence[WriterCommitMessage | None]) -> list[StreamMessage]:
    return [message for message in messages if isinstance(message, StreamMessage)]


def _origin() -> StreamOrigin:
    """The batch and the query that the task runs for."""
    context = TaskContext.get()
    assert context is not None
    batch = context.getLocalProperty(_BATCH_ID) or ""
    return StreamOrigin(context.getLocalProperty(_QUERY_ID) or None, int(batch) if batch.isdecimal() else None)
