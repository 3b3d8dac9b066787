"""A put that answers late, lies or fails: who has the version, and what the log holds after all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    FileExistsInStorageError,
    FileNotFoundInStorageError,
    MissingLogFilesError,
    NothingWrittenError,
    StorageError,
)
from delta_pyds.log.commit_writer import encode_commit
from delta_pyds.log.committer import commits_after, put_commit
from delta_pyds.protocol.actions import Action, AddFile, CommitInfo
from delta_pyds.protocol.paths import commit_path
from delta_pyds.storage.local import LocalStorage
from tests.support.memory_storage import MemoryStorage

ROOT = "memory://t"


def commit(txn_id: str, *rest: Action) -> bytes:
    return encode_commit([CommitInfo(operation="WRITE", txn_id=txn_id), *rest])


def fail(message: str = "the network is gone") -> None:
    raise StorageError(message)


class Faults:
    """Raise at chosen puts (counted from 1), before or after their effect."""

    def __init__(self, storage: MemoryStorage) -> None:
        self.storage = storage
        self.before: dict[int, Exception] = {}
        self.after: dict[int, Exception] = {}
        self.at_put: dict[int, Callable[[], None]] = {}
        self.reads_fail = 0
        self.puts = 0
        self.sleeps: list[float] = []
        storage.on_call, storage.after_call = self._called, self._done

    def _called(self, operation: str, path: str) -> None:
        if operation == "put_if_absent":
            self.puts += 1
            self.at_put.get(self.puts, lambda: None)()
            if self.puts in self.before:
                raise self.before[self.puts]
        if operation == "read" and self.reads_fail:
            self.reads_fail -= 1
            raise StorageError(f"{path} cannot be read now.")

    def _done(self, operation: str, _: str) -> None:
        if operation == "put_if_absent" and self.puts in self.after:
            raise self.after[self.puts]

    def put(self, version: int, data: bytes, txn_id: str = "us") -> bool:
        return put_commit(self.storage, ROOT, version, data, txn_id, sleep=self.sleeps.append)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def faults(storage: MemoryStorage) -> Faults:
    return Faults(storage)


def test_a_commit_is_put_with_one_call(storage: MemoryStorage) -> None:
    calls: list[str] = []
    storage.on_call = lambda operation, _: calls.append(operation)
    assert put_commit(storage, ROOT, 0, commit("us"), "us")
    assert calls == ["put_if_absent"]
    assert storage.read(commit_path(ROOT, 0)) == commit("us")


def test_a_version_of_another_is_lost(storage: MemoryStorage) -> None:
    storage.put(commit_path(ROOT, 0), commit("them"))
    assert not put_commit(storage, ROOT, 0, commit("us"), "us")
    assert storage.read(commit_path(ROOT, 0)) == commit("them")


@pytest.mark.parametrize("data", [b"", b'{"add":{"path":"f"}}\n', commit("them").rstrip(b"\n")])
def test_a_commit_without_our_id_is_anothers(storage: MemoryStorage, data: bytes) -> None:
    storage.put(commit_path(ROOT, 0), data)
    assert not put_commit(storage, ROOT, 0, commit("us"), "us")


ERRORS = [StorageError("lost"), TimeoutError("late"), FileNotFoundInStorageError("odd"), OSError("io")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_answer_that_is_lost_after_the_effect_is_a_success(faults: Faults, error: Exception) -> None:
    faults.after[1] = error
    assert faults.put(3, commit("us"))
    assert faults.puts == 1


def test_the_clients_own_retry_of_a_put_that_succeeded_is_ours(faults: Faults) -> None:
    faults.after[1] = FileExistsInStorageError("exists")
    assert faults.put(3, commit("us"))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_did_not_arrive_is_put_again(faults: Faults, error: Exception) -> None:
    faults.before = {1: error, 2: error}
    assert faults.put(3, commit("us"))
    assert faults.puts == 3
    assert faults.storage.read(commit_path(ROOT, 3)) == commit("us")


def test_a_late_put_that_arrives_during_the_second_is_ours(faults: Faults) -> None:
    """The first raised, reading says absent, and then it takes effect: the second meets our own file."""
    data = commit("us")
    faults.before[1] = TimeoutError()
    faults.at_put[2] = lambda: faults.storage.put(commit_path(ROOT, 3), data)
    assert faults.put(3, data)
    assert faults.puts == 2


def test_another_who_wins_while_we_fail_has_the_version(faults: Faults) -> None:
    faults.before[1] = TimeoutError()
    faults.at_put[2] = lambda: faults.storage.put(commit_path(ROOT, 3), commit("them"))
    assert not faults.put(3, commit("us"))
    assert faults.storage.read(commit_path(ROOT, 3)) == commit("them")


@pytest.mark.parametrize("ours", [True, False])
def test_reading_back_is_tried_more_than_once(faults: Faults, ours: bool) -> None:
    if not ours:
        faults.storage.put(commit_path(ROOT, 3), commit("them"))
    faults.after[1] = TimeoutError()
    faults.reads_fail = 2
    assert faults.put(3, commit("us")) is ours


def test_what_cannot_be_settled_says_so(faults: Faults) -> None:
    faults.before = dict.fromkeys(range(1, 100), TimeoutError("no answer"))
    with pytest.raises(CommitOutcomeUnknownError) as caught:
        faults.put(3, commit("us"))
    assert caught.value.parameters == {
        "table": ROOT,
        "version": 3,
        "path": commit_path(ROOT, 3),
        "txn_id": "us",
    }
    assert "Do not delete the data files" in caught.value.message
    assert commit_path(ROOT, 3) in caught.value.message
    assert "no answer" in caught.value.message
    # a pause between two attempts, none after the last
    assert faults.sleeps == [0.1, 0.5, 2.0, 5.0]
    assert faults.puts == 5


def test_nothing_is_waited_for_once_it_is_settled(faults: Faults) -> None:
    faults.before = dict.fromkeys(range(1, 5), TimeoutError("no answer"))
    assert faults.put(3, commit("us"))
    assert faults.sleeps == [0.1, 0.5, 2.0, 5.0]
    faults.sleeps.clear()
    faults.puts, faults.before, faults.after = 0, {1: TimeoutError()}, {2: TimeoutError()}
    assert faults.put(4, commit("us"))
    assert faults.sleeps == [0.1]


def test_a_success_that_cannot_be_read_back_is_not_called_a_failure(faults: Faults) -> None:
    faults.after[1] = TimeoutError()
    faults.reads_fail = 1000
    with pytest.raises(CommitOutcomeUnknownError):
        faults.put(3, commit("us"))
    faults.reads_fail = 0
    assert faults.storage.read(commit_path(ROOT, 3)) == commit("us")


def test_a_file_that_cannot_be_understood_is_nobodys(faults: Faults) -> None:
    faults.storage.put(commit_path(ROOT, 3), b'{"commitInfo":{"txn')
    with pytest.raises(CommitOutcomeUnknownError):
        faults.put(3, commit("us"))


def test_a_refusal_is_said_at_once(faults: Faults) -> None:
    faults.before[1] = NothingWrittenError("the disk is full")
    with pytest.raises(NothingWrittenError, match="disk is full"):
        faults.put(3, commit("us"))
    assert not faults.sleeps


def test_a_refusal_after_a_lost_put_settles_nothing(faults: Faults) -> None:
    faults.before = {1: TimeoutError(), **dict.fromkeys(range(2, 100), NothingWrittenError("denied"))}
    with pytest.raises(CommitOutcomeUnknownError):
        faults.put(3, commit("us"))


def test_a_refusal_of_what_is_there_is_a_success(faults: Faults) -> None:
    """Credentials that expired between the client's first try, which succeeded, and its second."""
    faults.after[1] = NothingWrittenError("expired")
    assert faults.put(3, commit("us"))


def test_a_full_disk_is_told_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").write_bytes(b"a file where the directory should be")
    with pytest.raises(NothingWrittenError, match="could not be created"):
        put_commit(LocalStorage(), str(tmp_path), 0, commit("us"), "us")


def test_of_racing_commits_each_version_has_one(tmp_path: Path) -> None:
    storage, root, lock = LocalStorage(), str(tmp_path), threading.Lock()
    won: list[tuple[int, str]] = []

    def writer(number: int) -> None:
        version = -1
        for turn in range(10):
            txn_id = f"{number}.{turn}"
            while not put_commit(storage, root, version + 1, commit(txn_id), txn_id):
                version = commits_after(storage, root, version)[-1].version
            version += 1
            with lock:
                won.append((version, txn_id))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(writer, range(6)))
    tail = commits_after(storage, root, -1)
    assert [one.version for one in tail] == list(range(60))
    infos = [one.actions[0].commit_info for one in tail]
    assert [(version, info.txn_id) for version, info in enumerate(infos) if info] == sorted(won)


# --- the tail


def fill(storage: MemoryStorage, versions: range) -> None:
    for version in versions:
        storage.put(commit_path(ROOT, version), commit(str(version), AddFile(f"f{version}")))


def versions(storage: MemoryStorage, after: int, known: int | None = None) -> list[int]:
    tail = commits_after(storage, ROOT, after, known_version=known)
    for one in tail:
        assert one.file.path == commit_path(ROOT, one.version)
        assert one.actions[1].add is not None
        assert one.actions[1].add.path == f"f{one.version}"
    return [one.version for one in tail]


def test_the_tail_is_every_later_commit(storage: MemoryStorage) -> None:
    fill(storage, range(12))
    assert versions(storage, 8) == [9, 10, 11]
    assert versions(storage, 11) == []
    assert versions(storage, -1) == list(range(12))
    assert versions(storage, 8, known=10) == [9, 10, 11]


def test_only_the_tail_is_listed_and_read(storage: MemoryStorage) -> None:
    fill(storage, range(5))
    storage.put(f"{ROOT}/_delta_log/{4:020d}.crc", b"{}")
    calls: list[tuple[str, str]] = []
    storage.on_call = lambda operation, path: calls.append((operation, path))
    assert versions(storage, 3) == [4]
    assert calls == [("list_from", f"{ROOT}/_delta_log"), ("read", commit_path(ROOT, 4))]


@pytest.mark.parametrize("shown", [0, 5, 6, 7])
def test_a_stale_listing_hides_nothing_from_one_who_knows(storage: MemoryStorage, shown: int) -> None:
    fill(storage, range(10))
    storage.listed = lambda _, names: names[:shown]
    assert versions(storage, 4, known=7) == [5, 6, 7, 8, 9]


def test_a_hole_in_a_listing_is_read_by_name(storage: MemoryStorage) -> None:
    fill(storage, range(10))
    storage.listed = lambda _, names: names[:6] + names[8:]
    assert versions(storage, 4) == [5, 6, 7, 8, 9]


def test_a_new_table_has_no_tail(storage: MemoryStorage) -> None:
    assert versions(storage, -1) == []


def test_a_first_commit_that_no_listing_shows_is_read(storage: MemoryStorage) -> None:
    fill(storage, range(1))
    storage.listed = lambda _, __: []
    assert versions(storage, -1, known=0) == [0]


@pytest.mark.parametrize("known", [None, 9])
def test_a_cleaned_up_log_is_no_empty_tail(storage: MemoryStorage, known: int | None) -> None:
    fill(storage, range(10))
    for version in range(8):
        storage.delete(commit_path(ROOT, version))
    with pytest.raises(MissingLogFilesError, match=r"version 4 .* is missing") as caught:
        versions(storage, 3, known)
    assert caught.value.parameters["missing_version"] == 4


def test_a_checkpoint_proves_commits_too(storage: MemoryStorage) -> None:
    fill(storage, range(6))
    storage.put(f"{ROOT}/_delta_log/{8:020d}.checkpoint.parquet", b"x")
    with pytest.raises(MissingLogFilesError, match="version 6"):
        versions(storage, 3)


def test_a_table_that_was_deleted_is_no_empty_tail(storage: MemoryStorage) -> None:
    with pytest.raises(FileNotFoundInStorageError):
        versions(storage, 3)
