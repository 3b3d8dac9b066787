"""Type widening: the types that hold all values of another type, and the record of type changes.

Protocol: "Type Widening".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from delta_pyds.protocol.schema import (
    TYPE_CHANGES,
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
    common_parts,
    type_to_json,
)

_WIDTH = {"byte": 1, "short": 2, "integer": 4, "long": 8}
# decimal digits that hold every value of the type
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_EXACT_IN_FLOATING_POINT = frozenset(
    {
        ("byte", "float"), ("short", "float"), ("float", "double"),
        ("byte", "double"), ("short", "double"), ("integer", "double"),
    }
)  # fmt: skip
_STORED_AS_INT32 = frozenset({"byte", "short", "integer"})


def is_lossless(source: DataType, target: DataType) -> bool:
    """Whether every value of ``source`` is a value of ``target``.

    True for equal types and for void, which holds only null. False for
    arrays, maps and structs that are not equal.
    """
    if source == target or source == PrimitiveType("void"):
        return True
    if isinstance(source, DecimalType):
        return isinstance(target, DecimalType) and _holds_decimal(source, target)
    if not isinstance(source, PrimitiveType):
        return False
    if isinstance(target, DecimalType):
        digits = _DIGITS.get(source.name)
        return digits is not None and target.precision - target.scale >= digits
    if not isinstance(target, PrimitiveType):
        return False
    if source.name in _WIDTH and target.name in _WIDTH:
        return _WIDTH[source.name] <= _WIDTH[target.name]
    return (source.name, target.name) in _EXACT_IN_FLOATING_POINT


def is_checked_narrowing(source: DataType, target: DataType) -> bool:
    """Whether values of ``source`` may be written as ``target`` after a check that each one fits.

    True for the integers that Parquet stores as 32 bits: the reference mixes them.
    """
    return (
        isinstance(source, PrimitiveType)
        and isinstance(target, PrimitiveType)
        and source.name in _STORED_AS_INT32
        and target.name in _STORED_AS_INT32
    )


def can_widen(source: DataType, target: DataType, *, for_iceberg: bool = False) -> bool:
    """Whether a column of type ``source`` may become one of the other type ``target``.

    ``for_iceberg``: on a table that supports Iceberg compatibility.
    Protocol: "Type Widening", "Writer Requirements for Type Widening".
    """
    if isinstance(source, DecimalType) and isinstance(target, DecimalType):
        same_scale = source.scale == target.scale
        return source != target and _holds_decimal(source, target) and (same_scale or not for_iceberg)
    if not isinstance(source, PrimitiveType):
        return False
    if isinstance(target, DecimalType):
        # Parquet readers read a 32-bit integer as decimal(10, 0) or wider, a 64-bit one as decimal(20, 0) or wider
        least = {**dict.fromkeys(_STORED_AS_INT32, 10), "long": 20}.get(source.name)
        return not for_iceberg and least is not None and target.precision - target.scale >= least
    if not isinstance(target, PrimitiveType) or source == target:
        return False
    if source.name in _WIDTH and target.name in _WIDTH:
        return _WIDTH[source.name] < _WIDTH[target.name]
    if source.name == "float":
        return target.name == "double"
    if source.name in _STORED_AS_INT32:
        return not for_iceberg and target.name == "double"
    return not for_iceberg and source.name == "date" and target.name == "timestamp_ntz"


def was_widened(source: DataType, target: DataType) -> bool:
    """Whether a column that now has the other type ``target`` may have files of the type ``source``.

    Early writers of the feature widened integers to decimals with fewer digits than the protocol requires.
    """
    from_integer = isinstance(source, PrimitiveType) and source.name in _DIGITS and isinstance(target, DecimalType)
    return can_widen(source, target) or (from_integer and is_lossless(source, target))


def _holds_decimal(source: DecimalType, target: DecimalType) -> bool:
    return target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale


def record_type_changes(field: StructField, old: DataType) -> StructField:
    """The field with its type changes since ``old`` appended to ``delta.typeChanges``.

    Fields of structs have their own records, so structs are not searched.
    Protocol: "Type Change Metadata".
    """
    changes = _changes(old, field.data_type, ())
    if not changes:
        return field
    return replace(field, metadata={**field.metadata, TYPE_CHANGES: recorded_changes(field) + changes})


def recorded_changes(field: StructField) -> list[dict[str, Any]]:
    """The entries of ``delta.typeChanges``, oldest first; values that are not a list of objects are ignored.

    Protocol: "Type Change Metadata".
    """
    found = field.metadata.get(TYPE_CHANGES)
    return [change for change in found if isinstance(change, dict)] if isinstance(found, list) else []


def _changes(old: DataType, new: DataType, path: tuple[str, ...]) -> list[dict[str, Any]]:
    if parts := common_parts(old, new):
        return [change for name, one, other in parts for change in _changes(one, other, (*path, name))]
    if isinstance(old, StructType) or not can_widen(old, new):
        return []
    change = {"fromType": type_to_json(old), "toType": type_to_json(new)}
    return [{**change, "fieldPath": ".".join(path)} if path else change]
