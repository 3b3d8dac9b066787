"""Vacuum: what goes, what stays, what it refuses, and what it leaves where it is stopped."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_pyds
from delta_pyds.commands.maintenance import vacuum
from delta_pyds.commands.maintenance.convert import ConvertOptions, convert
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, VacuumPlan, plan_vacuum, run_vacuum
from delta_pyds.errors import CorruptLogError, OptionError, StorageError, UnsupportedOperationError, UserError
from delta_pyds.storage.base import DirectoryEntry, not_proven
from delta_pyds.storage.local import LocalStorage
from tests.support.table_builder import BASE_TIME_MS, TableBuilder
from tests.support.table_writes import read_rows, struct

HOUR = 3_600_000
DAY = 24 * HOUR
NOW = BASE_TIME_MS + 100 * DAY
# the table is of 2023: no checkpoint of today may clean its log
KEPT_LOG = {"delta.enableExpiredLogCleanup": "false"}


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Two partitions, a deletion vector, a file that was removed 90 days ago: the rows are 1, 3, 4."""
    table = TableBuilder(
        tmp_path / "t", {"id": "long", "p": "string"}, ["p"], KEPT_LOG | {"delta.enableDeletionVectors": "true"}
    )
    table.create(timestamp_ms=BASE_TIME_MS)
    adds = table.append([{"id": 1, "p": "a b"}, {"id": 2, "p": "a b"}, {"id": 3, "p": "c"}], commit=at(1))
    [old] = table.append([{"id": 9, "p": "c"}], commit=at(2))
    table.commit(table.delete_rows(adds[0], [1]), **at(3))
    table.append([{"id": 4, "p": "_x"}], commit=at(4))
    table.commit([table.remove(old, deletion_timestamp=BASE_TIME_MS + 10 * DAY)], **at(10))
    age(table)
    return table


def at(day: int) -> dict[str, Any]:
    return {"timestamp_ms": BASE_TIME_MS + day * DAY}


def age(table: TableBuilder, time_ms: int = BASE_TIME_MS) -> None:
    """Make all that is not in the log as old as the table."""
    for path in sorted(table.path.rglob("*"), reverse=True):
        if "_delta_log" not in path.parts and not path.is_symlink():
            table.set_mtime(path, time_ms)


def put(table: TableBuilder, name: str, time_ms: int = BASE_TIME_MS, data: bytes = b"x") -> Path:
    path = table.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    table.set_mtime(path, time_ms)
    return path


def plan(table: TableBuilder, *, now_ms: int = NOW, storage: Any = None, **options: Any) -> VacuumPlan:
    return plan_vacuum(storage or LocalStorage(), str(table.path), VacuumOptions(**options), now_ms=now_ms)


def names(plan: VacuumPlan) -> set[str]:
    return set(plan.files.column("path").to_pylist())


def inventory(files: list[tuple[str, int]]) -> pa.RecordBatch:
    """Paths with times."""
    paths, times = zip(*files, strict=True)
    columns = [pa.array(paths), pa.array([1] * len(paths)), pa.array([False] * len(paths)), pa.array(times)]
    return pa.RecordBatch.from_arrays(columns, names=["path", "length", "isDir", "modificationTime"])


def removed_file(table: TableBuilder) -> str:
    """The file that version 5 removed."""
    [remove] = [
        json.loads(line)["remove"] for line in table.commit_file(5).read_text().splitlines() if "remove" in line
    ]
    return str(remove["path"])


def in_log(table: TableBuilder, version: int) -> dict[str, Any]:
    line = json.loads(table.commit_file(version).read_text().splitlines()[0])["commitInfo"]
    return {key: line.get(key) for key in ("operation", "operationParameters", "operationMetrics", "isolationLevel")}


# --- what goes and what stays


def test_what_no_version_needs_goes_and_the_table_reads_as_before(table: TableBuilder) -> None:
    before = read_rows(table.path)
    orphan = put(table, "p=c/orphan.parquet")
    change = put(table, "_change_data/cdc-1.parquet")
    vector = put(table, "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin")
    stray = put(table, "p=c/.orphan.parquet.crc")
    removed = removed_file(table)
    result = run_vacuum(plan(table))
    assert result.num_deleted_files == 4
    assert not any(path.exists() for path in (orphan, change, vector, stray))
    assert not (table.path / removed).exists()
    assert sorted(row["id"] for row in read_rows(table.path)) == [1, 3, 4]
    assert read_rows(table.path) == before
    assert not delta_pyds.verify(str(table.path)).errors
    assert run_vacuum(plan(table)).num_deleted_files == 0


def test_what_is_hidden_or_young_or_another_table_stays(table: TableBuilder) -> None:
    kept = [
        put(table, "_temporary/0/part.parquet"),
        put(table, ".hidden"),
        put(table, "p=c/_SUCCESS"),
        put(table, "p=c/young.parquet", NOW - DAY),
        put(table, "nested/_delta_log/00000000000000000000.json"),
        put(table, "nested/part-0.parquet"),
    ]
    assert names(plan(table, retention_hours=48, check_retention=False)) == {removed_file(table)}
    run_vacuum(plan(table))
    assert all(path.exists() for path in kept)


def test_a_partition_whose_name_begins_with_an_underscore_is_no_hidden_one(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "_p": "string"}, ["_p"])
    table.create(timestamp_ms=BASE_TIME_MS)
    put(table, "_p=1/orphan.parquet")
    assert names(plan(table)) == {"_p=1/orphan.parquet"}


def test_an_empty_directory_goes_once_it_is_old(table: TableBuilder) -> None:
    old, young = table.path / "p=old", table.path / "p=young"
    old.mkdir()
    young.mkdir()
    table.set_mtime(old, BASE_TIME_MS)
    table.set_mtime(young, NOW - DAY)
    found = plan(table)
    assert found.empty_directories == ("p=old",)
    assert run_vacuum(found).num_deleted_directories == 1
    assert not old.exists()
    assert young.exists()


@pytest.mark.parametrize("spelled", ["absolute", "uri", "dot", "double", "raw percent", "alias"])
def test_a_live_file_is_known_however_its_path_is_spelled(tmp_path: Path, spelled: str) -> None:
    """The reference's own normal form is not the only one that a log may have: none of them loses a file."""
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    (tmp_path / "link").symlink_to(table.path)
    table.create(timestamp_ms=BASE_TIME_MS)
    name = "d/part%20x.parquet" if spelled == "raw percent" else "d/part-x.parquet"
    put(table, name)
    path = {
        "absolute": f"{table.path}/{name}",
        "uri": f"file://{table.path}/{name}",
        "dot": f"./{name}",
        "double": "d//part-x.parquet",
        "raw percent": name,
        "alias": f"{tmp_path}/link/{name}",
    }[spelled]
    table.commit([table.add(path)], **at(1))
    age(table)
    assert not names(plan(table))


@pytest.mark.parametrize("log", ["commits", "checkpoint"])
def test_a_vector_whose_file_cannot_be_known_stops_the_vacuum(table: TableBuilder, log: str) -> None:
    [marked] = [add for add in table.active() if add["add"].get("deletionVector")]
    unknown = marked["add"]["deletionVector"] | {"storageType": "q"}
    table.commit([table.remove(marked), {"add": marked["add"] | {"deletionVector": unknown}}], **at(11))
    put(table, "orphan.parquet")
    if log == "checkpoint":
        table.checkpoint()
    with pytest.raises(CorruptLogError, match=r"'q'.*nothing is deleted"):
        plan(table)


def test_a_vector_is_known_however_its_directory_is_spelled(table: TableBuilder) -> None:
    [marked] = [add for add in table.active() if add["add"].get("deletionVector")]
    vector = marked["add"]["deletionVector"]
    kept = put(table, f"ab/{table.vector_file(marked).name}")
    odd = vector | {"pathOrInlineDv": "ab/" + vector["pathOrInlineDv"][-20:]}
    table.commit([table.remove(marked), {"add": marked["add"] | {"deletionVector": odd}}], **at(11))
    age(table)
    assert kept.relative_to(table.path).as_posix() not in names(plan(table))


@pytest.mark.parametrize("log", ["commits", "checkpoint"])
def test_a_version_that_was_the_tables_at_the_cutoff_stays_whole(table: TableBuilder, log: str) -> None:
    """The tombstone is of day 10, and its commit of day 20: at a cutoff in between the file was in the table."""
    [file] = table.append([{"id": 7, "p": "c"}], commit=at(11))
    slow = table.commit([table.remove(file, deletion_timestamp=BASE_TIME_MS + 12 * DAY)], **at(20))
    age(table)
    if log == "checkpoint":
        table.checkpoint()
    hours = (NOW - (BASE_TIME_MS + 15 * DAY)) / HOUR
    found = plan(table, retention_hours=hours)
    assert found.first_version == slow - 1
    assert file["add"]["path"] not in names(found)
    run_vacuum(found)
    assert [row["id"] for row in read_rows(table.path, version=slow - 1) if row["id"] == 7] == [7]
    assert file["add"]["path"] in names(plan(table, retention_hours=24 * 70))


def test_a_retention_longer_than_the_tables_is_obeyed_though_a_checkpoint_forgot_the_tombstone(
    table: TableBuilder,
) -> None:
    """A checkpoint drops tombstones after the table's own retention, and a vacuum that trusts it deletes too much."""
    removed = removed_file(table)
    delta_pyds.checkpoint(str(table.path))
    found = plan(table, retention_hours=24 * 95)
    assert removed not in names(found)
    run_vacuum(found)
    assert [row["id"] for row in read_rows(table.path, version=4) if row["id"] == 9] == [9]


def test_change_files_of_retained_versions_stay(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties={"delta.enableChangeDataFeed": "true"})
    table.create(timestamp_ms=BASE_TIME_MS)
    for day in (1, 50):
        name = put(table, f"_change_data/cdc-{day}.parquet").relative_to(table.path).as_posix()
        change = {"cdc": {"path": name, "partitionValues": {}, "size": 1, "dataChange": False}}
        table.commit([change], **at(day))
    assert names(plan(table, retention_hours=24 * 60)) == {"_change_data/cdc-1.parquet"}


def test_what_is_committed_while_the_table_is_listed_or_before_a_file_goes_stays(table: TableBuilder) -> None:
    """As a restore does it: files as old as the table come back."""
    path, listed = put(table, "p=c/back.parquet"), put(table, "p=c/listed.parquet")

    def add(file: Path) -> dict[str, Any]:
        return table.add(file.relative_to(table.path).as_posix(), partitionValues={"p": "c"})

    class Racing(LocalStorage):
        def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
            yield from super().list_directory(directory)
            if directory == f"{table.path}/p=c":
                table.commit([add(listed)], timestamp_ms=NOW)

    found = plan(table, storage=Racing())
    assert "p=c/listed.parquet" not in names(found)
    assert "p=c/back.parquet" in names(found)
    table.commit([add(path)], timestamp_ms=NOW)
    run_vacuum(found)
    assert path.exists()
    assert listed.exists()


class Timeless(LocalStorage):
    """As stores that do not tell when a file was written, or a directory."""

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        for entry in super().list_directory(directory):
            yield DirectoryEntry(entry.name, entry.kind, entry.size_bytes, 0)


def test_what_has_no_known_time_counts_as_young(table: TableBuilder, caplog: pytest.LogCaptureFixture) -> None:
    orphan, empty = put(table, "orphan.parquet"), table.path / "p=empty"
    empty.mkdir()
    found = plan(table, storage=Timeless(), log_entries=False)
    assert not names(found)
    assert "is unknown, so they are not deleted" in caplog.text
    run_vacuum(found)
    assert orphan.exists()
    assert empty.exists()


# --- whom it obeys


@pytest.mark.parametrize("hours", [0, 1, 167.9])
def test_a_retention_below_the_tables_is_refused_and_nothing_goes(table: TableBuilder, hours: float) -> None:
    put(table, "orphan.parquet")
    with pytest.raises(OptionError, match="168 hours") as caught:
        plan(table, retention_hours=hours)
    assert caught.value.code == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    assert names(plan(table, retention_hours=hours, check_retention=False)) >= {"orphan.parquet"}


@pytest.mark.parametrize("hours", [-1, float("nan"), float("inf")])
def test_a_retention_that_is_none_is_refused(table: TableBuilder, hours: float) -> None:
    with pytest.raises(OptionError, match="0 or more") as caught:
        plan(table, retention_hours=hours, check_retention=False)
    assert caught.value.code == "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"


@pytest.mark.parametrize("hours", [2e12, 1e20, 1e308])
def test_a_retention_that_no_clock_counts_is_refused(table: TableBuilder, hours: float) -> None:
    with pytest.raises(OptionError, match="fewer hours"):
        plan(table, retention_hours=hours)


def test_a_retention_from_before_all_time_keeps_everything(table: TableBuilder) -> None:
    put(table, "orphan.parquet")
    table.checkpoint()
    for lite in (False, True):
        assert not names(plan(table, retention_hours=1e12, lite=lite))


def test_a_store_that_tables_are_only_read_from_keeps_its_files(table: TableBuilder) -> None:
    """Without an entry in the log, too, whose commit would be refused."""

    class ReadOnly(LocalStorage):
        def require_put_if_absent(self, directory: str) -> None:
            raise not_proven(directory, "nobody has proven it")

    orphan = put(table, "orphan.parquet")
    found = plan(table, storage=ReadOnly(), log_entries=False)
    assert "orphan.parquet" in names(found)
    with pytest.raises(StorageError, match="can be read only"):
        run_vacuum(found)
    assert orphan.exists()


def test_a_retention_that_is_given_is_obeyed(table: TableBuilder) -> None:
    """The reference ignores it unless it is 0."""
    put(table, "orphan.parquet", NOW - 100 * HOUR)
    assert "orphan.parquet" not in names(plan(table))
    assert "orphan.parquet" not in names(plan(table, retention_hours=200))
    assert "orphan.parquet" in names(plan(table, retention_hours=99, check_retention=False))


def test_the_log_has_a_start_and_an_end(table: TableBuilder) -> None:
    put(table, "orphan.parquet", data=b"12345")
    found = plan(table, retention_hours=1000)
    result = run_vacuum(found)
    assert result.version == 7
    assert in_log(table, 6) == {
        "operation": "VACUUM START",
        "operationParameters": {
            "retentionCheckEnabled": True,
            "defaultRetentionMillis": 7 * DAY,
            "specifiedRetentionMillis": 1000 * HOUR,
        },
        "operationMetrics": {"numFilesToDelete": "2", "sizeOfDataToDelete": str(found.size_bytes)},
        "isolationLevel": "SnapshotIsolation",
    }
    assert in_log(table, 7)["operationParameters"] == {"status": "COMPLETED"}
    assert in_log(table, 7)["operationMetrics"]["numDeletedFiles"] == "2"


def test_no_entry_is_written_where_none_is_wanted(table: TableBuilder) -> None:
    assert run_vacuum(plan(table, log_entries=False)).version is None
    assert delta_pyds.load_snapshot(str(table.path)).version == 5


# --- lite


def test_lite_deletes_what_the_log_removed_and_lists_nothing(table: TableBuilder) -> None:
    class Unlisted(LocalStorage):
        def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
            raise AssertionError(directory)

    orphan = put(table, "orphan.parquet")
    removed = removed_file(table)
    found = plan(table, storage=Unlisted(), lite=True)
    # the file of the vector's commit is in the table, with its vector
    assert names(found) == {removed}
    run_vacuum(found)
    assert orphan.exists()
    assert not (table.path / removed).exists()
    note = json.loads((table.log_path / "_last_vacuum_info").read_text())
    assert note == {"latestCommitVersionOutsideOfRetentionWindow": 5}
    assert not names(plan(table, lite=True))


@pytest.mark.parametrize("before", ["full", "by hand"])
def test_lite_counts_what_it_deleted_and_not_what_was_gone_before(table: TableBuilder, before: str) -> None:
    removed = removed_file(table)
    if before == "full":
        run_vacuum(plan(table, log_entries=False))
    else:
        (table.path / removed).unlink()
    found = plan(table, lite=True)
    assert found.paths.to_pylist() == []
    assert found.size_bytes == 0
    result = run_vacuum(found)
    assert (result.num_deleted_files, result.deleted_bytes) == (0, 0)
    assert in_log(table, 6)["operationMetrics"] == {"numFilesToDelete": "0", "sizeOfDataToDelete": "0"}
    assert in_log(table, 7)["operationMetrics"]["numDeletedFiles"] == "0"
    # it need not look again
    note = json.loads((table.log_path / "_last_vacuum_info").read_text())
    assert note == {"latestCommitVersionOutsideOfRetentionWindow": 5}


def test_lite_needs_the_whole_log_since_the_last_vacuum(table: TableBuilder) -> None:
    table.checkpoint(version=4)
    table.cleanup_log(before=4)
    with pytest.raises(UnsupportedOperationError) as caught:
        plan(table, lite=True)
    assert caught.value.code == "DELTA_CANNOT_VACUUM_LITE"
    (table.log_path / "_last_vacuum_info").write_text('{"latestCommitVersionOutsideOfRetentionWindow":4}')
    assert names(plan(table, lite=True)) == {removed_file(table)}


def test_lite_comes_again_for_a_file_whose_tombstone_is_younger_than_its_commit(tmp_path: Path) -> None:
    """The writer's clock was ahead. One that is ahead of today holds nothing up: a full vacuum finds its file."""
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties=KEPT_LOG)
    table.create(timestamp_ms=BASE_TIME_MS)
    [ahead, far] = [table.append([{"id": n}], commit=at(1))[0] for n in range(2)]
    table.commit([table.remove(ahead, deletion_timestamp=BASE_TIME_MS + 25 * DAY)], **at(2))
    table.commit([table.remove(far, deletion_timestamp=BASE_TIME_MS + 999 * DAY)], **at(3))
    age(table)
    for day, deleted, noted in ((30, 0, 2), (31, 0, 2), (40, 1, 4), (41, 0, 4)):
        found = plan(table, lite=True, log_entries=False, now_ms=BASE_TIME_MS + day * DAY)
        assert run_vacuum(found).num_deleted_files == deleted, day
        note = json.loads((table.log_path / "_last_vacuum_info").read_text())
        assert note == {"latestCommitVersionOutsideOfRetentionWindow": noted}
    assert table.data_file(far).exists()


@pytest.mark.parametrize("noted", ["-4", "6", "999999999999999999999999", '"3"', "null"])
def test_a_note_that_the_table_cannot_have_is_none(table: TableBuilder, noted: str) -> None:
    note = table.log_path / "_last_vacuum_info"
    note.write_text(f'{{"latestCommitVersionOutsideOfRetentionWindow":{noted}}}')
    found = plan(table, lite=True)
    assert names(found) == {removed_file(table)}
    run_vacuum(found)
    assert json.loads(note.read_text()) == {"latestCommitVersionOutsideOfRetentionWindow": 5}


# --- inventory


def test_an_inventory_replaces_the_listing(table: TableBuilder) -> None:
    orphan = put(table, "p=c/orphan.parquet")
    rows = [
        ("p=c/orphan.parquet", 1, False, BASE_TIME_MS),
        (f"{table.path}/unlisted.parquet", 5, False, BASE_TIME_MS),
        (f"file://{table.path}/p=c/young.parquet", 5, False, NOW),
        (f"{table.path}-other/x.parquet", 5, False, BASE_TIME_MS),
        ("../x.parquet", 5, False, BASE_TIME_MS),
        ("_delta_log/00000000000000000000.json", 5, False, BASE_TIME_MS),
        ("p=c", 0, True, BASE_TIME_MS),
        ("/p=c/elsewhere.parquet", 5, False, BASE_TIME_MS),
        (f"{table.path}//twice.parquet", 5, False, BASE_TIME_MS),
        (f"file:{table.path}/p=c/.hidden", 5, False, BASE_TIME_MS),
        (f"file:{table.path}/_change_data/cdc.parquet", 5, False, BASE_TIME_MS),
        (f"{table.path}/{table.path}/x/../../y", 5, False, BASE_TIME_MS),
        ("", 5, False, BASE_TIME_MS),
        *((unquote(a["add"]["path"]), 5, False, BASE_TIME_MS) for a in table.active()),
    ]
    columns = list(zip(*rows, strict=True))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(c) for c in columns], names=["path", "length", "isDir", "modificationTime"]
    )
    found = plan(table, inventory=[batch])
    assert names(found) == {"p=c/orphan.parquet", "unlisted.parquet", "_change_data/cdc.parquet"}
    run_vacuum(found)
    assert not orphan.exists()
    assert len(read_rows(table.path)) == 3


@pytest.mark.parametrize("column", ["path", "modificationTime"])
def test_an_inventory_without_its_columns_is_refused(table: TableBuilder, column: str) -> None:
    batch = pa.RecordBatch.from_pylist([{"path": "x", "length": 1, "isDir": False, "modificationTime": 1}])
    with pytest.raises(OptionError, match=column):
        plan(table, inventory=[batch.drop_columns([column])])


def test_an_inventory_in_seconds_is_refused_and_a_file_without_a_time_stays(table: TableBuilder) -> None:
    put(table, "writing.parquet", NOW)
    with pytest.raises(OptionError, match=r"writing\.parquet.*milliseconds.*multiply") as caught:
        plan(table, inventory=[inventory([("old.parquet", BASE_TIME_MS), ("writing.parquet", NOW // 1000)])])
    assert caught.value.code == "DELTA_INVALID_INVENTORY_SCHEMA"
    found = plan(table, inventory=[inventory([("old.parquet", BASE_TIME_MS), ("writing.parquet", 0)])])
    assert names(found) == {"old.parquet"}


# --- tables of others


@pytest.mark.parametrize("lite", [False, True])
@pytest.mark.parametrize(
    "path",
    ["../theirs/x.parquet", "%2e%2e/theirs/x.parquet", "{root}/../theirs/x.parquet", "{theirs}/x.parquet",
     "file://{theirs}/x.parquet", "link/x.parquet", "_delta_log/00000000000000000000.json",
     "p=c/../../theirs/x.parquet"],
)  # fmt: skip
def test_a_hostile_log_deletes_nothing_outside(table: TableBuilder, tmp_path: Path, path: str, lite: bool) -> None:
    theirs = tmp_path / "theirs" / "x.parquet"
    theirs.parent.mkdir()
    theirs.write_bytes(b"theirs")
    os.utime(theirs, (0, 0))
    (table.path / "link").symlink_to(theirs.parent)
    named = path.format(root=table.path, theirs=theirs.parent)
    remove = {"path": named, "deletionTimestamp": BASE_TIME_MS, "dataChange": True, "size": 1}
    vector = {"storageType": "u", "pathOrInlineDv": "../theirs/ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 1}
    table.commit([{"remove": remove}, {"remove": {**remove, "deletionVector": vector | {"cardinality": 1}}}], **at(11))
    log = sorted(table.log_path.glob("*.json"))
    found = plan(table, lite=lite)
    if lite and path.startswith("link/"):
        with pytest.raises(StorageError, match="symbolic link"):
            run_vacuum(found)
    else:
        run_vacuum(found)
    assert theirs.read_bytes() == b"theirs"
    assert set(log) <= set(table.log_path.glob("*.json"))
    assert (table.path / "link").is_symlink()


def test_a_directory_that_became_a_link_after_the_listing_leads_nowhere(table: TableBuilder, tmp_path: Path) -> None:
    put(table, "d/x.parquet")
    found = plan(table)
    (table.path / "d").rename(tmp_path / "theirs")
    (table.path / "d").symlink_to(tmp_path / "theirs")
    with pytest.raises(StorageError, match="symbolic link"):
        run_vacuum(found)
    assert (tmp_path / "theirs" / "x.parquet").exists()


@pytest.mark.parametrize("source", ["full", "lite", "inventory"])
@pytest.mark.parametrize("spelled", ["s/u/{}", "{root}/s/u/{}", "file://{root}/s/u/{}"])
def test_what_a_table_below_the_root_has_stays_though_the_log_removed_it_or_a_listing_names_it(
    tmp_path: Path, spelled: str, source: str
) -> None:
    """As after a clone of it to the root, which was overwritten, and after a conversion of all that is there."""
    below = TableBuilder(tmp_path / "t/s/u", {"id": "long"})
    below.create()
    [live] = below.append([{"id": 5}])
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties=KEPT_LOG)
    table.create(timestamp_ms=BASE_TIME_MS)
    [own] = table.append([{"id": 1}], commit=at(1))
    clone = table.add(spelled.format(live["add"]["path"], root=table.path))
    table.commit([clone], **at(2))
    table.commit([table.remove(a, deletion_timestamp=BASE_TIME_MS + 3 * DAY) for a in (own, clone)], **at(3))
    age(table)
    options: dict[str, Any] = {"lite": source == "lite"}
    if source == "inventory":
        # which leaves out the logs
        options["inventory"] = [inventory([(str(path), BASE_TIME_MS) for path in table.path.rglob("*.parquet")])]
    found = plan(table, **options)
    assert names(found) == {own["add"]["path"]}
    run_vacuum(found)
    assert read_rows(below.path) == [{"id": 5}]


@pytest.mark.parametrize("source", ["full", "lite", "inventory"])
def test_a_table_that_is_made_below_while_files_are_deleted_keeps_its_files(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files that were there before: to the table above they are of no use."""
    monkeypatch.setattr(vacuum, "_DELETED_AT_ONCE", 1)
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties=KEPT_LOG)
    table.create(timestamp_ms=BASE_TIME_MS)
    adds = []
    for name in ("x", "s/u/p=1/y", "s/u/p=2/z"):
        (table.path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1]}), table.path / f"{name}.parquet")
        adds.append(table.add(f"{name}.parquet"))
    table.commit(adds, **at(1))
    table.commit([table.remove(add, deletion_timestamp=BASE_TIME_MS + 2 * DAY) for add in adds], **at(2))
    age(table)
    options: dict[str, Any] = {"lite": source == "lite"}
    if source == "inventory":
        options["inventory"] = [inventory([(str(path), BASE_TIME_MS) for path in table.path.rglob("*.parquet")])]

    class Made(LocalStorage):
        """Another process makes the table once the first file is gone."""

        def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
            failed = super().delete_all(paths, below=below)
            if paths[0].endswith("x.parquet"):
                convert(LocalStorage(), str(table.path / "s/u"), ConvertOptions(struct({"p": "integer"})))
            return failed

    found = plan(table, storage=Made(), **options)
    order = pa.array(sorted(range(3), key=lambda i: found.files.column("path")[i].as_py() != "x.parquet"))
    result = run_vacuum(replace(found, files=found.files.take(order)))
    assert result.num_deleted_files == 1
    assert [row["id"] for row in read_rows(table.path / "s/u")] == [1, 1]


def test_lite_leaves_what_the_log_names_by_a_whole_path(tmp_path: Path) -> None:
    """Nothing says that the table made such a file: a clone of files below its root names them so."""
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties=KEPT_LOG)
    table.create(timestamp_ms=BASE_TIME_MS)
    kept = put(table, "theirs/x.parquet")
    table.commit([{"remove": {"path": str(kept), "deletionTimestamp": BASE_TIME_MS, "dataChange": True}}], **at(1))
    encoded = str(kept).replace("/", "%2F")
    table.commit([{"remove": {"path": encoded, "deletionTimestamp": BASE_TIME_MS, "dataChange": True}}], **at(2))
    assert not names(plan(table, lite=True))


# --- failures


def test_a_file_that_cannot_be_deleted_does_not_keep_the_others(table: TableBuilder) -> None:
    put(table, "a.parquet")
    put(table, "b.parquet")

    class Failing(LocalStorage):
        def delete(self, path: str, *, below: str) -> None:
            if path.endswith("/a.parquet"):
                raise StorageError(f"{path!r} is locked.", path=path)
            super().delete(path, below=below)

    with pytest.raises(StorageError, match=r"deleted 2 files, but 1 could not be deleted.*a\.parquet' is locked"):
        run_vacuum(plan(table, storage=Failing()))
    assert not (table.path / "b.parquet").exists()
    assert in_log(table, 7)["operationParameters"] == {"status": "FAILED"}
    assert run_vacuum(plan(table)).num_deleted_files == 1


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("left", range(4))
def test_killed_in_the_middle_the_table_is_whole(table: TableBuilder, left: int) -> None:
    for number in range(6):
        put(table, f"orphan-{number}.parquet")
    calls: list[str] = []

    class Killed(BaseException):
        pass

    class Dying(LocalStorage):
        def delete(self, path: str, *, below: str) -> None:
            if len(calls) >= left:
                raise Killed
            calls.append(path)
            super().delete(path, below=below)

        def put_if_absent(self, path: str, data: bytes) -> None:
            if len(calls) >= left and b"VACUUM END" in data:
                raise StorageError("nobody is there any more", path=path)
            super().put_if_absent(path, data)

    with pytest.raises(Killed):
        run_vacuum(plan(table, storage=Dying(), threads=1))
    assert sorted(row["id"] for row in read_rows(table.path)) == [1, 3, 4]
    assert not delta_pyds.verify(str(table.path)).errors
    assert run_vacuum(plan(table)).num_deleted_files >= 6 - left


@pytest.mark.parametrize("log_entries", [True, False])
@pytest.mark.parametrize("kept", ["both", "one"])
def test_a_table_that_was_replaced_keeps_its_files(
    table: TableBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str, log_entries: bool
) -> None:
    """Before the first file went, or between two of them."""
    monkeypatch.setattr(vacuum, "_DELETED_AT_ONCE", 1)
    other = TableBuilder(tmp_path / "u", {"id": "long"})
    other.create()
    for _ in range(8):
        other.commit()

    def replace() -> None:
        for file in table.log_path.iterdir():
            file.unlink()
        for file in other.log_path.iterdir():
            (table.log_path / file.name).write_bytes(file.read_bytes())

    class Replacing(LocalStorage):
        def delete(self, path: str, *, below: str) -> None:
            super().delete(path, below=below)
            if path.endswith(".crc"):
                replace()

    orphans = [put(table, "a.parquet"), put(table, "b.parquet")]
    removed = table.path / removed_file(table)
    removed.unlink()
    found = plan(table, storage=Replacing(), log_entries=log_entries)
    if kept == "both":
        replace()
    with pytest.raises(UserError) as caught:
        run_vacuum(found)
    assert caught.value.code == "DELTA_TABLE_ID_MISMATCH"
    assert sum(orphan.exists() for orphan in orphans) == (2 if kept == "both" else 1)
    assert delta_pyds.load_snapshot(str(table.path)).version == 8


# --- what it costs


def test_a_large_table_is_planned_without_an_object_for_each_file(tmp_path: Path) -> None:
    """As many files in the log and in the listing: Arrow's memory, not Python's."""
    import tracemalloc

    from tests.support.large_table import generate_large

    files = 50_000
    generate_large(tmp_path / "t", files)
    paths = pa.array([f"orphan-{n:08d}.parquet" for n in range(files)])
    batch = pa.RecordBatch.from_arrays(
        [paths, pa.array([1] * files), pa.array([False] * files), pa.array([BASE_TIME_MS] * files)],
        names=["path", "length", "isDir", "modificationTime"],
    )
    tracemalloc.start()
    found = plan_vacuum(
        LocalStorage(), str(tmp_path / "t"), VacuumOptions(inventory=[batch]), now_ms=int(time.time() * 1000)
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.files.num_rows == files
    assert peak < 400 * files
