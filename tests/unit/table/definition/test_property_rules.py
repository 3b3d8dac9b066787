from __future__ import annotations

import pytest

from delta_pyds.errors import OptionError
from delta_pyds.protocol.properties import parse_properties
from delta_pyds.table.definition.property_rules import PROPERTY_RULES, read_properties


def test_known_keys_are_found_whatever_their_case_and_stored_as_the_reference_spells_them() -> None:
    request = read_properties({"DELTA.APPENDONLY": " TRUE ", "delta.checkpointpolicy": "V2", "My.Key": "As Is"})
    assert request.configuration == {"delta.appendOnly": "true", "delta.checkpointPolicy": "v2", "My.Key": "As Is"}


@pytest.mark.parametrize("key", ["delta.appendOnyl", "delta.", "Delta.nothing"])
def test_an_unknown_key_of_delta_is_refused(key: str) -> None:
    with pytest.raises(OptionError, match=key) as error:
        read_properties({key: "true"})
    assert error.value.code == "DELTA_UNKNOWN_CONFIGURATION"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.appendOnly", "yes"),
        ("delta.autoOptimize.autoCompact", "legacy"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.checkpointInterval", "1_0"),
        ("delta.checkpointPolicy", "v3"),
        ("delta.columnMapping.mode", "position"),
        ("delta.isolationLevel", "SnapshotIsolation"),
        ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.randomPrefixLength", "0"),
        ("delta.logRetentionDuration", "interval 1 month"),
        ("delta.logRetentionDuration", "-3 days"),
        ("delta.logRetentionDuration", ""),
        ("delta.targetFileSize", "0"),
        ("delta.minReaderVersion", "4"),
        ("delta.minWriterVersion", "8"),
        ("delta.minWriterVersion", "0"),
        ("delta.parquet.format.version", "new"),
        ("delta.universalFormat.enabledFormats", "iceberg"),
        ("delta.compatibility.symlinkFormatManifest.enabled", "true"),
        ("delta.coordinatedCommits.commitCoordinator-preview", "dynamodb"),
        ("delta.constraints.", "a > 0"),
        ("delta.constraints.c", " "),
    ],
)
def test_an_impossible_value_is_refused_with_key_and_value(key: str, value: str) -> None:
    with pytest.raises(OptionError) as error:
        read_properties({key: value})
    assert error.value.code == "DELTA_INVALID_TABLE_PROPERTY"
    assert key in error.value.message
    assert f"'{value}'" in error.value.message


@pytest.mark.parametrize(
    "key",
    [
        "delta.columnMapping.maxColumnId",
        "delta.inCommitTimestampEnablementVersion",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.requireCheckpointProtectionBeforeVersion",
    ],
)
def test_what_writers_keep_cannot_be_set(key: str) -> None:
    with pytest.raises(OptionError) as error:
        read_properties({key: "1"})
    assert error.value.code == "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"


def test_properties_about_the_protocol_are_not_stored() -> None:
    request = read_properties(
        {
            "delta.minReaderVersion": "2",
            "delta.minWriterVersion": "5",
            "delta.ignoreProtocolDefaults": "true",
            "delta.feature.DELETIONVECTORS": "Supported",
            "delta.feature.domainMetadata": "enabled",
        }
    )
    assert request.configuration == {}
    assert request.features == ("deletionVectors", "domainMetadata")
    assert request.versions == (2, 5)


@pytest.mark.parametrize(
    ("properties", "versions"),
    [
        ({}, (1, 2)),
        ({"delta.ignoreProtocolDefaults": "true"}, (1, 1)),
        ({"delta.minWriterVersion": "4"}, (1, 4)),
        ({"delta.minReaderVersion": "3"}, (2, 2)),
        ({"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}, (3, 7)),
    ],
)
def test_versions_that_are_not_given_are_the_defaults(properties: dict[str, str], versions: tuple[int, int]) -> None:
    assert read_properties(properties).versions == versions


def test_a_feature_can_only_be_supported() -> None:
    with pytest.raises(OptionError, match="disabled") as error:
        read_properties({"delta.feature.domainMetadata": "disabled"})
    assert error.value.code == "DELTA_UNSUPPORTED_FEATURE_STATUS"


@pytest.mark.parametrize("name", ["catalogManaged", "icebergCompatV3", "collations", "noSuchThing"])
def test_a_feature_that_is_not_written_cannot_be_asked_for(name: str) -> None:
    with pytest.raises(OptionError, match=name) as error:
        read_properties({f"delta.feature.{name}": "supported"})
    assert error.value.code == "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"


def test_names_of_constraints_are_lower_case_and_their_texts_as_given() -> None:
    assert read_properties({"Delta.Constraints.Positive": "A > 0"}).configuration == {
        "delta.constraints.positive": "A > 0"
    }


def test_the_log_must_be_kept_as_long_as_removed_files() -> None:
    for properties in (
        {"delta.logRetentionDuration": "interval 6 days"},
        {"delta.deletedFileRetentionDuration": "interval 31 days"},
    ):
        with pytest.raises(OptionError, match="logRetentionDuration"):
            read_properties(properties)
    both = {"delta.logRetentionDuration": "interval 1 day", "delta.deletedFileRetentionDuration": "interval 1 day"}
    assert read_properties(both).configuration == both


def test_row_tracking_cannot_be_enabled_and_suspended() -> None:
    with pytest.raises(OptionError) as error:
        read_properties({"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"})
    assert error.value.code == "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION"


def test_one_property_in_two_spellings_with_two_values_is_refused() -> None:
    with pytest.raises(OptionError, match="appendOnly"):
        read_properties({"delta.appendOnly": "true", "delta.appendonly": "false"})
    assert read_properties({"delta.appendOnly": "true", "delta.appendonly": "TRUE"}).configuration == {
        "delta.appendOnly": "true"
    }


def test_what_the_rules_accept_can_be_read_back_as_properties() -> None:
    values = {
        "delta.isolationlevel": "writeserializable",
        "delta.targetfilesize": "64MB",
        "delta.settransactionretentionduration": "2 weeks",
        "delta.dataskippingnumindexedcols": "-1",
        "delta.columnmapping.mode": "NAME",
    }
    parsed = parse_properties(read_properties(values).configuration)
    assert parsed.isolation_level == "WriteSerializable"
    assert parsed.target_file_bytes == 64 * 1024 * 1024
    assert parsed.transaction_retention_ms == 14 * 86_400_000
    assert (parsed.num_indexed_columns, parsed.column_mapping_mode) == (-1, "name")


def test_every_rule_is_found_under_its_own_key() -> None:
    assert all(key == rule.key.lower() and key.startswith("delta.") for key, rule in PROPERTY_RULES.items())
