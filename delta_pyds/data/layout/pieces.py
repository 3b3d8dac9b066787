"""Rows that wait in pieces, in memory and on the local disk."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from delta_pyds.data.columns import grouped
from delta_pyds.data.write.spill import Spill

_MEMORY_BYTES = 128 << 20


class Pieces:
    """Rows that wait, by piece, until all rows have arrived: in memory, and beyond a limit on the local disk.

    Invariant: each row is returned once, with its piece, in the order of arrival. Memory is bounded, except for
    rows that the caller keeps.

    ``number``: the number of pieces, which are counted from 0. Raises: StorageError if the local disk is full or fails.
    """

    def __init__(self, number: int) -> None:
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in range(number)]
        self._spilled: list[list[tuple[Spill, int]]] = [[] for _ in range(number)]
        self._held_bytes = 0

    def add(self, rows: pa.RecordBatch, pieces: pa.Array) -> None:
        """Add rows. ``pieces``: the piece number of each row."""
        self._held_bytes += rows.nbytes
        for piece, some in grouped(rows, pieces):
            self._waiting[piece].append(some)
        if self._held_bytes >= _MEMORY_BYTES:
            self._spill()

    def take(self, piece: int) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""
        spilled, self._spilled[piece] = self._spilled[piece], []
        for spill, number in spilled:
            yield spill.batch(number)
        waiting, self._waiting[piece] = self._waiting[piece], []
        yield from waiting

    def _spill(self) -> None:
        """Move all waiting rows to the local disk: all, because one slice keeps the whole batch in memory."""
        numbers: list[int] = []

        def batches() -> Iterator[pa.RecordBatch]:
            for piece, waiting in enumerate(self._waiting):
                for batch in pa.Table.from_batches(waiting).combine_chunks().to_batches() if waiting else ():
                    numbers.append(piece)
                    yield batch

        spill = Spill(next(some[0] for some in self._waiting if some).schema, batches())
        for number, piece in enumerate(numbers):
            self._spilled[piece].append((spill, number))
        self._waiting = [[] for _ in self._waiting]
        self._held_bytes = 0
