"""Columns of one value, batches of columns, and groups of rows, for reading and writing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class Constant:
    """A column of one value. Its array is made once and sliced for every batch."""

    def __init__(self, value: pa.Scalar) -> None:
        self.value = value
        self._array: pa.Array | None = None

    def array(self, length: int) -> pa.Array:
        # the attribute is read once, because threads may share a constant
        array = self._array
        if array is None or len(array) < length:
            value, null = self.value, not self.value.is_valid
            array = self._array = pa.nulls(length, value.type) if null else pa.repeat(value, length)
        return array if len(array) == length else array.slice(0, length)


def null_column(data_type: pa.DataType) -> Constant:
    return Constant(pa.scalar(None, data_type))


def record_batch(arrays: Sequence[pa.Array], schema: pa.Schema, num_rows: int) -> pa.RecordBatch:
    """A batch with that many rows, even if there are no arrays."""
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    empty = pa.Array.from_buffers(pa.struct([]), num_rows, [None])
    return pa.RecordBatch.from_struct_array(empty)


def grouped(rows: Any, codes: pa.Array, num_codes: int = 0) -> Iterator[tuple[int, Any]]:
    """The rows (an array or a batch) of each code, in their order; each code is yielded once.

    ``num_codes``: the number of distinct codes, if known. Then rows that are grouped already are not copied.
    """
    runs = pc.run_end_encode(codes)
    if len(runs.values) > num_codes:
        order = pc.sort_indices(codes)
        rows = rows.take(order)
        runs = pc.run_end_encode(codes.take(order))
    start = 0
    for end, code in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
        yield code, rows.slice(start, end - start)
        start = end
