"""Columns of one value, and batches of columns, for reading and writing."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


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
