"""Dropping rows from arrays, and handing out in other portions what is left."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

# when fewer rows than this go, copying the runs between them is faster than picking the rows that stay
_FEW_DROPPED = 0.01


def filter_arrays(arrays: Sequence[pa.Array], mask: pa.BooleanArray, count: int) -> list[pa.Array]:
    """The rows for which the mask, which has no nulls, is true. ``count``: how many these are."""
    if count == len(mask) or not arrays:
        return list(arrays)
    if len(mask) - count < _FEW_DROPPED * len(mask):
        return [pc.array_filter(a, mask) for a in arrays]
    indices = pc.indices_nonzero(mask)
    return [pc.array_take(a, indices, boundscheck=False) for a in arrays]


class ArrayQueue:
    """Arrays of equal length side by side, in chunks; rows leave in the order in which they came."""

    def __init__(self) -> None:
        self._chunks: deque[tuple[Sequence[pa.Array], int]] = deque()

    def push(self, arrays: Sequence[pa.Array], length: int) -> None:
        self._chunks.append((arrays, length))

    def pop(self, length: int) -> Sequence[pa.Array]:
        """The next ``length`` rows; nothing is copied when they are one chunk."""
        parts: list[Sequence[pa.Array]] = []
        while length:
            arrays, available = self._chunks.popleft()
            if available > length:
                self._chunks.appendleft(([a.slice(length) for a in arrays], available - length))
                arrays, available = [a.slice(0, length) for a in arrays], length
            parts.append(arrays)
            length -= available
        if len(parts) == 1:
            return parts[0]
        return [pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)]
