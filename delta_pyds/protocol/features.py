"""The table features: what each one asks of readers and writers, what enables it, and whether this version gives it.

Protocol: "Table Features", "Valid Feature Names in Table Features".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from delta_pyds.protocol.actions import Protocol

READER_VERSION_WITH_FEATURES = 3
WRITER_VERSION_WITH_FEATURES = 7

CATALOG_MANAGED = "catalogManaged"


@dataclass(frozen=True)
class TableFeature:
    """One named feature.

    ``reader_version``, ``writer_version``: the protocol versions below table
    features that imply it; None where it exists as a named feature only.
    ``for_readers``: it must be listed in ``readerFeatures`` too.
    ``readable``, ``writable``: this version reads, writes tables that have it.

    What a table's metadata must have to need the feature, any of:
    ``properties``: pairs of a key and the value, in lower case;
    ``property_prefix``: a key that begins so; ``types``: a column or nested
    field of that primitive type; ``field_keys``: a key in a field's metadata;
    ``not_null``: a column or a field of a struct that is not nullable.
    ``manual``: a table that exists gets it only when the user asks by name.
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


_IDENTITY_KEYS = ("delta.identity.start", "delta.identity.step", "delta.identity.allowExplicitInsert")

_FEATURES = (
    TableFeature("appendOnly", writer_version=2, properties=_when_true("delta.appendOnly")),
    TableFeature("invariants", writer_version=2, field_keys=("delta.invariants",), not_null=True),
    TableFeature("checkConstraints", writer_version=3, property_prefix="delta.constraints."),
    TableFeature(
        "changeDataFeed",
        writer_version=4,
        properties=_when_true("delta.enableChangeDataFeed", "delta.enableChangeDataCapture"),
    ),
    TableFeature("generatedColumns", writer_version=4, field_keys=("delta.generationExpression",)),
    TableFeature(
        "columnMapping",
        for_readers=True,
        reader_version=2,
        writer_version=5,
        properties=(("delta.columnMapping.mode", "name"), ("delta.columnMapping.mode", "id")),
    ),
    TableFeature("identityColumns", writer_version=6, field_keys=_IDENTITY_KEYS),
    TableFeature("deletionVectors", for_readers=True, properties=_when_true("delta.enableDeletionVectors")),
    TableFeature("timestampNtz", for_readers=True, types=("timestamp_ntz",), manual=True),
    TableFeature("v2Checkpoint", for_readers=True, properties=(("delta.checkpointPolicy", "v2"),)),
    TableFeature("vacuumProtocolCheck", for_readers=True),
    TableFeature(
        "typeWidening",
        for_readers=True,
        properties=_when_true("delta.enableTypeWidening"),
        instead="typeWidening-preview",
    ),
    TableFeature("typeWidening-preview", for_readers=True),
    TableFeature("variantType", for_readers=True, types=("variant",), instead="variantType-preview"),
    TableFeature("variantType-preview", for_readers=True),
    TableFeature(
        "variantShredding",
        for_readers=True,
        requires=("variantType",),
        properties=_when_true("delta.enableVariantShredding"),
        instead="variantShredding-preview",
    ),
    TableFeature("variantShredding-preview", for_readers=True, requires=("variantType",)),
    # refused with a message of its own: such a table is read through its catalog
    TableFeature(
        CATALOG_MANAGED,
        for_readers=True,
        readable=False,
        writable=False,
        requires=("inCommitTimestamp", "vacuumProtocolCheck"),
    ),
    TableFeature(
        "catalogOwned-preview", for_readers=True, readable=False, writable=False, requires=("inCommitTimestamp",)
    ),
    TableFeature("rowTracking", requires=("domainMetadata",), properties=_when_true("delta.enableRowTracking")),
    TableFeature("domainMetadata"),
    TableFeature("inCommitTimestamp", properties=_when_true("delta.enableInCommitTimestamps")),
    TableFeature("clustering", requires=("domainMetadata",)),
    TableFeature("allowColumnDefaults"),
    TableFeature("icebergCompatV1", requires=("columnMapping",), properties=_when_true("delta.enableIcebergCompatV1")),
    TableFeature("icebergCompatV2", requires=("columnMapping",), properties=_when_true("delta.enableIcebergCompatV2")),
    TableFeature(
        "icebergCompatV3",
        writable=False,
        requires=("columnMapping", "rowTracking"),
        properties=_when_true("delta.enableIcebergCompatV3"),
    ),
    TableFeature("checkpointProtection"),
    TableFeature(
        "materializePartitionColumns", properties=_when_true("delta.enableMaterializePartitionColumnsFeature")
    ),
)

FEATURES = {f.name: f for f in _FEATURES}
CATALOG_FEATURES = frozenset({CATALOG_MANAGED, "catalogOwned-preview"})
READABLE_FEATURES = frozenset(f.name for f in _FEATURES if f.for_readers and f.readable)
WRITABLE_FEATURES = frozenset(f.name for f in _FEATURES if f.writable)


def find_feature(name: str) -> TableFeature | None:
    """The feature of that name, whatever its case; None where it is not known."""
    return next((f for f in _FEATURES if f.name.lower() == name.lower()), None)


def implied_features(reader_version: int, writer_version: int) -> frozenset[str]:
    """The features that versions below table features stand for.

    Versions with lists imply nothing: there, all is listed. Protocol: "Writer Version Requirements".
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
    """All features that a table supports: those listed and those that its versions imply.

    Names that this version does not know are among them. Protocol: "Supported Features".
    """
    listed = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return implied_features(protocol.min_reader_version, protocol.min_writer_version) | listed


def with_requirements(names: Iterable[str]) -> frozenset[str]:
    """The features with all that they require, and what that requires in turn."""
    found: set[str] = set()
    open_names = list(names)
    while open_names:
        name = open_names.pop()
        if name not in found:
            found.add(name)
            open_names.extend(FEATURES[name].requires if name in FEATURES else ())
    return frozenset(found)


def weakest_protocol(names: Iterable[str], *, least: Protocol | None = None) -> Protocol:
    """The lowest protocol that supports exactly these features, but no version below ``least``.

    Features that old versions stand for become such a pair of versions when it
    stands for no other feature; else all are listed, under writer version 7
    and the lowest reader version that does. Readers of version 2 know column
    mapping without a list. A name that is not known is listed for readers
    where ``least`` lists it for them. Protocol: "Table Features for New and Existing Tables".
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


def _reader_version(name: str) -> int:
    feature = FEATURES.get(name)
    return (feature.reader_version if feature else None) or READER_VERSION_WITH_FEATURES
