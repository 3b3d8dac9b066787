"""Whether the log is still the one that a transaction has read: tables that were created again, or copied."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from delta_pyds.errors import UserError
from delta_pyds.log.listing import LogFile
from delta_pyds.protocol.paths import LogFileKind, LogFileName, commit_path
from delta_pyds.storage.base import FileStatus, Storage
from delta_pyds.storage.local import LocalStorage
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.transaction import log_continuity
from delta_pyds.table.transaction.log_continuity import is_same_file
from delta_pyds.table.transaction.maintenance import checkpoint_and_clean
from delta_pyds.table.transaction.mend import MendedChanges, NetChanges
from tests.support.memory_storage import MemoryStorage
from tests.support.s3_server import options, s3_server
from tests.support.transactions import QUIET, WRITE, Table, file, removed


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture(params=["disk", "memory", "s3"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """A table whose commits have the same sizes when it is created again."""
    # commits at different times state times of one length
    ticks = itertools.count(1_700_000_000_000, 7)
    if request.param == "disk":
        return Table(LocalStorage(), str(tmp_path / "t"), clock=ticks.__next__)
    if request.param == "memory":
        return Table(MemoryStorage(clock=ticks.__next__), clock=ticks.__next__)
    storage = resolve_storage("s3://bucket/t", options(request.getfixturevalue("url")))
    return Table(storage, f"s3://bucket/{uuid.uuid4().hex}", clock=ticks.__next__)


def log_of(table: Table) -> dict[str, bytes]:
    """The log's files; they are deleted."""
    paths = [status.path for status in table.storage.list_from(f"{table.root}/_delta_log", "")]
    found = {path: table.storage.read(path) for path in paths}
    table.storage.delete_all(paths, below=table.root)
    return found


def created_again(table: Table, commits: int = 1) -> None:
    """Another table of the same definition, whose commits have the sizes of the deleted ones."""
    sizes = {path: len(data) for path, data in log_of(table).items()}
    if table.storage.scheme == "file":
        time.sleep(0.02)  # no disk's clock has longer ticks
    table.create(table_id="other-id")
    for number in range(1, commits):
        table.append(f"file {number}")
    now = {status.path: status.size_bytes for status in table.storage.list_from(f"{table.root}/_delta_log", "")}
    assert now.items() <= sizes.items()


def checkpointed(table: Table, *, without: int) -> None:
    """Write a checkpoint, and delete one commit."""
    snapshot = table.snapshot()
    checkpoint_and_clean(table.storage, snapshot.replay, now_ms=1_700_000_000_000)
    table.storage.delete(commit_path(table.root, without), below=table.root)


def copied(table: Table) -> None:
    """The same table in other files."""
    for path, data in log_of(table).items():
        table.storage.put(path, data)


def test_a_table_that_was_created_again_gets_no_commit(anywhere: Table) -> None:
    anywhere.create()
    mine = anywhere.start()
    mine.add(file("mine"))
    created_again(anywhere)
    with pytest.raises(UserError, match="was replaced by another one while this command ran") as caught:
        mine.commit(WRITE, policy=QUIET)
    assert caught.value.code == "DELTA_TABLE_ID_MISMATCH"
    assert (anywhere.snapshot().version, anywhere.live()) == (0, [])


@pytest.mark.parametrize("commits", [2, 3])
def test_nor_after_it_lost_a_race(anywhere: Table, commits: int) -> None:
    anywhere.create()
    mine = anywhere.start()
    mine.add(file("mine"))
    anywhere.append("file 1")
    commits_after = mine._committer.commits_after

    def slowly(*given: Any, **more: Any) -> Any:
        created_again(anywhere, commits)
        return commits_after(*given, **more)

    anywhere.append("file 2")
    with mock.patch.object(mine._committer, "commits_after", slowly), pytest.raises(UserError, match="was replaced"):
        mine.commit(WRITE, policy=QUIET)
    assert anywhere.live() == [f"file {number}" for number in range(1, commits)]


def test_nor_after_a_mend(anywhere: Table) -> None:
    anywhere.create()
    anywhere.append("file 1")
    mine = anywhere.start()
    mine.record_whole_table()
    mine.remove(removed("file 1"))
    anywhere.append("file 2")

    def mend(_: NetChanges) -> MendedChanges:
        created_again(anywhere, 3)
        return MendedChanges(WRITE, [file("mine")], [], [], set())

    with pytest.raises(UserError, match="was replaced"):
        mine.commit(WRITE, policy=QUIET, mend=mend)
    assert anywhere.live() == ["file 1", "file 2"]


def test_a_copy_is_the_same_table(anywhere: Table) -> None:
    anywhere.create()
    anywhere.append("file 1")
    mine = anywhere.start()
    mine.record_whole_table()
    mine.add(file("mine"))
    copied(anywhere)
    assert mine.commit(WRITE, policy=QUIET).version == 2

    late = anywhere.start()
    late.record_whole_table()
    late.add(file("late"))
    anywhere.append("file 3")
    commits_after = late._committer.commits_after

    def slowly(*given: Any, **more: Any) -> Any:
        found = commits_after(*given, **more)
        copied(anywhere)
        return found

    def mend(_: NetChanges) -> MendedChanges:
        copied(anywhere)
        return MendedChanges(WRITE, [file("late")], [], [], set())

    with mock.patch.object(late._committer, "commits_after", slowly):
        assert late.commit(WRITE, policy=QUIET, mend=mend).version == 4
    assert anywhere.live() == ["file 1", "file 3", "late", "mine"]


def test_the_same_file_is_not_read_again(anywhere: Table) -> None:
    anywhere.create()
    mine, lost = anywhere.start(), anywhere.start()
    mine.add(file("mine"))
    lost.add(file("lost"))
    with mock.patch.object(log_continuity, "open_snapshot", side_effect=AssertionError):
        mine.commit(WRITE, policy=QUIET)
        assert lost.commit(WRITE, policy=QUIET).version == 2


def test_a_version_without_its_commit_file(anywhere: Table) -> None:
    """Only a checkpoint has it, so there is nothing to compare but the table's id."""
    anywhere.create()
    anywhere.append("file 1")
    checkpointed(anywhere, without=1)
    snapshot = anywhere.snapshot()
    assert (snapshot.version, snapshot.segment.last_commit) == (1, None)
    late, mine = anywhere.start(snapshot), anywhere.start(snapshot)
    mine.add(file("mine"))
    assert mine.commit(WRITE, policy=QUIET).version == 2
    late.add(file("late"))
    log_of(anywhere)
    anywhere.create(table_id="other-id")
    anywhere.append("file 1")
    for transaction in (late, anywhere.start(snapshot)):
        with pytest.raises(UserError, match="was replaced"):
            transaction.commit(WRITE, policy=QUIET)
    assert anywhere.live() == ["file 1"]


@pytest.mark.parametrize("lost", [False, True])
def test_a_commit_that_was_cleaned_up_of_another_table(anywhere: Table, lost: bool) -> None:
    anywhere.create()
    mine = anywhere.start()
    mine.add(file("mine"))
    if lost:
        anywhere.append("file 1")
    commits_after = mine._committer.commits_after

    def cleaned_up(*given: Any, **more: Any) -> Any:
        log_of(anywhere)
        anywhere.create(table_id="other-id")
        anywhere.append("file 1")
        checkpointed(anywhere, without=0)
        return commits_after(*given, **more)

    if not lost:
        cleaned_up(0)
    with mock.patch.object(mine._committer, "commits_after", cleaned_up), pytest.raises(UserError, match="replaced"):
        mine.commit(WRITE, policy=QUIET)
    assert anywhere.snapshot().version == 1


@pytest.mark.parametrize(
    ("on", "read", "now", "same"),
    [
        ("store", ("a", 1000), ("a", 1234), True),  # a listing and a single answer may round times otherwise
        ("store", ("a", 1234), ("b", 1234), False),
        ("store", ("a", 1234), ("", 1234), False),
        ("store", ("", 1234), ("", 1234), True),
        ("store", ("", 1234), ("", 1235), False),
        ("store", ("", 0), ("", 0), False),
        ("disk", ("a", 1234), ("a", 1234), True),
        ("disk", ("a", 1234), ("b", 1234), True),  # its temporary name was deleted
        ("disk", ("a", 1234), ("b", 1235), False),
        ("disk", ("a", 1000), ("b", 1000), False),  # perhaps a disk that rounds times
    ],
)
def test_the_same_file(on: str, read: tuple[str, int], now: tuple[str, int], same: bool) -> None:
    storage: Storage = LocalStorage() if on == "disk" else MemoryStorage()
    name = LogFileName(LogFileKind.COMMIT, 1)
    before = LogFile("p", 1, 9, read[1], name, read[0])
    assert is_same_file(storage, before, FileStatus("p", 9, now[1], now[0])) is same
    assert not is_same_file(storage, before, FileStatus("p", 8, now[1], now[0]))
    assert not is_same_file(storage, None, FileStatus("p", 9, now[1], now[0]))
