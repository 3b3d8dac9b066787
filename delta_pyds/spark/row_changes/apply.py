"""The rows that a query of Spark changes, written by its tasks: no row reaches the driver.

Invariant: each task gives one small output, even if it ran more than once. Files of a failed task are in no output.
Writers get each file's name as both engines write it (``target_frame.file_name``).

Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from delta_pyds.redaction import safe_logger
from delta_pyds.spark.row_changes.target_frame import file_name
from delta_pyds.spark.settings import ADAPTIVE
from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.spark.task_runner import (
    collected,
    map_in_arrow,
    output_row,
    require_numbers,
    session_parallelism,
    task_number,
)
from delta_pyds.tasks.changed_rows import FILE_COLUMN, NEW_PREFIX, ChangeState
from delta_pyds.tasks.write_state import TaskOutput

logger = safe_logger(__name__)
# The bytes that one task of Spark reads: enough to justify its start, few enough to read again if it is lost.
_BYTES_PER_TASK = 512 * 1024 * 1024
# of all tasks together: the outputs go through the user's process
_MOST_ORIGIN_BYTES = 64 * 1024 * 1024


def apply_rows(frame: DataFrame, state: ChangeState, *, read_bytes: int = 0) -> list[TaskOutput]:
    """Write the rows, and mark those that they replace.

    ``frame``: has the columns of ``tasks.changed_rows``, with files by Spark's name or path. ``read_bytes``: the size
    of the files that the query reads. Only a large size makes more tasks than can run at once.
    Raises: errors of the tasks, as Spark reports them: ``error_of`` gives the DeltaError.
    """
    tasks = max(session_parallelism(frame.sparkSession), -(-read_bytes // _BYTES_PER_TASK))
    state = replace(state, most_origin_bytes=_MOST_ORIGIN_BYTES // tasks)

    @leaves_worker
    def take(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # imported here: the driver does not need it
        from delta_pyds.data.row_changes.changed_rows import ChangedRows
        from delta_pyds.spark.source.writer import task_session

        session = task_session()
        rows = ChangedRows(state, session)
        try:
            for batch in batches:
                if batch.num_rows:
                    rows.take(_with_names(batch))
            output = rows.close()
        except BaseException:
            # GeneratorExit and KeyboardInterrupt too: a killed task deletes the files that it can
            with suppress(Exception):
                rows.discard()
            raise
        if output != TaskOutput():
            yield output_row(task_number(), output)

    arranged = map_in_arrow(_arranged(frame, state, tasks), take)
    outputs: list[TaskOutput] = collected(arranged, f"rows that change in {state.write.table_root}")
    require_numbers(frame.sparkSession, outputs, state.write)
    logger.debug("%s tasks changed rows of %s.", len(outputs), state.write.table_root)
    return outputs


def _arranged(frame: DataFrame, state: ChangeState, tasks: int) -> DataFrame:
    """The same rows in at most ``tasks`` tasks. Written rows of one partition of the table are together.

    Otherwise each task would write a file into each partition.
    """
    positions = [i for i, f in enumerate(state.write.schema) if f.name in state.write.partition_columns]
    keys = [f"{NEW_PREFIX}{i}" for i in positions if f"{NEW_PREFIX}{i}" in frame.columns]
    if not keys:
        return frame.coalesce(tasks)
    # another engine than Spark has no default, and no such hint
    if (frame.sparkSession.conf.get(ADAPTIVE, None) or "false").lower() != "true":
        return frame.repartition(tasks, *keys)
    # not by hash alone: a large partition goes to several tasks
    return frame.hint("rebalance", *keys)


def _with_names(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with each file's name as both engines write it."""
    column = batch.schema.get_field_index(FILE_COLUMN)
    files = pc.dictionary_encode(batch.column(column))
    names = [None if name is None else file_name(name) for name in files.dictionary.to_pylist()]
    renamed = pa.DictionaryArray.from_arrays(files.indices, pa.array(names, pa.string()))
    return batch.set_column(column, FILE_COLUMN, renamed.cast(pa.string()))
