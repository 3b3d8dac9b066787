"""The difference between two lists of files, of one table or of two, by path and deletion vector.

Invariant: only the files that differ become objects; the lists themselves stay Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.exact_sum import exact_sum
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.file_table import FILE_COLUMNS, KEY_COLUMNS, file_keys
from delta_pyds.protocol.actions import AddFile
from delta_pyds.table.scan.live_files import REMOVAL_COLUMNS, adds_of
from delta_pyds.table.snapshot import Snapshot


@dataclass(frozen=True)
class FileKeys:
    """The keys of a version's files, in the order of its snapshot, and the sum of their sizes."""

    keys: pa.ChunkedArray
    size_bytes: int

    @staticmethod
    def none() -> FileKeys:
        """The keys of an empty list."""
        return FileKeys(pa.chunked_array([], pa.string()), 0)

    @staticmethod
    def of(snapshot: Snapshot) -> FileKeys:
        """Read the keys of a snapshot's files."""
        chunks: list[pa.Array] = []
        size = 0
        for batch in snapshot.adds(AddRequest(columns=(*KEY_COLUMNS, "size"))):
            chunks.append(file_keys(batch.files))
            size += exact_sum(batch.files.column("size"))
        return FileKeys(pa.chunked_array(chunks, pa.string()), size)

    def __len__(self) -> int:
        return len(self.keys)


def only_in(snapshot: Snapshot, keys: FileKeys, others: FileKeys) -> Iterator[AddFile]:
    """The files of a version that are not among ``others``, as whole ``add`` actions. ``keys``: the version's."""
    yield from _only_in(snapshot, keys, others, tuple(FILE_COLUMNS))


def removed_from(snapshot: Snapshot, keys: FileKeys, others: FileKeys) -> Iterator[AddFile]:
    """As ``only_in``, but only with the fields that a ``remove`` needs."""
    yield from _only_in(snapshot, keys, others, REMOVAL_COLUMNS)


def _only_in(snapshot: Snapshot, keys: FileKeys, others: FileKeys, columns: tuple[str, ...]) -> Iterator[AddFile]:
    differs = pc.invert(pc.is_in(keys.keys, value_set=others.keys))
    if not pc.any(differs).as_py():
        return
    start = 0
    for batch in snapshot.adds(AddRequest(columns=columns)):
        mask = differs.slice(start, len(batch.files))
        start += len(batch.files)
        yield from adds_of(batch.files.filter(mask.combine_chunks()))
