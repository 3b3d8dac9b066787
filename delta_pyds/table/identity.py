"""High-water marks of identity columns. Protocol: "Identity Columns"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.schema import (
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_STEP,
    StructField,
    StructType,
    schema_to_string,
)


def furthest_marks(outputs: Sequence[Mapping[str, int]], schema: StructType) -> dict[str, int]:
    """Of all values that tasks gave out, per column the one furthest along in the direction of its step."""
    marks: dict[str, int] = {}
    for field in schema:
        given = [output[field.name] for output in outputs if field.name in output]
        if given:
            marks[field.name] = max(given) if int(field.metadata[IDENTITY_STEP]) > 0 else min(given)
    return marks


def with_high_water_marks(metadata: Metadata, schema: StructType, marks: Mapping[str, int]) -> Metadata:
    """The metadata with new high-water marks; a mark never moves back."""

    def mark(field: StructField) -> StructField:
        if field.name not in marks:
            return field
        step = int(field.metadata[IDENTITY_STEP])
        known = field.metadata.get(IDENTITY_HIGH_WATER_MARK)
        new = marks[field.name]
        if known is not None and (new - int(known)) * step <= 0:
            return field
        return replace(field, metadata={**field.metadata, IDENTITY_HIGH_WATER_MARK: new})

    changed = StructType(tuple(mark(f) for f in schema))
    return metadata if changed == schema else msgspec.structs.replace(metadata, schema_string=schema_to_string(changed))
