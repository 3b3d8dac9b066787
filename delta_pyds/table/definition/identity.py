"""High water marks of identity columns. Protocol: "Identity Columns"."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.schema import (
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_START,
    IDENTITY_STEP,
    StructField,
    StructType,
)


def furthest_marks(outputs: Sequence[Mapping[str, int]], schema: StructType) -> dict[str, int]:
    """Per column, the last value that any task assigned, in the direction of its step."""
    marks: dict[str, int] = {}
    for field in schema:
        given = [output[field.name] for output in outputs if field.name in output]
        if given:
            marks[field.name] = max(given) if int(field.metadata[IDENTITY_STEP]) > 0 else min(given)
    return marks


def with_high_water_marks(metadata: Metadata, marks: Mapping[str, int]) -> Metadata:
    """The metadata with new high-water marks; a mark never moves back.

    Nothing else of the schema's text changes, whatever another engine wrote
    there: the commit says of itself that it changes nothing else.
    """
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


def keep_high_water_marks(schema: StructType, existing: StructType) -> StructType:
    """A schema that takes the place of ``existing``: identity columns that number as before go on where they were."""

    def keep(field: StructField) -> StructField:
        old = existing.find(field.name)
        if old is None or IDENTITY_HIGH_WATER_MARK not in old.metadata or IDENTITY_STEP not in field.metadata:
            return field
        if any(field.metadata.get(key) != old.metadata.get(key) for key in (IDENTITY_START, IDENTITY_STEP)):
            return field
        mark = old.metadata[IDENTITY_HIGH_WATER_MARK]
        return replace(field, metadata={**field.metadata, IDENTITY_HIGH_WATER_MARK: mark})

    return StructType(tuple(keep(f) for f in schema))
