"""The declared types of columns that hold ``char(n)`` and ``varchar(n)``, kept true while columns change.

Invariant: a column with a limit anywhere in it says in its own metadata the whole type that it is now, and no field
inside says it again: the reference looks nowhere else, and checks by position what the text says.

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
    declared_type,
    text_limits,
    together,
)
from delta_pyds.protocol.schema import ArrayType, DataType, MapType, StructField, StructType, change_fields

_Key = Callable[[StructField], str]


def with_declared_types(schema: StructType, before: StructType, *, mapped: bool) -> StructType:
    """The schema, which ``before`` became, with the declared types of what its columns are now.

    Fields are the same ones by their physical names where the table is ``mapped``, and by their names otherwise. A
    limit goes with its field; a new field, and one whose own declared type has changed, brings its own. A text that
    could not be understood before stays as it is: nobody knows what it meant.
    """
    key: _Key = (lambda f: f.physical_name) if mapped else (lambda f: f.name)
    was = {key(f): f for f in before}
    return StructType(tuple(_declared(f, was.get(key(f)), key) for f in schema))


def _declared(f: StructField, old: StructField | None, key: _Key) -> StructField:
    if old is None or f.metadata.get(CHAR_VARCHAR_TYPE) != old.metadata.get(CHAR_VARCHAR_TYPE):
        return f if CHAR_VARCHAR_TYPE in f.metadata else _saying(f, text_limits(f))
    if f.data_type == old.data_type:
        return f
    try:
        before = text_limits(old)
    except ProtocolError:
        return f
    return _saying(f, _carried(f.data_type, old.data_type, before, key))


def _saying(f: StructField, limits: Limits) -> StructField:
    metadata = _without_text(f)
    if limits is None:
        return replace(f, metadata=metadata)
    [inside] = change_fields(StructType((f,)), lambda one: replace(one, metadata=_without_text(one))).fields
    text = declared_type(f.data_type, limits)
    return replace(f, data_type=inside.data_type, metadata={**metadata, CHAR_VARCHAR_TYPE: text})


def _without_text(f: StructField) -> dict[str, Any]:
    return {k: v for k, v in f.metadata.items() if k != CHAR_VARCHAR_TYPE}


def _carried(data_type: DataType, old: DataType, limits: Limits, key: _Key) -> Limits:
    """``limits``, which are those of ``old``, where their fields are in the type now."""

    def part(number: int) -> Limits:
        return limits.parts[number] if isinstance(limits, TextLimits) else None

    if isinstance(data_type, StructType) and isinstance(old, StructType):
        was = {key(f): (f, part(i)) for i, f in enumerate(old)}
        return together(tuple(_of_field(f, was.get(key(f)), key) for f in data_type))
    if isinstance(data_type, ArrayType) and isinstance(old, ArrayType):
        return together((_carried(data_type.element_type, old.element_type, part(0), key),))
    if isinstance(data_type, MapType) and isinstance(old, MapType):
        return together(
            (
                _carried(data_type.key_type, old.key_type, part(0), key),
                _carried(data_type.value_type, old.value_type, part(1), key),
            )
        )
    return limits if data_type == old else None


def _of_field(f: StructField, was: tuple[StructField, Limits] | None, key: _Key) -> Limits:
    if was is None or f.metadata.get(CHAR_VARCHAR_TYPE) != was[0].metadata.get(CHAR_VARCHAR_TYPE):
        return text_limits(f)
    return _carried(f.data_type, was[0].data_type, was[1], key)
