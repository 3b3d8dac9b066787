"""Arrays, maps and structs over Arrow arrays: sizes, elements, fields, and construction."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.comparison import compare
from delta_pyds.columnar.kernel import Kernel, any_true, as_arrays, null_where
from delta_pyds.columnar.rows import Rows, struct_field
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.expr.nodes import Call


def _sizes(values: Any) -> Any:
    """The number of entries as int64; null for null."""
    if not pa.types.is_map(values.type):
        return pc.list_value_length(values).cast(pa.int64())
    return pc.list_value_length(_as_list(values)).cast(pa.int64())


def _as_list(values: Any) -> Any:
    """A map as a list of its entries."""
    return values.cast(pa.list_(pa.struct([values.type.key_field, values.type.item_field])))


def _size(call: Call, args: list[Any], rows: Rows) -> Any:
    sizes = _sizes(args[0]).cast(pa.int32())
    return pc.fill_null(sizes, -1) if call.options[0] == -1 else sizes


def _item(call: Call, args: list[Any], rows: Rows) -> Any:
    """``array[i]`` counts from 0; ``element_at`` from 1, or from the end for negative indexes."""
    values, index = as_arrays(args)
    sizes = _sizes(values)
    if call.function == "element_at":
        rows.fail(
            pc.and_(pc.equal(index, 0), pc.is_valid(sizes)), "INVALID_INDEX_OF_ZERO", "elements are counted from 1"
        )
        index = pc.if_else(pc.greater(index, 0), pc.subtract(index, 1), pc.add(index, sizes))
    outside = pc.or_(pc.less(index, 0), pc.greater_equal(index, sizes))
    if any_true(outside):
        if call.ansi:
            code = "INVALID_ARRAY_INDEX" + ("_IN_ELEMENT_AT" if call.function == "element_at" else "")
            rows.fail(outside, code, "an array has no element at the index", index)
        index = null_where(outside, index)
    usable = pc.and_(pc.is_valid(index), pc.is_valid(values))
    # the offsets of null lists are undefined
    starts = values.offsets.slice(0, len(values)).cast(pa.int64())
    return values.values.take(pc.if_else(usable, pc.add(starts, index), pa.scalar(None, pa.int64())))


def _map_value(call: Call, args: list[Any], rows: Rows) -> Any:
    """The value of the first entry with the key; null if no entry has it."""
    values, wanted = as_arrays(args)
    entries = _as_list(values)
    parents = pc.list_parent_indices(entries)
    flat = pc.list_flatten(entries)
    keys, items = pc.struct_field(flat, [0]), pc.struct_field(flat, [1])
    hit = pc.fill_null(compare("=", keys, wanted.take(parents)), False)
    positions = pc.indices_nonzero(hit).cast(pa.int64())
    owners = parents.take(positions).cast(pa.int64())
    found = pc.index_in(pa.array(range(len(values)), pa.int64()), value_set=owners)
    return items.take(positions.take(found))


def _contains(call: Call, args: list[Any], rows: Rows) -> Any:
    """True if an element is equal; otherwise null if an element is null."""
    values, wanted = as_arrays(args)
    parents = pc.list_parent_indices(values).cast(pa.int64())
    flat = pc.list_flatten(values)
    equal = compare("=", flat, wanted.take(parents))
    row_numbers = pa.array(range(len(values)), pa.int64())
    hit = pc.is_in(row_numbers, value_set=parents.filter(pc.fill_null(equal, False)))
    unknown = pc.is_in(row_numbers, value_set=parents.filter(pc.is_null(flat)))
    result = null_where(pc.and_(unknown, pc.invert(hit)), hit)
    return null_where(pc.or_(pc.is_null(values), pc.is_null(wanted)), result)


def _field(call: Call, args: list[Any], rows: Rows) -> Any:
    return struct_field(args[0], (str(call.options[0]),))


def _array(call: Call, args: list[Any], rows: Rows) -> Any:
    to = arrow_type(call.data_type)
    if not args:
        return pa.array([[]], to)
    columns = as_arrays(args)
    count, width = len(columns[0]), len(columns)
    mixed = pa.concat_arrays(columns)
    order = pa.array([row + column * count for row in range(count) for column in range(width)], pa.int64())
    offsets = pa.array(range(0, (count + 1) * width, width), pa.int32())
    return pa.ListArray.from_arrays(offsets, mixed.take(order)).cast(to)


def _map(call: Call, args: list[Any], rows: Rows) -> Any:
    to = arrow_type(call.data_type)
    if not args:
        return pa.array([[]], to)
    columns = as_arrays(args)
    count, width = len(columns[0]), len(columns) // 2
    order = pa.array([row + column * count for row in range(count) for column in range(width)], pa.int64())
    offsets = pa.array(range(0, (count + 1) * width, width), pa.int32())
    keys, items = (pa.concat_arrays(columns[part::2]).take(order) for part in (0, 1))
    return pa.MapArray.from_arrays(offsets, keys, items).cast(to)


def _struct(call: Call, args: list[Any], rows: Rows) -> Any:
    to = arrow_type(call.data_type)
    return pa.StructArray.from_arrays(as_arrays(args), fields=list(to))


CONTAINERS: dict[str, Kernel] = {
    "size": _size, "array_item": _item, "element_at": _item, "map_value": _map_value, "array_contains": _contains,
    ".": _field, "array": _array, "map": _map, "named_struct": _struct,
}  # fmt: skip
