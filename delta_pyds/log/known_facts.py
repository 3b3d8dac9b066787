"""What was decoded of checkpoints to skip files by, kept for the next query on the same ones.

Invariant: what is kept is of one content of one checkpoint; that it is this content its files' names, sizes and times
tell (see ``listing.is_settled``). Memory is bounded for the process: what was not used for longest is given up first,
but never for more of the same checkpoint: one that is too large would drive itself out with every query.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

# The bounds of two columns of numbers, of four million files.
LIMIT_BYTES = 128 << 20

# One array for each thing that is known of some files, or None where nothing is.
Columns = Sequence["pa.Array | None"]


class FactFilter(ABC):
    """A verdict on files by typed columns, which need not be decoded again for each predicate.

    ``keys``: what the columns are, for any predicate and any table; of the same files, columns of one key say the
    same, or less.
    """

    @property
    @abstractmethod
    def keys(self) -> tuple[Hashable, ...]: ...

    @abstractmethod
    def columns(self, add: pa.StructArray) -> Columns:
        """The columns of ``keys`` out of add actions."""

    @abstractmethod
    def verdict(self, columns: Columns, num_files: int) -> pa.BooleanArray:
        """For each file whether it is wanted; no nulls."""

    def __call__(self, add: pa.StructArray) -> pa.BooleanArray:
        return self.verdict(self.columns(add), len(add))


@dataclass
class _Group:
    """``lengths``: the number of files in each batch; ``columns``: by key, one array for each batch."""

    lengths: tuple[int, ...]
    columns: dict[Hashable, Columns]
    num_bytes: int


class KnownFacts:
    """Columns of the row groups of checkpoints, batch by batch. A group has a name within its checkpoint."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._bytes = 0
        self._groups: OrderedDict[tuple[Hashable, Hashable], _Group] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, checkpoint: Hashable, group: Hashable, keys: Sequence[Hashable]) -> list[tuple[int, Columns]] | None:
        """The number of files and the columns of ``keys`` of each batch; None where one of those is not known."""
        with self._lock:
            known = self._groups.get((checkpoint, group))
            if known is None or not all(key in known.columns for key in keys):
                return None
            self._groups.move_to_end((checkpoint, group))
            columns = [known.columns[key] for key in keys]
        return [(length, tuple(column[i] for column in columns)) for i, length in enumerate(known.lengths)]

    def put(
        self, checkpoint: Hashable, group: Hashable, keys: Sequence[Hashable], batches: Sequence[tuple[int, Columns]]
    ) -> None:
        """Remember the columns of all batches of a group, beside those that are known of it already."""
        new: dict[Hashable, Columns] = {key: tuple(columns[i] for _, columns in batches) for i, key in enumerate(keys)}
        with self._lock:
            before = self._groups.pop((checkpoint, group), None)
            if before is not None:
                self._bytes -= before.num_bytes
                new = {**before.columns, **new}
            num_bytes = sum(map(size_of, new.values()))
            if self._make_room(checkpoint, num_bytes):
                self._groups[checkpoint, group] = _Group(tuple(length for length, _ in batches), new, num_bytes)
                self._bytes += num_bytes

    def _make_room(self, checkpoint: Hashable, num_bytes: int) -> bool:
        while self._bytes + num_bytes > self.limit_bytes:
            oldest = next(iter(self._groups), None)
            if oldest is None or oldest[0] == checkpoint:
                return False
            self._bytes -= self._groups.pop(oldest).num_bytes
        return True


KNOWN_FACTS = KnownFacts()


def size_of(columns: Iterable[pa.Array | None]) -> int:
    """Bytes of memory."""
    return sum(column.get_total_buffer_size() for column in columns if column is not None)
