"""The choice of files that become one, by the reference's rules, so that either engine can continue the other's work.

Invariant: a file is in one bin at most, all files of a bin are of one partition, and no bin reproduces its own files.
Pure functions of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.protocol.actions import AddFile
from delta_pyds.table.transaction.row_counts import row_counts

GIB = 1 << 30


@dataclass(frozen=True)
class Sizes:
    """The reference's settings, and its defaults.

    ``min_file_bytes``: smaller files are compacted. ``max_file_bytes``: the limit of a bin and of a new file.
    ``max_deleted_ratio``: files with a greater share of deleted rows are compacted too. ``min_cube_bytes``: a ZCube of
    at least this size is not rewritten. ``target_cube_bytes``: the size of new ZCubes.
    """

    min_file_bytes: int = GIB
    max_file_bytes: int = GIB
    max_deleted_ratio: float = 0.05
    min_cube_bytes: int = 100 * GIB
    target_cube_bytes: int = 150 * GIB


@dataclass(frozen=True)
class Bin:
    """Files that are rewritten together. ``tags``: the new files' tags."""

    files: tuple[AddFile, ...]
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return sum(file.size for file in self.files)


def needs_compaction(file: AddFile, sizes: Sizes) -> bool:
    """Whether the file is small, or has too many deleted rows, or an unknown number of rows and some deleted."""
    if file.size < sizes.min_file_bytes:
        return True
    if file.deletion_vector is None:
        return False
    num_records = row_counts(file.stats).num_records
    return num_records is None or file.deletion_vector.cardinality > sizes.max_deleted_ratio * num_records


def may_need_compaction(files: pa.RecordBatch, sizes: Sizes) -> pa.Array:
    """A mask of the files for which ``needs_compaction`` may be true. ``files`` has ``FILE_COLUMNS``."""
    small = pc.fill_null(pc.less(files.column("size"), sizes.min_file_bytes), True)
    # some checkpoints have a struct of nulls for a missing vector
    return pc.or_(small, pc.is_valid(pc.struct_field(files.column("deletionVector"), "storageType")))


def compaction_bins(files: Iterable[AddFile], sizes: Sizes) -> list[Bin]:
    """Bins of small files first, each filled before the next; a single file is left out."""
    found = []
    for some in by_partition(files):
        found += [b for b in _filled(sorted(some, key=_size), sizes.max_file_bytes) if len(b.files) > 1]
    return found


def rewriting_bins(files: Iterable[AddFile], sizes: Sizes) -> list[Bin]:
    """Bins of all files, even with a single file."""
    found = []
    for some in by_partition(files):
        found += _filled(sorted(some, key=_size), sizes.max_file_bytes)
    return found


def whole_partitions(files: Iterable[AddFile]) -> list[Bin]:
    """All files of a partition in one bin, for a Z-order."""
    return [Bin(tuple(some)) for some in by_partition(files)]


def cubes(files: Sequence[AddFile], sizes: Sizes) -> list[Bin]:
    """Files that become ZCubes, in their order."""
    return _filled(files, max(sizes.target_cube_bytes, sizes.min_cube_bytes))


def by_partition(files: Iterable[AddFile]) -> list[list[AddFile]]:
    """The files of each partition; values are compared as the log spells them."""
    found: dict[frozenset[tuple[str, str | None]], list[AddFile]] = {}
    for file in files:
        found.setdefault(frozenset((file.partition_values or {}).items()), []).append(file)
    return list(found.values())


def _filled(files: Sequence[AddFile], room: int) -> list[Bin]:
    """Bins filled one after the other; a file that does not fit begins the next bin."""
    found: list[Bin] = []
    some: list[AddFile] = []
    total = 0
    for file in files:
        if some and total + _size(file) > room:
            found.append(Bin(tuple(some)))
            some, total = [], 0
        some.append(file)
        total += _size(file)
    return [*found, Bin(tuple(some))] if some else found


def _size(file: AddFile) -> int:
    """The file's size; a negative one counts as 0, because otherwise a bin would take any number of files."""
    return max(file.size, 0)
