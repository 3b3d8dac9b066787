"""Rewrites the files of one partition into one new file, with memory bounded by row groups.

Protocol: "Add File and Remove File", "Deletion Vectors", "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from delta_pyds.data.read.concurrent import read_numbered, useful_threads
from delta_pyds.data.row_changes.files import write_files
from delta_pyds.tasks.layout import CompactFiles
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.scan_state import ScanState
from delta_pyds.tasks.write_state import ReplacedFile, TaskOutput

# smaller batches are joined: each batch costs the writer as much as some thousand rows
_WORTH_ROWS = 16_384
_WORTH_BYTES = 16 << 20
# the maximum that a task has decoded but not yet used
AHEAD_BYTES = 64 << 20


def compact_files(task: CompactFiles) -> TaskOutput:
    """Write the new file; no file if there is no live row. Raises: as ``read`` and ``DataFileWriter``."""
    rows = LiveRows(task.scan, task.files, list(task.write.schema.names), task.threads)
    with closing(rows.batches()) as batches:
        files = write_files(task.write, batches)
    return TaskOutput(files, copied_rows=sum(file.num_records for file in files), replaced=rows.counted())


class LiveRows:
    """The live rows of files, under the names of the columns to write, and the number of rows of each file."""

    def __init__(self, scan: ScanState, files: Sequence[TableFile], names: list[str], threads: int = 1) -> None:
        self._scan = scan
        self._threads = threads
        self._files = files
        self._names = names
        self._counts: list[int] = []

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """All rows, file after file; batches of small files are joined. Closing it ends the threads."""
        waiting: list[pa.RecordBatch] = []
        num_rows = num_bytes = 0
        for batch in self._read():
            waiting.append(batch)
            num_rows += batch.num_rows
            num_bytes += batch.get_total_buffer_size()  # not less than the batch's own bytes
            if num_rows >= _WORTH_ROWS or num_bytes >= _WORTH_BYTES:
                yield from self._joined(waiting)
                waiting, num_rows, num_bytes = [], 0, 0
        if waiting:
            yield from self._joined(waiting)

    def _read(self) -> Iterator[pa.RecordBatch]:
        self._counts = [0] * len(self._files)
        files = [file.scan for file in self._files]
        threads = useful_threads(self._scan, files, self._threads)
        with closing(read_numbered(self._scan, files, threads=threads, ahead_bytes=AHEAD_BYTES)) as numbered:
            for number, batch in numbered:
                self._counts[number] += batch.num_rows
                yield batch

    def _joined(self, batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = batches if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()
        return (batch.rename_columns(self._names) for batch in rows)

    def counted(self) -> tuple[ReplacedFile, ...]:
        """The files with their numbers of rows; complete after ``batches`` is exhausted."""
        return tuple(ReplacedFile(f.number, n) for f, n in zip(self._files, self._counts, strict=True))
