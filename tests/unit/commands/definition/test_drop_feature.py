"""Features taken away: nothing of them is left in the table, and what still needs them forbids it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.definition.change import DefinitionOptions
from delta_pyds.commands.definition.constraints import drop_constraint
from delta_pyds.commands.definition.drop_feature import drop_feature
from delta_pyds.commands.definition.properties import set_properties
from delta_pyds.errors import DeltaError, UnsupportedOperationError
from delta_pyds.log.checkpoint_reader import AddRequest
from delta_pyds.protocol.actions import Protocol
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.definitions import alter, commit_info, define
from tests.support.table_writes import read_rows, write_rows

IDS = {"id": "long"}


def table(path: Path, **properties: str) -> None:
    named = {"delta." + key.replace("_", "."): value for key, value in properties.items()}
    define(path, IDS, properties=named)
    write_rows(path, IDS, [{"id": 1}, {"id": 2}])


def drop(path: Path, name: str, **more: Any) -> Snapshot:
    drop_feature(lambda: load_snapshot(path), name, DefinitionOptions(), **more)
    report = verify(str(path))
    assert not report.findings, report
    assert sorted(row["id"] for row in read_rows(path)) == [1, 2]
    return load_snapshot(path)


def refusal(path: Path, name: str, **more: Any) -> DeltaError:
    version = load_snapshot(path).version
    with pytest.raises(DeltaError) as error:
        drop(path, name, **more)
    assert load_snapshot(path).version == version
    return error.value


def test_row_tracking_leaves_nothing_behind(tmp_path: Path) -> None:
    table(tmp_path, enableRowTracking="true")
    assert refusal(tmp_path, "domainMetadata").code == "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"

    after = drop(tmp_path, "ROWTRACKING")

    assert after.protocol == Protocol(1, 7, None, ["appendOnly", "domainMetadata", "invariants"])
    assert (dict(after.configuration.configuration), dict(after.domain_metadata)) == ({}, {})
    [batch] = after.adds(AddRequest(columns=("baseRowId", "defaultRowCommitVersion")))
    assert [column.null_count for column in batch.files.columns] == [1, 1]
    assert commit_info(tmp_path)["operationParameters"] == {"featureName": "rowTracking", "truncateHistory": False}
    assert commit_info(tmp_path, -2)["operation"] == "ROW TRACKING UNBACKFILL"
    write_rows(tmp_path, IDS, [])
    assert drop(tmp_path, "domainMetadata").protocol == Protocol(1, 2)


def test_in_commit_timestamps_end(tmp_path: Path) -> None:
    table(tmp_path)
    alter(tmp_path, lambda s: set_properties(s, {"delta.enableInCommitTimestamps": "true"}))

    after = drop(tmp_path, "inCommitTimestamp")

    assert after.protocol == Protocol(1, 2)
    assert dict(after.configuration.configuration) == {"delta.enableInCommitTimestamps": "false"}


def test_constraints_go_before_their_feature(tmp_path: Path) -> None:
    table(tmp_path, constraints_c="id > 0")
    assert refusal(tmp_path, "checkConstraints").code == "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"
    alter(tmp_path, lambda s: drop_constraint(s, "c"))
    assert drop(tmp_path, "checkConstraints").protocol == Protocol(1, 2)


def test_another_writer_is_seen(tmp_path: Path) -> None:
    """The commit that drops comes right after the version that was looked at, or everything is looked at again."""
    table(tmp_path, feature_checkConstraints="supported")
    opened = []

    def open_table() -> Snapshot:
        snapshot = load_snapshot(tmp_path)
        if not opened:
            write_rows(tmp_path, IDS, [{"id": 3}])
        opened.append(snapshot.version)
        return snapshot

    drop_feature(open_table, "checkConstraints", DefinitionOptions())

    assert opened == [1, 2]
    assert load_snapshot(tmp_path).protocol == Protocol(1, 2)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nosuch", "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("checkConstraints", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        ("appendOnly", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
    ],
)
def test_features_that_are_not_dropped(tmp_path: Path, name: str, code: str) -> None:
    table(tmp_path)
    assert refusal(tmp_path, name).code == code


def test_what_readers_know_is_refused_by_name(tmp_path: Path) -> None:
    table(tmp_path, enableDeletionVectors="true", enableInCommitTimestamps="true")
    assert isinstance(refusal(tmp_path, "deletionVectors"), UnsupportedOperationError)
    error = refusal(tmp_path, "inCommitTimestamp", truncate_history=True)
    assert error.code == "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"
