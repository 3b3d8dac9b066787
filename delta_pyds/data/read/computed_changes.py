"""Changes that were not recorded: which rows of a commit's files left the table, came or were updated.

A commit that rewrites a file removes and adds rows that did not change. Compared by row id, a row of both sides is the
same one: unchanged if its row commit version is the same, else the two images of an update. Compared by values, equal
rows of both sides cancel each other one by one, and the others are deletes and inserts.

Protocol: "Row Tracking", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import bitmap_of, live_mask
from delta_pyds.columnar.row_difference import differing_rows
from delta_pyds.data.read.concurrent import read_numbered, useful_threads
from delta_pyds.data.read.deletion_vector import inline_vector
from delta_pyds.data.read.held_rows import HeldSides
from delta_pyds.data.read.output import output_schema
from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.schema import StructField, StructType, nullable_throughout
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, ScanFile, ScanState


@dataclass(frozen=True)
class _Changed:
    """Rows of one side and of one change type, each by the number of its file and its position there."""

    removed: bool
    change_type: str
    rows: pa.RecordBatch


def with_changed_rows(state: ScanState, files: Iterable[ScanFile], *, threads: int = 1) -> Iterator[ScanFile]:
    """Replace files that are compared with each other by their changed rows: each file once for each change type.

    Args:
        state: of a change feed.
        files: those of one group follow each other. Other files stay as they are.
        threads: the number of files of a group that are read at once.
    Raises: as ``data.read.reader.read``; ProtocolError if two rows have one id; StorageError if the local disk is full.
    """
    for group, members in groupby(files, key=lambda file: file.compared and file.compared.group):
        if group is None:
            yield from members
        else:
            yield from _Comparison(state, list(members), threads).changed_files()


class _Comparison:
    """One group of files. Positions and numbers of files are the last two columns of all batches."""

    def __init__(self, state: ScanState, members: Sequence[ScanFile], threads: int) -> None:
        assert state.compared_columns is not None
        pairs = [(file, file.compared) for file in members if file.compared is not None]
        self._state = state
        row_ids = pairs[0][1].row_ids
        self._by_row_id = row_ids is not None
        self._removed = [file for file, compared in pairs if compared.removed]
        self._added = [file for file, compared in pairs if not compared.removed]
        self._threads = threads
        columns = () if self._by_row_id else tuple(map(_nullable, state.compared_columns))
        self._scan = replace(
            state,
            output=StructType(columns),
            inputs=StructType(()),
            predicate=None,
            skip=None,
            row_position=True,
            row_ids=row_ids,
            file_leaves=0,
        )
        types = output_schema(self._scan).types
        self._num_columns = len(columns)
        # all values decide, or the row id alone
        self._keys = 1 if self._by_row_id else len(columns)
        numbers = self._column_numbers
        self._schema = pa.schema([(str(i), types[at]) for i, at in enumerate(numbers)] + [("file", pa.int64())])

    @property
    def _column_numbers(self) -> list[int]:
        """The compared columns and the position, among the columns of the scan. The path before it is left out."""
        position = self._num_columns + 1
        return [position + 1, position + 2, position] if self._by_row_id else [*range(self._num_columns), position]

    def changed_files(self) -> Iterator[ScanFile]:
        """Yield each file with its changed rows, once for each change type."""
        found: dict[tuple[bool, int, str], BitMap64] = {}
        for before, after in self._rows():
            for changed in self._changed_by_id(before, after) if self._by_row_id else _changed_values(before, after):
                for number, positions in positions_by_file(changed.rows):
                    key = (changed.removed, number, changed.change_type)
                    found.setdefault(key, BitMap64()).update(positions)
        for removed, number, change_type in sorted(found, key=lambda key: (not key[0], *key[1:])):
            file = (self._removed if removed else self._added)[number]
            yield changed_rows_of(self._state, file, change_type, found[removed, number, change_type])

    def _rows(self) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yield the rows before and after the commit, in pairs of batches with all rows of equal keys."""
        sides = HeldSides(self._schema, self._keys)
        for side, files in enumerate((self._removed, self._added)):
            threads = useful_threads(self._scan, files, self._threads)
            with closing(read_numbered(self._scan, files, threads=threads)) as numbered:
                for number, batch in numbered:
                    columns = [batch.column(at) for at in self._column_numbers]
                    columns.append(pa.repeat(pa.scalar(number, pa.int64()), batch.num_rows))
                    sides.add(side, pa.RecordBatch.from_arrays(columns, schema=self._schema))
        return sides.compared_together()

    def _changed_by_id(self, before: pa.RecordBatch, after: pa.RecordBatch) -> Iterator[_Changed]:
        for side in (before, after):
            self._check_unique(side.column(0))
        partner = pc.index_in(after.column(0), value_set=before.column(0)).cast(pa.int64())
        found = partner.is_valid()
        unchanged = pc.and_(found, pc.fill_null(pc.equal(before.column(1).take(partner), after.column(1)), False))
        updated = pc.and_not(found, unchanged)
        left = live_mask(bitmap_of(partner.filter(found)), 0, before.num_rows)
        yield _Changed(True, "delete", before.filter(left))
        yield _Changed(True, "update_preimage", before.take(partner.filter(updated).sort()))
        yield _Changed(False, "update_postimage", after.filter(updated))
        yield _Changed(False, "insert", after.filter(pc.invert(found)))

    def _check_unique(self, ids: pa.Array) -> None:
        """Protocol: "Row IDs"."""
        ascending = pc.all(pc.greater(ids.slice(1), ids.slice(0, max(len(ids) - 1, 0)))).as_py()
        # numbering the ids costs much more, and files mostly have them in order
        if not ascending and len(pc.unique(ids)) != len(ids):
            file = self._added[0].path
            raise ProtocolError(
                f"two rows of a commit of the table {self._state.table_root} have the same row id, in the files of the "
                f"commit that added '{file}': its changes cannot be computed by row ids. Read them with the option "
                "computeChanges=values, and restore the table to a version with unique ids.",
                code="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
                table=self._state.table_root,
                path=file,
            )


def changed_rows_of(state: ScanState, file: ScanFile, change_type: str, positions: BitMap64) -> ScanFile:
    """The rows of a file at these positions, which are live, as changes of this type."""
    values = tuple(
        change_type if name == CHANGE_TYPE_COLUMN else value
        for name, value in zip(state.partition_columns, file.partition_values, strict=True)
    )
    vector = inline_vector(positions)
    return replace(
        file, partition_values=values, deletion_vector=None, selected=vector, change_data=False, compared=None
    )


def _nullable(field: StructField) -> StructField:
    # rows of old versions may have nulls in a column that is NOT NULL now; they fail when they are returned
    return replace(field, data_type=nullable_throughout(field.data_type), nullable=True)


def _changed_values(before: pa.RecordBatch, after: pa.RecordBatch) -> Iterator[_Changed]:
    left, right = ([*side.columns[:-2]] or [pa.nulls(side.num_rows)] for side in (before, after))
    gone, new = differing_rows(left, right)
    yield _Changed(True, "delete", before.take(gone))
    yield _Changed(False, "insert", after.take(new))


def positions_by_file(rows: pa.RecordBatch) -> Iterator[tuple[int, BitMap64]]:
    """Yield the number of each file and the positions of its rows. They are the last two columns, in order of files."""
    positions, start = rows.column(rows.num_columns - 2), 0
    for entry in pc.value_counts(rows.column(rows.num_columns - 1)):
        count = entry["counts"].as_py()
        yield entry["values"].as_py(), bitmap_of(positions.slice(start, count))
        start += count
