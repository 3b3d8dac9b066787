from __future__ import annotations

import json
from typing import Any

import pytest

from delta_pyds.errors import CorruptLogError
from delta_pyds.protocol.actions import AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from delta_pyds.protocol.schema import LONG, StructField, StructType, schema_to_string
from delta_pyds.table.transaction.conflict import Adopted, WinningCommit
from delta_pyds.table.transaction.rebase import (
    NO_TABLE,
    LatestState,
    advance,
    enable_in_commit_timestamps,
    has_in_commit_timestamps,
    move_type_changes,
    next_in_commit_timestamp,
    state_of,
)
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import ROOT, Table, file

ON = {"delta.enableInCommitTimestamps": "true"}
VERSION, TIMESTAMP = "delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp"
WITH, WITHOUT = Protocol(1, 7, None, ["inCommitTimestamp"]), Protocol(1, 7, None, ["appendOnly"])


def metadata(configuration: dict[str, Any] | None = None) -> Metadata:
    return Metadata(schema_string=schema_to_string(StructType((StructField("id", LONG),))), configuration=configuration)


def latest(**given: Any) -> LatestState:
    return LatestState(**{"version": 4, "protocol": WITHOUT, "metadata": metadata(), **given})


# --- after a winner


def followed(winner: WinningCommit, *, operation: str = "WRITE", before: LatestState | None = None) -> LatestState:
    return advance(before or latest(), winner, Adopted(WITHOUT, metadata()), operation=operation, commit_time_ms=70)


def winner(
    operation: str, *adds: AddFile, removes: tuple[RemoveFile, ...] = (), time: int | None = None
) -> WinningCommit:
    info = CommitInfo(operation=operation, in_commit_timestamp=time)
    return WinningCommit(5, info, adds=adds, removes=removes)


def test_only_a_backfill_tells_row_ids_of_files_that_were_there() -> None:
    numbered = file("a", base_row_id=3, default_row_commit_version=5)
    assert followed(winner("WRITE", numbered)).row_ids == {}
    assert followed(winner("ROW TRACKING BACKFILL", numbered)).row_ids == {"a": numbered}


@pytest.mark.parametrize("operation", ["ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL"])
def test_only_a_backfill_of_ours_keeps_what_winners_did_with_files(operation: str) -> None:
    won = winner("DELETE", file("new"), removes=(RemoveFile("gone"),))
    assert followed(won).settled == frozenset()
    assert followed(won, operation=operation).settled == {"new", "gone"}


def test_the_time_of_the_last_commit_is_the_winners() -> None:
    before = latest(commit_time_ms=99, in_commit_timestamp=999)
    after = followed(winner("WRITE", time=50), before=before)
    assert (after.version, after.commit_time_ms, after.in_commit_timestamp) == (5, 70, 50)
    assert followed(WinningCommit(5), before=before).in_commit_timestamp is None


# --- in-commit timestamps


@pytest.mark.parametrize(
    ("protocol", "configuration", "expected"),
    [
        (WITH, ON, True),
        (WITH, {"delta.enableInCommitTimestamps": "false"}, False),
        (WITH, {}, False),
        (WITH, None, False),
        (WITHOUT, ON, False),
        (Protocol(1, 2), ON, False),
        (None, ON, False),
    ],
)
def test_times_are_in_commits_where_the_feature_is_there_and_turned_on(
    protocol: Protocol | None, configuration: dict[str, Any] | None, expected: bool
) -> None:
    assert has_in_commit_timestamps(protocol, metadata(configuration)) is expected
    assert has_in_commit_timestamps(protocol, None) is False


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (NO_TABLE, 1_000),
        (latest(), 1_000),
        # the first of its kind is later than the file before it, and than a time that this carries for no reason
        (latest(commit_time_ms=1_000), 1_001),
        (latest(commit_time_ms=999), 1_000),
        (latest(in_commit_timestamp=1_000), 1_001),
        (latest(commit_time_ms=2_000, in_commit_timestamp=3_000), 3_001),
        (latest(commit_time_ms=3_000, in_commit_timestamp=2_000), 3_001),
        # from then on the times of files say nothing
        (latest(protocol=WITH, metadata=metadata(ON), commit_time_ms=5_000, in_commit_timestamp=999), 1_000),
        (latest(protocol=WITH, metadata=metadata(ON), commit_time_ms=5_000, in_commit_timestamp=1_000), 1_001),
        (latest(protocol=WITH, metadata=metadata(ON), in_commit_timestamp=4_000), 4_001),
    ],
)
def test_each_time_is_later_than_all_before_it(before: LatestState, expected: int) -> None:
    assert next_in_commit_timestamp(before, 1_000, "/t") == expected


def test_the_first_time_is_later_than_the_file_before_it() -> None:
    table = Table(MemoryStorage(), clock=lambda: 1_000)
    table.create()
    (status,) = table.storage.list_from(f"{ROOT}/_delta_log", "")
    assert state_of(table.snapshot()).commit_time_ms == status.modification_time_ms > 1_000
    table.set_properties(
        Protocol(1, 7, None, ["appendOnly", "invariants", "inCommitTimestamp"]), delta_enableInCommitTimestamps="true"
    )
    assert table.info(1)["inCommitTimestamp"] == status.modification_time_ms + 1


@pytest.mark.parametrize("line", ['{"commitInfo":{"operation":"WRITE"}}', '{"txn":{"appId":"a","version":1}}'])
def test_a_last_commit_that_does_not_say_its_time_is_not_followed(line: str) -> None:
    table = Table(MemoryStorage())
    table.create(properties=ON, protocol=WITH)
    table.storage.put_if_absent(f"{ROOT}/_delta_log/{1:020d}.json", line.encode() + b"\n")
    with pytest.raises(CorruptLogError, match="Version 1 of table") as error:
        table.append("a")
    assert error.value.code == "DELTA_MISSING_COMMIT_TIMESTAMP"


GIVEN = {**ON, VERSION: "77", TIMESTAMP: "7777", "k": "v"}


@pytest.mark.parametrize(
    ("before", "enabled_before", "version", "expected"),
    [
        # a table that is born with the feature does not say since when, independent of what it was made after
        (None, False, 0, {}),
        (None, False, 5, {VERSION: "5", TIMESTAMP: "123"}),
        (ON, True, 5, {}),
        ({**ON, VERSION: "2", TIMESTAMP: "22"}, True, 5, {VERSION: "2", TIMESTAMP: "22"}),
        ({**ON, VERSION: "2", TIMESTAMP: "22"}, False, 5, {VERSION: "5", TIMESTAMP: "123"}),
    ],
)
def test_the_table_says_since_when_by_itself(
    before: dict[str, str] | None, enabled_before: bool, version: int, expected: dict[str, str]
) -> None:
    for given in (GIVEN, {**ON, "k": "v"}):
        found = enable_in_commit_timestamps(
            metadata(given),
            latest(metadata=metadata(before)),
            version=version,
            timestamp_ms=123,
            enabled_before=enabled_before,
        )
        assert found.configuration == {**ON, "k": "v", **expected}


# --- type changes


def test_a_schema_without_changes_of_types_stays_as_it_was_written() -> None:
    text = json.dumps(json.loads(metadata().schema_string or ""), indent=1)
    given = Metadata(schema_string=text)
    assert move_type_changes(given, planned=3, version=4) is given


@pytest.mark.parametrize(("version", "expected"), [(3, [1, 3, 2]), (5, [1, 5, 2])])
def test_only_changes_that_were_planned_for_the_version_move(version: int, expected: list[int]) -> None:
    changes = [{"toType": "long", "fromType": "integer", "tableVersion": n} for n in (1, 3, 2)]
    inner = StructType((StructField("x", LONG, metadata={"delta.typeChanges": changes}),))
    text = schema_to_string(StructType((StructField("s", inner),)))
    moved = move_type_changes(Metadata(schema_string=text), planned=3, version=version)
    (outer,) = json.loads(moved.schema_string or "")["fields"]
    (field,) = outer["type"]["fields"]
    assert [change["tableVersion"] for change in field["metadata"]["delta.typeChanges"]] == expected
