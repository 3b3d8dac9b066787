"""The table features: the versions that each needs, what enables it, and whether this release supports it.

Protocol: "Table Features", "Valid Feature Names in Table Features".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from delta_pyds.protocol.actions import Protocol
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX, Property, TableProperties, parse_properties
from delta_pyds.protocol.schema import (
    GENERATION_EXPRESSION,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_START,
    IDENTITY_STEP,
    INVARIANTS,
)

READER_VERSION_WITH_FEATURES = 3
WRITER_VERSION_WITH_FEATURES = 7


class Feature:
    """The names of table features, as ``readerFeatures`` and ``writerFeatures`` list them."""

    APPEND_ONLY = "appendOnly"
    INVARIANTS = "invariants"
    CHECK_CONSTRAINTS = "checkConstraints"
    CHANGE_DATA_FEED = "changeDataFeed"
    GENERATED_COLUMNS = "generatedColumns"
    COLUMN_MAPPING = "columnMapping"
    IDENTITY_COLUMNS = "identityColumns"
    DELETION_VECTORS = "deletionVectors"
    TIMESTAMP_NTZ = "timestampNtz"
    V2_CHECKPOINT = "v2Checkpoint"
    VACUUM_PROTOCOL_CHECK = "vacuumProtocolCheck"
    TYPE_WIDENING = "typeWidening"
    TYPE_WIDENING_PREVIEW = "typeWidening-preview"
    VARIANT_TYPE = "variantType"
    VARIANT_TYPE_PREVIEW = "variantType-preview"
    VARIANT_SHREDDING = "variantShredding"
    VARIANT_SHREDDING_PREVIEW = "variantShredding-preview"
    CATALOG_MANAGED = "catalogManaged"
    CATALOG_OWNED_PREVIEW = "catalogOwned-preview"
    ROW_TRACKING = "rowTracking"
    DOMAIN_METADATA = "domainMetadata"
    IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
    CLUSTERING = "clustering"
    ALLOW_COLUMN_DEFAULTS = "allowColumnDefaults"
    ICEBERG_COMPAT_V1 = "icebergCompatV1"
    ICEBERG_COMPAT_V2 = "icebergCompatV2"
    ICEBERG_COMPAT_V3 = "icebergCompatV3"
    CHECKPOINT_PROTECTION = "checkpointProtection"
    MATERIALIZE_PARTITION_COLUMNS = "materializePartitionColumns"


@dataclass(frozen=True)
class TableFeature:
    """One named feature.

    ``reader_version``, ``writer_version``: the lowest versions without feature
    lists that imply it; None if it exists as a named feature only.
    ``for_readers``: it must be listed in ``readerFeatures`` too.
    ``readable``, ``writable``: this release reads, writes tables with it.

    A table needs the feature if its metadata has any of these:
    ``properties``: pairs of a key and a value, in lower case;
    ``property_prefix``: a key with this prefix; ``types``: a column or nested
    field of that primitive type; ``field_keys``: a key in a field's metadata;
    ``not_null``: a column or a field of a struct that is not nullable.

    ``manual``: an existing table gets it only when the user names it.
    ``instead``: a table with that other feature does not need this one.
    """

    name: str
    for_readers: bool = False
    readable: bool = True
    writable: bool = True
    reader_version: int | None = None
    writer_version: int | None = None
    requires: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    property_prefix: str | None = None
    types: tuple[str, ...] = ()
    field_keys: tuple[str, ...] = ()
    not_null: bool = False
    manual: bool = False
    instead: str | None = None


def _when_true(*keys: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, "true") for key in keys)


_IDENTITY_KEYS = (IDENTITY_START, IDENTITY_STEP, IDENTITY_ALLOW_EXPLICIT_INSERT)

_FEATURES = (
    TableFeature(Feature.APPEND_ONLY, writer_version=2, properties=_when_true(Property.APPEND_ONLY)),
    TableFeature(Feature.INVARIANTS, writer_version=2, field_keys=(INVARIANTS,), not_null=True),
    TableFeature(Feature.CHECK_CONSTRAINTS, writer_version=3, property_prefix=CONSTRAINT_PREFIX),
    TableFeature(
        Feature.CHANGE_DATA_FEED,
        writer_version=4,
        properties=_when_true(Property.ENABLE_CHANGE_DATA_FEED, Property.ENABLE_CHANGE_DATA_CAPTURE),
    ),
    TableFeature(Feature.GENERATED_COLUMNS, writer_version=4, field_keys=(GENERATION_EXPRESSION,)),
    TableFeature(
        Feature.COLUMN_MAPPING,
        for_readers=True,
        reader_version=2,
        writer_version=5,
        properties=((Property.COLUMN_MAPPING_MODE, "name"), (Property.COLUMN_MAPPING_MODE, "id")),
    ),
    TableFeature(Feature.IDENTITY_COLUMNS, writer_version=6, field_keys=_IDENTITY_KEYS),
    TableFeature(Feature.DELETION_VECTORS, for_readers=True, properties=_when_true(Property.ENABLE_DELETION_VECTORS)),
    TableFeature(Feature.TIMESTAMP_NTZ, for_readers=True, types=("timestamp_ntz",), manual=True),
    TableFeature(Feature.V2_CHECKPOINT, for_readers=True, properties=((Property.CHECKPOINT_POLICY, "v2"),)),
    TableFeature(Feature.VACUUM_PROTOCOL_CHECK, for_readers=True),
    TableFeature(
        Feature.TYPE_WIDENING,
        for_readers=True,
        properties=_when_true(Property.ENABLE_TYPE_WIDENING),
        instead=Feature.TYPE_WIDENING_PREVIEW,
    ),
    TableFeature(Feature.TYPE_WIDENING_PREVIEW, for_readers=True),
    TableFeature(Feature.VARIANT_TYPE, for_readers=True, types=("variant",), instead=Feature.VARIANT_TYPE_PREVIEW),
    TableFeature(Feature.VARIANT_TYPE_PREVIEW, for_readers=True),
    TableFeature(
        Feature.VARIANT_SHREDDING,
        for_readers=True,
        requires=(Feature.VARIANT_TYPE,),
        properties=_when_true(Property.ENABLE_VARIANT_SHREDDING),
        instead=Feature.VARIANT_SHREDDING_PREVIEW,
    ),
    TableFeature(Feature.VARIANT_SHREDDING_PREVIEW, for_readers=True, requires=(Feature.VARIANT_TYPE,)),
    # refused for a table that is opened by path, with a message of its own
    TableFeature(
        Feature.CATALOG_MANAGED,
        for_readers=True,
        requires=(Feature.IN_COMMIT_TIMESTAMP, Feature.VACUUM_PROTOCOL_CHECK),
    ),
    TableFeature(
        Feature.CATALOG_OWNED_PREVIEW,
        for_readers=True,
        readable=False,
        writable=False,
        requires=(Feature.IN_COMMIT_TIMESTAMP,),
    ),
    TableFeature(
        Feature.ROW_TRACKING, requires=(Feature.DOMAIN_METADATA,), properties=_when_true(Property.ENABLE_ROW_TRACKING)
    ),
    TableFeature(Feature.DOMAIN_METADATA),
    TableFeature(Feature.IN_COMMIT_TIMESTAMP, properties=_when_true(Property.ENABLE_IN_COMMIT_TIMESTAMPS)),
    TableFeature(Feature.CLUSTERING, requires=(Feature.DOMAIN_METADATA,)),
    TableFeature(Feature.ALLOW_COLUMN_DEFAULTS),
    TableFeature(
        Feature.ICEBERG_COMPAT_V1,
        requires=(Feature.COLUMN_MAPPING,),
        properties=_when_true(Property.ENABLE_ICEBERG_COMPAT_V1),
    ),
    TableFeature(
        Feature.ICEBERG_COMPAT_V2,
        requires=(Feature.COLUMN_MAPPING,),
        properties=_when_true(Property.ENABLE_ICEBERG_COMPAT_V2),
    ),
    TableFeature(
        Feature.ICEBERG_COMPAT_V3,
        writable=False,
        requires=(Feature.COLUMN_MAPPING, Feature.ROW_TRACKING),
        properties=_when_true(Property.ENABLE_ICEBERG_COMPAT_V3),
    ),
    TableFeature(Feature.CHECKPOINT_PROTECTION),
    TableFeature(
        Feature.MATERIALIZE_PARTITION_COLUMNS,
        properties=_when_true(Property.ENABLE_MATERIALIZE_PARTITION_COLUMNS_FEATURE),
    ),
)

ICEBERG_COMPAT_FEATURES = {1: Feature.ICEBERG_COMPAT_V1, 2: Feature.ICEBERG_COMPAT_V2, 3: Feature.ICEBERG_COMPAT_V3}

# the features for each flag of the properties: the table must support one of them
_FLAGS = {
    "append_only": {Feature.APPEND_ONLY},
    "change_data_feed": {Feature.CHANGE_DATA_FEED},
    "deletion_vectors": {Feature.DELETION_VECTORS},
    "in_commit_timestamps": {Feature.IN_COMMIT_TIMESTAMP},
    "row_tracking": {Feature.ROW_TRACKING},
    "type_widening": {Feature.TYPE_WIDENING, Feature.TYPE_WIDENING_PREVIEW},
}

FEATURES = {f.name: f for f in _FEATURES}
CATALOG_FEATURES = frozenset({Feature.CATALOG_MANAGED, Feature.CATALOG_OWNED_PREVIEW})
READABLE_FEATURES = frozenset(f.name for f in _FEATURES if f.for_readers and f.readable)
WRITABLE_FEATURES = frozenset(f.name for f in _FEATURES if f.writable)


def find_feature(name: str) -> TableFeature | None:
    """The feature of that name, in any case; None for an unknown name."""
    return next((f for f in _FEATURES if f.name.lower() == name.lower()), None)


def implied_features(reader_version: int, writer_version: int) -> frozenset[str]:
    """The features that a pair of versions without feature lists implies.

    Versions with lists imply nothing: they list every feature. Protocol: "Writer Version Requirements".
    """
    if writer_version >= WRITER_VERSION_WITH_FEATURES or reader_version >= READER_VERSION_WITH_FEATURES:
        return frozenset()
    return frozenset(
        f.name
        for f in _FEATURES
        if f.writer_version is not None
        and f.writer_version <= writer_version
        and (f.reader_version or 1) <= reader_version
    )


def supported_features(protocol: Protocol) -> frozenset[str]:
    """All features that a table supports: the listed ones, and those that its versions imply.

    The names include features that this release does not know. Protocol: "Supported Features".
    """
    listed = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return implied_features(protocol.min_reader_version, protocol.min_writer_version) | listed


def supports(protocol: Protocol, feature: str) -> bool:
    """Whether a table with this protocol lists the feature or its versions imply it."""
    return feature in supported_features(protocol)


def active_properties(protocol: Protocol, configuration: Mapping[str, str | None]) -> TableProperties:
    """The properties that are in effect: one that turns a feature on is off if the table does not support the feature.

    Raises: ProtocolError (DELTA_INVALID_TABLE_PROPERTY) for an invalid value that affects reading.
    Protocol: "Supported Features", "Active Features".
    """
    properties = parse_properties(configuration)
    features = supported_features(protocol)
    off: dict[str, Any] = {
        name: False for name, needed in _FLAGS.items() if getattr(properties, name) and not needed & features
    }
    compatibility = properties.iceberg_compat
    if compatibility is not None and ICEBERG_COMPAT_FEATURES[compatibility] not in features:
        off["iceberg_compat"] = None
    return replace(properties, **off) if off else properties


def is_managed(protocol: Protocol) -> bool:
    """Whether a catalog decides which commits the table has. Protocol: "Catalog-managed Table Enablement"."""
    return not CATALOG_FEATURES.isdisjoint(supported_features(protocol))


def supports_for_readers(protocol: Protocol, feature: str) -> bool:
    """Whether the protocol lists the feature for readers and for writers, so that every reader must support it."""
    return feature in (protocol.reader_features or ()) and feature in (protocol.writer_features or ())


def with_requirements(names: Iterable[str]) -> frozenset[str]:
    """The features and all features that they require, directly or indirectly."""
    found: set[str] = set()
    open_names = list(names)
    while open_names:
        name = open_names.pop()
        if name not in found:
            found.add(name)
            open_names.extend(FEATURES[name].requires if name in FEATURES else ())
    return frozenset(found)


def lowest_protocol(names: Iterable[str], *, least: Protocol | None = None) -> Protocol:
    """The lowest protocol that supports exactly these features.

    A pair of versions without lists is used if it implies exactly these features.
    Else all are listed, with writer version 7 and the lowest reader version that
    supports them. Readers of version 2 support column mapping without a list.

    Args:
        names: the features. An unknown one is listed for readers only if ``least`` lists it for them.
        least: no version is below this protocol's.

    Protocol: "Table Features for New and Existing Tables".
    """
    features = frozenset(names)
    reader_names = {n for n in features if n in FEATURES and FEATURES[n].for_readers}
    reader_names |= features.intersection((least.reader_features or ()) if least else ())
    reader = max([1, *(_reader_version(n) for n in reader_names)])
    writer = max([1, *((FEATURES[n].writer_version if n in FEATURES else None) or 7 for n in features)])
    if least is not None:
        reader, writer = max(reader, least.min_reader_version), max(writer, least.min_writer_version)
    if reader < READER_VERSION_WITH_FEATURES and implied_features(reader, writer) == features:
        return Protocol(reader, writer)
    with_list = reader >= READER_VERSION_WITH_FEATURES
    return Protocol(reader, WRITER_VERSION_WITH_FEATURES, sorted(reader_names) if with_list else None, sorted(features))


def with_features(protocol: Protocol, names: Iterable[str]) -> Protocol:
    """The protocol, raised to support these features too; itself if it supports them."""
    present = supported_features(protocol)
    wanted = present.union(names)
    return protocol if wanted == present else lowest_protocol(wanted, least=protocol)


def _reader_version(name: str) -> int:
    feature = FEATURES.get(name)
    return (feature.reader_version if feature else None) or READER_VERSION_WITH_FEATURES
