from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from delta_pyds.errors import DeltaError, ProtocolError, UnsupportedFeatureError
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_PHYSICAL_NAME,
    LONG,
    STRING,
    StructField,
    StructType,
    schema_to_string,
)
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.definitions import define
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, write_rows

PLAIN = StructType((StructField("id", LONG), StructField("p", STRING)))


def load(protocol: Protocol, schema: StructType = PLAIN, **configuration: str) -> TableConfiguration:
    metadata = Metadata(
        schema_string=schema_to_string(schema),
        partition_columns=["p"] if "p" in schema.names else [],
        configuration={f"delta.{k.replace('_', '.')}": v for k, v in configuration.items()},
    )
    return load_configuration("/t", 7, protocol, metadata)


def features(*names: str) -> Protocol:
    return Protocol(3, 7, list(names), list(names))


@pytest.mark.parametrize("version", [0, 4, 99])
def test_an_unknown_reader_version_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"reader version {version}") as error:
        load(Protocol(version, 7))
    assert error.value.code == "DELTA_INVALID_PROTOCOL_VERSION"


def test_every_unknown_reader_feature_is_named() -> None:
    with pytest.raises(UnsupportedFeatureError, match="fancyOne, fancyTwo") as error:
        load(features("deletionVectors", "fancyTwo", "fancyOne"))
    assert error.value.code == "DELTA_UNSUPPORTED_FEATURES_FOR_READ"
    assert error.value.parameters["features"] == ["fancyOne", "fancyTwo"]


def test_an_unknown_writer_feature_does_not_hinder_readers() -> None:
    assert load(Protocol(1, 7, None, ["fancyWrites"])).schema.names == ("id", "p")


def test_a_catalog_managed_table_needs_its_catalog() -> None:
    with pytest.raises(UnsupportedFeatureError, match="catalog") as error:
        load(features("catalogManaged"))
    assert error.value.code == "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"


def test_reader_version_3_without_a_list_of_features_is_refused() -> None:
    with pytest.raises(ProtocolError, match="readerFeatures"):
        load(Protocol(3, 7))


def test_a_stray_physical_name_is_not_honoured_without_column_mapping() -> None:
    stray = StructType((StructField("id", LONG, True, {COLUMN_MAPPING_PHYSICAL_NAME: "col-1", "comment": "kept"}),))
    for protocol, mode in [(Protocol(1, 2), "name"), (Protocol(2, 5), "none"), (features(), "name")]:
        configuration = load(protocol, stray, columnMapping_mode=mode)
        assert configuration.column_mapping_mode == "none"
        assert configuration.schema.fields[0].physical_name == "id"
        assert configuration.schema.fields[0].metadata == {"comment": "kept"}


@pytest.mark.parametrize("protocol", [Protocol(2, 5), features("columnMapping")])
def test_column_mapping_demands_physical_names_at_every_level(protocol: Protocol) -> None:
    inner = StructType((StructField("x", LONG),))
    nested = StructType((StructField("s", inner, True, {COLUMN_MAPPING_PHYSICAL_NAME: "col-1"}),))
    with pytest.raises(ProtocolError, match="'x'") as error:
        load(protocol, nested, columnMapping_mode="name")
    assert error.value.code == "DELTA_MISSING_PHYSICAL_NAME"


@pytest.mark.parametrize(
    ("key", "value"),
    [("columnMapping_mode", "names"), ("enableRowTracking", "yes"), ("inCommitTimestampEnablementVersion", "x")],
)
def test_an_impossible_property_is_named(key: str, value: str) -> None:
    with pytest.raises(ProtocolError, match=f"'{value}'") as error:
        load(Protocol(1, 2), **{key: value})
    assert error.value.code == "DELTA_INVALID_TABLE_PROPERTY"


def test_rows_have_ids_only_with_the_feature_and_the_property() -> None:
    with pytest.raises(UnsupportedFeatureError, match="row tracking"):
        load(Protocol(1, 7, None, ["rowTracking"])).row_id_columns()
    with pytest.raises(UnsupportedFeatureError, match="row tracking"):
        load(Protocol(1, 2), enableRowTracking="true").row_id_columns()
    tracked = load(
        Protocol(1, 7, None, ["rowTracking", "domainMetadata"]),
        enableRowTracking="true",
        rowTracking_materializedRowIdColumnName="_row-id-col-1",
    )
    assert tracked.row_id_columns().row_id == "_row-id-col-1"


@pytest.mark.parametrize(
    ("schema_string", "code"),
    [
        (None, "DELTA_STATE_RECOVER_ERROR"),
        ("{", "DELTA_INVALID_SCHEMA"),
        ('"long"', "DELTA_INVALID_SCHEMA"),
        ('{"type":"struct","fields":[{"name":"a","type":"decimal(99,1)"}]}', "DELTA_INVALID_SCHEMA"),
        ('{"type":"struct","fields":[{"name":"a","type":"geometry"}]}', "DELTA_UNSUPPORTED_DATA_TYPES"),
        ('{"type":"struct","fields":[{"type":"long"}]}', "DELTA_INVALID_SCHEMA"),
    ],
)
def test_a_schema_that_cannot_be_read_is_a_sentence_about_the_table(schema_string: str | None, code: str) -> None:
    with pytest.raises(DeltaError, match="/t") as error:
        load_configuration("/t", 7, Protocol(1, 2), Metadata(schema_string=schema_string))
    assert error.value.code == code


def test_a_partition_column_must_be_a_column() -> None:
    metadata = Metadata(schema_string=schema_to_string(PLAIN), partition_columns=["gone"])
    with pytest.raises(ProtocolError, match="'gone'"):
        load_configuration("/t", 7, Protocol(1, 2), metadata)


# writing


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(1, 1),
        Protocol(1, 2),
        Protocol(2, 6),
        Protocol(1, 7, None, ["checkpointProtection", "materializePartitionColumns", "rowTracking", "domainMetadata"]),
        Protocol(3, 7, [], []),
        features("variantType", "variantShredding", "typeWidening", "vacuumProtocolCheck", "deletionVectors"),
    ],
)
def test_tables_whose_features_are_honoured_can_be_written(protocol: Protocol) -> None:
    load(protocol).check_writable()
    # and nothing else stands against it once there is one more
    more = msgspec.structs.replace(
        protocol, min_writer_version=7, writer_features=[*(protocol.writer_features or ()), "fancyWrites"]
    )
    with pytest.raises(UnsupportedFeatureError) as error:
        load(more).check_writable()
    assert error.value.parameters["features"] == ["fancyWrites"]


def test_every_feature_that_is_not_honoured_is_named() -> None:
    protocol = Protocol(1, 7, None, ["icebergWriterCompatV1", "appendOnly", "collations", "icebergCompatV3"])
    with pytest.raises(UnsupportedFeatureError, match="collations, icebergCompatV3, icebergWriterCompatV1") as error:
        load(protocol).check_writable()
    assert error.value.code == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    assert error.value.parameters["features"] == ["collations", "icebergCompatV3", "icebergWriterCompatV1"]


@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        (Protocol(1, 8), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(1, 0), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(1, 7), "DELTA_STATE_RECOVER_ERROR"),
        (Protocol(3, 6, []), "DELTA_STATE_RECOVER_ERROR"),
    ],
)
def test_versions_that_say_too_little_or_too_much_are_not_written(protocol: Protocol, code: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="/t") as error:
        load(protocol).check_writable()
    assert error.value.code == code


def test_features_are_supported_by_name_or_by_version() -> None:
    old, new = load(Protocol(1, 4)), load(Protocol(1, 7, None, ["checkConstraints"]))
    assert old.supports("generatedColumns")
    assert not old.supports("identityColumns")
    assert not old.supports("columnMapping")
    assert new.supports("checkConstraints")
    assert not new.supports("invariants")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.logRetentionDuration", "interval 1 month"),
        ("delta.checkpointInterval", "often"),
        ("delta.isolationLevel", "SnapshotIsolation"),
        ("delta.enableDeletionVectors", "perhaps"),
        ("delta.targetFileSize", "big"),
    ],
)
def test_a_property_that_only_writers_need_stops_writers_only(tmp_path: Path, key: str, value: str) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties={key: value})
    table.create()
    table.append([{"id": 1}])
    configuration = load_snapshot(str(table.path)).configuration
    with pytest.raises(ProtocolError, match=key) as caught:
        configuration.check_writable()
    assert caught.value.code == "DELTA_INVALID_TABLE_PROPERTY"


@pytest.mark.parametrize("provider", ["orc", "json", ""])
def test_data_files_of_another_format_are_refused_by_its_name(tmp_path: Path, provider: str) -> None:
    """Protocol: "Format Specification"."""
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    table.commit([table.metadata(format={"provider": provider, "options": {}})])
    for action in (
        lambda: load_snapshot(tmp_path),
        lambda: read_rows(tmp_path),
        lambda: write_rows(tmp_path, {"id": "long"}, [{"id": 2}]),
        lambda: define(tmp_path, {"id": "long"}, "replace"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=f"have the format '{provider}'") as caught:
            action()
        assert caught.value.code == "DELTA_UNSUPPORTED_FEATURES_FOR_READ"
    assert "metadata.format" in {finding.rule for finding in verify(str(tmp_path)).findings}
    # the version before can be read
    assert read_rows(tmp_path, version=1) == [{"id": 1}]
    table.commit([table.metadata(format={"provider": "Parquet", "options": {}})])
    assert read_rows(tmp_path) == [{"id": 1}]
