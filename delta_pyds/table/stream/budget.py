"""The limits of one batch of a stream, ``maxFilesPerTrigger`` and ``maxBytesPerTrigger``."""

from __future__ import annotations

from bisect import bisect_left

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.exact_sum import exact_sum


class Budget:
    """The limits that remain of a batch.

    Invariant: ``take`` admits at most ``max_files`` files, and a file only while fewer than ``max_bytes`` bytes were
    admitted. So the first file of a batch may have any size. ``take_whole`` admits a commit that cannot be split if it
    is the first of the batch or fits the limits.
    """

    def __init__(self, max_files: int | None, max_bytes: int | None) -> None:
        self._files = max_files
        self._bytes = max_bytes
        self._taken = False

    @property
    def unlimited(self) -> bool:
        return self._files is None and self._bytes is None

    @property
    def full(self) -> bool:
        return (self._files is not None and self._files <= 0) or (self._bytes is not None and self._bytes <= 0)

    def take(self, sizes: pa.Int64Array) -> int:
        """The number of the next files, of these sizes in bytes, that the batch admits."""
        if self.full:
            return 0
        allowed = sizes if self._files is None else sizes[: self._files]
        if self._bytes is not None:
            totals = pc.cumulative_sum(allowed)
            count = min(bisect_left(totals, self._bytes, key=lambda total: total.as_py()) + 1, len(allowed))
            allowed = allowed[:count]
        self._spend(len(allowed), allowed)
        return len(allowed)

    def take_whole(self, sizes: pa.Int64Array) -> bool:
        """Whether the batch admits the files of a commit that cannot be split."""
        if not len(sizes):
            return True
        if self._taken:
            if self._files is not None and len(sizes) > self._files:
                return False
            if self._bytes is not None and exact_sum(sizes) > self._bytes:
                return False
        self._spend(len(sizes), sizes)
        return True

    def _spend(self, count: int, sizes: pa.Int64Array) -> None:
        self._taken = self._taken or count > 0
        if self._files is not None:
            self._files -= count
        if self._bytes is not None:
            self._bytes -= exact_sum(sizes)
