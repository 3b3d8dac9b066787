"""A log that is polled while it grows, lags in its listings, is cleaned up, damaged, or replaced."""

from __future__ import annotations

import gc
import shutil
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.errors import CorruptLogError, DeltaError, MissingLogFilesError, TableNotFoundError, UserError
from delta_pyds.log.committer import LoggedCommit
from delta_pyds.protocol.paths import commit_path, log_directory
from delta_pyds.storage.base import FileStatus, Storage
from delta_pyds.storage.local import LocalStorage
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.stream.commit_poller import CommitPoller
from tests.support.memory_storage import MemoryStorage
from tests.support.s3_server import options, s3_server
from tests.support.table_builder import TableBuilder

ROOT = "memory://t"


def content(version: int, mark: str = "") -> bytes:
    return f'{{"commitInfo":{{"operation":"WRITE"}}}}\n{{"add":{{"path":"f{version}{mark}","size":1}}}}\n'.encode()


class Log:
    """A log in memory, and a tail that polls it by a clock that the test moves."""

    def __init__(self, versions: int = 0, **options: int) -> None:
        self.now = 100.0
        self.storage = MemoryStorage(clock=lambda: int(self.now * 1000))
        self.calls: list[str] = []
        self.storage.on_call = lambda operation, _: self.calls.append(operation)
        self.options = options
        self.restart()
        for version in range(versions):
            self.put(version)

    def restart(self) -> None:
        """Another process."""
        self.tail = CommitPoller(self.storage, ROOT, clock=lambda: self.now, **self.options)

    def put(self, version: int, data: bytes | None = None) -> None:
        self.storage.put(commit_path(ROOT, version), content(version) if data is None else data)

    def file(self, name: str) -> None:
        self.storage.put(f"{log_directory(ROOT)}/{name}", b"x")

    def checkpoint(self, version: int) -> None:
        self.file(f"{version:020d}.checkpoint.parquet")

    def drop(self, *versions: int) -> None:
        for version in versions:
            self.storage.delete(commit_path(ROOT, version))

    def replace(self, versions: int) -> None:
        """Another table of as many versions, made a second later; each commit is of the size of the old one."""
        self.now += 1
        for version in range(versions):
            self.put(version, content(version).replace(b'"f', b'"g'))

    def poll(self, first: int, last: int | None = None) -> list[int]:
        return versions(self.tail.commits(first, last))

    def called(self, poll: Callable[[], object]) -> list[str]:
        self.calls.clear()
        poll()
        return list(self.calls)


class Noted(MemoryStorage):
    """Notes where listings begin."""

    def __init__(self) -> None:
        super().__init__()
        self.starts: list[str] = []

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        self.starts.append(start_name)
        return super().list_from(directory, start_name)


def versions(commits: Iterator[LoggedCommit]) -> list[int]:
    found = []
    for commit in commits:
        assert commit.file.path.endswith(f"/{commit.version:020d}.json")
        [path] = [action.add.path for action in commit.actions if action.add is not None]
        assert path[1:] == str(commit.version)
        found.append(commit.version)
    return found


def hide(*hidden: int) -> Callable[[str, list[str]], list[str]]:
    """Listings that do not show these commits."""
    return lambda _, names: [name for name in names if name not in {f"{v:020d}.json" for v in hidden}]


# --- what a poll gives, and what it costs


def test_every_commit_from_a_version_on() -> None:
    log = Log(12)
    assert log.poll(8) == [8, 9, 10, 11]
    assert log.poll(0) == list(range(12))
    assert log.poll(3, 5) == [3, 4, 5]
    assert log.poll(5, 4) == []
    assert log.poll(12) == []
    assert log.tail.newest == 11


def test_a_last_version_that_is_not_there_yet_ends_what_there_is() -> None:
    log = Log(4)
    assert log.poll(2, 1 << 62) == [2, 3]
    log.now += 1
    assert log.poll(4, 9) == []


def test_nothing_is_done_before_it_is_asked_for() -> None:
    log = Log(3)
    assert log.called(lambda: log.tail.commits(0)) == []
    assert log.called(lambda: log.tail.newest) == []
    assert log.tail.newest is None
    commits = log.tail.commits(0)
    assert log.called(lambda: log.poll(2, 1)) == []
    assert next(commits).version == 0


def test_an_empty_poll_is_one_look_up_after_the_first() -> None:
    log = Log(5)
    assert log.called(lambda: log.poll(5)) == ["list_from", "status", "read"]
    for _ in range(9):
        log.now += 1
        assert log.called(lambda: log.poll(5)) == ["status"]
    log.now += 1
    assert log.called(lambda: log.poll(5)) == ["list_from", "status"]
    assert log.called(lambda: log.poll(5)) == ["status"]


def test_a_poll_that_meets_one_commit_lists_nothing() -> None:
    log = Log(5)
    log.poll(5)
    log.put(5)
    # is it there, and the next one; is the one before still the same; its bytes
    assert log.called(lambda: log.poll(5)) == ["status", "status", "status", "read"]
    log.put(6)
    log.put(7)
    assert log.called(lambda: log.poll(6)) == ["status", "status", "list_from", "read", "read"]


def test_a_backlog_that_is_read_little_by_little_is_listed_once() -> None:
    log = Log(60)
    assert next(log.tail.commits(3)).version == 3

    def step_by_step() -> None:
        for version in range(4, 60):
            log.tail.forget(version)
            assert next(log.tail.commits(version)).version == version

    assert "list_from" not in log.called(step_by_step)
    assert log.poll(60) == []


def test_an_empty_file_in_a_backlog_that_was_listed_ends_a_poll() -> None:
    log = Log(6)
    log.put(6, b"")
    assert next(log.tail.commits(3)).version == 3
    assert log.poll(4) == [4, 5]
    assert log.poll(6) == []


def test_a_listing_begins_right_before_the_wanted_version() -> None:
    log = Log()
    log.storage = storage = Noted()
    log.restart()
    for version in range(20):
        log.put(version)
    log.poll(15)
    log.now += 60
    log.poll(20)
    log.restart()
    log.poll(0, 0)
    assert storage.starts == [f"{14:020d}", f"{19:020d}", f"{0:020d}"]


def test_what_takes_long_is_looked_at_less_often() -> None:
    log = Log(2)

    def slow(operation: str, _: str) -> None:
        log.calls.append(operation)
        log.now += 2 if operation == "list_from" else 0

    log.storage.on_call = slow
    log.poll(2)
    log.now += 30
    assert log.called(lambda: log.poll(2)) == ["status"]
    log.now += 30
    assert log.called(lambda: log.poll(2)) == ["list_from", "status"]


def test_a_commit_is_read_once_for_all_who_ask_in_a_process() -> None:
    log = Log(6)
    log.poll(2)
    assert log.called(lambda: log.poll(3, 5)) == []
    assert log.called(lambda: log.poll(2)) == ["status"]
    one, again = next(log.tail.commits(3)), next(log.tail.commits(3))
    assert one is again


def test_what_was_read_by_parts_is_whole() -> None:
    log = Log(30)
    commits = log.tail.commits(4)
    assert [next(commits).version for _ in range(3)] == [4, 5, 6]
    commits.close()
    log.tail.forget(6)
    assert log.poll(10, 12) == [10, 11, 12]
    assert log.poll(5) == list(range(5, 30))


def test_commits_are_read_when_their_turn_comes() -> None:
    log = Log(400)
    commits = log.tail.commits(0)
    next(commits)
    assert log.calls.count("read") <= 1 + 33  # one, and what is fetched ahead


@pytest.mark.parametrize("many", [255, 256, 257, 258, 1281, 1500])
def test_a_long_backlog_is_found_in_windows(many: int) -> None:
    log = Log(many + 1)
    assert log.poll(1) == list(range(1, many + 1))
    log.restart()
    assert log.poll(1, many - 1) == list(range(1, many))


def test_other_files_of_the_log_are_no_commits() -> None:
    log = Log(6)
    log.checkpoint(4)
    for name in (
        f"{2:020d}.{4:020d}.compacted.json",
        f"{5:020d}.{8:020d}.compacted.json",
        f"{3:020d}.crc",
        f"{4:020d}.checkpoint.{'0' * 8}-0000-0000-0000-{'0' * 12}.json",
        f".{6:020d}.json.tmp",
        f"{6:020d}.json.tmp",
        "_last_checkpoint",
    ):
        log.file(name)
    assert log.poll(2) == [2, 3, 4, 5]
    assert log.tail.newest == 5
    log.now += 60
    assert log.poll(6) == []


def test_forgotten_commits_are_dropped_and_can_be_had_again() -> None:
    log = Log(6)
    log.poll(0)
    log.tail.forget(4)
    assert log.called(lambda: log.poll(4, 5)) == []
    assert log.called(lambda: log.poll(2, 3)).count("read") == 2


def test_the_cache_is_bounded_and_drops_what_was_used_least() -> None:
    log = Log(8, cache_bytes=3 * len(content(0)))
    assert log.poll(0, 3) == [0, 1, 2, 3]
    log.poll(1, 1)
    log.poll(4, 4)
    assert "read" not in log.called(lambda: [log.poll(v, v) for v in (1, 3, 4)])
    assert log.called(lambda: log.poll(2, 2)).count("read") == 1


def test_a_commit_beyond_the_bound_is_delivered_and_not_kept() -> None:
    log = Log(3, cache_bytes=len(content(0)))
    log.put(1, content(1) + b"\n" * 1000)
    assert log.poll(0) == [0, 1, 2]
    assert log.called(lambda: log.poll(1, 1)).count("read") == 1
    assert log.poll(0) == [0, 1, 2]


def test_memory_stays_flat() -> None:
    log = Log(1, cache_bytes=50_000)
    log.storage.on_call = None
    version = 1

    def run(rounds: int) -> int:
        nonlocal version
        for _ in range(rounds):
            log.put(version)
            assert log.poll(version) == [version]
            log.drop(version - 1)
            version += 1
            log.now += 1
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        full = run(1500)  # what is bounded has reached its bound
        grown = run(2000) - full
    finally:
        tracemalloc.stop()
    assert grown < 100_000


def test_memory_does_not_follow_a_backlog() -> None:
    log = Log(4000, cache_bytes=50_000)
    log.storage.on_call = None
    tracemalloc.start()
    try:
        assert sum(1 for _ in log.tail.commits(0)) == 4000
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 3_000_000


def test_only_what_is_not_kept_is_read_again() -> None:
    log = Log(6)
    log.poll(0)
    log.tail.forget(2)
    assert log.called(lambda: log.poll(0)).count("read") == 2


def test_two_who_read_at_once_fill_the_cache_once() -> None:
    log = Log(2, cache_bytes=2 * len(content(0)))
    one, other = log.tail.commits(0), log.tail.commits(0)
    assert [next(one).version, next(other).version, next(other).version, next(one).version] == [0, 0, 1, 1]
    assert log.called(lambda: log.poll(0, 1)) == []


def test_the_newest_version_is_known_from_a_look_up_too() -> None:
    log = Log(5)
    log.poll(5)
    log.put(5)
    log.poll(5)
    assert log.tail.newest == 5


# --- listings that lag, commits that come meanwhile


@pytest.mark.parametrize("shown", range(5, 11))
def test_a_stale_listing_delays_at_most(shown: int) -> None:
    log = Log(10)
    log.storage.listed = hide(*range(shown, 10))
    found = log.poll(5)
    while more := log.poll(len(found) + 5):
        found += more
    assert found == [5, 6, 7, 8, 9]


def test_a_listing_that_shows_nothing_hides_nothing() -> None:
    log = Log(10)
    log.storage.listed = lambda _, __: []
    assert log.poll(4) == [4, 5, 6, 7, 8, 9]
    assert log.poll(10) == []
    log.restart()
    assert log.poll(10) == []


def test_a_last_version_is_reached_whatever_the_listing_shows() -> None:
    log = Log(10)
    log.storage.listed = hide(7, 8, 9)
    assert log.poll(4, 8) == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("hidden", [4, 5, 7, 9])
def test_a_commit_that_appeared_behind_the_listing_is_read_by_name(hidden: int) -> None:
    log = Log(10)
    log.storage.listed = hide(hidden)
    assert log.poll(5, 9) == [5, 6, 7, 8, 9]


def test_commits_that_come_while_the_log_is_looked_at_are_not_lost() -> None:
    log = Log(5)
    coming = iter(range(5, 40))

    def commit(operation: str, _: str) -> None:
        if operation in ("list_from", "status", "read") and (version := next(coming, None)) is not None:
            log.put(version)

    log.storage.on_call = commit
    found: list[int] = []
    for _ in range(60):
        found += log.poll(len(found))
        log.now += 4
    assert found == list(range(40))


def test_a_name_that_a_listing_lacks_costs_one_look_up() -> None:
    log = Log(10)
    log.storage.listed = hide(7)
    assert log.called(lambda: log.poll(5)).count("list_from") == 1


def test_a_gap_that_is_closed_between_two_looks_is_none() -> None:
    """A name that is seen late: the later commit is listed, and the earlier one not found by name at first."""
    log = Log(8)
    log.drop(5)
    looks = 0

    def late(operation: str, _: str) -> None:
        nonlocal looks
        looks += operation == "list_from"
        if looks == 2 and operation == "list_from":
            log.put(5)

    log.storage.on_call = late
    assert log.poll(5) == [5, 6, 7]


def test_an_empty_file_at_the_end_is_a_commit_that_is_being_written() -> None:
    log = Log(3)
    log.put(3, b"")
    assert log.poll(1) == [1, 2]
    assert log.poll(3) == []
    log.put(3)
    assert log.poll(3) == [3]


def test_an_empty_commit_that_has_a_successor_is_a_commit() -> None:
    log = Log(5)
    log.put(3, b"\n")
    assert [(one.version, len(one.actions)) for one in log.tail.commits(2)] == [(2, 2), (3, 0), (4, 2)]
    log.restart()
    log.poll(5)
    assert [one.version for one in log.tail.commits(3, 3)] == [3]
    log.put(5, b"")
    log.put(6)
    log.now += 1
    assert [one.version for one in log.tail.commits(5, 5)] == [5]


def test_a_commit_that_grew_after_it_was_read_is_found_out() -> None:
    log = Log(4)
    log.put(3, content(3).splitlines(keepends=True)[0])
    assert [len(one.actions) for one in log.tail.commits(2)] == [2, 1]
    log.put(3)
    log.put(4)
    with pytest.raises(UserError, match="Version 3"):
        log.poll(4)


def test_a_damaged_commit_is_named_and_can_be_restored() -> None:
    log = Log(4)
    log.put(2, b'{"add":{"pa')
    for _ in range(2):
        commits = log.tail.commits(1)
        assert next(commits).version == 1
        with pytest.raises(CorruptLogError, match=f"{2:020d}.json"):
            next(commits)
    log.put(2)
    assert log.poll(1) == [1, 2, 3]


# --- a log that was cleaned up, damaged, or is gone


def refused(poll: Callable[[], object], code: str) -> DeltaError:
    with pytest.raises(DeltaError) as caught:
        poll()
    assert caught.value.code == code
    assert repr(ROOT) in caught.value.message
    return caught.value


MISSING = "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
HOLE = "DELTA_VERSIONS_NOT_CONTIGUOUS"
TRAILING = "DELTA_STREAMING_TRAILING_COMMIT_MISSING"
DIFFERENT = "DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


@pytest.mark.parametrize("first", [0, 3, 6])
def test_a_log_that_was_cleaned_up_names_both_versions(first: int) -> None:
    log = Log(10)
    log.checkpoint(7)
    log.drop(*range(7))
    error = refused(lambda: log.poll(first), MISSING)
    assert isinstance(error, MissingLogFilesError)
    assert error.parameters == {"table": ROOT, "version": first, "earliest": 7}
    for part in (f"version {first} ", "version 7", "failOnDataLoss=false", commit_path(ROOT, first)):
        assert part in error.message
    assert log.poll(7) == [7, 8, 9]


def test_a_log_that_is_all_checkpoint_goes_on_after_it() -> None:
    log = Log(10)
    log.checkpoint(9)
    log.drop(*range(10))
    assert refused(lambda: log.poll(4), MISSING).parameters["earliest"] == 10
    assert refused(lambda: log.poll(9), MISSING).parameters["earliest"] == 10
    assert log.poll(10) == []
    log.put(10)
    assert log.poll(10) == [10]


def test_a_log_that_is_cleaned_up_between_polls_is_noticed_by_the_next_look() -> None:
    log = Log(5)
    assert log.poll(3) == [3, 4]
    for version in range(5, 9):
        log.put(version)
    log.checkpoint(7)
    log.drop(*range(7))
    assert log.poll(5) == []  # one look-up by name shows nothing
    log.now += 11
    for _ in range(2):  # and as long as nobody has done something about it
        assert refused(lambda: log.poll(5), MISSING).parameters["earliest"] == 7


def test_a_version_older_than_the_newest_that_is_gone_is_noticed_at_once() -> None:
    log = Log(40)
    assert next(log.tail.commits(3)).version == 3
    log.checkpoint(30)
    log.drop(*range(30))
    log.tail.forget(30)
    for _ in range(2):  # by the clock a look-up by name would do
        assert refused(lambda: log.poll(20), MISSING).parameters["earliest"] == 30


def test_what_was_read_already_may_be_cleaned_up() -> None:
    log = Log(5)
    assert log.poll(3) == [3, 4]
    log.put(5)
    log.put(6)
    log.checkpoint(5)
    log.drop(*range(5))
    assert log.poll(5) == [5, 6]
    log.drop(5, 6)
    log.checkpoint(6)
    log.now += 60
    assert log.poll(7) == []


def test_a_commit_that_is_cleaned_up_before_its_turn_is_missed_by_name() -> None:
    log = Log(90)  # more than are read ahead
    commits = log.tail.commits(2)
    assert [next(commits).version for _ in range(2)] == [2, 3]
    log.checkpoint(80)
    log.drop(*range(80))
    with pytest.raises(MissingLogFilesError) as caught:
        for _ in range(80):
            next(commits)
    assert caught.value.code == MISSING
    assert caught.value.parameters["earliest"] == 80
    assert 4 <= caught.value.parameters["version"] < 80


def test_a_listed_commit_that_is_gone_with_all_after_it_is_no_end() -> None:
    log = Log(6)

    def vanish(operation: str, path: str) -> None:
        if operation == "read" and path == commit_path(ROOT, 5):
            log.drop(5)

    log.storage.on_call = vanish
    commits = log.tail.commits(4)
    assert next(commits).version == 4
    with pytest.raises(MissingLogFilesError, match="was listed but no longer exists"):
        next(commits)


@pytest.mark.parametrize(("left", "checkpoint", "code"), [(4, None, TRAILING), (0, 5, MISSING)])
def test_a_listed_commit_that_is_gone_with_those_before_it_is_explained(
    left: int, checkpoint: int | None, code: str
) -> None:
    log = Log(6)
    if checkpoint is not None:
        log.checkpoint(checkpoint)

    def vanish(operation: str, path: str) -> None:
        if operation == "read" and path == commit_path(ROOT, 5):
            log.drop(*range(left, 6))

    log.storage.on_call = vanish
    error = refused(lambda: log.poll(5), code)
    assert error.parameters.get("earliest") == (6 if checkpoint else None)
    refused(lambda: log.poll(5), code)


def test_what_was_missed_once_is_missed_by_the_next_poll_too() -> None:
    """Though that one would be a mere look-up, which finds nothing."""
    log = Log(5)
    log.poll(5)
    log.put(5)
    log.put(6)

    def clean(operation: str, _: str) -> None:
        if operation == "list_from":
            log.drop(*range(6))

    log.storage.on_call = clean
    for _ in range(2):
        assert refused(lambda: log.poll(5), MISSING).parameters["earliest"] == 6


def test_a_hole_is_told_from_a_clean_up_by_name() -> None:
    log = Log(10)
    log.drop(5)
    log.storage.listed = hide(4)
    refused(lambda: log.poll(5), HOLE)


@pytest.mark.parametrize("first", [3, 5])
def test_a_hole_is_never_skipped(first: int) -> None:
    log = Log(10)
    log.drop(5)
    found: list[int] = []

    def poll() -> None:
        for commit in log.tail.commits(first):
            found.append(commit.version)

    error = refused(poll, HOLE)
    assert isinstance(error, MissingLogFilesError)
    assert error.parameters["version"] == 5
    assert commit_path(ROOT, 5) in error.message
    assert found == list(range(first, 5))
    assert refused(lambda: log.poll(5), HOLE).parameters["version"] == 5
    log.put(5)
    assert log.poll(5) == [5, 6, 7, 8, 9]


def test_a_hole_right_after_a_poll_is_noticed_by_the_next_look() -> None:
    log = Log(5)
    log.poll(3)
    log.put(6)
    assert log.poll(5) == []
    log.now += 10
    refused(lambda: log.poll(5), HOLE)


def test_a_hole_behind_a_checkpoint_is_one_too() -> None:
    log = Log(5)
    log.checkpoint(7)
    assert refused(lambda: log.poll(5), HOLE).parameters["version"] == 5


@pytest.mark.parametrize("left", [1, 3])
def test_a_log_that_ends_before_what_was_read_is_refused(left: int) -> None:
    log = Log(left)
    error = refused(lambda: log.poll(5), TRAILING)
    assert isinstance(error, UserError)
    assert error.parameters == {"table": ROOT, "version": 4}
    assert "new checkpoint location" in error.message


def test_a_table_that_was_restored_to_an_older_copy_is_noticed() -> None:
    log = Log(8)
    assert log.poll(5) == [5, 6, 7]
    log.drop(6, 7)
    assert log.poll(8) == []
    log.now += 11
    for _ in range(2):
        refused(lambda: log.poll(8), TRAILING)


def test_a_log_that_ends_right_before_the_wanted_version_is_fine() -> None:
    log = Log(5)
    assert log.poll(5) == []
    log.storage.listed = hide(4)
    log.restart()
    assert log.poll(5) == []


def test_a_log_that_is_gone_is_no_empty_poll() -> None:
    log = Log(5)
    log.poll(3)
    log.drop(*range(5))
    log.now += 11
    for _ in range(2):
        with pytest.raises(TableNotFoundError):
            log.poll(5)
    log.restart()
    with pytest.raises(TableNotFoundError):
        log.poll(0)


# --- another table in its place


@pytest.mark.parametrize("versions", [6, 7, 12])
def test_another_table_is_not_read_on(versions: int) -> None:
    log = Log(5)
    assert log.poll(3) == [3, 4]
    log.replace(versions)
    error = refused(lambda: log.poll(5), DIFFERENT)
    assert isinstance(error, UserError)
    assert error.parameters == {"table": ROOT, "version": 4}
    refused(lambda: log.poll(5), DIFFERENT)


def test_another_table_that_ends_where_the_stream_stands_is_noticed_by_the_next_look() -> None:
    log = Log(5)
    log.poll(3)
    log.replace(5)
    assert log.poll(5) == []
    log.now += 10
    refused(lambda: log.poll(5), DIFFERENT)


def test_a_stream_that_has_read_nothing_yet_knows_where_it_stands() -> None:
    log = Log(5)
    assert log.poll(5) == []
    log.replace(9)
    refused(lambda: log.poll(5), DIFFERENT)


def test_what_was_forgotten_still_vouches_for_what_follows() -> None:
    log = Log(5)
    log.poll(0)
    log.tail.forget(5)
    log.replace(6)
    refused(lambda: log.poll(5), DIFFERENT)


def test_a_commit_that_is_read_again_must_be_the_same() -> None:
    log = Log(5, cache_bytes=0)
    assert log.poll(2) == [2, 3, 4]
    log.put(3, content(3, "x"))
    with pytest.raises(UserError, match="Version 3"):
        for _ in log.tail.commits(3):
            pass


def test_a_file_that_was_only_touched_is_the_same_commit() -> None:
    log = Log(5)
    log.poll(3)
    log.now += 2
    log.put(4)
    log.put(5)
    assert log.called(lambda: log.poll(5)).count("read") == 2
    log.put(6)
    assert log.called(lambda: log.poll(6)).count("read") == 1
    log.put(5)
    log.now += 20
    assert log.poll(7) == []


def test_a_stale_listing_does_not_keep_another_table_from_being_noticed() -> None:
    log = Log(5)
    log.poll(3)
    log.replace(8)
    log.storage.listed = hide(4)
    refused(lambda: log.poll(5), DIFFERENT)


def test_a_store_that_fails_says_so_and_the_next_poll_goes_on() -> None:
    log = Log(5)
    log.poll(3)
    log.put(5)
    for failing in ("status", "read"):

        def fail(operation: str, path: str, failing: str = failing) -> None:
            if operation == failing:
                raise TimeoutError(path)

        log.storage.on_call = fail
        with pytest.raises(TimeoutError):
            log.poll(5)
    log.storage.on_call = None
    assert log.poll(5) == [5]


# --- the local disk


def test_a_table_on_disk(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    for number in range(14):
        table.commit([table.add(f"f{number}")])
    table.checkpoint(10)
    table.compact_log(3, 6)
    table.checksum(12)
    tail = CommitPoller(LocalStorage(), str(table.path))
    commits = list(tail.commits(1))
    assert [one.version for one in commits] == list(range(1, 15))
    assert [a.add.path for one in commits for a in one.actions if a.add] == [f"f{n}" for n in range(14)]
    table.cleanup_log(10)
    later = CommitPoller(LocalStorage(), str(table.path))
    with pytest.raises(MissingLogFilesError) as caught:
        list(later.commits(4))
    assert caught.value.parameters["earliest"] == 10
    assert [one.version for one in tail.commits(15)] == []
    shutil.rmtree(table.path)
    with pytest.raises(TableNotFoundError, match="there is no directory"):
        list(CommitPoller(LocalStorage(), str(table.path)).commits(15))


def test_commits_of_racing_writers_come_once_and_in_order(tmp_path: Path) -> None:
    """A put is a link and an unlink, so a file looks new once more after it can be seen."""
    storage, root = LocalStorage(), str(tmp_path)
    total, lock = 300, threading.Lock()
    following = 0

    def write() -> None:
        nonlocal following
        while True:
            with lock:
                version, following = following, following + 1
                if version >= total:
                    return
                storage.put_if_absent(commit_path(root, version), content(version))

    storage.put_if_absent(commit_path(root, 0), content(0))
    following = 1
    writers = [threading.Thread(target=write) for _ in range(3)]
    tail = CommitPoller(storage, root)
    for writer in writers:
        writer.start()
    found: list[int] = []
    while len(found) < total:
        found += versions(tail.commits(len(found)))
        tail.forget(len(found))
    for writer in writers:
        writer.join()
    assert found == list(range(total))


# --- an object store


def test_an_object_store_says_the_same_of_a_commit_in_a_listing_and_by_name() -> None:
    """Else the commit before the next one would be read again at every poll."""
    with s3_server() as url:
        root = "s3://bucket/t"
        storage = resolve_storage(root, options(url))
        for version in range(5):
            storage.put(commit_path(root, version), content(version))
        clock = [0.0]
        calls: list[str] = []
        tail = CommitPoller(Watched(storage, calls), root, clock=lambda: clock[0])
        assert versions(tail.commits(2)) == [2, 3, 4]
        calls.clear()
        assert versions(tail.commits(5)) == []
        assert calls == ["status"]
        clock[0] += 3600
        calls.clear()
        assert versions(tail.commits(5)) == []
        assert calls == ["list_from", "status"]
        storage.put(commit_path(root, 5), content(5))
        calls.clear()
        assert versions(tail.commits(5)) == [5]
        assert calls == ["status", "status", "status", "read"]
        storage.put(commit_path(root, 5), content(5).replace(b'"f', b'"g'))
        storage.put(commit_path(root, 6), content(6))
        with pytest.raises(UserError, match="another table"):
            list(tail.commits(6))
        for version in range(7):
            storage.delete(commit_path(root, version), below=root)
        with pytest.raises(TableNotFoundError):
            list(CommitPoller(storage, root).commits(5))


class Watched:
    """A storage whose calls are noted."""

    def __init__(self, storage: Storage, calls: list[str]) -> None:
        self._storage, self._calls = storage, calls

    def __getattr__(self, name: str) -> Any:
        if name != "scheme":
            self._calls.append(name)
        return getattr(self._storage, name)
