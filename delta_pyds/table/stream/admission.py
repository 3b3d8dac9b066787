"""How much one micro-batch may take: ``maxFilesPerTrigger`` and ``maxBytesPerTrigger``."""

from __future__ import annotations

from bisect import bisect_left

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.exact_sum import exact_sum


class Budget:
    """The remaining limits of a batch.

    Invariant: never more than ``max_files`` files are taken one by one, and a
    file only while fewer than ``max_bytes`` bytes were: a file of any size can
    be the first. A commit that cannot be split is taken whole if it is the first, or if it fits.
    """

    def __init__(self, max_files: int | None, max_bytes: int | None) -> None:
        self._files = max_files
        self._bytes = max_bytes
        self._taken = False

    @property
    def full(self) -> bool:
        return (self._files is not None and self._files <= 0) or (self._bytes is not None and self._bytes <= 0)

    def take(self, sizes: pa.Int64Array) -> int:
        """How many of the next files, of these sizes in bytes, are in the batch."""
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
        """Whether the files of a commit that is never split are in the batch."""
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
