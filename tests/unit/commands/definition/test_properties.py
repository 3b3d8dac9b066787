"""Properties and constraints set and unset, and all that follows: features, column mapping, row ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.definition.change import DefinitionOptions
from delta_pyds.commands.definition.columns import rename_column
from delta_pyds.commands.definition.constraints import add_constraint, drop_constraint
from delta_pyds.commands.definition.properties import (
    check_alone,
    enables_row_tracking,
    removes_mapping,
    set_properties,
    unset_properties,
)
from delta_pyds.commands.definition.row_tracking import backfill
from delta_pyds.commands.definition.unmapping import remove_mapping
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.errors import DeltaError, OptionError
from delta_pyds.log.adds import AddRequest
from delta_pyds.protocol.schema import INTEGER, STRING, ArrayType, StructField, StructType
from delta_pyds.table.definition.clustering import clustering_columns
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.definitions import alter, commit_info, define, refusal
from tests.support.table_writes import read_rows, write_rows

INNER = StructType((StructField("x", INTEGER), StructField("y", STRING)))
COLUMNS = StructType((StructField("id", INTEGER), StructField("a", ArrayType(INNER)), StructField("p", STRING)))
ROWS = [{"id": n, "a": [{"x": n, "y": str(n)}], "p": f"p{n % 2}"} for n in range(6)]
MAPPED = {"delta.columnMapping.mode": "name"}


def table(path: Path, properties: dict[str, str] | None = None, **more: Any) -> None:
    define(path, COLUMNS, properties=properties or {}, **more)
    write_rows(path, COLUMNS, ROWS[:3])
    write_rows(path, COLUMNS, ROWS[3:])


def by_id(path: Path) -> list[Any]:
    return sorted(read_rows(path), key=lambda row: int(row["id"]))


@pytest.mark.parametrize(
    ("key", "value", "feature"),
    [
        ("delta.enableChangeDataFeed", "true", "changeDataFeed"),
        ("delta.enableDeletionVectors", "true", "deletionVectors"),
        ("delta.enableInCommitTimestamps", "true", "inCommitTimestamp"),
        ("delta.enableTypeWidening", "true", "typeWidening"),
        ("delta.checkpointPolicy", "v2", "v2Checkpoint"),
        ("delta.feature.allowColumnDefaults", "supported", "allowColumnDefaults"),
        ("delta.appendOnly", "true", "appendOnly"),
    ],
)
def test_a_property_brings_its_feature_which_stays(tmp_path: Path, key: str, value: str, feature: str) -> None:
    table(tmp_path)

    after = alter(tmp_path, lambda s: set_properties(s, {key: value}))
    assert after.configuration.supports(feature)
    if key.startswith("delta.feature."):
        assert key not in after.configuration.configuration
        return
    assert commit_info(tmp_path)["operation"] == "SET TBLPROPERTIES"
    after = alter(tmp_path, lambda s: unset_properties(s, [key]))

    assert after.configuration.supports(feature)
    assert not {
        k for k in after.configuration.configuration if "nablementVersion" not in k and "nablementTimestamp" not in k
    }
    assert by_id(tmp_path) == ROWS


def test_own_properties_and_the_comment(tmp_path: Path) -> None:
    table(tmp_path)
    after = alter(tmp_path, lambda s: set_properties(s, {"Owner": "me", "comment": "what it is"}))
    assert dict(after.configuration.configuration) == {"Owner": "me"}
    assert after.metadata.description == "what it is"
    assert refusal(tmp_path, lambda s: unset_properties(s, ["owner"])).code == "DELTA_UNSET_NON_EXISTENT_PROPERTY"
    alter(tmp_path, lambda s: unset_properties(s, ["nobody"], if_exists=True))
    after = alter(tmp_path, lambda s: unset_properties(s, ["Owner", "comment"]))
    assert (dict(after.configuration.configuration), after.metadata.description) == ({}, None)


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"delta.nosuch": "1"}, "DELTA_UNKNOWN_CONFIGURATION"),
        ({"delta.checkpointInterval": "0"}, "DELTA_INVALID_TABLE_PROPERTY"),
        ({"delta.columnMapping.maxColumnId": "9"}, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        ({"delta.columnMapping.mode": "id"}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
        ({"delta.constraints.c": "id > 0"}, "DELTA_ADD_CONSTRAINTS"),
        ({"delta.enableIcebergCompatV2": "true"}, "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY"),
        ({"delta.feature.nosuch": "supported"}, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
        ({"delta.dataSkippingStatsColumns": "q"}, "DELTA_COLUMN_NOT_FOUND"),
        ({"delta.logRetentionDuration": "interval 1 day"}, "DELTA_INVALID_TABLE_PROPERTY"),
    ],
)
def test_properties_that_are_refused(tmp_path: Path, properties: dict[str, str], code: str) -> None:
    table(tmp_path)
    assert refusal(tmp_path, lambda s: set_properties(s, properties)).code == code


def test_a_clustered_table_keeps_statistics_of_its_columns(tmp_path: Path) -> None:
    table(tmp_path, clustering_columns=("id",))
    error = refusal(tmp_path, lambda s: set_properties(s, {"delta.dataSkippingStatsColumns": "p"}))
    assert error.code == "DELTA_CLUSTERING_COLUMN_MISSING_STATS"
    alter(tmp_path, lambda s: set_properties(s, {"delta.dataSkippingStatsColumns": "p,id"}))


def test_names_of_versions_are_features(tmp_path: Path) -> None:
    table(tmp_path)
    after = alter(tmp_path, lambda s: set_properties(s, {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}))
    assert (after.protocol.min_reader_version, after.protocol.min_writer_version) == (2, 5)
    assert not after.configuration.configuration
    version = after.version
    for reader, writer in (("1", "2"), ("3", "7")):
        versions = {"delta.minReaderVersion": reader, "delta.minWriterVersion": writer}
        assert alter(tmp_path, lambda s, v=versions: set_properties(s, v)).protocol == after.protocol
    assert load_snapshot(tmp_path).version == version + 2
    error = refusal(
        tmp_path, lambda s: set_properties(s, {"delta.minReaderVersion": "3", "delta.minWriterVersion": "5"})
    )
    assert error.code == "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE"


# --- column mapping


def test_column_mapping_by_name_leaves_files_and_names_as_they_are(tmp_path: Path) -> None:
    table(tmp_path, {"delta.dataSkippingStatsColumns": "id"}, partition_columns=("p",))

    after = alter(tmp_path, lambda s: set_properties(s, MAPPED))

    assert [(f.name, f.physical_name, f.field_id) for f in after.schema] == [
        ("id", "id", 1),
        ("a", "a", 2),
        ("p", "p", 5),
    ]
    assert after.configuration.configuration["delta.columnMapping.maxColumnId"] == "5"
    assert by_id(tmp_path) == ROWS
    write_rows(tmp_path, COLUMNS, [{"id": 6, "a": None, "p": "z"}])
    assert len(read_rows(tmp_path)) == 7


def test_column_mapping_taken_away(tmp_path: Path) -> None:
    properties = {**MAPPED, "delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
    table(tmp_path, properties, clustering_columns=("id",))
    for old, name in ((("id",), "nr"), (("a", "element", "x"), "ex")):
        alter(tmp_path, lambda s, old=old, name=name: rename_column(s, old, name))
    before = load_snapshot(tmp_path)
    assert removes_mapping(before, {"delta.columnMapping.mode": "None"})

    remove_mapping(before, LocalRunner(), DefinitionOptions(), CommandOptions())

    after = load_snapshot(tmp_path)
    assert after.configuration.column_mapping_mode == "none"
    assert "columnMapping" not in (after.metadata.schema_string or "")
    assert clustering_columns(after.domain_metadata) == (("nr",),)
    rows = sorted(read_rows(tmp_path, row_ids=True), key=lambda row: int(row["nr"]))
    assert [(row["nr"], row["a"][0]["ex"], row["p"]) for row in rows] == [(n, n, f"p{n % 2}") for n in range(6)]
    assert sorted(row["_row_id"] for row in rows) == list(range(6))
    info = commit_info(tmp_path)
    assert info["operation"] == "REMOVE COLUMN MAPPING"
    assert info["operationMetrics"]["numCopiedRows"] == "6"
    assert not verify(str(tmp_path)).findings
    assert len(read_rows(tmp_path, before.version)) == 6


def test_an_interrupt_behind_the_commit_takes_no_file_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come when the version is in the log: while its checksum or its checkpoint is written."""
    table(tmp_path, MAPPED)
    before = by_id(tmp_path)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("delta_pyds.table.transaction.transaction.after_commit", interrupted)
        remove_mapping(load_snapshot(tmp_path), LocalRunner(), DefinitionOptions(), CommandOptions())

    assert load_snapshot(tmp_path).configuration.column_mapping_mode == "none"
    assert by_id(tmp_path) == before


def test_names_that_need_column_mapping_keep_it(tmp_path: Path) -> None:
    table(tmp_path, MAPPED)
    alter(tmp_path, lambda s: rename_column(s, ("id",), "a b"))
    with pytest.raises(DeltaError) as error:
        remove_mapping(load_snapshot(tmp_path), LocalRunner(), DefinitionOptions(), CommandOptions())
    assert error.value.code == "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"
    with pytest.raises(OptionError):
        check_alone({"delta.columnMapping.mode": "none", "x": "y"})


# --- row tracking


def test_row_tracking_gives_ids_to_files_that_are_there(tmp_path: Path) -> None:
    table(tmp_path)
    wanted = {"delta.enableRowTracking": "true"}
    assert enables_row_tracking(load_snapshot(tmp_path), wanted)
    with pytest.raises(DeltaError, match="DELTA_ROW_TRACKING_NOT_READY"):
        alter(tmp_path, lambda s: set_properties(s, wanted))

    backfill(lambda: load_snapshot(tmp_path), DefinitionOptions())
    after = alter(tmp_path, lambda s: set_properties(s, wanted))

    assert after.configuration.has_row_tracking
    assert sorted(row["_row_id"] for row in read_rows(tmp_path, row_ids=True)) == list(range(6))
    bases = [base for b in after.adds(AddRequest(columns=("baseRowId",))) for base in b.files.column(0).to_pylist()]
    assert sorted(bases) == [0, 3]
    version = after.version
    backfill(lambda: load_snapshot(tmp_path), DefinitionOptions())
    assert load_snapshot(tmp_path).version == version
    after = alter(tmp_path, lambda s: set_properties(s, {"delta.enableRowTracking": "false"}))
    assert not after.configuration.has_row_tracking


# --- constraints


def test_constraints_come_and_go(tmp_path: Path) -> None:
    table(tmp_path)

    after = alter(tmp_path, lambda s: add_constraint(s, "Small", "id < 100"))
    assert dict(after.configuration.configuration) == {"delta.constraints.small": "id < 100"}
    assert after.configuration.supports("checkConstraints")
    assert commit_info(tmp_path)["operationParameters"] == {"name": "Small", "expr": "id < 100"}
    assert refusal(tmp_path, lambda s: add_constraint(s, "SMALL", "id < 9")).code == "DELTA_CONSTRAINT_ALREADY_EXISTS"
    with pytest.raises(DeltaError, match="DELTA_VIOLATE_CONSTRAINT"):
        write_rows(tmp_path, COLUMNS, [{"id": 100, "a": None, "p": "z"}])

    after = alter(tmp_path, lambda s: drop_constraint(s, "small"))
    assert not after.configuration.configuration
    assert refusal(tmp_path, lambda s: drop_constraint(s, "small")).code == "DELTA_CONSTRAINT_DOES_NOT_EXIST"
    alter(tmp_path, lambda s: drop_constraint(s, "small", if_exists=True))
