"""Listing the log directory. Protocol: "File Types"."""

from __future__ import annotations

import pytest

from delta_pyds.errors import FileNotFoundInStorageError
from delta_pyds.log.listing import list_log
from tests.support.memory_storage import MemoryStorage

UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


def log_of(*names: str) -> MemoryStorage:
    storage = MemoryStorage()
    for name in names:
        storage.put(f"/t/_delta_log/{name}", b"12345", modification_time_ms=7)
    return storage


def v(version: int) -> str:
    return f"{version:020d}"


def test_sorts_files_by_kind_and_version() -> None:
    storage = log_of(
        f"{v(2)}.json",
        f"{v(0)}.json",
        f"{v(10)}.json",
        f"{v(1)}.{v(3)}.compacted.json",
        f"{v(2)}.crc",
        f"{v(2)}.checkpoint.parquet",
        f"{v(3)}.checkpoint.{1:010d}.{2:010d}.parquet",
        f"{v(4)}.checkpoint.{UUID}.json",
    )
    listing = list_log(storage, "/t")
    assert [file.version for file in listing.commits] == [0, 2, 10]
    assert [(file.version, file.name.end_version) for file in listing.compactions] == [(1, 3)]
    assert [file.version for file in listing.checksums] == [2]
    assert [(file.version, file.name.part, file.name.uuid) for file in listing.checkpoints] == [
        (2, None, None),
        (3, 1, None),
        (4, None, UUID),
    ]
    commit = listing.commits[0]
    assert (commit.path, commit.size_bytes, commit.modification_time_ms) == (f"/t/_delta_log/{v(0)}.json", 5, 7)


def test_passes_over_what_the_protocol_does_not_know() -> None:
    strange = [
        f"{v(1)}.json.tmp",
        f".{v(1)}.json.crc",
        f"{v(1)}.checkpoint.json",
        f"{v(1)}.{UUID}.json",
        "1.json",
        "_last_checkpoint",
        "_commits_in_progress.txt",
        f"_staged_commits/{v(1)}.{UUID}.json",
        f"_sidecars/{UUID}.parquet",
        f".tmp/{v(1)}.json",
        "00000000000000000001.JSON",
    ]
    listing = list_log(log_of(f"{v(0)}.json", *strange), "/t")
    assert [file.version for file in listing.commits] == [0]
    assert not (listing.compactions or listing.checkpoints or listing.checksums)


def test_is_bounded_on_both_sides() -> None:
    storage = log_of(*(f"{v(version)}.json" for version in range(20)), f"{v(5)}.{v(19)}.compacted.json")
    listing = list_log(storage, "/t", 5, 8)
    assert [file.version for file in listing.commits] == [5, 6, 7, 8]
    assert [file.name.end_version for file in listing.compactions] == [19]


def test_stops_beyond_the_end() -> None:
    storage = log_of(*(f"{v(version)}.json" for version in range(20)))
    seen = []
    inner = storage.list_from

    def watched(directory: str, start_name: str):
        for status in inner(directory, start_name):
            seen.append(status.name)
            yield status

    storage.list_from = watched
    list_log(storage, "/t", 2, 4)
    assert seen == [f"{v(version)}.json" for version in (2, 3, 4, 5)]


def test_a_missing_log_is_an_error_of_the_storage() -> None:
    with pytest.raises(FileNotFoundInStorageError):
        list_log(MemoryStorage(), "/t")
