"""Rows of two sides, held until all of both are there; then buckets of them, each of which fits into memory.

Invariant: rows with equal values are in the same bucket. About ``held_bytes`` are in memory; the others are on the
local disk, until they are read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.row_buckets import bucket_numbers
from delta_pyds.data.spill import Spill

HELD_BYTES = 256 * 1024 * 1024
# Each bucket must fit into memory. Rows of one value are in one bucket, however many they are.
_BUCKETS = 64
# fewer bytes of both sides together have offsets of 32 bits
_LONG_BYTES = 1 << 30


class HeldRows:
    """The rows of one side.

    Args:
        keys: the number of leading columns that say which rows are compared.
    """

    def __init__(self, schema: pa.Schema, keys: int) -> None:
        self._schema = schema
        self._long_schema = pa.schema([_long(field) for field in schema])
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
            self._spills.append(Spill(self._long_schema, self._bucketed()))
        self._batches, self.held_bytes = [], 0

    def whole(self, *, long: bool = True) -> pa.RecordBatch:
        """All rows in memory. ``long``: with offsets of 64 bits, which more than 2 GiB of text need."""
        if not long:
            return _joined(self._batches, self._schema)
        return _joined([batch.cast(self._long_schema) for batch in self._batches], self._long_schema)

    def keep(self, rows: pa.RecordBatch) -> None:
        """Replace the rows in memory."""
        self._batches, self.held_bytes = [], 0
        if rows.num_rows:
            self.add(rows)

    def bucket(self, number: int) -> pa.RecordBatch:
        """The rows of a bucket, in the order in which they came, if all were spilled."""
        return _joined([spill.batch(number) for spill in self._spills], self._long_schema)

    def _bucketed(self) -> Iterator[pa.RecordBatch]:
        rows = self.whole()
        keys = rows.columns[: self._keys] or [pa.nulls(rows.num_rows)]
        numbers = bucket_numbers(keys, _BUCKETS)
        for number in range(_BUCKETS):
            yield rows.filter(pc.equal(numbers, number))


Sides = tuple[pa.RecordBatch, pa.RecordBatch]


class HeldSides:
    """The rows of two sides, which have one schema.

    Args:
        keys: as of ``HeldRows``.
        remaining: rows of both sides without some that cancel each other; None if rows must stay until all are there.
    """

    def __init__(self, schema: pa.Schema, keys: int, remaining: Callable[[Sides], Sides] | None = None) -> None:
        self._sides = (HeldRows(schema, keys), HeldRows(schema, keys))
        self._remaining = remaining

    @property
    def spilled(self) -> bool:
        return any(side.spilled for side in self._sides)

    def add(self, side: int, batch: pa.RecordBatch) -> None:
        """Rows of the side 0 or 1. Raises: StorageError if the local disk is full."""
        self._sides[side].add(batch)
        if 4 * self._held_bytes > HELD_BYTES:
            self._cancel()
        if self._held_bytes > HELD_BYTES:
            for one in self._sides:
                one.spill()

    @property
    def _held_bytes(self) -> int:
        return sum(side.held_bytes for side in self._sides)

    def _cancel(self) -> None:
        left, right = self._sides
        before, fewer = self._held_bytes, min(left.held_bytes, right.held_bytes)
        # little can cancel if one side has few rows
        if self._remaining is None or before > _LONG_BYTES or 4 * fewer < before:
            return
        rest = self._remaining((left.whole(long=False), right.whole(long=False)))
        for side, rows in zip(self._sides, rest, strict=True):
            side.keep(rows)
        if before - self._held_bytes < fewer:
            # rows and their equals do not come together: each attempt costs as much as the last comparison
            self._remaining = None

    def compared_together(self) -> Iterator[Sides]:
        """Yield all rows of both sides, in pairs of batches that hold all rows of equal keys. Raises: StorageError."""
        left, right = self._sides
        if not self.spilled:
            long = self._held_bytes > _LONG_BYTES
            yield left.whole(long=long), right.whole(long=long)
            return
        left.spill()
        right.spill()
        for number in range(_BUCKETS):
            yield left.bucket(number), right.bucket(number)


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    arrays = [
        pa.concat_arrays([batch.column(i) for batch in batches]) if batches else pa.nulls(0, field.type)
        for i, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _with_long_offsets(data_type: pa.DataType) -> pa.DataType:
    """The type whose arrays may have more than 2 GiB of text, and more than 2 billion items."""
    if pt.is_string(data_type):
        return pa.large_string()
    if pt.is_binary(data_type):
        return pa.large_binary()
    if pt.is_list(data_type):
        return pa.large_list(_long(data_type.value_field))
    if pt.is_map(data_type):
        entries = [_long(data_type.key_field), _long(data_type.item_field)]
        return pa.large_list(pa.field("entries", pa.struct(entries), nullable=False))
    if pt.is_struct(data_type):
        return pa.struct([_long(data_type.field(i)) for i in range(data_type.num_fields)])
    return data_type


def _long(field: pa.Field) -> pa.Field:
    return field.with_type(_with_long_offsets(field.type))
