"""Updates of rows that keys identify: a delete and an insert of one version with equal keys are its two images.

Invariant: the rows stay the same, each once; only change types become others. Two keys are equal by Spark's ``=``, so
that a null equals nothing. Only keys are held, in bounded memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_pyds.columnar.key_index import KeyIndex, canonical
from delta_pyds.data.read.change_type import DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from delta_pyds.data.read.computed_changes import changed_rows_of, positions_by_file
from delta_pyds.data.read.concurrent import read_numbered, useful_threads
from delta_pyds.data.read.deletion_vector import inline_vector
from delta_pyds.data.read.held_rows import HeldSides
from delta_pyds.data.read.output import output_schema
from delta_pyds.protocol.schema import StructType
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, COMMIT_VERSION_COLUMN, ScanFile, ScanState

_IMAGES = (UPDATE_PREIMAGE, UPDATE_POSTIMAGE)


def with_updates(
    state: ScanState, files: Iterable[ScanFile], keys: Sequence[str], *, threads: int = 1
) -> Iterator[ScanFile]:
    """Replace files with deletes and inserts of equal keys by their rows of each change type.

    Args:
        state: of a change feed, whose output has the keys, the change type and the version.
        files: as ``with_changed_rows`` gives them; those of one version follow each other.
        keys: columns of types whose values can be compared.
        threads: the number of files of a version that are read at once.
    Raises: as ``data.read.reader.read``; StorageError if the local disk is full.
    """
    version = state.partition_columns.index(COMMIT_VERSION_COLUMN)
    for _, members in groupby(files, key=lambda file: file.partition_values[version]):
        yield from _Pairing(state, list(members), keys, threads).paired_files()


class _Pairing:
    """The files of one version."""

    def __init__(self, state: ScanState, members: Sequence[ScanFile], keys: Sequence[str], threads: int) -> None:
        self._state = state
        self._members = members
        self._num_keys = len(keys)
        self._threads = threads
        fields = tuple(field for name in (*keys, CHANGE_TYPE_COLUMN) for field in state.output if field.name == name)
        self._scan = replace(
            state,
            output=StructType(fields),
            inputs=StructType(()),
            predicate=None,
            skip=None,
            row_position=True,
            file_leaves=0,
        )

    def paired_files(self) -> Iterator[ScanFile]:
        """Yield each file: as it is, or once for each change type of its rows."""
        read = [file for file in self._members if file.change_data or self._type_of(file) in (DELETE, INSERT)]
        may_pair = any(file.change_data for file in read) or len({self._type_of(file) for file in read}) == 2
        found = self._positions(read) if may_pair else {}
        numbers = {id(file): number for number, file in enumerate(read)}
        for file in self._members:
            by_type = found.get(numbers.get(id(file), -1), {})
            images = {change_type: rows for change_type, rows in by_type.items() if change_type in _IMAGES}
            if not images:
                yield file
                continue
            if file.change_data:
                # the other rows keep the type that the file gives them
                yield replace(file, deletion_vector=inline_vector(BitMap64.union(*images.values())))
                by_type = images
            for change_type, positions in sorted(by_type.items()):
                yield changed_rows_of(self._state, file, change_type, positions)

    def _type_of(self, file: ScanFile) -> str | None:
        return file.partition_values[self._state.partition_columns.index(CHANGE_TYPE_COLUMN)]

    def _positions(self, files: Sequence[ScanFile]) -> Mapping[int, Mapping[str, BitMap64]]:
        """The deletes and inserts of each file, by its number and by their change types after pairing."""
        found: defaultdict[int, defaultdict[str, BitMap64]] = defaultdict(lambda: defaultdict(BitMap64))
        for deleted, inserted in self._sides(files).compared_together():
            index = KeyIndex(self._keys_of(deleted), [False] * self._num_keys)
            insert_paired, delete_paired = index.partners(self._keys_of(inserted))
            for rows, paired, image, alone in (
                (deleted, delete_paired, UPDATE_PREIMAGE, DELETE),
                (inserted, insert_paired, UPDATE_POSTIMAGE, INSERT),
            ):
                for change_type, chosen in ((image, paired), (alone, pc.invert(paired))):
                    for number, positions in positions_by_file(rows.filter(chosen)):
                        found[number][change_type].update(positions)
        return found

    def _sides(self, files: Sequence[ScanFile]) -> HeldSides:
        """The keys, positions and file numbers of deleted rows, and of inserted ones."""
        types = output_schema(self._scan).types[: self._num_keys]
        schema = pa.schema([(str(i), kind) for i, kind in enumerate([*types, pa.int64(), pa.int64()])])
        sides = HeldSides(schema, self._num_keys)
        threads = useful_threads(self._scan, files, self._threads)
        with closing(read_numbered(self._scan, files, threads=threads)) as numbered:
            for number, batch in numbered:
                columns = [canonical(column) for column in batch.columns[: self._num_keys]]
                columns += [batch.column(batch.num_columns - 1), pa.repeat(pa.scalar(number), batch.num_rows)]
                rows = pa.RecordBatch.from_arrays(columns, schema=schema)
                for side, change_type in enumerate((DELETE, INSERT)):
                    sides.add(side, rows.filter(pc.equal(batch.column(self._num_keys), change_type)))
        return sides

    def _keys_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        return [rows.column(i) for i in range(self._num_keys)]
