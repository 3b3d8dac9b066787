"""Commit times of a range of versions, from a bounded part of the log. Protocol: "In-Commit Timestamps"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.errors import CorruptLogError
from delta_pyds.log.commit_reader import read_commit_info
from delta_pyds.log.commit_times import timed_commits
from delta_pyds.protocol.actions import CommitInfo
from delta_pyds.protocol.properties import TableProperties
from delta_pyds.storage.base import FileStatus, Storage
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import CommitTimes
from tests.support.commits import table_at
from tests.support.memory_storage import MemoryStorage
from tests.support.table_builder import TableBuilder

STORAGE = LocalStorage()


class Log(LocalStorage):
    """A log of names alone, which remembers where its listings began and how far they were read."""

    def __init__(self, times: dict[int, int], *, listed: int | None = None) -> None:
        self.times = times
        self.listed = listed
        self.starts: list[str] = []
        self.seen = 0

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        self.starts.append(start_name)
        return self._files(directory, start_name)

    def _files(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        for version, time in self.times.items():
            name = f"{version:020d}.json"
            if name >= start_name and (self.listed is None or version <= self.listed):
                self.seen += 1
                yield FileStatus(f"{directory}/{name}", 10, time)

    def status(self, path: str) -> FileStatus:
        version = int(path.rsplit("/", 1)[-1][:20])
        if version not in self.times:
            return STORAGE.status(path)
        return FileStatus(path, 10, self.times[version])


def commit_timestamps(
    storage: Storage,
    table_root: str,
    first: int,
    last: int,
    *,
    in_commit: int | None = None,
    infos: Mapping[int, CommitInfo | None] | None = None,
) -> dict[int, int]:
    """The time of each version of the range whose commit is there. Infos that are not given are read where needed."""
    commits = timed_commits(storage, table_root, first, last, in_commit=in_commit)
    known = infos or {}
    times = {}
    for version, file in commits.files.items():
        info = known.get(version)
        if version not in known and commits.has_in_commit_timestamp(version):
            info = read_commit_info(storage, file)
        times[version] = commits.timestamp_ms(version, info)
    return times


def test_file_times_are_made_to_ascend_whatever_the_range_begins_with(tmp_path: Path) -> None:
    table_at(tmp_path, 1000, 1000, 500, 1002, 5000)
    every = {0: 1000, 1: 1001, 2: 1002, 3: 1003, 4: 5000}
    for first in range(5):
        for last in range(first, 5):
            found = commit_timestamps(STORAGE, str(tmp_path), first, last)
            assert found == {version: time for version, time in every.items() if first <= version <= last}


@given(times=st.lists(st.integers(0, 40), min_size=1, max_size=30), data=st.data())
def test_times_are_those_of_the_whole_history(times: list[int], data: st.DataObject) -> None:
    log = Log(dict(enumerate(times)))
    whole = CommitTimes(log, "/t", properties=TableProperties(), latest_version=len(times) - 1)
    first = data.draw(st.integers(0, len(times) - 1))
    found = commit_timestamps(log, "/t", first, len(times) - 1)
    assert found == {version: whole.commit_timestamp(version) for version in range(first, len(times))}


def test_a_listing_begins_a_bounded_number_of_versions_before() -> None:
    log = Log({version: 1000 * version for version in range(5000)})
    assert commit_timestamps(log, "/t", 4000, 4001) == {4000: 4_000_000, 4001: 4_001_000}
    assert log.starts == [f"{3000:020d}"]
    assert log.seen <= 1003


def test_times_of_their_own_need_no_neighbours() -> None:
    log = Log(dict.fromkeys(range(5000), 1000))
    infos = {4000: CommitInfo(in_commit_timestamp=7)}
    assert commit_timestamps(log, "/t", 4000, 4000, in_commit=10, infos=infos) == {4000: 7}
    assert log.starts == [f"{4000:020d}"]


def test_many_equal_times_before_the_range_are_seen_as_far_as_the_bound_allows() -> None:
    log = Log(dict.fromkeys(range(3000), 1000))
    assert commit_timestamps(log, "/t", 999, 1000) == {999: 1999, 1000: 2000}


def test_a_log_that_was_cleaned_up_begins_anew_at_its_first_checkpoint(tmp_path: Path) -> None:
    table = table_at(tmp_path, 9000, 2000, 3000, 4000, 5000)
    table.checkpoint(2)
    table.cleanup_log(before=1)
    table.set_mtime(1, 9000)
    whole = CommitTimes(STORAGE, str(tmp_path), properties=TableProperties(), latest_version=4)
    assert commit_timestamps(STORAGE, str(tmp_path), 2, 4) == {2: 3000, 3: 4000, 4: 5000}
    assert [whole.commit_timestamp(version) for version in (2, 3, 4)] == [3000, 4000, 5000]


def test_commits_that_the_listing_does_not_show_yet_are_looked_up() -> None:
    log = Log({0: 10, 1: 20, 2: 20, 3: 40}, listed=1)
    assert commit_timestamps(log, "/t", 1, 3) == {1: 20, 2: 21, 3: 40}
    assert commit_timestamps(log, "/t", 2, 9) == {2: 21, 3: 40}


def test_versions_that_are_gone_have_no_time(tmp_path: Path) -> None:
    table = table_at(tmp_path, 1000, 2000, 3000)
    table.commit_file(1).unlink()
    assert commit_timestamps(STORAGE, str(tmp_path), 0, 2) == {0: 1000, 2: 3000}
    assert commit_timestamps(STORAGE, str(tmp_path), 7, 9) == {}
    assert commit_timestamps(MemoryStorage(), "memory://b/t", 0, 2) == {}


def test_in_commit_timestamps_count_from_the_version_that_has_them(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create(timestamp_ms=1000)
    table.commit(timestamp_ms=2000, in_commit_timestamp=77)
    table.commit(timestamp_ms=90_000, in_commit_timestamp=5000)
    table.commit(timestamp_ms=90_000, in_commit_timestamp=6000)
    root = str(tmp_path)
    assert commit_timestamps(STORAGE, root, 0, 3, in_commit=2) == {0: 1000, 1: 2000, 2: 5000, 3: 6000}
    assert commit_timestamps(STORAGE, root, 3, 3, in_commit=2) == {3: 6000}
    assert commit_timestamps(STORAGE, root, 0, 3) == {0: 1000, 1: 2000, 2: 90_000, 3: 90_001}


def test_infos_that_were_read_are_not_read_again(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create(in_commit_timestamp=1)
    table.commit(in_commit_timestamp=2)
    table.commit_file(0).write_text("damaged\n")
    known = {0: CommitInfo(in_commit_timestamp=1)}
    assert commit_timestamps(STORAGE, str(tmp_path), 0, 1, in_commit=0, infos=known) == {0: 1, 1: 2}
    with pytest.raises(CorruptLogError, match="inCommitTimestamp"):
        commit_timestamps(STORAGE, str(tmp_path), 1, 1, in_commit=0, infos={1: None})


def test_the_files_of_the_range_come_with_their_times(tmp_path: Path) -> None:
    table_at(tmp_path, 1000, 2000, 3000)
    commits = timed_commits(STORAGE, str(tmp_path), 1, 2, in_commit=2)
    assert [Path(file.path).name[19:] for file in commits.files.values()] == ["1.json", "2.json"]
    assert commits.timestamp_ms(1, None) == 2000
    assert commits.timestamp_ms(2, CommitInfo(in_commit_timestamp=9)) == 9
