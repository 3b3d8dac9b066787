"""Rows of two sides, held until all of both are there; then buckets of them, each of which fits into memory.

Invariant: rows with equal values are in the same bucket. About ``held_bytes`` are in memory; the others are on the
local disk, until they are read back.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.row_buckets import bucket_numbers
from delta_pyds.data.spill import Spill

HELD_BYTES = 256 * 1024 * 1024
# So many times the held bytes are compared in memory. Rows of one value are in one bucket, however many they are.
_BUCKETS = 64


class HeldRows:
    """The rows of one side.

    Args:
        keys: the number of leading columns that say which rows are compared.
    """

    def __init__(self, schema: pa.Schema, keys: int) -> None:
        self._schema = schema
        self._keys = keys
        self._batches: list[pa.RecordBatch] = []
        self._spills: list[Spill] = []
        self.held_bytes = 0

    @property
    def spilled(self) -> bool:
        return bool(self._spills)

    def add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self.held_bytes += batch.nbytes

    def spill(self) -> None:
        """Write the rows in memory to the local disk. Raises: StorageError."""
        if self._batches:
            self._spills.append(Spill(self._schema, self._bucketed()))
        self._batches, self.held_bytes = [], 0

    def whole(self) -> pa.RecordBatch:
        """All rows, if none was spilled."""
        return _joined(self._batches, self._schema)

    def bucket(self, number: int) -> pa.RecordBatch:
        """The rows of a bucket, in the order in which they came, if all were spilled."""
        return _joined([spill.batch(number) for spill in self._spills], self._schema)

    def _bucketed(self) -> Iterator[pa.RecordBatch]:
        rows = self.whole()
        numbers = bucket_numbers(rows.columns[: self._keys], _BUCKETS)
        for number in range(_BUCKETS):
            yield rows.filter(pc.equal(numbers, number))


def compared_together(left: HeldRows, right: HeldRows) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield all rows of both sides, in pairs of batches that hold all rows of equal values. Raises: StorageError."""
    if not left.spilled and not right.spilled:
        yield left.whole(), right.whole()
        return
    left.spill()
    right.spill()
    for number in range(_BUCKETS):
        yield left.bucket(number), right.bucket(number)


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches, schema).combine_chunks()
    found = table.to_batches()
    return found[0] if found else pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)
