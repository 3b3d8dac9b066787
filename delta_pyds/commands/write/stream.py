"""The sink of a stream: each batch is planned like any write, and committed once, even if it is tried again.

One process plans a batch and another one commits it. Spark gives the second process only the messages of the tasks: one
of them contains the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_pyds.commands.write.micro_batch import MicroBatch
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import WritePlan, commit_write, discard_write, plan_write
from delta_pyds.errors import DeltaError, OptionError, UserError
from delta_pyds.protocol.schema import VOID, holds
from delta_pyds.table.transaction.transaction import Committed
from delta_pyds.tasks.write_state import StreamOrigin, TaskOutput


@dataclass(frozen=True)
class StreamPlan:
    """A batch that was checked and can be written. ``application``: the option txnAppId."""

    write: WritePlan
    application: str | None = None


def plan_batch(request: WriteRequest, application: str | None = None) -> StreamPlan:
    """Plan a batch. ``application``: the stream's id in the table; by default the query's.

    Raises: as ``plan_write``; UserError for a column of type void, because a later batch may have another type.
    """
    for field in request.incoming:
        if holds(field.data_type, VOID):
            raise UserError(
                f"the column '{field.name}' of the stream into {request.table_root} has the type void, or contains it: "
                "a later batch may have values of any type. Cast it to the intended type.",
                code="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
                table=request.table_root,
                column=field.name,
            )
    return StreamPlan(plan_write(request), application)


def commit_batch(
    plan: StreamPlan,
    batch_id: int,
    origins: Sequence[StreamOrigin],
    outputs: Sequence[TaskOutput],
    *,
    compact: bool = True,
) -> Committed | None:
    """Commit a batch; None if the table has it already, or if it changes nothing.

    ``batch_id``: the batch that Spark commits. ``origins``: batch and query of each task. ``compact``: see
    ``compact_written``.

    Raises: DeltaError if tasks and commit belong to different batches; ConcurrentTransactionError if another
        run of the same stream committed meanwhile; as ``commit_write``.
    """
    try:
        batch = _agree(plan, batch_id, origins)
    except DeltaError:
        discard_write(plan.write, outputs)
        raise
    return commit_write(plan.write, outputs, batch, compact=compact)


def _agree(plan: StreamPlan, batch_id: int, origins: Sequence[StreamOrigin]) -> MicroBatch:
    table = plan.write.request.table_root
    queries = sorted({o.query_id for o in origins if o.query_id})
    batches = sorted({o.batch_id for o in origins if o.batch_id is not None} - {batch_id})
    if len(queries) > 1 or batches:
        raise DeltaError(
            f"batch {batch_id} of a stream into {table} was not committed: its tasks wrote for the batches "
            f"{[*batches, batch_id]} of the queries {queries}, but a commit has one batch. This is a fault of "
            "Spark or of the session's local properties; restart the query.",
            code="DELTA_STREAMING_BATCH_MISMATCH",
            table=table,
        )
    application = plan.application or next(iter(queries), None)
    if application is None:
        raise no_application(table)
    return MicroBatch(application, batch_id, next(iter(queries), application), plan.application is not None)


def no_application(table_root: str) -> OptionError:
    """The error for a stream that could not be identified after a restart."""
    return OptionError(
        f"the query that writes to {table_root} has no id (the local property sql.streaming.queryId is not set in the "
        "task). Without an id, a batch that is repeated after a crash would be written twice. Nothing was written: set "
        "the option txnAppId to a text that only this query uses. It must stay the same when the query is restarted "
        "from its checkpoint.",
        code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
        option="txnAppId",
        table=table_root,
    )
