from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from delta_pyds import explain
from delta_pyds.errors import (
    ChecksumMismatchError,
    CorruptLogError,
    DeltaError,
    ExpressionError,
    MissingLogFilesError,
    OptionError,
    TableNotFoundError,
    TimeTravelError,
)
from delta_pyds.log.adds import AddRequest
from delta_pyds.protocol.paths import LogFileKind
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.support.table_builder import TableBuilder

BOTH = ["deletionVectors", "v2Checkpoint"]


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    built = TableBuilder(tmp_path / "t", {"id": "long"}, features=(BOTH, BOTH))
    built.create()
    for i in range(4):
        built.append([{"id": 10 * i + k} for k in range(3)])
    return built


def paths(snapshot: Snapshot) -> set[str]:
    return {p for b in snapshot.adds(AddRequest(columns=("path",))) for p in b.files.column("path").to_pylist()}


def logged(table: TableBuilder, version: int | None = None) -> set[str]:
    return {a["add"]["path"] for a in table.active(version)}


@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-json", "v2-parquet", "v2-classic"])
@pytest.mark.parametrize("sidecars", [0, 2])
def test_every_kind_of_checkpoint_carries_the_whole_state(table: TableBuilder, kind: str, sidecars: int) -> None:
    table.commit([{"txn": {"appId": "app", "version": 7, "lastUpdated": 1}}])
    table.commit([{"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}])
    table.checkpoint(kind=kind, sidecars=sidecars, row_group_size=2)
    table.cleanup_log(table.version)
    snapshot = load_snapshot(str(table.path))
    assert snapshot.segment.checkpoint is not None
    assert paths(snapshot) == logged(table)
    assert snapshot.transactions["app"].version == 7
    assert snapshot.domain_metadata["d"].configuration == "{}"
    assert snapshot.metadata.id == table.table_id


def test_versions_are_independent_of_later_commits(table: TableBuilder) -> None:
    for version in range(table.version + 1):
        assert paths(load_snapshot(str(table.path), version=version)) == logged(table, version)
    with pytest.raises(TimeTravelError, match=r"\b99\b") as error:
        load_snapshot(str(table.path), version=99)
    assert error.value.code == "DELTA_VERSION_NOT_FOUND"


def test_a_damaged_checkpoint_is_gone_around_while_the_commits_are_there(
    table: TableBuilder, caplog: pytest.LogCaptureFixture
) -> None:
    (file,) = table.checkpoint()
    table.append([{"id": 99}])
    table.truncate(file, 50)
    assert paths(load_snapshot(str(table.path))) == logged(table)
    assert file.name in caplog.text
    table.cleanup_log(4)
    with pytest.raises(CorruptLogError, match=file.name) as error:
        load_snapshot(str(table.path))
    assert error.value.code == "DELTA_CORRUPT_CHECKPOINT"


def test_a_missing_sidecar_is_named(table: TableBuilder) -> None:
    table.checkpoint(kind="v2-json", sidecars=2)
    (first, *_) = sorted((table.log_path / "_sidecars").iterdir())
    first.unlink()
    snapshot = load_snapshot(str(table.path))
    with pytest.raises(MissingLogFilesError, match=first.name) as error:
        paths(snapshot)
    assert error.value.code == "DELTA_MISSING_PART_FILES"


def test_checksums_are_compared_on_request(table: TableBuilder) -> None:
    assert not load_snapshot(str(table.path)).verify_checksum()
    table.checksum()
    assert load_snapshot(str(table.path)).verify_checksum()
    table.checksum(numFiles=77, tableSizeBytes=1)
    with pytest.raises(ChecksumMismatchError, match="77"):
        load_snapshot(str(table.path)).verify_checksum()


def test_deletion_vectors_count_in_the_checksum(table: TableBuilder) -> None:
    table.delete(table.active()[0], [0, 2])
    table.checkpoint()
    table.checksum()
    assert load_snapshot(str(table.path)).verify_checksum()
    table.checksum(numDeletedRecordsOpt=3)
    with pytest.raises(ChecksumMismatchError):
        load_snapshot(str(table.path)).verify_checksum()


def test_totals_count_live_files(table: TableBuilder) -> None:
    totals = load_snapshot(str(table.path)).totals
    assert totals.num_files == 4
    assert totals.size_bytes == sum(a["add"]["size"] for a in table.active())


@pytest.mark.parametrize("content", ["nothing", "directory", "log"])
def test_what_is_no_table_says_what_to_give(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x"
    if content != "nothing":
        (path / "_delta_log" if content == "log" else path).mkdir(parents=True)
    with pytest.raises(TableNotFoundError, match="x") as error:
        load_snapshot(str(path))
    assert error.value.code == ("DELTA_PATH_DOES_NOT_EXIST" if content == "nothing" else "DELTA_MISSING_DELTA_TABLE")


def test_time_travel_takes_the_last_version_not_after(table: TableBuilder) -> None:
    base = 1_700_000_000_000
    for version in range(table.version + 1):
        table.set_mtime(version, base + 1000 * version)
    for ms, version in [(base, 0), (base + 999, 0), (base + 1000, 1), (base + 4000, 4)]:
        assert load_snapshot(str(table.path), timestamp_ms=ms).version == version
    for ms, code in [
        (base - 1, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
        (base + 4001, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
    ]:
        with pytest.raises(DeltaError) as error:
            load_snapshot(str(table.path), timestamp_ms=ms)
        assert error.value.code == code


def test_a_time_is_a_text_or_a_datetime_in_any_zone(table: TableBuilder) -> None:
    noon_ms = 1_767_268_800_000  # 2026-01-01T12:00:00Z
    for version in range(table.version + 1):
        table.set_mtime(version, noon_ms + 1000 * version)
    path = str(table.path)
    for time, zone in [
        ("2026-01-01T12:00:01Z", "America/New_York"),
        ("2026-01-01 12:00:01.999", "UTC"),
        ("2026-01-01 07:00:01", "America/New_York"),
        (dt.datetime(2026, 1, 1, 13, 0, 1), "Europe/Berlin"),
        (dt.datetime(2026, 1, 1, 12, 0, 1, tzinfo=dt.timezone.utc), "Asia/Tokyo"),
    ]:
        assert load_snapshot(path, timestamp=time, time_zone=zone).version == 1
        assert explain(path, timestamp=time, time_zone=zone).version == 1
    for wrong in ("noon", "", 1_767_268_801_000, object()):
        with pytest.raises(OptionError) as error:
            load_snapshot(path, timestamp=wrong)
        assert error.value.code == "DELTA_TIMESTAMP_INVALID"
    with pytest.raises(ExpressionError, match="Mars"):
        load_snapshot(path, timestamp="2026-01-01", time_zone="Mars/Olympus")


def test_an_absurd_version_is_answered_at_once(table: TableBuilder) -> None:
    with pytest.raises(TimeTravelError, match="1700000000000") as error:
        load_snapshot(str(table.path), version=1_700_000_000_000)
    assert error.value.code == "DELTA_VERSION_NOT_FOUND"
    # beyond 64 bits it is not a version
    (table.log_path / "99999999999999999999.json").write_text("{}")
    assert load_snapshot(str(table.path)).version == table.version
    (table.log_path / f"{2**63 - 1:020d}.json").write_text("{}")
    with pytest.raises(MissingLogFilesError, match="version 5"):
        load_snapshot(str(table.path))


def test_a_version_and_a_time_contradict_each_other(table: TableBuilder) -> None:
    with pytest.raises(OptionError) as error:
        load_snapshot(str(table.path), version=1, timestamp_ms=1)
    with pytest.raises(OptionError):
        load_snapshot(str(table.path), timestamp="2026-01-01", timestamp_ms=1)
    assert error.value.code == "DELTA_ONEOF_IN_TIMETRAVEL"


def test_a_damaged_log_compaction_is_gone_around(table: TableBuilder, caplog: pytest.LogCaptureFixture) -> None:
    file = table.compact_log(1, 3)
    assert paths(load_snapshot(str(table.path))) == logged(table)
    file.write_text("garbage")
    assert paths(load_snapshot(str(table.path))) == logged(table)
    assert file.name in caplog.text


TXN = {"txn": {"appId": "a", "version": 1}}
DOMAIN = {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}


@pytest.mark.parametrize(
    "kind", ["add and remove", "add twice", "remove twice", "txn", "domain", "metaData", "protocol"]
)
def test_a_compaction_that_does_not_say_what_came_last_decides_nothing(
    table: TableBuilder, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    (first, *_) = table.active()
    table.commit([table.remove(first)])
    added, removed = [first, *table.active()], table.remove(first)
    doubled: dict[str, list[Any]] = {
        "add and remove": [added[0], removed],
        "add twice": [added[1], added[1]],
        "remove twice": [removed, removed],
        "txn": [TXN, TXN],
        "domain": [DOMAIN, DOMAIN],
        "metaData": [table.metadata(), table.metadata()],
        "protocol": [table.protocol()] * 2,
    }
    files = [table.log_path / f"{f:020d}.{t:020d}.compacted.json" for f, t in [(1, 2), (3, 5), (1, 5), (2, 5), (1, 4)]]
    for file in files:
        file.write_text("".join(json.dumps(action) + "\n" for action in doubled[kind]))
    for _ in range(3):
        assert paths(load_snapshot(str(table.path))) == logged(table)
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) <= len(files)
    assert all(sum(file.name in r.message for r in caplog.records) <= 1 for file in files)
    assert any(file.name in caplog.text for file in files)
    (table.log_path / f"{4:020d}.json").unlink()
    with pytest.raises(CorruptLogError, match="two actions") as error:
        load_snapshot(str(table.path))
    assert error.value.parameters["path"] in map(str, files)


def test_one_file_with_two_deletion_vectors_is_no_contradiction(table: TableBuilder) -> None:
    table.delete(table.active()[0], [0])
    table.delete(table.active()[-1], [0, 1])
    table.compact_log(3, table.version)
    snapshot = load_snapshot(str(table.path))
    assert [f.name.kind for f in snapshot.segment.commits].count(LogFileKind.COMPACTION) == 1
    assert paths(snapshot) == logged(table)
