"""The declared types of columns with ``char(n)`` and ``varchar(n)``, updated when columns change.

Invariant: a column with a length limit anywhere in it declares its whole current type in its own metadata. No nested
field declares a type. The reference looks only at the column, and matches nested types by position.

No section of the protocol: a convention of Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.char_types import (
    CHAR_VARCHAR_TYPE,
    Limits,
    TextLimits,
    combine_limits,
    declared_type,
    text_limits,
)
from delta_pyds.protocol.schema import (
    DataType,
    StructField,
    StructType,
    change_fields,
    common_parts,
)

_Key = Callable[[StructField], str]


def with_declared_types(schema: StructType, before: StructType, *, mapped: bool) -> StructType:
    """The schema with its declared types updated; ``before`` is the schema that it evolved from.

    Fields match by their physical names if the table is ``mapped``, otherwise by their names. A limit stays with its
    field; a new field, or one with a changed declared type, brings its own. A declared type that could not be parsed
    before stays as it is, because its meaning is unknown.
    """
    key: _Key = (lambda f: f.physical_name) if mapped else (lambda f: f.name)
    was = {key(f): f for f in before}
    return StructType(tuple(_with_declared_type(f, was.get(key(f)), key) for f in schema))


def _with_declared_type(f: StructField, old: StructField | None, key: _Key) -> StructField:
    if old is None or f.metadata.get(CHAR_VARCHAR_TYPE) != old.metadata.get(CHAR_VARCHAR_TYPE):
        return f if CHAR_VARCHAR_TYPE in f.metadata else _with_limits(f, text_limits(f))
    if f.data_type == old.data_type:
        return f
    try:
        before = text_limits(old)
    except ProtocolError:
        return f
    return _with_limits(f, _carried_limits(f.data_type, old.data_type, before, key))


def _with_limits(f: StructField, limits: Limits) -> StructField:
    metadata = _without_declared_type(f)
    if limits is None:
        return replace(f, metadata=metadata)
    [inside] = change_fields(StructType((f,)), lambda one: replace(one, metadata=_without_declared_type(one))).fields
    text = declared_type(f.data_type, limits)
    return replace(f, data_type=inside.data_type, metadata={**metadata, CHAR_VARCHAR_TYPE: text})


def _without_declared_type(f: StructField) -> dict[str, Any]:
    return {k: v for k, v in f.metadata.items() if k != CHAR_VARCHAR_TYPE}


def _carried_limits(data_type: DataType, old: DataType, limits: Limits, key: _Key) -> Limits:
    """The ``limits`` of the type ``old``, for the fields that are still in ``data_type``."""

    def part(number: int) -> Limits:
        return limits.parts[number] if isinstance(limits, TextLimits) else None

    if isinstance(data_type, StructType) and isinstance(old, StructType):
        was = {key(f): (f, part(i)) for i, f in enumerate(old)}
        return combine_limits(tuple(_field_limits(f, was.get(key(f)), key) for f in data_type))
    if pairs := common_parts(data_type, old):
        return combine_limits(tuple(_carried_limits(now, was, part(i), key) for i, (_, now, was) in enumerate(pairs)))
    return limits if data_type == old else None


def _field_limits(f: StructField, was: tuple[StructField, Limits] | None, key: _Key) -> Limits:
    if was is None or f.metadata.get(CHAR_VARCHAR_TYPE) != was[0].metadata.get(CHAR_VARCHAR_TYPE):
        return text_limits(f)
    return _carried_limits(f.data_type, was[0].data_type, was[1], key)
