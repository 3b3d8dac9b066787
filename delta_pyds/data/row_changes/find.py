"""Files of the table to the positions of the rows for which a predicate is true. Protocol: "Deletion Vectors"."""

from __future__ import annotations

from dataclasses import replace

from pyroaring import BitMap64

from delta_pyds.columnar.roaring import bitmap_of, serialize
from delta_pyds.data.read.reader import OpenRows, open_rows
from delta_pyds.data.write.deletion_vector_writer import write_deletion_vectors
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor, z85_encode
from delta_pyds.protocol.schema import StructType
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.tasks.row_changes import FindRows
from delta_pyds.tasks.scan_state import ROW_POSITION_COLUMN
from delta_pyds.tasks.write_state import MarkedFile, RemovedFile, TaskOutput


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


def _positions(rows: OpenRows) -> BitMap64:
    positions = BitMap64()
    for batch in rows.batches():
        positions |= bitmap_of(batch.column(ROW_POSITION_COLUMN))
    return positions


def _inline(positions: BitMap64) -> DeletionVectorDescriptor:
    data = serialize(positions)
    return DeletionVectorDescriptor("i", z85_encode(data), len(data), len(positions))
