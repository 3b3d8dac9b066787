"""The files that log cleanup deletes and keeps; that it changes no remaining version is a property test."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from delta_pyds.errors import CorruptLogError, ProtocolError, StorageError, TimeTravelError
from delta_pyds.log.cleanup import clean_log
from delta_pyds.log.segment import load_segment
from delta_pyds.protocol.actions import Protocol
from delta_pyds.storage.base import FileStatus
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.memory_storage import MemoryStorage
from tests.support.table_builder import TableBuilder

DAY = 86_400_000
# a midnight in UTC
START = 19_700 * DAY
RETENTION = 30 * DAY
NOW = START + 100 * DAY


def clean(table: TableBuilder, now_ms: int = NOW, retention_ms: int = RETENTION, **changes: Any) -> int:
    return clean_log(
        LocalStorage(),
        str(table.path),
        retention_ms=retention_ms,
        now_ms=now_ms,
        configuration={**table.properties, **changes.pop("properties", {})},
        protocol=changes.pop("protocol", msgspec.convert(table.protocol()["protocol"], Protocol)),
        **changes,
    )


def daily(path: Path, days: int, checkpoints: dict[int, str], properties: dict[str, str] | None = None) -> TableBuilder:
    """Version n was committed at noon of day n; checksums for all."""
    table = TableBuilder(path, {"id": "long"}, properties=properties)
    for day in range(days):
        when = {"timestamp_ms": START + day * DAY + DAY // 2}
        if day == 0:
            table.create(**when)
        else:
            table.append([{"id": day}], commit=when)
        age(table.checksum(), when["timestamp_ms"])
        if day in checkpoints:
            for file in table.checkpoint(kind=checkpoints[day]):
                age(file, when["timestamp_ms"])
    return table


def age(path: Path, time_ms: int) -> None:
    os.utime(path, ns=(time_ms * 1_000_000,) * 2)


def left(table: TableBuilder) -> list[str]:
    return sorted(file.name for file in table.log_path.iterdir() if file.is_file())


def commits_left(table: TableBuilder) -> list[int]:
    return [int(name[:20]) for name in left(table) if name[20:] == ".json"]


def of(first: int, last: int, suffix: str) -> list[str]:
    return [f"{version:020d}{suffix}" for version in range(first, last + 1)]


def test_everything_before_the_checkpoint_at_the_cutoff_goes(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, dict.fromkeys((4, 8, 12, 16), "classic"))
    table.compact_log(1, 3)
    table.compact_log(5, 9)
    table.compact_log(8, 11)
    table.compact_log(9, 11)
    (table.log_path / "something.else").write_text("not ours")
    # the cutoff is the midnight before the commit of version 10, so version 9 was the newest then: checkpoint 8
    deleted = clean(table, now_ms=START + 10 * DAY + 1000 + RETENTION)
    assert left(table) == sorted(
        [
            *of(8, 19, ".json"),
            *of(8, 19, ".crc"),
            *(f"{version:020d}.checkpoint.parquet" for version in (8, 12, 16)),
            f"{9:020d}.{11:020d}.compacted.json",
            "_last_checkpoint",
            "something.else",
        ]
    )
    assert deleted == 8 + 8 + 1 + 3
    assert load_segment(LocalStorage(), str(tmp_path), 9).checkpoint is not None
    with pytest.raises(TimeTravelError, match="Available versions: 8 to 19"):
        load_segment(LocalStorage(), str(tmp_path), 7)


def test_the_cutoff_is_a_midnight_in_utc(tmp_path: Path) -> None:
    table = daily(tmp_path, 12, dict.fromkeys(range(1, 12), "classic"))
    assert clean(table, now_ms=START + 6 * DAY - 1 + RETENTION) > 0
    assert commits_left(table)[0] == 4
    assert clean(table, now_ms=START + 6 * DAY - 1 + RETENTION) == 0
    assert clean(table, now_ms=START + 6 * DAY + RETENTION) > 0
    assert commits_left(table)[0] == 5


@pytest.mark.parametrize(("truncation", "first"), [({}, 4), ({"truncate": True}, 10)])
def test_a_truncation_keeps_nothing_from_before_the_cutoff(
    tmp_path: Path, truncation: dict[str, bool], first: int
) -> None:
    """Version 9 is the last old one; the first young one has a checkpoint, and is enough without it."""
    table = daily(tmp_path, 12, dict.fromkeys((4, 10), "classic"))
    clean(table, START + 10 * DAY + DAY // 4 + RETENTION, granularity_ms=60_000, **truncation)
    assert commits_left(table) == list(range(first, 12))


def test_a_commit_exactly_at_the_cutoff_is_old_enough(tmp_path: Path) -> None:
    table = daily(tmp_path, 6, {3: "classic"})
    table.set_mtime(3, START + 4 * DAY)
    clean(table, now_ms=START + 4 * DAY + RETENTION)
    assert commits_left(table)[0] == 3


def test_a_commit_a_millisecond_after_the_cutoff_is_young(tmp_path: Path) -> None:
    table = daily(tmp_path, 6, {3: "classic"})
    table.set_mtime(3, START + 4 * DAY + 1)
    assert clean(table, now_ms=START + 4 * DAY + RETENTION) == 0


@pytest.mark.parametrize(("late_ms", "first"), [(0, 3), (1, 1)])
def test_a_commit_whose_own_time_is_the_cutoff_is_old_enough(tmp_path: Path, late_ms: int, first: int) -> None:
    table = TableBuilder(tmp_path, {"id": "long"}, properties=ICT)
    cutoff = START + 4 * DAY
    for version, time_ms in enumerate([cutoff - 3, cutoff - 2, cutoff - 1, cutoff + late_ms, cutoff + 2]):
        table.create(timestamp_ms=time_ms) if version == 0 else table.append([], commit={"timestamp_ms": time_ms})
        table.set_mtime(version, START)
        if version in (1, 3):
            table.checkpoint()
    clean(table, now_ms=cutoff + RETENTION)
    assert commits_left(table)[0] == first


@pytest.mark.parametrize(("late_ms", "first"), [(0, 3), (1, 1)])
def test_in_commit_times_count_from_the_moment_that_they_were_enabled(tmp_path: Path, late_ms: int, first: int) -> None:
    """Enabled exactly at the cutoff: by their own clock commit 3 is old. A millisecond later, files' times count."""
    cutoff = START + 4 * DAY
    since = {"delta.inCommitTimestampEnablementVersion": "3"}
    since["delta.inCommitTimestampEnablementTimestamp"] = str(cutoff + late_ms)
    table = TableBuilder(tmp_path, {"id": "long"})
    for version in range(5):
        time_ms = cutoff + late_ms + version - 3
        if version == 0:
            table.create(timestamp_ms=time_ms)
        else:
            changed = [table.metadata(properties={**ICT, **since})] if version == 3 else []
            table.commit(changed, timestamp_ms=time_ms)
        if version in (1, 3):
            table.checkpoint()
    clean(table, now_ms=cutoff + RETENTION, properties={**ICT, **since})
    assert commits_left(table)[0] == first


@pytest.mark.parametrize(("late_ms", "gone"), [(-1, True), (0, False)])
def test_what_dead_writers_left_at_the_cutoff_stays(tmp_path: Path, late_ms: int, gone: bool) -> None:
    table = daily(tmp_path, 6, {})
    leftover = table.log_path / f".{'0' * 32}.tmp"
    leftover.write_text("x")
    age(leftover, START + 4 * DAY + late_ms)
    assert clean(table, now_ms=START + 4 * DAY + RETENTION) == int(gone)
    assert leftover.exists() is not gone


def test_without_a_checkpoint_nothing_goes(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, {})
    before = left(table)
    assert clean(table) == 0
    assert left(table) == before


def test_nothing_goes_while_all_is_young(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, {4: "classic", 19: "classic"})
    assert clean(table, now_ms=START + 20 * DAY) == 0
    assert clean(table, now_ms=START + 4 * DAY + RETENTION) == 0
    assert commits_left(table)[0] == 0


def test_no_log_is_no_error() -> None:
    assert (
        clean_log(
            MemoryStorage(),
            "memory://t",
            retention_ms=0,
            now_ms=NOW,
            configuration={},
            protocol=Protocol(1, 2),
        )
        == 0
    )


def test_what_dead_writers_left_goes(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, {})
    names = {"." + "0f" * 16 + ".tmp": 90, "." + "1f" * 16 + ".tmp": 99.5, ".hidden": 1, ".0f.tmp": 1}
    for name, days in names.items():
        (table.log_path / name).write_bytes(b"x")
        age(table.log_path / name, int(START + days * DAY))
    before = set(left(table))
    assert clean(table, retention_ms=DAY) == 1
    assert before - set(left(table)) == {"." + "0f" * 16 + ".tmp"}


def test_a_killed_put_leaves_what_cleanup_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name above is really the one that the storage uses."""
    table = daily(tmp_path, 3, {})

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", die)
        patch.setattr(os, "unlink", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            LocalStorage().put_if_absent(str(table.commit_file(3)), b"x")
    [leftover] = table.log_path.glob(".*")
    age(leftover, START)
    assert clean(table) == 1
    assert not leftover.exists()


# --- the checkpoint that all depends on


def test_an_unfinished_checkpoint_is_not_trusted(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, {4: "classic", 10: "multipart"})
    next(table.log_path.glob("*.checkpoint.0000000002.*")).unlink()
    clean(table)
    assert commits_left(table)[0] == 4


@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-json", "v2-parquet"])
def test_a_damaged_checkpoint_is_not_trusted(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    table = daily(tmp_path, 20, {4: "classic", 10: kind}, {"delta.checkpointPolicy": "v2"})
    file = next(iter(table.log_path.glob(f"{10:020d}.checkpoint.*")))
    file.write_bytes(file.read_bytes()[:-30])
    clean(table)
    assert commits_left(table)[0] == 4
    assert file.name in caplog.text


@pytest.mark.parametrize("kind", ["v2-json", "v2-parquet", "v2-classic"])
def test_a_checkpoint_without_its_sidecar_is_not_trusted(tmp_path: Path, kind: str) -> None:
    table = daily(tmp_path, 20, {4: "classic"}, {"delta.checkpointPolicy": "v2"})
    table.checkpoint(10, kind)
    for sidecar in (table.log_path / "_sidecars").iterdir():
        sidecar.unlink()
    clean(table)
    assert commits_left(table)[0] == 4


@pytest.mark.parametrize("after", [1, 2, 7, 15])
def test_a_cleanup_that_dies_leaves_a_log_without_a_gap(tmp_path: Path, after: int) -> None:
    table = daily(tmp_path, 20, dict.fromkeys((4, 8, 12), "classic"))

    class Dying(LocalStorage):
        left = after

        def delete(self, path: str, *, below: str) -> None:
            if not self.left:
                raise StorageError(f"{path} cannot be deleted now.")
            self.left -= 1
            super().delete(path, below=below)

    def attempt(storage: LocalStorage) -> None:
        clean_log(
            storage,
            str(tmp_path),
            retention_ms=RETENTION,
            now_ms=NOW,
            configuration={},
            protocol=Protocol(1, 2),
        )

    with pytest.raises(StorageError, match="cannot be deleted"):
        attempt(Dying())
    commits = commits_left(table)
    assert commits == list(range(commits[0], 20))
    for version in range(12, 20):
        assert load_segment(LocalStorage(), str(tmp_path), version).version == version
    attempt(LocalStorage())
    assert commits_left(table)[0] == 12


def test_a_stale_hint_does_not_hide_the_table(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, {4: "classic", 12: "classic"})
    table.last_checkpoint({"version": 4, "size": 5})
    clean(table)
    assert commits_left(table)[0] == 12
    assert load_segment(LocalStorage(), str(tmp_path)).version == 19


# --- which clock


ICT = {"delta.enableInCommitTimestamps": "true"}


def test_in_commit_timestamps_decide_where_the_table_has_them(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, dict.fromkeys(range(1, 20), "classic"), ICT)
    for version in range(20):  # as after a copy of the table
        table.set_mtime(version, NOW)
    clean(table, now_ms=START + 10 * DAY + RETENTION)
    assert commits_left(table)[0] == 9


def enabled_later(path: Path) -> TableBuilder:
    table = daily(path, 20, dict.fromkeys(range(1, 20), "classic"))
    times = {"delta.inCommitTimestampEnablementVersion": "20"}
    times["delta.inCommitTimestampEnablementTimestamp"] = str(START + 20 * DAY + DAY // 2)
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}}
    for day in range(20, 30):
        actions = [protocol, table.metadata(properties={**ICT, **times})] if day == 20 else []
        table.commit(actions, timestamp_ms=START + day * DAY + DAY // 2)
        table.set_mtime(day, START)  # the file's time says nothing from here on
        table.checkpoint()
    return table


@pytest.mark.parametrize(("day", "first"), [(10, 9), (20, 19), (21, 20), (25, 24), (60, 29)])
def test_each_side_of_the_enablement_has_its_clock(tmp_path: Path, day: int, first: int) -> None:
    table = enabled_later(tmp_path)
    clean(table, now_ms=START + day * DAY + RETENTION)
    assert commits_left(table)[0] == first


def test_a_commit_that_lacks_its_time_stops_the_cleanup(tmp_path: Path) -> None:
    table = daily(tmp_path, 5, {2: "classic"}, ICT)
    for version in range(5):
        table.commit_file(version).write_text('{"commitInfo":{}}\n')
    before = left(table)
    with pytest.raises(CorruptLogError, match="inCommitTimestamp"):
        clean(table)
    assert left(table) == before


def test_times_of_versions_that_stay_do_not_change(tmp_path: Path) -> None:
    """Version 8's file is older than version 7's: its time is a millisecond after that, and only with it."""
    table = daily(tmp_path, 20, dict.fromkeys((4, 8), "classic"))
    table.set_mtime(8, START + 2 * DAY)
    clean(table, now_ms=START + 12 * DAY + RETENTION)
    assert commits_left(table)[0] == 4


# --- sidecars


def test_old_sidecars_that_nothing_refers_to_go(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, dict.fromkeys((4, 8), "v2-json"), {"delta.checkpointPolicy": "v2"})
    folder = table.log_path / "_sidecars"
    by_version = {version: sidecars_of(table, version) for version in (4, 8)}
    for name, days in (("orphan.parquet", 5), ("young-orphan.parquet", 99.5)):
        (folder / name).write_bytes(b"x")
        age(folder / name, int(START + days * DAY))
    for version, names in by_version.items():
        for name in names:
            age(folder / name, START + version * DAY)
    deleted = clean(table)
    assert commits_left(table)[0] == 8
    assert sorted(file.name for file in folder.iterdir()) == sorted([*by_version[8], "young-orphan.parquet"])
    assert deleted == 8 + 8 + 1 + len(by_version[4]) + 1


def test_an_orphaned_sidecar_goes_though_no_checkpoint_goes(tmp_path: Path) -> None:
    """A writer died before its checkpoint was whole, or the sidecars were too young when their checkpoint went."""
    table = daily(tmp_path, 20, dict.fromkeys((4, 8), "v2-json"), {"delta.checkpointPolicy": "v2"})
    clean(table)
    folder = table.log_path / "_sidecars"
    kept = sorted(folder.iterdir())
    orphan = folder / "orphan.parquet"
    for days, gone in ((99.5, 0), (60, 1)):
        orphan.write_bytes(b"x")
        age(orphan, int(START + days * DAY))
        assert clean(table) == gone
        assert orphan.exists() is not bool(gone)
    assert sorted(folder.iterdir()) == kept


def test_an_orphaned_sidecar_goes_before_any_checkpoint_is_old(tmp_path: Path) -> None:
    table = daily(tmp_path, 3, {2: "v2-json"}, {"delta.checkpointPolicy": "v2"})
    orphan = table.log_path / "_sidecars" / "orphan.parquet"
    orphan.write_bytes(b"x")
    age(orphan, START - DAY)
    kept = sidecars_of(table, 2)
    for name in kept:
        age(orphan.with_name(name), START - DAY)
    assert clean(table, now_ms=START + 2 * DAY + RETENTION) == 1
    assert {file.name for file in orphan.parent.iterdir()} == kept


def test_sidecars_of_protected_checkpoints_stay(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, dict.fromkeys((4, 8), "v2-json"), {"delta.checkpointPolicy": "v2"})
    folder = table.log_path / "_sidecars"
    for file in folder.iterdir():
        age(file, START)
    before = sorted(folder.iterdir())
    features = ["checkpointProtection", "v2Checkpoint"]
    protection = {"delta.requireCheckpointProtectionBeforeVersion": "9"}
    assert clean(table, properties=protection, protocol=Protocol(3, 7, ["v2Checkpoint"], features)) == 0
    assert sorted(folder.iterdir()) == before


def test_who_has_only_the_first_sidecars_to_look_at_reads_no_other_checkpoint(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, dict.fromkeys((4, 8, 12), "v2-json"), {"delta.checkpointPolicy": "v2"})
    [later] = table.log_path.glob(f"{12:020}.checkpoint.*.json")
    for name in sidecars_of(table, 8):
        age(table.log_path / "_sidecars" / name, START)
    later.write_text("damaged")
    assert clean(table, now_ms=START + 9 * DAY + RETENTION)
    assert clean(table, now_ms=START + 9 * DAY + RETENTION) == 0
    assert sidecars_of(table, 8) <= {file.name for file in (table.log_path / "_sidecars").iterdir()}


# --- the checkpoint for readers that do not know V2


@pytest.mark.parametrize("kind", ["v2-json", "v2-parquet"])
@pytest.mark.parametrize("sidecars", [2, 0])
def test_a_v2_checkpoint_that_the_log_begins_with_has_the_classic_name_too(
    tmp_path: Path, kind: str, sidecars: int
) -> None:
    table = daily(tmp_path, 12, {4: "v2-json"}, {"delta.checkpointPolicy": "v2"})
    [original] = table.checkpoint(8, kind, sidecars=sidecars)
    classic = table.log_path / f"{8:020}.checkpoint.parquet"
    assert clean(table, now_ms=START + 4 * DAY + RETENTION) == 0
    # nothing went, so nobody needs it
    assert not classic.exists()
    assert clean(table)
    old = pq.read_table(classic)
    assert [row["version"] for row in old["checkpointMetadata"].to_pylist() if row] == [8]
    [protocol] = [row for row in old["protocol"].to_pylist() if row]
    assert protocol["readerFeatures"] == ["v2Checkpoint"]
    assert len([row for row in old["sidecar"].to_pylist() if row]) == sidecars
    assert not verify(str(table.path)).findings
    # the same content: our own reader takes either for the other
    expected = load_snapshot(table.path, version=8)
    original.unlink()
    again = load_snapshot(table.path, version=8)
    assert (again.protocol, again.metadata, again.totals) == (expected.protocol, expected.metadata, expected.totals)
    assert again.replay.checkpoint is not None
    assert again.replay.checkpoint.is_v2() is bool(sidecars)
    assert clean(table) == 0


def test_a_table_of_classic_checkpoints_gets_none_beside_them(tmp_path: Path) -> None:
    table = daily(tmp_path, 12, {4: "classic", 8: "classic"}, {"delta.checkpointPolicy": "v2"})
    clean(table)
    assert [file.name for file in table.log_path.glob("*.checkpoint.*")] == [f"{8:020}.checkpoint.parquet"]


def sidecars_of(table: TableBuilder, version: int) -> set[str]:
    [file] = table.log_path.glob(f"{version:020d}.checkpoint.*.json")
    lines = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
    return {line["sidecar"]["path"] for line in lines if "sidecar" in line}


def test_sidecars_of_today_and_yesterday_stay_whatever_the_retention(tmp_path: Path) -> None:
    table = daily(tmp_path, 4, {1: "v2-json", 2: "v2-json"}, {"delta.checkpointPolicy": "v2"})
    folder = table.log_path / "_sidecars"
    for days, name in ((3.01, "yesterday"), (2.99, "before")):
        (folder / name).write_bytes(b"x")
        age(folder / name, int(START + days * DAY))
    clean(table, now_ms=START + 4 * DAY + 5, retention_ms=0)
    names = [file.name for file in folder.iterdir()]
    assert "yesterday" in names
    assert "before" not in names


@pytest.mark.parametrize(("late_ms", "gone"), [(-1, True), (0, False)])
def test_a_sidecar_at_the_cutoff_stays(tmp_path: Path, late_ms: int, gone: bool) -> None:
    table = daily(tmp_path, 6, {2: "v2-json", 3: "v2-json"}, {"delta.checkpointPolicy": "v2"})
    orphan = table.log_path / "_sidecars" / "orphan.parquet"
    orphan.write_bytes(b"x")
    age(orphan, START + 4 * DAY + late_ms)
    assert clean(table, now_ms=START + 4 * DAY + RETENTION) > 0
    assert orphan.exists() is not gone


def test_no_sidecar_goes_while_a_checkpoint_cannot_be_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = daily(tmp_path, 20, dict.fromkeys((4, 8), "v2-json"), {"delta.checkpointPolicy": "v2"})
    [damaged] = table.checkpoint(12, "v2-parquet")
    damaged.write_bytes(b"not parquet")
    folder = table.log_path / "_sidecars"
    for file in folder.iterdir():
        age(file, START)
    before = sorted(folder.iterdir())
    clean(table)
    assert commits_left(table)[0] == 8
    assert sorted(folder.iterdir()) == before
    assert "sidecars" in caplog.text


# --- checkpoint protection


PROTECTED = Protocol(1, 7, None, ["checkpointProtection"])


@pytest.mark.parametrize(("before", "first"), [(0, 8), (8, 8), (9, 0), (100, 0)])
def test_protected_checkpoints_go_all_or_not_at_all(
    tmp_path: Path, before: int, first: int, caplog: pytest.LogCaptureFixture
) -> None:
    table = daily(tmp_path, 20, dict.fromkeys((4, 8), "classic"))
    caplog.set_level("INFO")
    properties = {"delta.requireCheckpointProtectionBeforeVersion": str(before)}
    clean(table, protocol=PROTECTED, properties=properties)
    assert commits_left(table)[0] == first
    assert ("protects its checkpoints" in caplog.text) is (first == 0)


def test_without_the_feature_the_property_means_nothing(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, {8: "classic"})
    clean(table, properties={"delta.requireCheckpointProtectionBeforeVersion": "100"})
    assert commits_left(table)[0] == 8


def test_a_protection_that_cannot_be_understood_stops_the_cleanup(tmp_path: Path) -> None:
    table = daily(tmp_path, 20, {8: "classic"})
    with pytest.raises(ProtocolError, match="requireCheckpointProtectionBeforeVersion"):
        clean(table, protocol=PROTECTED, properties={"delta.requireCheckpointProtectionBeforeVersion": "soon"})
    assert commits_left(table)[0] == 0


# --- cost


@pytest.mark.parametrize("in_commit", [False, True])
def test_a_long_log_is_not_listed_to_its_end(in_commit: bool) -> None:
    shown: list[FileStatus] = []

    class Counting(MemoryStorage):
        def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
            for status in super().list_from(directory, start_name):
                shown.append(status)
                yield status

    storage = Counting()
    for version in range(20_000):
        time_ms = START + version * 3_600_000
        line = b'{"commitInfo":{"inCommitTimestamp":%d}}\n' % time_ms if in_commit else b""
        storage.put(f"memory://t/_delta_log/{version:020d}.json", line, time_ms)
    reads: list[str] = []
    storage.on_call = lambda operation, path: reads.append(path) if operation == "read" else None
    clean_log(
        storage,
        "memory://t",
        retention_ms=RETENTION,
        now_ms=START + 3 * DAY + RETENTION,
        configuration=ICT if in_commit else {},
        protocol=Protocol(1, 7),
    )
    assert len(shown) <= 2_000
    assert len(reads) <= 1


@pytest.mark.parametrize("linked", ["_delta_log/_sidecars", "_delta_log"])
def test_nothing_is_deleted_behind_a_linked_directory(tmp_path: Path, linked: str) -> None:
    """The owner of a table makes a link to another user's directory; clean-up would delete what is old there."""
    table = daily(tmp_path / "t", 20, dict.fromkeys((4, 12), "v2-parquet"), {"delta.checkpointPolicy": "v2"})
    theirs = (table.path / linked).rename(tmp_path / "theirs")
    (table.path / linked).symlink_to(theirs)
    if linked.endswith("_sidecars"):
        (theirs / "old.parquet").write_bytes(b"x")
        for file in theirs.iterdir():
            age(file, START)
    before = {file.name for file in theirs.rglob("*")}
    with pytest.raises(StorageError, match=f"'{linked}' is a symbolic link"):
        clean(table)
    assert before <= {file.name for file in theirs.rglob("*")}


def test_what_a_log_names_is_never_deleted_for_that(tmp_path: Path) -> None:
    """Sidecars of expired checkpoints at other places: only what the listing of _sidecars found goes."""
    table = daily(tmp_path / "t", 20, dict.fromkeys((4, 12), "v2-json"), {"delta.checkpointPolicy": "v2"})
    (tmp_path / "theirs.parquet").write_bytes(b"x")
    (table.path / "data.parquet").write_bytes(b"x")
    for top in table.log_path.glob("*4.checkpoint.*.json"):
        lines = [json.loads(line) for line in top.read_text().splitlines()]
        paths = iter([f"file://{tmp_path}/theirs.parquet", "../../data.parquet", str(tmp_path / "theirs.parquet")] * 9)
        for line in lines:
            if "sidecar" in line:
                line["sidecar"]["path"] = next(paths)
        top.write_text("".join(json.dumps(line) + "\n" for line in lines))
        age(top, START)
    for file in [tmp_path / "theirs.parquet", table.path / "data.parquet", *(table.log_path / "_sidecars").iterdir()]:
        age(file, START)
    assert clean(table) > 0
    assert (tmp_path / "theirs.parquet").exists() and (table.path / "data.parquet").exists()
    assert len(list((table.log_path / "_sidecars").iterdir())) == 1
