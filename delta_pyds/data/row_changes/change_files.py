"""Writes changed rows to files of the change data feed. Protocol: "Change Data Files"."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from delta_pyds.columnar.row_origins import of_whole_file
from delta_pyds.data.read.reader import read
from delta_pyds.data.row_changes.files import of_change_files, write_with_origins
from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.tasks.row_changes import WriteChangeFiles
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN
from delta_pyds.tasks.write_state import TaskOutput, WriteState, WrittenFile


class ChangeFiles:
    """The change files of one task. ``write``: the state for the table's own files, with the same columns.

    ``with_origins``: as in ``DataFileWriter``.
    """

    def __init__(self, write: WriteState, partition_id: int, *, with_origins: bool = False) -> None:
        self._state = of_change_files(write)
        self._with_origins = with_origins
        self._partition_id = partition_id
        self._writer: DataFileWriter | None = None

    def record(self, columns: Sequence[pa.Array], num_rows: int, change: str, origins: pa.Array | None = None) -> None:
        """Write rows with the type of their change."""
        if not num_rows:
            return
        if self._writer is None:
            self._writer = DataFileWriter(self._state, self._partition_id, with_origins=self._with_origins)
        kind = pa.repeat(pa.scalar(change, pa.string()), num_rows)
        rows = pa.RecordBatch.from_arrays([*columns, kind], names=list(self._state.schema.names))
        self._writer.write(rows, origins)

    def close(self) -> tuple[WrittenFile, ...]:
        """Finish the files; without recorded rows, the result is empty."""
        return () if self._writer is None else self._writer.close()

    def discard(self) -> None:
        """Delete the files, as far as the storage allows."""
        if self._writer is not None:
            self._writer.discard()


def write_change_files(task: WriteChangeFiles) -> TaskOutput:
    """Write change files of the rows that the scan selects. Raises: as ``read`` and ``DataFileWriter``.

    If a commit has change files, readers use only these, so they must be complete.
    """
    rows = (
        (_with_change(batch, task.change), of_whole_file(index, batch.num_rows))
        for index, file in enumerate(task.files)
        for batch in read(task.scan, file.scan)
    )
    files = write_with_origins(of_change_files(task.write), rows)
    return TaskOutput(change_files=files, origin_files=tuple(file.name for file in task.files))


def _with_change(batch: pa.RecordBatch, change: str) -> pa.RecordBatch:
    """The same rows with the type of their change."""
    column = pa.repeat(pa.scalar(change, pa.string()), batch.num_rows)
    return pa.RecordBatch.from_arrays([*batch.columns, column], names=[*batch.schema.names, CHANGE_TYPE_COLUMN])
