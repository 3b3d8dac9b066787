"""One task of a write: its rows become files, or nothing remains.

Invariant: the files in ``TaskOutput`` are complete. After an error the task's files are deleted as far as possible, and
the error is raised. Remaining files are in no commit, and vacuum removes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pyarrow as pa

from delta_pyds.data.write.ingest import Ingest
from delta_pyds.data.write.task_session import TaskSession, check_time_zone
from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.tasks.write_state import TaskOutput, WriteState

__all__ = ["TaskSession", "write"]


def write(state: WriteState, batches: Iterable[pa.RecordBatch], session: TaskSession) -> TaskOutput:
    """Write the rows of one task.

    Raises:
        OptionError: an expression of the table was bound for another time zone than the session's.
        Errors of ``Ingest`` and ``DataFileWriter`` pass through.
    """
    check_time_zone(state, session)
    ingest = Ingest(state, session)
    writer = DataFileWriter(state, session.partition_id)
    try:
        for batch in batches:
            if batch.num_rows:
                writer.write(ingest.apply(batch))
        files = writer.close()
    except BaseException:
        # also for GeneratorExit and KeyboardInterrupt: a killed task must leave as little as possible
        with suppress(Exception):
            writer.discard()
        raise
    return TaskOutput(files, dict(ingest.identity_marks))
