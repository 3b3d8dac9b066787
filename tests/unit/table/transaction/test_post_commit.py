from __future__ import annotations

import itertools
import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from delta_pyds.errors import StorageError
from delta_pyds.log.checksum import VersionChecksum
from delta_pyds.protocol.actions import Protocol
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.configuration import load_configuration
from delta_pyds.table.transaction.maintenance import checkpoint_settings
from delta_pyds.table.transaction.transaction import CommitPolicy, Operation
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import QUIET, ROOT, WRITE, Table, file, removed

ALL = CommitPolicy()
DAY_MS = 86_400_000
NOW = 1_700_000_000_000


def new(storage: MemoryStorage | None = None, **given: Any) -> Table:
    table = Table(storage or MemoryStorage())
    table.creation(**given).commit(Operation("CREATE TABLE"))
    return table


def checksum(table: Table, version: int) -> VersionChecksum:
    data = table.storage.read(f"{table.root}/_delta_log/{version:020d}.crc")
    return msgspec.json.decode(data, type=VersionChecksum)


def has(table: Table, name: str) -> bool:
    return any(n.endswith(name) for n in table.names())


# --- checksums


def test_every_commit_gets_a_checksum_that_is_true() -> None:
    table = new()
    table.append("a", "b", policy=ALL)
    mine = table.start()
    mine.remove(removed("a"))
    mine.set_application("app", 7)
    mine.commit(WRITE)
    assert [checksum(table, v).num_files for v in range(3)] == [0, 2, 1]
    last = checksum(table, 2)
    assert (last.table_size_bytes, last.txn_id) == (10, table.info(2)["txnId"])
    assert [(t.app_id, t.version) for t in last.set_transactions or ()] == [("app", 7)]
    assert table.snapshot().verify_checksum()


def test_a_checksum_comes_over_the_winners() -> None:
    table = new()
    mine = table.start()
    mine.add(file("mine"))
    table.append("x", policy=ALL)
    table.append("y", policy=ALL)
    mine.commit(WRITE)
    assert checksum(table, 3).num_files == 3
    assert table.snapshot().verify_checksum()


@pytest.mark.parametrize("missing", [1, 5])
def test_winners_that_have_no_checksum_yet_are_added_up(missing: int) -> None:
    table = new(protocol=Protocol(1, 7, None, ["inCommitTimestamp"]), properties={
        "delta.enableInCommitTimestamps": "true", "delta.checkpointInterval": "100",
    })  # fmt: skip
    for i in range(missing):
        table.append(f"x{i}")
    table.set_properties(user_key="v")
    table.append("mine", policy=ALL)
    newest = missing + 2
    assert not has(table, f"{newest - 1:020d}.crc")
    found = checksum(table, newest)
    assert found.num_files == missing + 1
    assert found.in_commit_timestamp_opt == table.info(newest)["inCommitTimestamp"]
    assert found.metadata is not None and (found.metadata.configuration or {})["user.key"] == "v"
    assert table.snapshot().verify_checksum()


def test_without_any_checksum_none_is_guessed_until_a_checkpoint() -> None:
    table = new(properties={"delta.checkpointInterval": "5"})
    table.storage.delete(f"{ROOT}/_delta_log/{0:020d}.crc")
    for i in range(1, 8):
        table.append(f"f{i}", policy=ALL)
    crcs = [n for n in table.names() if n.endswith(".crc")]
    assert [int(n[:20]) for n in crcs] == [5, 6, 7]
    assert checksum(table, 7).num_files == 7
    assert table.snapshot(5).verify_checksum() and table.snapshot().verify_checksum()


def test_a_checksum_that_is_there_is_not_overwritten() -> None:
    table = new()
    path = f"{ROOT}/_delta_log/{1:020d}.crc"
    table.storage.put_if_absent(path, b"{}")
    table.append("a", policy=ALL)
    assert table.storage.read(path) == b"{}"


def test_a_damaged_checksum_is_gone_around(caplog: pytest.LogCaptureFixture) -> None:
    table = new()
    table.append("a", policy=ALL)
    table.storage.put(f"{ROOT}/_delta_log/{1:020d}.crc", b"{")
    table.append("b", policy=ALL)
    assert checksum(table, 2).num_files == 2
    assert "is ignored" in caplog.text


def _changed(table: Table, version: int, **fields: Any) -> None:
    path = f"{ROOT}/_delta_log/{version:020d}.crc"
    table.storage.put(path, json.dumps(json.loads(table.storage.read(path)) | fields).encode())


@pytest.mark.parametrize(
    "fields",
    [
        {"numFiles": 7},
        {"numFiles": -1},
        {"tableSizeBytes": 6},
        {"numFiles": 0},
        {"numMetadata": 2},
        {"numProtocol": 0},
        {"numDeletionVectorsOpt": 9},
        {"allFiles": []},
        {"fileSizeHistogram": {"sortedBinBoundaries": [0], "fileCounts": [3], "totalBytes": [5]}},
    ],
)
def test_a_checksum_that_contradicts_itself_is_gone_around(fields: dict[str, Any]) -> None:
    table = new()
    table.append("a", policy=ALL)
    _changed(table, 1, **fields)
    table.append("b", policy=ALL)
    assert checksum(table, 2).num_files == 2
    assert table.snapshot().verify_checksum()


@pytest.mark.parametrize("of", ["metadata", "protocol", "inCommitTimestampOpt"])
def test_a_checksum_of_another_definition_is_not_advanced(of: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its numbers may be right; what it says of the table would be repeated by every version that comes."""
    table = new(protocol=Protocol(1, 7, None, ["inCommitTimestamp"]), properties={
        "delta.enableInCommitTimestamps": "true", "delta.checkpointInterval": "100",
    })  # fmt: skip
    table.append("a", policy=ALL)
    known = json.loads(table.storage.read(f"{ROOT}/_delta_log/{1:020d}.crc"))
    other = {
        "metadata": {**known["metadata"], "id": "another table"},
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        "inCommitTimestampOpt": 2**61,
    }
    _changed(table, 1, **{of: other[of]})
    table.append("b", policy=ALL)
    assert not has(table, f"{2:020d}.crc")
    assert "has another protocol, other metadata or a later time" in caplog.text


def test_a_checksum_without_a_definition_is_not_advanced() -> None:
    """Old writers left it out. One commit that brings both makes it whole."""
    table = new()
    table.append("a", policy=ALL)
    path = f"{ROOT}/_delta_log/{1:020d}.crc"
    four = ("tableSizeBytes", "numFiles", "numMetadata", "numProtocol")
    table.storage.put(
        path, json.dumps({k: v for k, v in json.loads(table.storage.read(path)).items() if k in four}).encode()
    )
    table.append("b", policy=ALL)
    assert not has(table, f"{2:020d}.crc")


def test_transactions_that_expire_are_not_in_checksums() -> None:
    table = new(properties={"delta.setTransactionRetentionDuration": "interval 1 days"})
    mine = table.start()
    mine.set_application("app", 1)
    mine.commit(WRITE)
    assert checksum(table, 1).set_transactions is None


# --- checkpoints


def test_a_checkpoint_comes_every_so_many_commits() -> None:
    table = new(properties={"delta.checkpointInterval": "3"})
    for i in range(1, 8):
        table.append(f"f{i}", policy=ALL)
    checkpoints = [int(n[:20]) for n in table.names() if n.endswith(".checkpoint.parquet")]
    assert checkpoints == [3, 6]
    assert has(table, "_last_checkpoint")
    snapshot = table.snapshot()
    assert snapshot.segment.checkpoint is not None and snapshot.segment.checkpoint.version == 6
    assert snapshot.totals.num_files == 7
    assert snapshot.verify_checksum()


def test_the_table_at_a_checkpoint_is_the_same_without_it() -> None:
    table = new(properties={"delta.checkpointInterval": "4"}, partitioned=True)
    table.append("a", "b", p="x", policy=ALL)
    mine = table.start()
    mine.remove(removed("a", partition_values={"p": "x"}))
    mine.set_application("app", 3)
    mine.commit(WRITE)
    table.append("c", p="y", policy=ALL)
    table.append("d", p="z", policy=ALL)
    after = table.snapshot()
    assert after.segment.checkpoint is not None
    for version in range(5):
        table.storage.delete(f"{ROOT}/_delta_log/{version:020d}.json")
    alone = table.snapshot()
    assert alone.totals == after.totals and alone.totals.num_files == 3
    assert alone.transactions["app"].version == 3
    assert alone.metadata == after.metadata


@pytest.mark.parametrize("local", [False, True])
def test_v2_checkpoints_where_the_table_wants_them(local: bool, tmp_path: Path) -> None:
    both = ["v2Checkpoint"]
    table = Table(LocalStorage(), str(tmp_path / "t")) if local else Table(MemoryStorage())
    creation = table.creation(
        protocol=Protocol(3, 7, both, both),
        properties={"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
    )
    creation.commit(Operation("CREATE TABLE"))
    table.append("a", policy=ALL)
    table.append("b", policy=ALL)
    found = table.snapshot().segment.checkpoint
    assert found is not None and found.kind == "v2-json"
    assert table.snapshot().totals.num_files == 2


def test_without_post_commit_nothing_but_the_commit_is_written() -> None:
    table = new(properties={"delta.checkpointInterval": "1"})
    before = set(table.names())
    table.append("a", policy=QUIET)
    assert set(table.names()) - before == {f"{1:020d}.json"}


def test_settings_follow_the_properties() -> None:
    table = new(
        partitioned=True,
        properties={
            "delta.checkpoint.writeStatsAsJson": "false",
            "delta.checkpoint.writeStatsAsStruct": "false",
            "delta.deletedFileRetentionDuration": "interval 2 days",
            "delta.setTransactionRetentionDuration": "interval 3 days",
            "delta.checkpointPolicy": "v2",
        },
    )
    snapshot = table.snapshot()
    settings = checkpoint_settings(snapshot.configuration, snapshot.replay, now_ms=NOW)
    assert (settings.stats_as_json, settings.stats_as_struct, settings.policy) == (False, False, "v2")
    assert settings.tombstones_since_ms == NOW - 2 * DAY_MS
    assert settings.transactions_since_ms == NOW - 3 * DAY_MS
    assert settings.partition_columns == ("p",) and settings.statistics_columns == (("id",),)
    plain = load_configuration(ROOT, 0, snapshot.protocol, msgspec.structs.replace(snapshot.metadata, configuration={}))
    settings = checkpoint_settings(plain, snapshot.replay, now_ms=NOW)
    assert (settings.stats_as_json, settings.stats_as_struct, settings.policy) == (True, True, "classic")
    assert settings.tombstones_since_ms == NOW - 7 * DAY_MS
    assert settings.transactions_since_ms is None


# --- clean-up


@pytest.mark.parametrize("clean", [True, False])
def test_expired_commits_go_after_a_checkpoint_where_the_table_wants_it(clean: bool) -> None:
    now = [NOW]
    storage = MemoryStorage(clock=lambda: now[0])
    table = Table(storage, clock=lambda: now[0])
    table.creation(
        properties={"delta.checkpointInterval": "5", "delta.enableExpiredLogCleanup": str(clean).lower()}
    ).commit(Operation("CREATE TABLE"))
    for i in range(1, 11):
        now[0] += 10 * DAY_MS
        table.append(f"f{i}", policy=ALL)
    versions = [int(n[:20]) for n in table.names() if n.endswith(".json")]
    assert versions[-1] == 10
    assert (versions[0] > 0) is clean
    assert table.snapshot().totals.num_files == 10


# --- nothing of it fails a commit


@pytest.mark.parametrize(
    ("operation", "ending"),
    [
        ("put_if_absent", ".crc"),
        ("read", ".crc"),
        ("put_if_absent", ".parquet"),
        ("put", "_last_checkpoint"),
        ("list_from", "_delta_log"),
        ("read", "_last_checkpoint"),
    ],
)
def test_what_fails_after_a_commit_is_logged_and_the_commit_stands(
    operation: str, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage = MemoryStorage()
    table = new(storage, properties={"delta.checkpointInterval": "1"})
    mine = table.start()
    mine.add(file("a"))
    committed: list[str] = []

    def fail(called: str, path: str) -> None:
        if path.endswith(f"{1:020d}.json") and called == "put_if_absent":
            committed.append(path)
        elif committed and called == operation and path.endswith(ending):
            raise RuntimeError("the store is gone")

    storage.on_call = fail
    with caplog.at_level(logging.WARNING):
        assert mine.commit(WRITE).version == 1
    storage.on_call = None
    assert table.snapshot().totals.num_files == 1
    warning = caplog.text
    assert "the store is gone" in warning and f"Version 1 of table {ROOT} is committed" in warning
    table.append("b", policy=ALL)
    assert table.snapshot().totals.num_files == 2


def test_a_storage_error_is_no_different(caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    table = new(storage)
    mine = table.start()

    def fail(_called: str, path: str) -> None:
        if path.endswith(".crc"):
            raise StorageError("quota exceeded.")

    storage.on_call = fail
    assert mine.commit(WRITE).version == 1
    assert "quota exceeded" in caplog.text
    assert not has(table, f"{1:020d}.crc")


def test_a_process_that_dies_after_the_commit_leaves_a_whole_table() -> None:
    from tests.support.transactions import Crash

    storage = MemoryStorage()
    table = new(storage, properties={"delta.checkpointInterval": "1"})
    for number, (operation, ending) in enumerate(
        [("put_if_absent", ".crc"), ("put_if_absent", ".parquet"), ("put", "_last_checkpoint")], 1
    ):
        mine = table.start()
        mine.add(file(f"f{number}"))

        def die(called: str, path: str, wanted: tuple[str, str] = (operation, ending)) -> None:
            if called == wanted[0] and path.endswith(wanted[1]):
                raise Crash

        storage.on_call = die
        with pytest.raises(Crash):
            mine.commit(WRITE)
        storage.on_call = None
        assert table.snapshot().totals.num_files == number
    table.append("next", policy=ALL)
    assert table.snapshot().totals.num_files == 4
    assert table.snapshot().verify_checksum()


def test_deltalake_reads_past_the_checkpoint(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    table = Table(LocalStorage(), str(tmp_path / "t"))
    table.creation(properties={"delta.checkpointInterval": "2"}).commit(Operation("CREATE TABLE"))
    for i in range(5):
        table.append(f"{i}.parquet", policy=ALL)
    for version in range(5):
        (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").unlink()
    assert len(DeltaTable(table.root).file_uris()) == 5


def test_a_clock_that_is_ahead_of_the_stores_cleans_nothing_up() -> None:
    """Commits are dated by the store: 60 days later for us, they are not a minute old."""
    minutes = itertools.count()
    storage = MemoryStorage(clock=lambda: NOW + next(minutes) * 60_000)
    table = Table(storage, clock=lambda: NOW + 60 * DAY_MS)
    table.creation(properties={"delta.checkpointInterval": "3"}).commit(Operation("CREATE TABLE"))
    for i in range(1, 8):
        table.append(f"f{i}", policy=ALL)
    assert [n for n in table.names() if n.endswith(".json")] == [f"{v:020d}.json" for v in range(8)]
    assert has(table, f"{6:020d}.checkpoint.parquet")
