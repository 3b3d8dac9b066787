"""Conforming one array, as reading a file conforms those of its columns."""

from __future__ import annotations

import pyarrow as pa

from delta_pyds.columnar.cast import ColumnLocation, plan

WHERE = ColumnLocation("part-1.parquet", "c")


def conform(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The array as ``target``: struct fields by exact name, missing ones null, extra ones ignored.

    Raises: SchemaMismatchError for a type that does not widen the array's.
    """
    convert = plan(array.type, target, WHERE)
    return array if convert is None else convert(array)
