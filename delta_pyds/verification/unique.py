"""Integers that must be unique across files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# 8 bytes each; beyond this number, only the extremes are kept
_MOST = 20_000_000


class UniqueValues:
    """Counts repeated values, of at most 20 million values."""

    def __init__(self) -> None:
        self._chunks: list[pa.Array] = []
        self._duplicates: int | None = None
        self.count = 0
        self.lowest = 0
        self.highest = 0

    def put(self, values: pa.Array) -> None:
        values = values.drop_null().cast(pa.int64())
        if not len(values):
            return
        extremes = pc.min_max(values).as_py()
        self.lowest = min(extremes["min"], self.lowest) if self.count else extremes["min"]
        self.highest = max(extremes["max"], self.highest) if self.count else extremes["max"]
        self.count += len(values)
        if self.count > _MOST:
            self._chunks = []
        else:
            self._chunks.append(values)

    def duplicates(self) -> int:
        """The number of values minus the number of distinct ones, once all values are in."""
        if self._duplicates is None:
            values = pa.chunked_array(self._chunks, pa.int64())
            self._duplicates = len(values) - len(pc.unique(values))
        return self._duplicates
