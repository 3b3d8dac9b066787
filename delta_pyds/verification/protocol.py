"""The protocol action, and the features that schema, properties and actions need.

Protocol: "Protocol Evolution", "Table Features", "Requirements for Writers".
"""

from __future__ import annotations

from collections.abc import Iterator

from delta_pyds.protocol.actions import Protocol
from delta_pyds.protocol.features import FEATURES, ICEBERG_COMPAT_FEATURES, Feature
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX, ICEBERG_COMPAT_PROPERTIES
from delta_pyds.protocol.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_START,
    INVARIANTS,
    TIMESTAMP_NTZ,
    TYPE_CHANGES,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructType,
)
from delta_pyds.verification.report import VersionFindings
from delta_pyds.verification.view import TableView, fields_of, supports

_INERT = frozenset(
    {
        Feature.GENERATED_COLUMNS,
        Feature.IDENTITY_COLUMNS,
        Feature.INVARIANTS,
        Feature.CHECK_CONSTRAINTS,
        Feature.ALLOW_COLUMN_DEFAULTS,
    }
)
_DROP_FEATURE = "DROP FEATURE"


def check_protocol(protocol: Protocol, findings: VersionFindings) -> None:
    """Check the action by itself."""
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if not 1 <= reader <= 3 or not 1 <= writer <= 7:
        findings.error("protocol.version", f"reader version {reader} and writer version {writer} are not a valid pair.")
        return
    if reader == 3 and writer != 7:
        findings.error("protocol.version", f"reader version 3 needs writer version 7, but it is {writer}.")
    for name, features, needed in (
        ("readerFeatures", protocol.reader_features, reader == 3),
        ("writerFeatures", protocol.writer_features, writer == 7),
    ):
        if needed and features is None:
            findings.error("protocol.features", f"the protocol action has no {name}, which its version needs.")
        if not needed and features is not None:
            findings.error("protocol.features", f"the protocol action has {name}, which its version forbids.")
        if features is not None and len(set(features)) != len(features):
            findings.error("protocol.features", f"{name} names a feature twice: {', '.join(features)}.")
    readers, writers = set(protocol.reader_features or ()), set(protocol.writer_features or ())
    for name in sorted(readers - writers):
        findings.error("protocol.features", f"{name} is in readerFeatures, but not in writerFeatures.")
    for name in sorted(readers | writers):
        _check_feature(name, protocol, readers, writers, findings)


def _check_feature(
    name: str, protocol: Protocol, readers: set[str], writers: set[str], findings: VersionFindings
) -> None:
    feature = FEATURES.get(name)
    if feature is None:
        findings.warning(
            "protocol.unknown-feature", f"the feature {name} is unknown to delta_pyds: it was not checked."
        )
        return
    if feature.for_readers and name in writers and name not in readers:
        old_enough = feature.reader_version is not None and feature.reader_version <= protocol.min_reader_version < 3
        if not old_enough:
            findings.error("protocol.features", f"{name} is in writerFeatures, but not in readerFeatures.")
    if not feature.for_readers and name in readers:
        findings.error("protocol.features", f"{name} is a writer feature, but is in readerFeatures.")
    for required in feature.requires:
        if not supports(protocol, required):
            findings.error("protocol.requires", f"the feature {name} needs {required}, which is missing.")


def check_protocol_change(old: Protocol, new: Protocol, operation: str | None, findings: VersionFindings) -> None:
    """Check that a protocol only grows, unless a feature is dropped.

    Features that an old version implied need not be listed by the first protocol with lists, if the table used none.
    """
    if operation == _DROP_FEATURE:
        return
    lost = sorted(f for f in {*(old.reader_features or ()), *(old.writer_features or ())} if not supports(new, f))
    if old.min_writer_version < 7 > new.min_writer_version:
        lost += sorted(f for f in FEATURES if supports(old, f) and not supports(new, f))
    if lost:
        findings.error("protocol.downgrade", f"the protocol no longer supports {', '.join(lost)}.")
    elif new.min_reader_version < old.min_reader_version or new.min_writer_version < old.min_writer_version:
        findings.error(
            "protocol.downgrade",
            f"the protocol goes from ({old.min_reader_version}, {old.min_writer_version}) "
            f"to ({new.min_reader_version}, {new.min_writer_version}).",
        )


def check_features_needed(view: TableView, findings: VersionFindings) -> None:
    """Check that the protocol supports all features that schema and properties use."""
    # before table features, writers and readers ignored properties that their version did not know
    legacy = view.protocol is not None and view.protocol.min_writer_version < 7
    for feature, reason in dict(_needed(view)).items():
        if not view.supports(feature):
            report = findings.warning if legacy and feature in _INERT else findings.error
            report("feature.missing", f"{reason}, but the protocol does not support {feature}.")


def _needed(view: TableView) -> Iterator[tuple[str, str]]:
    p, configuration = view.properties, view.configuration
    switches = (
        (p.append_only, Feature.APPEND_ONLY, "delta.appendOnly is true"),
        (p.change_data_feed, Feature.CHANGE_DATA_FEED, "delta.enableChangeDataFeed is true"),
        (p.column_mapping_mode != "none", Feature.COLUMN_MAPPING, "delta.columnMapping.mode is set"),
        (p.deletion_vectors, Feature.DELETION_VECTORS, "delta.enableDeletionVectors is true"),
        (p.in_commit_timestamps, Feature.IN_COMMIT_TIMESTAMP, "delta.enableInCommitTimestamps is true"),
        (p.row_tracking, Feature.ROW_TRACKING, "delta.enableRowTracking is true"),
        (p.type_widening, Feature.TYPE_WIDENING, "delta.enableTypeWidening is true"),
        (p.checkpoint_policy == "v2", Feature.V2_CHECKPOINT, "delta.checkpointPolicy is v2"),
        (
            any(k.startswith(CONSTRAINT_PREFIX) for k in configuration),
            Feature.CHECK_CONSTRAINTS,
            "there is a CHECK constraint",
        ),
    )
    for on, feature, reason in switches:
        if on:
            yield feature, reason
    for number in (1, 2, 3):
        if configuration.get(ICEBERG_COMPAT_PROPERTIES[number], "").lower() == "true":
            yield ICEBERG_COMPAT_FEATURES[number], f"delta.enableIcebergCompatV{number} is true"
    for at in fields_of(view.columns):
        types = set(_parts(at.field.data_type))
        for data_type, feature in ((TIMESTAMP_NTZ, Feature.TIMESTAMP_NTZ), (VARIANT, Feature.VARIANT_TYPE)):
            if data_type in types:
                yield feature, f"the column {at.name} is of type {data_type.name}"
        for key, feature in (
            (INVARIANTS, Feature.INVARIANTS),
            (GENERATION_EXPRESSION, Feature.GENERATED_COLUMNS),
            (IDENTITY_START, Feature.IDENTITY_COLUMNS),
            (CURRENT_DEFAULT, Feature.ALLOW_COLUMN_DEFAULTS),
            (TYPE_CHANGES, Feature.TYPE_WIDENING),
        ):
            if key in at.field.metadata:
                yield feature, f"the column {at.name} has {key}"


def _parts(data_type: DataType) -> Iterator[DataType]:
    """The type and the types inside of arrays and maps, without fields of structs."""
    if isinstance(data_type, ArrayType):
        yield from _parts(data_type.element_type)
    elif isinstance(data_type, MapType):
        yield from _parts(data_type.key_type)
        yield from _parts(data_type.value_type)
    elif not isinstance(data_type, StructType):
        yield data_type
