"""Identity columns: their numbering and high-water marks. Protocol: "Identity Columns"."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from delta_pyds.errors import ExpressionError, ProtocolError
from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.schema import (
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_START,
    IDENTITY_STEP,
    LONG,
    StructField,
    StructType,
    display,
)
from delta_pyds.tasks.write_state import IdentityColumn

_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1


def identity_column(field: StructField, of_table: str) -> IdentityColumn | None:
    """The numbering of a column; None if it is not an identity column.

    Args:
        of_table: words that name its table in errors.
    Raises:
        ProtocolError: the metadata is invalid.
    """
    metadata = field.metadata
    keys = (IDENTITY_START, IDENTITY_STEP, IDENTITY_ALLOW_EXPLICIT_INSERT)
    if not any(key in metadata for key in keys):
        return None
    missing = [key for key in keys if key not in metadata]
    if missing:
        raise _invalid(field, of_table, f"has no {missing[0]}")
    mark = metadata.get(IDENTITY_HIGH_WATER_MARK)
    start, step = _long(field, of_table, IDENTITY_START), _long(field, of_table, IDENTITY_STEP)
    if step == 0:
        raise _invalid(field, of_table, "has step 0")
    if field.data_type != LONG:
        raise _invalid(field, of_table, f"is of type {display(field.data_type).upper()}, not BIGINT")
    explicit = str(metadata[IDENTITY_ALLOW_EXPLICIT_INSERT]).lower()
    if explicit not in ("true", "false"):
        raise _invalid(field, of_table, f"has {IDENTITY_ALLOW_EXPLICIT_INSERT} '{explicit}', not true or false")
    known = None if mark is None else _long(field, of_table, IDENTITY_HIGH_WATER_MARK)
    return IdentityColumn(start, step, known, explicit == "true")


def _long(field: StructField, of_table: str, key: str) -> int:
    value: Any = field.metadata[key]
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise _invalid(field, of_table, f"has {key} {value!r}, not a whole number") from None
    if isinstance(value, (bool, float)) or not _LONG_MIN <= number <= _LONG_MAX:
        raise _invalid(field, of_table, f"has {key} {value!r}, not a BIGINT")
    return number


def _invalid(field: StructField, of_table: str, problem: str) -> ProtocolError:
    return ProtocolError(
        f"the identity column '{field.name}'{of_table} {problem}: its values cannot be generated.",
        code="DELTA_INVALID_SCHEMA",
        column=field.name,
    )


def synced_mark(identity: IdentityColumn, furthest: int, column: str) -> int | None:
    """The new high-water mark of a column with values up to ``furthest``; None if the mark stays.

    The mark has the form ``start + k * step``, and is ``furthest`` or the next such value beyond it. Values before the
    start do not move it, because the first generated value is the start. A mark that another writer set before the
    start moves, too.

    Raises: ExpressionError (ARITHMETIC_OVERFLOW) if that mark is not a BIGINT.
    """
    start, step, known = identity.start, identity.step, identity.high_water_mark
    sign = 1 if step > 0 else -1
    mark_before_start = known is not None and (known - start) * sign < 0
    if (furthest - start) * sign < 0 and not mark_before_start:
        return None
    mark = start - (start - furthest) // step * step
    if not _LONG_MIN <= mark <= _LONG_MAX:
        raise ExpressionError(
            f"the identity column '{column}' has the value {furthest}, and no value beyond it is a BIGINT.",
            code="ARITHMETIC_OVERFLOW",
            column=column,
        )
    return None if known is not None and (mark - known) * sign <= 0 else mark


def furthest_marks(outputs: Sequence[Mapping[str, int]], schema: StructType) -> dict[str, int]:
    """For each column, the furthest value that any task assigned, in the direction of its step."""
    marks: dict[str, int] = {}
    for field in schema:
        given = [output[field.name] for output in outputs if field.name in output]
        if given:
            marks[field.name] = max(given) if int(field.metadata[IDENTITY_STEP]) > 0 else min(given)
    return marks


def with_high_water_marks(metadata: Metadata, marks: Mapping[str, int]) -> Metadata:
    """The metadata with new high-water marks; a mark never moves back.

    The rest of the schema string stays exactly as another engine wrote it, because the commit declares that it changes
    nothing else.
    """
    if not marks:
        return metadata
    schema = decode_json(metadata.schema_string or "{}")
    changed = False
    for field in schema.get("fields") or ():
        if field["name"] not in marks:
            continue
        properties, new = field["metadata"], marks[field["name"]]
        step, known = int(properties[IDENTITY_STEP]), properties.get(IDENTITY_HIGH_WATER_MARK)
        if known is None or (new - int(known)) * step > 0:
            properties[IDENTITY_HIGH_WATER_MARK] = new
            changed = True
    if not changed:
        return metadata
    return msgspec.structs.replace(metadata, schema_string=json.dumps(schema, separators=(",", ":")))


def continues(field: StructField, other: StructField) -> bool:
    """Whether a column has the start and step of ``other``, an identity column with a high-water mark."""
    return (
        IDENTITY_HIGH_WATER_MARK in other.metadata
        and IDENTITY_STEP in field.metadata
        and all(field.metadata.get(key) == other.metadata.get(key) for key in (IDENTITY_START, IDENTITY_STEP))
    )


def keep_high_water_marks(schema: StructType, existing: StructType) -> StructType:
    """The schema that replaces ``existing``: identity columns with the same numbering continue from their marks."""

    def keep(field: StructField) -> StructField:
        old = existing.find(field.name)
        if old is None or not continues(field, old):
            return field
        mark = old.metadata[IDENTITY_HIGH_WATER_MARK]
        return replace(field, metadata={**field.metadata, IDENTITY_HIGH_WATER_MARK: mark})

    return StructType(tuple(keep(f) for f in schema))
