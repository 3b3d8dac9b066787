"""Replacements for functions that older versions of pyarrow lack.

No other module of the core asks what its pyarrow has. Each function looks for the feature, not for a version.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

# pyarrow 18 has neither
_CONCATENATES = hasattr(pa, "concat_batches")
_HAS_DICTS = "maps_as_pydicts" in inspect.signature(pa.RecordBatch.to_pylist).parameters
# options of each ``ParquetFile``: columns are decoded as what they store; older versions always do so
PARQUET_OPTIONS: dict[str, Any] = (
    {"arrow_extensions_enabled": False}
    if "arrow_extensions_enabled" in inspect.signature(pq.ParquetFile.__init__).parameters
    else {}
)


def concat_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of the rows of at least one batch; all have the same schema."""
    if _CONCATENATES:
        return pa.concat_batches(batches)
    schema = batches[0].schema
    if not schema.names:
        raise pa.ArrowInvalid("batches without columns cannot be concatenated")
    columns = zip(*(batch.columns for batch in batches), strict=True)
    return pa.RecordBatch.from_arrays([pa.concat_arrays(list(column)) for column in columns], schema=schema)


def rows_with_dicts(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as ``to_pylist``, with each map as a dict. Raises: KeyError if the map of a column has a key twice."""
    if _HAS_DICTS:
        rows: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="strict")
        return rows
    columns: list[list[Any]] = []
    for column in batch.columns:
        values = column.to_pylist()
        columns.append([_with_dicts(v, column.type) for v in values] if _has_maps(column.type) else values)
    names = batch.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _has_maps(data_type: pa.DataType) -> bool:
    return bool(pt.is_map(data_type)) or any(
        _has_maps(data_type.field(i).type) for i in range(data_type.num_fields if pt.is_nested(data_type) else 0)
    )


def _with_dicts(value: Any, data_type: pa.DataType) -> Any:
    if value is None:
        return None
    if pt.is_struct(data_type):
        return {field.name: _with_dicts(value[field.name], field.type) for field in data_type}
    if pt.is_map(data_type):
        found = {key: _with_dicts(item, data_type.item_type) for key, item in value}
        if len(found) < len(value):
            keys = [key for key, _ in value]
            raise KeyError(next(key for key in keys if keys.count(key) > 1))
        return found
    if pt.is_list(data_type) or pt.is_large_list(data_type) or pt.is_fixed_size_list(data_type):
        return [_with_dicts(item, data_type.value_type) for item in value]
    return value
