"""The table features: what each one asks of readers, and whether this version gives it.

Protocol: "Table Features", "Valid Feature Names in Table Features".
"""

from __future__ import annotations

from dataclasses import dataclass

READER_VERSION_WITH_FEATURES = 3
WRITER_VERSION_WITH_FEATURES = 7

CATALOG_MANAGED = "catalogManaged"


@dataclass(frozen=True)
class TableFeature:
    """One named feature.

    ``reader_version``, ``writer_version``: the protocol versions below table
    features that imply it; None where it exists as a named feature only.
    ``for_readers``: it must be listed in ``readerFeatures`` too.
    ``readable``: this version reads tables that have it.
    """

    name: str
    for_readers: bool = False
    readable: bool = True
    reader_version: int | None = None
    writer_version: int | None = None
    requires: tuple[str, ...] = ()


_FEATURES = (
    TableFeature("appendOnly", writer_version=2),
    TableFeature("invariants", writer_version=2),
    TableFeature("checkConstraints", writer_version=3),
    TableFeature("changeDataFeed", writer_version=4),
    TableFeature("generatedColumns", writer_version=4),
    TableFeature("columnMapping", for_readers=True, reader_version=2, writer_version=5),
    TableFeature("identityColumns", writer_version=6),
    TableFeature("deletionVectors", for_readers=True),
    TableFeature("timestampNtz", for_readers=True),
    TableFeature("v2Checkpoint", for_readers=True),
    TableFeature("vacuumProtocolCheck", for_readers=True),
    TableFeature("typeWidening", for_readers=True),
    TableFeature("typeWidening-preview", for_readers=True),
    TableFeature("variantType", for_readers=True),
    TableFeature("variantType-preview", for_readers=True),
    TableFeature("variantShredding", for_readers=True, requires=("variantType",)),
    TableFeature("variantShredding-preview", for_readers=True, requires=("variantType",)),
    # refused with a message of its own: such a table is read through its catalog
    TableFeature(
        CATALOG_MANAGED, for_readers=True, readable=False, requires=("inCommitTimestamp", "vacuumProtocolCheck")
    ),
    TableFeature("catalogOwned-preview", for_readers=True, readable=False, requires=("inCommitTimestamp",)),
    TableFeature("rowTracking", requires=("domainMetadata",)),
    TableFeature("domainMetadata"),
    TableFeature("inCommitTimestamp"),
    TableFeature("clustering", requires=("domainMetadata",)),
    TableFeature("allowColumnDefaults"),
    TableFeature("icebergCompatV1", requires=("columnMapping",)),
    TableFeature("icebergCompatV2", requires=("columnMapping",)),
    TableFeature("icebergCompatV3", requires=("columnMapping", "rowTracking")),
    TableFeature("checkpointProtection"),
    TableFeature("materializePartitionColumns"),
)

FEATURES = {f.name: f for f in _FEATURES}
CATALOG_FEATURES = frozenset({CATALOG_MANAGED, "catalogOwned-preview"})
READABLE_FEATURES = frozenset(f.name for f in _FEATURES if f.for_readers and f.readable)
