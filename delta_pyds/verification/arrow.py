"""Columns of Arrow batches and fields in them. A field of a null struct is null."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from delta_pyds.columnar.rows import struct_field


def column(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array | None:
    """A column of a batch, or a nested field; None if the batch has no such column."""
    index = batch.schema.get_field_index(path[0])
    return None if index < 0 else struct_field(batch.column(index), path[1:])
