"""The changes of protocol and metadata by a winning commit that a running transaction can adopt.

Invariant: an adopted change imposes no requirements on files that were written before it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

import msgspec

from delta_pyds.errors import DeltaError
from delta_pyds.protocol.actions import CommitInfo, Metadata, Protocol
from delta_pyds.protocol.features import Feature, supported_features
from delta_pyds.protocol.properties import UNITY_TABLE_ID, Property, TableProperties, parse_properties
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_ID,
    COLUMN_MAPPING_NESTED_IDS,
    COLUMN_MAPPING_PHYSICAL_NAME,
    StructField,
    StructType,
    change_fields,
    parse_schema,
)

IDENTITY_TAG = "delta.identity.schemaUpdate"

_ROW_TRACKING_COLUMNS = (
    Property.MATERIALIZED_ROW_ID_COLUMN_NAME,
    Property.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME,
)
_IN_COMMIT_ENABLEMENT = (
    Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
)
_MAPPING_KEYS = (COLUMN_MAPPING_ID, COLUMN_MAPPING_PHYSICAL_NAME, COLUMN_MAPPING_NESTED_IDS)
_ADOPTABLE = frozenset(
    {
        Property.ENABLE_ROW_TRACKING,
        *_ROW_TRACKING_COLUMNS,
        Property.COLUMN_MAPPING_MODE,
        Property.COLUMN_MAPPING_MAX_COLUMN_ID,
        Property.ENABLE_DELETION_VECTORS,
        Property.CHECKPOINT_POLICY,
        Property.ENABLE_IN_COMMIT_TIMESTAMPS,
        *_IN_COMMIT_ENABLEMENT,
        UNITY_TABLE_ID,
    }
)
# with these features new files contain columns that older files lack
_BINDING_FEATURES = frozenset({Feature.MATERIALIZE_PARTITION_COLUMNS})


@dataclass(frozen=True)
class Adoption:
    """The consequence of adopted metadata for the transaction."""

    row_tracking_enabled: bool


def dropped_features(old: Protocol, new: Protocol) -> list[str]:
    """Features that were dropped."""
    return sorted(supported_features(old) - supported_features(new))


def features_that_bind_files(old: Protocol, new: Protocol) -> list[str]:
    """New features that impose requirements on every data file written from then on."""
    return sorted((supported_features(new) - supported_features(old)) & _BINDING_FEATURES)


def is_identity_only(info: CommitInfo | None) -> bool:
    """Whether a commit changed only the high-water marks of identity columns in the metadata."""
    tags = info.tags if info is not None else None
    return isinstance(tags, dict) and str(tags.get(IDENTITY_TAG)).lower() == "true"


def adopted_metadata(old: Metadata, new: Metadata, protocol: Protocol) -> Adoption | None:
    """The consequence of adopting a change of metadata; None if the change cannot be adopted.

    ``protocol``: the table's after the change. Features that do not affect files
    may be turned on. Nothing may be turned off or removed, and the schema may
    only gain the names and ids of column mapping.
    """
    same = msgspec.structs.replace(new, configuration=old.configuration, schema_string=old.schema_string)
    if same != old:
        return None
    before, after = old.configuration or {}, new.configuration or {}
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    if not before.keys() <= after.keys() or not changed <= _ADOPTABLE:
        return None
    try:
        now, then = parse_properties(after), parse_properties(before)
        if not _acceptable(changed, before.keys(), now, then, supported_features(protocol)):
            return None
        if old.schema_string != new.schema_string and not (
            _mapping_was_enabled(now, then) and _same_but_mapped(old, new)
        ):
            return None
    except DeltaError:
        return None
    return Adoption(Property.ENABLE_ROW_TRACKING in changed)


def _acceptable(
    changed: Set[str], before: Set[str], now: TableProperties, then: TableProperties, features: Set[str]
) -> bool:
    # a property that describes a feature may only change when the feature is turned on: files depend on its value
    conditions = {
        Property.ENABLE_ROW_TRACKING: now.row_tracking and Feature.ROW_TRACKING in features,
        **{key: now.row_tracking and key not in before for key in _ROW_TRACKING_COLUMNS},
        Property.COLUMN_MAPPING_MODE: _mapping_was_enabled(now, then) and Feature.COLUMN_MAPPING in features,
        Property.COLUMN_MAPPING_MAX_COLUMN_ID: _mapping_was_enabled(now, then),
        Property.ENABLE_DELETION_VECTORS: now.deletion_vectors and Feature.DELETION_VECTORS in features,
        Property.CHECKPOINT_POLICY: now.checkpoint_policy == "v2" and Feature.V2_CHECKPOINT in features,
        Property.ENABLE_IN_COMMIT_TIMESTAMPS: now.in_commit_timestamps and Feature.IN_COMMIT_TIMESTAMP in features,
        **dict.fromkeys(_IN_COMMIT_ENABLEMENT, now.in_commit_timestamps and not then.in_commit_timestamps),
        UNITY_TABLE_ID: UNITY_TABLE_ID not in before,
    }
    return all(conditions[key] for key in changed)


def _mapping_was_enabled(now: TableProperties, then: TableProperties) -> bool:
    return then.column_mapping_mode == "none" and now.column_mapping_mode == "name"


def _same_but_mapped(old: Metadata, new: Metadata) -> bool:
    """Whether the schemas differ only in column mapping, and each physical name is the field's name."""
    before, after = parse_schema(old.schema_string or ""), parse_schema(new.schema_string or "")
    return _without_mapping(before) == _without_mapping(after) and _keeps_names(after)


def _without_mapping(schema: StructType) -> StructType:
    def strip(field: StructField) -> StructField:
        return replace(field, metadata={k: v for k, v in field.metadata.items() if k not in _MAPPING_KEYS})

    return change_fields(schema, strip)


def _keeps_names(schema: StructType) -> bool:
    names: list[bool] = []

    def look(field: StructField) -> StructField:
        names.append(field.physical_name == field.name)
        return field

    change_fields(schema, look)
    return all(names)
