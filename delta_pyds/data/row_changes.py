"""Tasks of commands that change rows: each takes files of the table, and says what became of them.

Invariant: what a task's output names is complete. When anything goes wrong, the task's files are deleted as far as
they can be, and the error goes up; what is left over is in no commit, and vacuum removes it.

Protocol: "Deletion Vectors", "Row Tracking", "Change Data Files".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import bitmap_of, serialize
from delta_pyds.data.read.reader import OpenRows, open_rows, read
from delta_pyds.data.write.deletion_vector_writer import write_deletion_vectors
from delta_pyds.data.write.writer import DataFileWriter
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor, z85_encode
from delta_pyds.protocol.schema import STRING, StructField, StructType
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.tasks.row_changes import FindRows, RewriteFiles, WriteChangeFiles
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, ROW_POSITION_COLUMN
from delta_pyds.tasks.write_state import MarkedFile, RemovedFile, TaskOutput, WriteState, WrittenFile

# the tasks of a write count their partitions from 0; a file's name is unique by its UUID alone
_PARTITION = 0


def find_rows(task: FindRows) -> TaskOutput:
    """The rows for which the predicate is true, as deletion vectors; files without a remaining row, as removed.

    Only the predicate's columns are decoded. Raises: whatever ``read`` raises; StorageError.
    """
    marked: list[MarkedFile] = []
    bitmaps: list[BitMap64] = []
    removed: list[RemovedFile] = []
    for file in task.files:
        state = replace(task.scan, output=StructType(()), row_position=True, row_ids=None)
        with open_rows(state, file.scan) as rows:
            selected = _positions(rows)
            if not selected:
                continue
            gone = selected if rows.deleted is None else selected | rows.deleted.positions
            # counted in the file, for statistics are optional
            num_records = rows.num_records()
        if len(gone) >= num_records:
            removed.append(RemovedFile(file.number, len(selected)))
            continue
        bitmaps.append(gone)
        marked.append(MarkedFile(file.number, _inline(gone), num_records, len(selected)))
    if task.write_vectors:
        vectors = write_deletion_vectors(
            resolve_storage(task.scan.table_root, task.scan.storage_options),
            task.scan.table_root,
            bitmaps,
            random_prefix_length=task.random_prefix_length,
        )
        marked = [replace(one, vector=vector) for one, vector in zip(marked, vectors, strict=True)]
    return TaskOutput(marked=tuple(marked), removed=tuple(removed))


def rewrite_files(task: RewriteFiles) -> TaskOutput:
    """New files with the rows that stay. Raises: whatever ``read`` and ``DataFileWriter`` raise."""
    names = list(task.write.schema.names)
    staying = (
        batch.rename_columns(names) for file in task.files for batch in read(task.scan, file.scan) if batch.num_rows
    )
    files = _write(task.write, staying)
    return TaskOutput(files, copied_rows=sum(file.num_records for file in files))


def write_change_files(task: WriteChangeFiles) -> TaskOutput:
    """Change files of the rows that the scan selects. Raises: whatever ``read`` and ``DataFileWriter`` raise.

    A commit with change files is read from them alone: together they must be complete.
    """
    target = replace(
        task.write,
        schema=StructType((*task.write.schema.fields, StructField(CHANGE_TYPE_COLUMN, STRING))),
        stats_columns=(),
        change_data=True,
    )
    batches = (batch for file in task.files for batch in read(task.scan, file))
    return TaskOutput(change_files=_write(target, _with_change(batches, task.change)))


def _positions(rows: OpenRows) -> BitMap64:
    positions = BitMap64()
    for batch in rows.batches():
        positions |= bitmap_of(batch.column(ROW_POSITION_COLUMN))
    return positions


def _inline(positions: BitMap64) -> DeletionVectorDescriptor:
    data = serialize(positions)
    return DeletionVectorDescriptor("i", z85_encode(data), len(data), len(positions))


def _with_change(batches: Iterable[pa.RecordBatch], change: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        column = pa.repeat(pa.scalar(change, pa.string()), batch.num_rows)
        yield pa.RecordBatch.from_arrays([*batch.columns, column], names=[*batch.schema.names, CHANGE_TYPE_COLUMN])


def _write(state: WriteState, batches: Iterable[pa.RecordBatch]) -> tuple[WrittenFile, ...]:
    writer = DataFileWriter(state, _PARTITION)
    try:
        for batch in batches:
            writer.write(batch)
        return writer.close()
    except BaseException:
        # GeneratorExit and KeyboardInterrupt too: a task that is killed leaves no more behind than it must
        with suppress(Exception):
            writer.discard()
        raise
