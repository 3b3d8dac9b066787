"""Transactions that race: which winners they pass, which are conflicts, and that a conflict writes nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from delta_pyds.errors import (
    CommitRetriesExceededError,
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    ConcurrentWriteError,
    FileNotFoundInStorageError,
    MetadataChangedError,
    MissingLogFilesError,
    OptionError,
    ProtocolChangedError,
    StorageError,
    UnsupportedFeatureError,
    UserError,
)
from delta_pyds.protocol.actions import Protocol
from delta_pyds.storage.local import LocalStorage
from delta_pyds.storage.local_turns import Turn
from delta_pyds.table.transaction.mend import MendedChanges, NetChanges
from delta_pyds.table.transaction.transaction import CommitPolicy, Operation, Transaction
from delta_pyds.verification.verify import verify
from tests.support.limits import ONLY_A_HANG_S
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import QUIET, ROOT, WRITE, Table, file, removed, where


def test_appends_of_others_are_stepped_over(table: Table) -> None:
    mine = table.start()
    for name in ("x", "y", "z"):
        table.append(name)
    mine.add(file("mine"))
    done = mine.commit(WRITE, policy=QUIET)
    assert (done.version, done.attempts, done.winners) == (4, 2, (1, 2, 3))
    assert table.info(4)["readVersion"] == 0
    assert table.live() == ["mine", "x", "y", "z"]


def test_a_conflict_writes_nothing(table: Table) -> None:
    table.append("a")
    mine = table.start()
    mine.record_whole_table()
    mine.remove(removed("a"))
    mine.add(file("b"))
    table.append("x")
    with pytest.raises(ConcurrentAppendError, match=r"UPDATE on table .* version 2 \(WRITE\)"):
        mine.commit(Operation("UPDATE"), policy=QUIET)
    assert table.snapshot().version == 2
    assert table.live() == ["a", "x"]


def test_each_winner_is_checked_not_only_the_last(partitioned: Table) -> None:
    mine = partitioned.start()
    mine.record_where(where("p = 'a'"))
    mine.add(file("mine", p="a"))
    partitioned.append("x", p="a")
    partitioned.append("y", p="b")
    with pytest.raises(ConcurrentAppendError) as error:
        mine.commit(WRITE, policy=QUIET)
    assert error.value.parameters["version"] == 1


def test_writers_of_different_partitions_pass_each_other(partitioned: Table) -> None:
    partitioned.append("a1", p="a")
    partitioned.append("b1", p="b")
    snapshot = partitioned.snapshot()
    for p in "ab":
        mine = partitioned.start(snapshot)
        mine.record_where(where(f"p = '{p}'"))
        mine.record_files([f"{p}1"])
        mine.remove(removed(f"{p}1", partition_values={"p": p}))
        mine.add(file(f"{p}2", p=p))
        mine.commit(WRITE, policy=QUIET)
    assert partitioned.live() == ["a2", "b2"]


def test_a_file_that_was_read_must_still_be_there(partitioned: Table) -> None:
    partitioned.append("a", p="a")
    mine = partitioned.start()
    mine.record_files(["a"])
    mine.add(file("b", p="b"))
    other = partitioned.start()
    other.remove(removed("a", partition_values={"p": "a"}))
    other.commit(WRITE, policy=QUIET)
    with pytest.raises(ConcurrentDeleteReadError):
        mine.commit(WRITE, policy=QUIET)


def test_one_application_writes_each_version_once(table: Table) -> None:
    first, second = table.start(), table.start()
    for transaction in (first, second):
        assert transaction.record_application("app") is None
        transaction.set_application("app", 1)
        transaction.add(file(transaction.txn_id))
    first.commit(WRITE, policy=QUIET)
    with pytest.raises(ConcurrentTransactionError):
        second.commit(WRITE, policy=QUIET)
    assert table.start().record_application("app") == 1
    assert table.start().record_application("other") is None


def test_setting_an_application_alone_guards_it_too(table: Table) -> None:
    first, second = table.start(), table.start()
    first.set_application("app", 1)
    second.set_application("app", 1)
    first.commit(WRITE, policy=QUIET)
    with pytest.raises(ConcurrentTransactionError):
        second.commit(WRITE, policy=QUIET)


def test_a_table_that_was_created_meanwhile_is_not_created_again(storage: MemoryStorage) -> None:
    mine = Table(storage).creation()
    Table(storage).create()
    with pytest.raises(ProtocolChangedError, match="created it first") as error:
        mine.commit(Operation("CREATE TABLE"), policy=QUIET)
    assert error.value.code == "DELTA_PROTOCOL_CHANGED"


def test_new_features_of_a_winner_are_adopted(table: Table) -> None:
    mine = table.start()
    mine.add(file("mine"))
    grown = Protocol(1, 7, None, ["appendOnly", "invariants", "checkConstraints"])
    table.set_properties(grown)
    done = mine.commit(WRITE, policy=QUIET)
    assert done.protocol == grown
    assert table.kinds(2) == ["commitInfo", "add"]


def test_a_feature_of_a_winner_that_we_cannot_write_stops_us(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    line = b'{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["fancyWrites"]}}\n'
    storage.put_if_absent(f"{ROOT}/_delta_log/{1:020d}.json", line)
    with pytest.raises(UnsupportedFeatureError, match="fancyWrites") as error:
        mine.commit(WRITE, policy=QUIET)
    assert error.value.code == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


def test_a_table_that_we_cannot_write_is_refused_first(storage: MemoryStorage) -> None:
    Table(storage).create()
    line = b'{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["fancyWrites"]}}\n'
    storage.put_if_absent(f"{ROOT}/_delta_log/{1:020d}.json", line)
    mine = Table(storage).start()
    with pytest.raises(UnsupportedFeatureError, match="fancyWrites"):
        mine.commit(WRITE, policy=QUIET)


def test_adopted_metadata_is_checked_against_by_later_winners(table: Table) -> None:
    table.set_properties(Protocol(3, 7, ["deletionVectors"], ["deletionVectors", "appendOnly", "invariants"]))
    mine = table.start()
    mine.add(file("mine"))
    table.set_properties(delta_enableDeletionVectors="true")
    done = mine.commit(WRITE, policy=QUIET)
    assert done.metadata.configuration == {"delta.enableDeletionVectors": "true"}
    late = table.start(table.snapshot(0))
    table.set_properties(user_key="v")
    with pytest.raises(MetadataChangedError):
        late.commit(WRITE, policy=QUIET)


class Rival:
    """Commits right before each put of the one under test."""

    def __init__(self, table: Table, storage: MemoryStorage, most: int) -> None:
        self.commits = 0
        self._inside = False
        self._table, self._most = table, most
        storage.on_call = self._called

    def _called(self, operation: str, path: str) -> None:
        if operation != "put_if_absent" or not path.endswith(".json") or self._inside or self.commits >= self._most:
            return
        self._inside = True
        self.commits += 1
        self._table.append(f"rival{self.commits}")
        self._inside = False


def test_a_loser_tries_again_and_pauses_only_after_several_losses(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    Rival(table, storage, most=8)
    done = mine.commit(WRITE, policy=CommitPolicy(post_commit=False, first_backoff_s=1, max_backoff_s=4))
    assert (done.version, done.attempts) == (9, 9)
    assert len(table.pauses) == 5  # none after the first three losses
    longest = [1, 2, 4, 4, 4]
    assert all(0.3 * most <= pause <= most for pause, most in zip(table.pauses, longest, strict=True))
    assert table.live().count("mine") == 1


def test_pauses_of_changes_that_are_mended_stay_short(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.record_whole_table()
    mine.add(file("mine"))
    Rival(table, storage, most=12)
    nets: list[list[int]] = []

    def mend(net: NetChanges) -> MendedChanges:
        nets.append(net.versions)
        return MendedChanges(WRITE, [file("mine")], [], [], set())

    done = mine.commit(WRITE, policy=CommitPolicy(post_commit=False), mend=mend)
    assert done.version == 13
    assert nets == [[version] for version in range(1, 13)], "each winner is mended after once."
    assert len(table.pauses) == 9
    assert max(table.pauses) <= 0.2


def test_losers_on_the_disk_take_turns(tmp_path: Path) -> None:
    table = Table(LocalStorage(), str(tmp_path / "t"))
    table.creation().commit(Operation("CREATE TABLE"), policy=QUIET)
    lost = table.start()
    lost.add(file("lost"))
    table.append("winner")
    others = Turn(str(tmp_path / "t" / "_delta_log"))
    assert others.wait(0, table.pauses.append)

    def waiting(_: float) -> None:
        table.append("while it waits")
        others.end()

    lost._sleep = waiting
    done = lost.commit(WRITE, policy=QUIET)
    # the other one's commit is there before the log is read
    assert (done.version, done.attempts, done.winners) == (3, 2, (1, 2))
    assert others.wait(0, table.pauses.append) is False, "a turn is waited for once."
    with Turn(str(tmp_path / "t" / "_delta_log")) as next_one:
        assert next_one.wait(0, table.pauses.append), "the turn ended with the commit."
    assert table.pauses == []


def test_nobody_waits_for_a_turn_that_never_ends(tmp_path: Path) -> None:
    table = Table(LocalStorage(), str(tmp_path / "t"))
    table.creation().commit(Operation("CREATE TABLE"), policy=QUIET)
    lost = table.start()
    lost.add(file("lost"))
    table.append("winner")
    with Turn(str(tmp_path / "t" / "_delta_log")) as stopped:
        assert stopped.wait(0, table.pauses.append)
        done = lost.commit(WRITE, policy=CommitPolicy(post_commit=False, max_backoff_s=0.05))
    assert (done.version, done.attempts) == (2, 2)
    assert table.pauses
    assert sum(table.pauses) < 0.06


@pytest.mark.parametrize("versions", [1, 2, 5])
@pytest.mark.parametrize("when", ["it waits", "it is mended"])
def test_a_table_that_was_replaced_meanwhile_gets_no_commit(tmp_path: Path, when: str, versions: int) -> None:
    table = Table(LocalStorage(), str(tmp_path / "t"))
    table.create()
    table.append("read")
    mine = table.start()
    mine.record_files(["read"])
    mine.remove(removed("read"))
    gone = table.start()
    gone.remove(removed("read"))
    gone.commit(WRITE, policy=QUIET)

    def replaced(*_: object) -> None:
        if not (tmp_path / "old").exists():
            (tmp_path / "t").rename(tmp_path / "old")
            table.create(table_id="other-id")
            for number in range(1, versions):
                table.append(f"of another table {number}")

    def mend(_: NetChanges) -> MendedChanges:
        if when == "it is mended":
            replaced()
        return MendedChanges(WRITE, [file("mine")], [], [], set())

    mine._sleep = replaced
    others = Turn(str(tmp_path / "t" / "_delta_log"))
    if when == "it waits":
        assert others.wait(0, table.pauses.append)
    with others, pytest.raises((ConcurrentWriteError, MissingLogFilesError, FileNotFoundInStorageError, UserError)):
        mine.commit(WRITE, policy=CommitPolicy(post_commit=False, max_backoff_s=0.05), mend=mend)
    assert table.snapshot().version == versions - 1
    assert "mine" not in table.live()


def _losing(table: Table, *, mended: bool) -> Transaction:
    """A transaction that loses a race for the file that it removes, or that only appends."""
    table.append("read")
    mine = table.start()
    if mended:
        mine.record_files(["read"])
        mine.remove(removed("read"))
    else:
        mine.add(file("mine"))
    gone = table.start()
    gone.remove(removed("read"))
    gone.commit(WRITE, policy=QUIET)
    return mine


@pytest.mark.parametrize("mended", [False, True])
@pytest.mark.parametrize("when", ["list_from", "read", "status", "mend"])
def test_a_table_that_was_replaced_in_a_store_gets_no_commit(
    table: Table, storage: MemoryStorage, when: str, mended: bool
) -> None:
    mine, done = _losing(table, mended=mended), list[str]()

    def replace() -> None:
        if not done:
            done.append(when)
            storage._files.clear()
            table.create(table_id="other-id")
            for number in range(1, 4):
                table.append(f"of another table {number}")

    lost: list[str] = []

    def on_call(operation: str, path: str) -> None:
        if operation == "put_if_absent":
            lost.append(path)
        elif lost and operation == when and (operation != "read" or "list_from" in lost):
            storage.on_call = None
            replace()
        elif lost:
            lost.append(operation)

    def mend(_: NetChanges) -> MendedChanges:
        if when == "mend":
            storage.on_call = None
            replace()
        return MendedChanges(WRITE, [file("mine")], [], [], set())

    storage.on_call = on_call
    if when == "mend" and not mended:
        mine.commit(WRITE, policy=QUIET)
        return
    with pytest.raises((ConcurrentWriteError, MissingLogFilesError, FileNotFoundInStorageError, UserError)):
        mine.commit(WRITE, policy=QUIET, mend=mend)
    storage.on_call = None
    assert done and table.snapshot().version == 3
    assert "mine" not in table.live()


@pytest.mark.parametrize("mended", [False, True])
def test_a_lost_race_in_a_store_takes_one_request_to_check_the_log(
    table: Table, storage: MemoryStorage, mended: bool
) -> None:
    mine, calls = _losing(table, mended=mended), list[str]()
    storage.on_call = lambda operation, _: calls.append(operation)
    mine.commit(WRITE, policy=QUIET, mend=lambda _: MendedChanges(WRITE, [file("mine")], [], [], set()))
    first = calls.index("put_if_absent")
    race = calls[first : calls.index("put_if_absent", first + 1)]
    assert (race.count("list_from"), race.count("status")) == (1, 1)


def test_after_the_last_attempt_it_gives_up_with_nothing_written(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    Rival(table, storage, most=100)
    with pytest.raises(CommitRetriesExceededError) as error:
        mine.commit(WRITE, policy=CommitPolicy(max_attempts=4, post_commit=False))
    assert error.value.code == "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"
    assert table.snapshot().version == 4
    assert "mine" not in table.live()
    assert table.pauses == []  # after the last attempt there is nothing to wait for


@pytest.mark.parametrize(("attempts", "pauses"), [(1, 0), (3, 0), (4, 0), (5, 1), (7, 3)])
def test_after_the_last_attempt_nobody_waits(table: Table, storage: MemoryStorage, attempts: int, pauses: int) -> None:
    mine = table.start()
    mine.add(file("mine"))
    rival = Rival(table, storage, most=100)
    with pytest.raises(CommitRetriesExceededError):
        mine.commit(WRITE, policy=CommitPolicy(max_attempts=attempts, post_commit=False))
    assert rival.commits == attempts
    assert len(table.pauses) == pauses


def test_a_log_that_cannot_be_listed_is_tried_five_times(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    table.append("winner")
    listings = 0

    def called(operation: str, path: str) -> None:
        nonlocal listings
        if operation == "list_from":
            listings += 1
            raise StorageError(f"{path} cannot be listed now.")

    storage.on_call = called
    with pytest.raises(StorageError, match="cannot be listed"):
        mine.commit(WRITE, policy=QUIET)
    assert listings == 5
    assert len(table.pauses) == 4
    storage.on_call = None
    assert table.live() == ["winner"]


def test_a_policy_allows_an_attempt_at_least() -> None:
    with pytest.raises(OptionError, match="is 0, but must be at least 1"):
        CommitPolicy(max_attempts=0)


def test_a_stale_listing_hides_no_winner(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.record_whole_table()
    mine.add(file("mine"))
    table.append("x")
    storage.listed = lambda _directory, names: [n for n in names if n <= f"{0:020d}.json"]
    with pytest.raises(ConcurrentAppendError):
        mine.commit(WRITE, policy=QUIET)


@pytest.mark.parametrize("local", [False, True])
def test_many_threads_lose_nothing_and_double_nothing(local: bool, tmp_path: Path) -> None:
    table = Table(LocalStorage(), str(tmp_path / "t")) if local else Table(MemoryStorage())
    table.creation(properties={"delta.checkpointInterval": "25"}).commit(Operation("CREATE TABLE"))
    writers, each = (4, 10) if local else (8, 20)
    versions: list[int] = []
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for i in range(each):
                transaction = Transaction(table.snapshot())
                transaction.add(file(f"w{number}-{i}"))
                versions.append(transaction.commit(WRITE, policy=CommitPolicy(first_backoff_s=0.001)).version)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ONLY_A_HANG_S)
    assert failures == []
    assert sorted(versions) == list(range(1, writers * each + 1))
    assert table.live() == sorted(f"w{n}-{i}" for n in range(writers) for i in range(each))
    snapshot = table.snapshot()
    assert snapshot.totals.num_files == writers * each
    assert [n for n in table.names() if n.endswith(".checkpoint.parquet")]
    assert snapshot.verify_checksum()
    if local:
        assert verify(table.root, data=False).ok
    assert {n[:20] for n in table.names() if n.endswith(".crc")} == {f"{v:020d}" for v in range(snapshot.version + 1)}
