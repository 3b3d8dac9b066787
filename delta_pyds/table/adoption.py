"""Which changes of protocol and metadata by another commit a running transaction can live with.

Invariant: what is adopted asks nothing of files that were written before it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

import msgspec

from delta_pyds.errors import DeltaError
from delta_pyds.protocol.actions import CommitInfo, Metadata, Protocol
from delta_pyds.protocol.features import supported_features
from delta_pyds.protocol.properties import COLUMN_MAPPING_MAX_ID, COLUMN_MAPPING_MODE, TableProperties, parse_properties
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_ID,
    COLUMN_MAPPING_PHYSICAL_NAME,
    StructField,
    StructType,
    change_fields,
    parse_schema,
)

IDENTITY_TAG = "delta.identity.schemaUpdate"

_ROW_TRACKING = "delta.enableRowTracking"
_ROW_TRACKING_COLUMNS = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)
_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
_IN_COMMIT_ENABLEMENT = (
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
_MAPPING_KEYS = (COLUMN_MAPPING_ID, COLUMN_MAPPING_PHYSICAL_NAME, "delta.columnMapping.nested.ids")
_ADOPTABLE = frozenset(
    {
        _ROW_TRACKING, *_ROW_TRACKING_COLUMNS, COLUMN_MAPPING_MODE, COLUMN_MAPPING_MAX_ID,
        "delta.enableDeletionVectors", "delta.checkpointPolicy", _IN_COMMIT_TIMESTAMPS, *_IN_COMMIT_ENABLEMENT,
        "io.unitycatalog.tableId",
    }
)  # fmt: skip
# by these a new file holds columns that a file written before has not
_BINDING_FEATURES = frozenset({"materializePartitionColumns"})


@dataclass(frozen=True)
class Adoption:
    """What else follows from metadata that is adopted."""

    row_tracking_enabled: bool


def dropped_features(old: Protocol, new: Protocol) -> list[str]:
    """Features that a table had and has no more."""
    return sorted(supported_features(old) - supported_features(new))


def features_that_bind_files(old: Protocol, new: Protocol) -> list[str]:
    """New features that each data file has to follow, from the version on that adds them."""
    return sorted((supported_features(new) - supported_features(old)) & _BINDING_FEATURES)


def is_identity_only(info: CommitInfo | None) -> bool:
    """Whether a commit changed the metadata for nothing but the high-water marks of identity columns."""
    tags = info.tags if info is not None else None
    return isinstance(tags, dict) and str(tags.get(IDENTITY_TAG)).lower() == "true"


def adopted_metadata(old: Metadata, new: Metadata, protocol: Protocol) -> Adoption | None:
    """Whether a change of metadata can be adopted; None if not.

    ``protocol``: the table's after the change. Features may be turned on that
    leave files as they are; nothing may be turned off or removed, and of the
    schema nothing may change but the names and ids that column mapping adds.
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
    return Adoption(_ROW_TRACKING in changed)


def _acceptable(
    changed: Set[str], before: Set[str], now: TableProperties, then: TableProperties, features: Set[str]
) -> bool:
    conditions = {
        _ROW_TRACKING: now.row_tracking and "rowTracking" in features,
        **dict.fromkeys(_ROW_TRACKING_COLUMNS, now.row_tracking),
        COLUMN_MAPPING_MODE: _mapping_was_enabled(now, then) and "columnMapping" in features,
        COLUMN_MAPPING_MAX_ID: _mapping_was_enabled(now, then),
        "delta.enableDeletionVectors": now.deletion_vectors and "deletionVectors" in features,
        "delta.checkpointPolicy": now.checkpoint_policy == "v2" and "v2Checkpoint" in features,
        _IN_COMMIT_TIMESTAMPS: now.in_commit_timestamps and "inCommitTimestamp" in features,
        **dict.fromkeys(_IN_COMMIT_ENABLEMENT, now.in_commit_timestamps),
        "io.unitycatalog.tableId": "io.unitycatalog.tableId" not in before,
    }
    return all(conditions[key] for key in changed)


def _mapping_was_enabled(now: TableProperties, then: TableProperties) -> bool:
    return then.column_mapping_mode == "none" and now.column_mapping_mode == "name"


def _same_but_mapped(old: Metadata, new: Metadata) -> bool:
    """The fields are the same, and each is found in files under the name that it always had."""
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
