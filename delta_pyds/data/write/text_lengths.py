"""Limits of ``char(n)`` and ``varchar(n)`` columns, at any depth.

Invariant: a string is written unchanged if it has at most n characters (code points). A longer one fails, even if only
spaces are beyond the limit. As in the reference, ``char`` values are not padded on write; Spark pads them on read.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.cast import Child, ColumnLocation, Convert, MaybeConvert, list_of, map_of, struct_of
from delta_pyds.data.write.store_assignment import without_hidden_values
from delta_pyds.errors import ConstraintViolationError
from delta_pyds.protocol.char_types import Limits, TextLimit, TextLimits, text_limits
from delta_pyds.protocol.schema import StructField


def plan_text_lengths(field: StructField, data_type: pa.DataType, table: str = "") -> MaybeConvert:
    """A function that checks arrays of a column for its length limits; None for a column without limits.

    Args:
        data_type: the type of the arrays, which stay unchanged.
        table: the table's name in messages.
    Raises:
        ProtocolError: the declared type cannot be parsed. The function raises ConstraintViolationError
            (DELTA_EXCEED_CHAR_VARCHAR_LIMIT) with the first string that is too long.
    """
    return _plan(text_limits(field), data_type, ColumnLocation(table, field.name))


def _plan(limits: Limits, data_type: pa.DataType, where: ColumnLocation) -> MaybeConvert:
    if limits is None or pt.is_null(data_type):
        return None
    if isinstance(limits, TextLimit):
        limit = limits
        return lambda array: _checked(array, limit, where)
    if pt.is_struct(data_type):
        names, kinds = [f.name for f in data_type], [f.type for f in data_type]
        return _unless_empty(without_hidden_values(struct_of(data_type, _children(limits, names, kinds, where))))
    if pt.is_map(data_type):
        kinds = [data_type.key_type, data_type.item_type]
        key, value = _children(limits, ["key", "value"], kinds, where)
        return _unless_empty(map_of(data_type, key, value))
    [element] = _children(limits, ["element"], [data_type.value_type], where)
    return _unless_empty(list_of(data_type, element))


def _children(limits: TextLimits, names: list[str], kinds: list[pa.DataType], where: ColumnLocation) -> list[Child]:
    parts = zip(limits.parts, names, kinds, strict=True)
    return [Child(i, _plan(p, kind, where.child(n)), where.child(n)) for i, (p, n, kind) in enumerate(parts)]


def _unless_empty(convert: Convert) -> Convert:
    return lambda array: convert(array) if len(array) else array


def _checked(texts: pa.Array, limit: TextLimit, where: ColumnLocation) -> pa.Array:
    try:
        _check(texts, limit, where)
    except (pa.ArrowInvalid, UnicodeDecodeError) as e:
        raise ConstraintViolationError(
            f"a string for the column '{where.column}' of table {where.file} is not UTF-8, so its characters cannot be "
            "counted: correct it, or store it as BINARY.",
            code="INVALID_UTF8_STRING",
            table=where.file,
            column=where.column,
        ) from e
    return texts


def _check(texts: pa.Array, limit: TextLimit, where: ColumnLocation) -> None:
    # a character has at least one byte, so for most columns the byte lengths suffice
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest <= limit.length:
        return
    too_long = pc.index(pc.greater(pc.utf8_length(texts), limit.length), True).as_py()
    if too_long < 0:
        return
    text = texts[too_long].as_py()
    kind = f"{'CHAR' if limit.padded else 'VARCHAR'}({limit.length})"
    raise ConstraintViolationError(
        f"the string {text!r} has {len(text)} characters, more than the column '{where.column}' {kind} of table "
        f"{where.file} can hold.",
        code="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        table=where.file,
        column=where.column,
        value=text,
        limit=limit.length,
    )
