from __future__ import annotations

import pytest

from delta_pyds.errors import UnsupportedFeatureError, UserError
from delta_pyds.protocol.actions import DomainMetadata, Metadata, Protocol
from delta_pyds.protocol.features import supported_features
from delta_pyds.protocol.schema import (
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    schema_to_string,
)
from delta_pyds.table.definition.protocol_upgrade import features_needed, upgrade_protocol

BASE = ["appendOnly", "invariants"]


def metadata(*fields: StructField, **configuration: str) -> Metadata:
    return Metadata(
        schema_string=schema_to_string(StructType(fields or (StructField("id", LONG),))),
        configuration={f"delta.{k.replace('_', '.')}": v for k, v in configuration.items()},
    )


def w7(*features: str) -> Protocol:
    return Protocol(1, 7, None, sorted([*BASE, *features]))


def rw7(reader: list[str], *features: str) -> Protocol:
    return Protocol(3, 7, sorted(reader), sorted([*BASE, *reader, *features]))


@pytest.mark.parametrize(
    ("configuration", "protocol"),
    [
        ({}, Protocol(1, 2)),
        ({"appendOnly": "true"}, Protocol(1, 2)),
        ({"constraints_c": "id > 0"}, Protocol(1, 3)),
        ({"enableChangeDataFeed": "true"}, w7("changeDataFeed")),
        ({"enableChangeDataCapture": "true"}, w7("changeDataFeed")),
        ({"columnMapping_mode": "name"}, Protocol(2, 7, None, ["appendOnly", "columnMapping", "invariants"])),
        ({"columnMapping_mode": "id"}, Protocol(2, 7, None, ["appendOnly", "columnMapping", "invariants"])),
        ({"columnMapping_mode": "none"}, Protocol(1, 2)),
        ({"enableDeletionVectors": "true"}, rw7(["deletionVectors"])),
        ({"enableDeletionVectors": "false"}, Protocol(1, 2)),
        ({"checkpointPolicy": "v2"}, rw7(["v2Checkpoint"])),
        ({"checkpointPolicy": "classic"}, Protocol(1, 2)),
        ({"enableTypeWidening": "true"}, rw7(["typeWidening"])),
        ({"enableVariantShredding": "true"}, rw7(["variantShredding", "variantType"])),
        ({"enableRowTracking": "true"}, w7("domainMetadata", "rowTracking")),
        ({"enableInCommitTimestamps": "true"}, w7("inCommitTimestamp")),
        ({"enableMaterializePartitionColumnsFeature": "true"}, w7("materializePartitionColumns")),
        (
            {"enableIcebergCompatV2": "true", "columnMapping_mode": "name"},
            Protocol(2, 7, None, ["appendOnly", "columnMapping", "icebergCompatV2", "invariants"]),
        ),
        (
            {"enableDeletionVectors": "true", "columnMapping_mode": "name"},
            rw7(["columnMapping", "deletionVectors"]),
        ),
    ],
)
def test_properties_give_a_new_table_its_protocol(configuration: dict[str, str], protocol: Protocol) -> None:
    assert upgrade_protocol(None, metadata(**configuration)) == protocol


@pytest.mark.parametrize(
    ("field", "protocol"),
    [
        (StructField("t", TIMESTAMP_NTZ), rw7(["timestampNtz"])),
        (StructField("t", ArrayType(MapType(STRING, TIMESTAMP_NTZ))), rw7(["timestampNtz"])),
        (StructField("s", StructType((StructField("t", TIMESTAMP_NTZ),))), rw7(["timestampNtz"])),
        (StructField("v", VARIANT), rw7(["variantType"])),
        (StructField("g", LONG, True, {"delta.generationExpression": "id + 1"}), w7("generatedColumns")),
        (
            StructField("i", LONG, True, {"delta.identity.start": 1, "delta.identity.step": 1}),
            w7("identityColumns"),
        ),
        (StructField("c", LONG, False), Protocol(1, 2)),
    ],
)
def test_columns_give_a_new_table_its_protocol(field: StructField, protocol: Protocol) -> None:
    assert upgrade_protocol(None, metadata(field)) == protocol


@pytest.mark.parametrize(
    "field",
    [
        StructField("c", LONG, False),
        StructField("c", LONG, True, {"delta.invariants": "{}"}),
        StructField("s", StructType((StructField("c", LONG, False),))),
    ],
)
def test_invariants_are_needed_for_columns_that_are_not_null(field: StructField) -> None:
    assert features_needed(metadata(field)) == {"invariants"}


def test_not_null_within_an_array_is_no_invariant() -> None:
    inner = StructType((StructField("c", LONG, False),))
    assert features_needed(metadata(StructField("a", ArrayType(inner)))) == frozenset()


@pytest.mark.parametrize(
    ("versions", "protocol"),
    [
        ((1, 1), Protocol(1, 1)),
        ((1, 3), Protocol(1, 3)),
        ((1, 4), Protocol(1, 4)),
        ((2, 5), Protocol(2, 5)),
        ((2, 6), Protocol(2, 6)),
        ((3, 7), Protocol(1, 1)),
    ],
)
def test_versions_that_are_asked_for_stand_for_their_features(versions: tuple[int, int], protocol: Protocol) -> None:
    assert upgrade_protocol(None, metadata(), versions=versions) == protocol


def test_features_asked_for_by_name_bring_what_they_require() -> None:
    assert upgrade_protocol(None, metadata(), features=["rowTracking"]) == w7("domainMetadata", "rowTracking")
    assert upgrade_protocol(Protocol(1, 2), metadata(), features=["vacuumProtocolCheck"]) == rw7(
        ["vacuumProtocolCheck"]
    )


def test_a_domain_needs_its_features() -> None:
    own, clustering = DomainMetadata("mine", "{}"), DomainMetadata("delta.clustering", "{}")
    assert upgrade_protocol(None, metadata(), domains=[own]) == w7("domainMetadata")
    assert upgrade_protocol(None, metadata(), domains=[clustering]) == w7("clustering", "domainMetadata")
    assert upgrade_protocol(None, metadata(), domains=[DomainMetadata("delta.clustering", "", True)]) == w7(
        "domainMetadata"
    )


# an existing table


@pytest.mark.parametrize(
    "current",
    [Protocol(1, 2), Protocol(2, 6), Protocol(3, 7, [], []), w7("changeDataFeed"), Protocol(1, 7, None, ["odd"])],
)
def test_a_protocol_that_is_enough_is_returned_as_it_is(current: Protocol) -> None:
    assert upgrade_protocol(current, metadata()) is current


@pytest.mark.parametrize(
    ("current", "configuration", "upgraded"),
    [
        (Protocol(1, 2), {"constraints_c": "id > 0"}, Protocol(1, 3)),
        (Protocol(1, 2), {"enableChangeDataFeed": "true"}, w7("changeDataFeed")),
        (Protocol(1, 3), {"enableChangeDataFeed": "true"}, w7("changeDataFeed", "checkConstraints")),
        (Protocol(1, 4), {"enableChangeDataFeed": "true"}, Protocol(1, 4)),
        (
            Protocol(2, 5),
            {"enableDeletionVectors": "true"},
            rw7(["columnMapping", "deletionVectors"], "changeDataFeed", "checkConstraints", "generatedColumns"),
        ),
        (Protocol(1, 1), {"appendOnly": "true"}, Protocol(1, 7, None, ["appendOnly"])),
        # versions do not fall, though the features alone would fit into (1, 3)
        (w7(), {"constraints_c": "id > 0"}, w7("checkConstraints")),
        (
            Protocol(3, 7, [], BASE),
            {"constraints_c": "id > 0"},
            Protocol(3, 7, [], ["appendOnly", "checkConstraints", "invariants"]),
        ),
        (Protocol(2, 2), {"constraints_c": "id > 0"}, Protocol(2, 3)),
        (Protocol(1, 2), {"enableTypeWidening": "true"}, rw7(["typeWidening"])),
        (
            Protocol(3, 7, ["typeWidening-preview"], ["typeWidening-preview"]),
            {"enableTypeWidening": "true"},
            Protocol(3, 7, ["typeWidening-preview"], ["typeWidening-preview"]),
        ),
    ],
)
def test_an_existing_table_is_raised_just_as_far_as_its_metadata_needs(
    current: Protocol, configuration: dict[str, str], upgraded: Protocol
) -> None:
    result = upgrade_protocol(current, metadata(**configuration))
    assert result == upgraded
    assert supported_features(current) <= supported_features(result)


def test_features_that_are_not_known_stay() -> None:
    current = Protocol(3, 7, ["oddRead"], ["oddRead", "oddWrite"])
    assert upgrade_protocol(current, metadata(appendOnly="true")) == Protocol(
        3, 7, ["oddRead"], ["appendOnly", "oddRead", "oddWrite"]
    )


def test_an_existing_table_gets_timestamps_without_zone_only_by_name() -> None:
    changed = metadata(StructField("t", TIMESTAMP_NTZ))
    with pytest.raises(UserError, match=r"delta\.feature\.timestampNtz") as error:
        upgrade_protocol(Protocol(1, 2), changed)
    assert error.value.code == "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"
    assert upgrade_protocol(Protocol(1, 2), changed, features=["timestampNtz"]) == rw7(["timestampNtz"])
    has = Protocol(3, 7, ["timestampNtz"], ["timestampNtz"])
    assert upgrade_protocol(has, changed) is has


@pytest.mark.parametrize(("current"), [None, Protocol(1, 2)])
def test_what_is_not_written_cannot_be_enabled(current: Protocol | None) -> None:
    with pytest.raises(UnsupportedFeatureError, match="icebergCompatV3") as error:
        upgrade_protocol(current, metadata(enableIcebergCompatV3="true", columnMapping_mode="name"))
    assert error.value.code == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


@pytest.mark.parametrize("data_type", [VARIANT, ArrayType(VARIANT)])
def test_a_preview_of_a_feature_stands_in_for_it(data_type: DataType) -> None:
    preview = Protocol(3, 7, ["variantType-preview"], ["variantType-preview"])
    assert upgrade_protocol(preview, metadata(StructField("v", data_type))) is preview
