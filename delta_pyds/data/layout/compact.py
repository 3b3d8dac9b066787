"""Files of one partition to one new file, in Arrow, in memory that row groups bound.

Protocol: "Add File and Remove File", "Deletion Vectors", "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from delta_pyds.data.read.reader import read
from delta_pyds.data.read.shared_plans import SharedPlans
from delta_pyds.data.row_changes.files import write_files
from delta_pyds.tasks.layout import CompactFiles
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.scan_state import ScanState
from delta_pyds.tasks.write_state import ReplacedFile, TaskOutput

# what is handed on at once: each batch costs the writer as much as some thousand rows
_WORTH_ROWS = 16_384
_WORTH_BYTES = 16 << 20


def compact_files(task: CompactFiles) -> TaskOutput:
    """The new file, or none where no row lives. Raises: whatever ``read`` and ``DataFileWriter`` raise."""
    rows = LiveRows(task.scan, task.files, list(task.write.schema.names))
    files = write_files(task.write, rows.batches())
    return TaskOutput(files, copied_rows=sum(file.num_records for file in files), replaced=rows.counted())


class LiveRows:
    """The live rows of files, under the names of the columns to be written, and how many each file had."""

    def __init__(self, scan: ScanState, files: Sequence[TableFile], names: list[str]) -> None:
        self._scan = scan
        self._files = files
        self._names = names
        self._counts: list[int] = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, file after file; those of small files together."""
        waiting: list[pa.RecordBatch] = []
        num_rows = num_bytes = 0
        for batch in self._read():
            waiting.append(batch)
            num_rows += batch.num_rows
            num_bytes += batch.nbytes
            if num_rows >= _WORTH_ROWS or num_bytes >= _WORTH_BYTES:
                yield from self._joined(waiting)
                waiting, num_rows, num_bytes = [], 0, 0
        if waiting:
            yield from self._joined(waiting)

    def _read(self) -> Iterator[pa.RecordBatch]:
        plans = SharedPlans(self._scan)
        for file in self._files:
            count = 0
            for batch in read(self._scan, file.scan, plans):
                count += batch.num_rows
                yield batch
            self._counts.append(count)

    def _joined(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = batches if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()
        return (batch.rename_columns(self._names) for batch in rows)

    def counted(self) -> tuple[ReplacedFile, ...]:
        """The files, once ``batches`` has come to its end."""
        return tuple(ReplacedFile(f.number, n) for f, n in zip(self._files, self._counts, strict=True))
