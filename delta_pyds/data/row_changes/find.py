"""Finds the positions of the rows for which a predicate is true. Protocol: "Deletion Vectors"."""

from __future__ import annotations

from dataclasses import replace

from pyroaring import BitMap64

from delta_pyds.columnar.roaring import bitmap_of, serialize
from delta_pyds.data.read.reader import OpenRows, open_rows
from delta_pyds.protocol.schema import StructType
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.row_changes import FindRows
from delta_pyds.tasks.scan_state import ROW_POSITION_COLUMN
from delta_pyds.tasks.write_state import FoundRows, TaskOutput


def find_rows(task: FindRows) -> TaskOutput:
    """Find the live rows for which the predicate is true, to delete them. Nothing is written.

    Only the predicate's columns are decoded, and none in a file whose footer proves that no row matches. A file
    without such a row is not in the output. Raises: as ``read``.
    """
    state = replace(task.scan, output=StructType(()), row_position=True, row_ids=None)
    found: list[FoundRows] = []
    count = 0
    for file in task.files:
        with open_rows(state, file.scan) as rows:
            selected = _positions(rows)
            if selected:
                found.append(replace(found_in(file.number, rows), positions=serialize(selected)))
                count += len(selected)
    return TaskOutput(found=tuple(found), counts={int(Action.DELETE): count} if count else {})


def found_in(number: int, rows: OpenRows) -> FoundRows:
    """A file's number of rows and deletion vector, without positions. So the command need not open the file again."""
    before = None if rows.deleted is None else serialize(rows.deleted.positions)
    # counted in the file, because statistics are optional
    return FoundRows(number, b"", num_records=rows.num_records(), deleted_before=before)


def _positions(rows: OpenRows) -> BitMap64:
    positions = BitMap64()
    for batch in rows.batches():
        positions |= bitmap_of(batch.column(ROW_POSITION_COLUMN))
    return positions
