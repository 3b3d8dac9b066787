"""Parts of nested Arrow arrays, as the rows have them: what is below a null is null."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def nested(array: pa.Array, names: Sequence[str]) -> pa.Array:
    """A field inside structs, null where any struct around it is."""
    for name in names:
        # unlike StructArray.field, the kernel minds the parent's nulls and its offset
        array = pc.struct_field(array, [array.type.get_field_index(name)])
    return array


def column(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array | None:
    """A column of a batch, or a field in it; None where the batch has no such column."""
    index = batch.schema.get_field_index(path[0])
    return None if index < 0 else nested(batch.column(index), path[1:])
