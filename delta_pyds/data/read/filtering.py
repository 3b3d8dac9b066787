"""Filtering of arrays, and rebatching of the remaining rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

# A filter copies the remaining rows by their numbers, which suits values of fixed width. Above this share of remaining
# rows, text is faster to copy in the runs between dropped rows.
_TEXT_IN_RUNS = 0.5
# above this share, so is every type
_ALL_IN_RUNS = 0.99


def filter_arrays(arrays: Sequence[pa.Array], mask: pa.BooleanArray, count: int) -> list[pa.Array]:
    """The rows for which the mask, which has no nulls, is true. ``count``: the number of these rows."""
    if count == len(mask) or not arrays:
        return list(arrays)
    share = count / len(mask)
    in_runs = [share > _ALL_IN_RUNS or (share > _TEXT_IN_RUNS and _is_text(a.type)) for a in arrays]
    picked = [a for a, runs in zip(arrays, in_runs, strict=True) if not runs]
    if picked:
        # all at once, so that the mask is turned into row numbers once
        batch = pa.RecordBatch.from_arrays(picked, names=[""] * len(picked))
        picked = batch.filter(mask).columns
    rest = iter(picked)
    return [pc.array_filter(a, mask) if runs else next(rest) for a, runs in zip(arrays, in_runs, strict=True)]


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pt.is_string(data_type) or pt.is_binary(data_type))


class ArrayQueue:
    """Arrays of equal length side by side, in chunks; a first-in, first-out queue of rows."""

    def __init__(self) -> None:
        self._chunks: deque[tuple[Sequence[pa.Array], int]] = deque()

    def push(self, arrays: Sequence[pa.Array], length: int) -> None:
        self._chunks.append((arrays, length))

    def pop(self, length: int) -> Sequence[pa.Array]:
        """The next ``length`` rows; not copied if they are one chunk."""
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
