"""Processes that die while they commit, and answers of the store that get lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    ConcurrentWriteError,
    FileExistsInStorageError,
    MissingLogFilesError,
    ProtocolChangedError,
    StorageError,
)
from delta_pyds.table.transaction.transaction import CommitPolicy, Operation
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import QUIET, ROOT, WRITE, Crash, Table, file


def on_first_put(act: Callable[[], None]) -> Callable[[str, str], None]:
    pending = [act]

    def hook(operation: str, path: str) -> None:
        if operation == "put_if_absent" and path.endswith(".json") and pending:
            pending.pop()()

    return hook


def crash() -> None:
    raise Crash


def fail() -> None:
    raise StorageError("the connection timed out.")


def test_a_process_that_dies_before_the_put_leaves_no_trace(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    before = table.names()
    storage.on_call = on_first_put(crash)
    with pytest.raises(Crash):
        mine.commit(WRITE, policy=QUIET)
    assert table.names() == before
    assert table.append("next").version == 1


def test_a_process_that_dies_after_the_put_has_committed_once(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    storage.after_call = on_first_put(crash)
    with pytest.raises(Crash):
        mine.commit(WRITE)
    assert table.live() == ["mine"]
    assert table.append("next").version == 2
    assert table.live() == ["mine", "next"]


@pytest.mark.parametrize("when", ["after_call", "on_call"])
def test_a_lost_answer_is_settled_by_the_file_and_a_put_without_effect_is_made_again(
    table: Table, storage: MemoryStorage, when: str
) -> None:
    mine = table.start()
    mine.add(file("mine"))
    setattr(storage, when, on_first_put(fail))
    assert mine.commit(WRITE, policy=QUIET).version == 1
    assert table.live() == ["mine"]


def test_a_lost_answer_to_a_lost_race_is_a_lost_race(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    table.append("x")
    storage.on_call = on_first_put(fail)
    assert mine.commit(WRITE, policy=QUIET).version == 2
    assert table.live() == ["mine", "x"]


class SlowStorage(MemoryStorage):
    """The first put of a commit, once ``slow`` is set, fails; ``land`` is called before the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = False
        self.sent: list[tuple[str, bytes]] = []
        self.land: Callable[[], None] = lambda: None

    def put_if_absent(self, path: str, data: bytes) -> None:
        if self.slow:
            self.slow = False
            self.sent.append((path, data))
            fail()
        if len(self.sent) == 1:
            self.sent.append(("", b""))
            self.land()
        super().put_if_absent(path, data)


def test_a_put_that_lands_late_counts_once() -> None:
    """The put fails, the file is not there when we look, and is there when we put again."""
    storage = SlowStorage()
    table = Table(storage)
    table.create()
    mine = table.start()
    mine.add(file("mine"))
    storage.slow = True
    storage.land = lambda: storage.put_if_absent(*storage.sent[0])
    assert mine.commit(WRITE, policy=QUIET).version == 1
    assert table.live() == ["mine"]


def test_a_put_that_would_land_late_finds_the_version_taken() -> None:
    storage = SlowStorage()
    table = Table(storage)
    table.create()
    mine = table.start()
    mine.add(file("mine"))
    storage.slow = True

    def rival() -> None:
        table.append("x")

    storage.land = rival
    assert mine.commit(WRITE, policy=QUIET).version == 2
    with pytest.raises(FileExistsInStorageError):
        storage.put_if_absent(*storage.sent[0])
    assert table.live() == ["mine", "x"]


def test_an_outcome_that_nobody_can_tell_is_said_to_be_unknown(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))

    def gone(operation: str, path: str) -> None:
        if path.endswith(f"{1:020d}.json") and operation in ("put_if_absent", "read"):
            fail()

    storage.on_call = gone
    with pytest.raises(CommitOutcomeUnknownError, match=mine.txn_id):
        mine.commit(WRITE, policy=QUIET)


def test_trouble_while_the_winners_are_read_is_overcome(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    table.append("x")
    failures = [fail, fail]

    def hook(operation: str, _path: str) -> None:
        if operation == "list_from" and failures:
            failures.pop()()

    storage.on_call = hook
    assert mine.commit(WRITE, policy=QUIET).version == 2
    assert len(table.pauses) == 2


def test_trouble_that_lasts_while_the_winners_are_read_is_said(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    table.append("x")
    tries: list[str] = []

    def hook(operation: str, _path: str) -> None:
        if operation == "list_from":
            tries.append(operation)
            fail()

    storage.on_call = hook
    with pytest.raises(StorageError):
        mine.commit(WRITE, policy=QUIET)
    assert (len(tries), len(table.pauses)) == (5, 4)
    storage.on_call = None
    assert table.live() == ["x"]


def test_a_log_that_was_cleaned_up_meanwhile_is_not_written_into(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    for i in range(10):
        table.append(f"f{i}", policy=CommitPolicy())
    for version in range(10):
        storage.delete(f"{ROOT}/_delta_log/{version:020d}.json")
    with pytest.raises(MissingLogFilesError, match="cleaned up"):
        mine.commit(WRITE, policy=QUIET)
    storage.delete(f"{ROOT}/_delta_log/{10:020d}.json")
    again = table.start()
    again.add(file("mine"))
    assert again.commit(WRITE, policy=QUIET).version == 11


def test_a_snapshot_before_a_checkpoint_without_commits_is_too_old(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    for i in range(10):
        table.append(f"f{i}", policy=CommitPolicy())
    for version in range(11):
        storage.delete(f"{ROOT}/_delta_log/{version:020d}.json")
    with pytest.raises(MissingLogFilesError, match="checkpoint of version 10"):
        mine.commit(WRITE, policy=QUIET)


def test_a_table_that_is_gone_gets_no_commit(table: Table, storage: MemoryStorage) -> None:
    table.append("a")
    mine, other = table.start(), table.start()
    for name in table.names():
        storage.delete(f"{ROOT}/_delta_log/{name}")
    with pytest.raises(ConcurrentWriteError, match="deleted") as caught:
        mine.commit(WRITE, policy=QUIET)
    assert caught.value.code == "DELTA_CONCURRENT_WRITE"
    table.create()
    table.append("another", "and", "more")
    with pytest.raises(ConcurrentWriteError, match="another"):
        other.commit(WRITE, policy=QUIET)


def test_a_table_is_not_created_where_the_log_lost_its_start(storage: MemoryStorage) -> None:
    table = Table(storage)
    mine = table.creation()
    table.create()
    table.append("a")
    storage.delete(f"{ROOT}/_delta_log/{0:020d}.json")
    with pytest.raises(ProtocolChangedError, match="cannot be created"):
        mine.commit(Operation("CREATE TABLE"), policy=QUIET)
