"""Rows of files as change rows, for commands that change whole files. Protocol: "Change Data Files"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from delta_pyds.data.read.reader import read
from delta_pyds.data.row_changes.files import of_change_files, write_files
from delta_pyds.tasks.row_changes import WriteChangeFiles
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN
from delta_pyds.tasks.write_state import TaskOutput


def write_change_files(task: WriteChangeFiles) -> TaskOutput:
    """Change files of the rows that the scan selects. Raises: whatever ``read`` and ``DataFileWriter`` raise.

    A commit with change files is read from them alone: together they must be complete.
    """
    batches = (batch for file in task.files for batch in read(task.scan, file))
    return TaskOutput(change_files=write_files(of_change_files(task.write), with_change(batches, task.change)))


def with_change(batches: Iterable[pa.RecordBatch], change: str) -> Iterator[pa.RecordBatch]:
    """The same rows, and what became of them."""
    for batch in batches:
        column = pa.repeat(pa.scalar(change, pa.string()), batch.num_rows)
        yield pa.RecordBatch.from_arrays([*batch.columns, column], names=[*batch.schema.names, CHANGE_TYPE_COLUMN])
