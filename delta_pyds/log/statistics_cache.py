"""Caches of what was decoded from checkpoints, for the next query on the same checkpoint.

Most memory goes to statistics, which any predicate on their columns can use. The entries of the selected files are
cached for the same selection alone: an equal query then reads nothing of the checkpoint.

Invariant: every entry belongs to one content of one checkpoint, by its content key. Memory is bounded for the process:
the least recently used entry is evicted first. Entries of the same columns and checkpoint never evict each other: a
checkpoint that is too large would evict itself in every query.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import pyarrow as pa

from delta_pyds.bounded_cache import BoundedCache

# Sixteen numeric columns of a million files.
LIMIT_BYTES = 128 << 20
# The entries of some 60,000 selected files without their statistics.
LIMIT_BYTES_OF_SELECTED_ROWS = 16 << 20
# The overhead of an entry in Python's and Arrow's objects.
_ENTRY_BYTES = 1500

# One array for each key, or None if its values are unknown.
Columns = Sequence["pa.Array | None"]


class StatisticsFilter(ABC):
    """A filter of files by typed columns, which can be cached and used for other predicates.

    ``keys``: identify the columns independently of the predicate and the table. Columns of the same files under one key
    have equal values, except that one may have nulls.
    """

    @property
    @abstractmethod
    def keys(self) -> tuple[Hashable, ...]: ...

    @abstractmethod
    def columns(self, add: pa.StructArray) -> Columns:
        """The columns of ``keys``, extracted from add actions."""

    @abstractmethod
    def matches(self, columns: Columns, num_files: int) -> pa.BooleanArray:
        """The mask of the wanted files, without nulls."""

    def __call__(self, add: pa.StructArray) -> pa.BooleanArray:
        return self.matches(self.columns(add), len(add))


@dataclass(frozen=True)
class _Column:
    """One column of a row group, batch by batch, and the number of files in each batch."""

    lengths: tuple[int, ...]
    arrays: tuple[pa.Array | None, ...]

    @property
    def num_bytes(self) -> int:
        return _ENTRY_BYTES + size_of(self.arrays)


class StatisticsCache:
    """Columns of the row groups of checkpoints. ``group`` identifies a row group within its checkpoint."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._columns: BoundedCache[tuple[Hashable, Hashable, Hashable], _Column] = BoundedCache(
            limit_bytes, size_of=attrgetter("num_bytes")
        )
        # all columns of a group are added and removed together
        self._lock = threading.Lock()

    def get(self, checkpoint: Hashable, group: Hashable, keys: Sequence[Hashable]) -> list[tuple[int, Columns]] | None:
        """The number of files and the columns of ``keys`` of each batch; None if a column is not cached."""
        names = [(checkpoint, group, key) for key in keys]
        with self._lock:
            if not all(name in self._columns for name in names):
                return None
            known = [column for name in names if (column := self._columns.get(name)) is not None]
        return [(n, tuple(column.arrays[i] for column in known)) for i, n in enumerate(known[0].lengths)]

    def put(
        self, checkpoint: Hashable, group: Hashable, keys: Sequence[Hashable], batches: Sequence[tuple[int, Columns]]
    ) -> None:
        """Cache the columns of all batches of a group, if they fit."""
        lengths = tuple(length for length, _ in batches)
        new = {
            (checkpoint, group, key): _Column(lengths, tuple(columns[i] for _, columns in batches))
            for i, key in enumerate(keys)
        }
        asked = set(keys)
        with self._lock:
            for name in new:
                self._columns.forget(name)
            num_bytes = sum(column.num_bytes for column in new.values())
            if self._columns.make_room(num_bytes, keep=lambda name: name[0] == checkpoint and name[2] in asked):
                for name, column in new.items():
                    self._columns.put(name, column)


STATISTICS_CACHE = StatisticsCache()


def selected_rows(limit_bytes: int) -> BoundedCache[Hashable, Sequence[pa.StructArray]]:
    """A cache of the rows that selections took from row groups of checkpoints, all batches of a row group at once.

    A key identifies the checkpoint, the row group, the wanted rows and their fields.
    """
    return BoundedCache(limit_bytes, size_of=lambda rows: _ENTRY_BYTES + size_of(rows))


SELECTED_ROWS = selected_rows(LIMIT_BYTES_OF_SELECTED_ROWS)


def size_of(columns: Iterable[pa.Array | None]) -> int:
    """The memory of the columns in bytes."""
    return sum(column.get_total_buffer_size() for column in columns if column is not None)
