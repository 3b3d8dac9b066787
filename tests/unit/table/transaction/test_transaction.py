from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    CommitRetriesExceededError,
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    ConcurrentWriteError,
    CorruptLogError,
    DeltaError,
    FileExistsInStorageError,
    MetadataChangedError,
    MissingLogFilesError,
    OptionError,
    ProtocolChangedError,
    StorageError,
    UnsupportedFeatureError,
)
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.protocol.actions import AddCDCFile, AddFile, DomainMetadata, Metadata, Protocol, RemoveFile
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import LONG, StructField, StructType, schema_to_string
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.definition.column_mapping import assign_columns
from delta_pyds.table.transaction.transaction import CommitPolicy, Operation, TableToCreate, Transaction
from delta_pyds.verification.verify import verify
from tests.support.limits import ONLY_A_HANG_S
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import QUIET, ROOT, SCHEMA, WRITE, Crash, Table, file, removed

WITH_ICT = Protocol(1, 7, None, ["inCommitTimestamp"])
ICT = {"delta.enableInCommitTimestamps": "true"}
ENABLEMENT = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def table(storage: MemoryStorage) -> Table:
    made = Table(storage)
    made.create()
    return made


@pytest.fixture
def partitioned(storage: MemoryStorage) -> Table:
    made = Table(storage)
    made.create(partitioned=True)
    return made


def where(text: str) -> Any:
    return parse_predicate(text, SCHEMA, time_zone="UTC").expr


# --- one writer


def test_the_first_commit_creates_the_table(storage: MemoryStorage) -> None:
    table = Table(storage)
    done = table.create(properties={"delta.appendOnly": "true"})
    assert (done.version, done.attempts, done.winners) == (0, 1, ())
    assert table.kinds(0) == ["commitInfo", "metaData", "protocol"]
    assert "readVersion" not in table.info(0)
    assert table.info(0)["isBlindAppend"] is True
    assert table.snapshot().configuration.properties.append_only


def test_an_append_is_one_commit_after_the_version_that_was_read(table: Table) -> None:
    done = table.append("a", "b")
    assert done.version == 1
    info = table.info(1)
    assert (info["readVersion"], info["isolationLevel"], info["isBlindAppend"], info["dataChange"]) == (
        0,
        "Serializable",
        True,
        True,
    )
    assert info["txnId"] == done.info.txn_id
    assert table.live() == ["a", "b"]


def test_actions_stand_in_the_references_order(storage: MemoryStorage) -> None:
    table = Table(storage)
    features = ["domainMetadata", "rowTracking", "changeDataFeed"]
    table.create(protocol=Protocol(1, 7, None, features))
    table.append("a")
    transaction = table.start()
    transaction.remove(removed("a", base_row_id=0))
    transaction.add_change_file(AddCDCFile("c", {}, 1))
    transaction.add(file("b"))
    transaction.set_application("app", 3)
    transaction.set_domain(DomainMetadata("d", "{}"))
    transaction.set_protocol(Protocol(1, 7, None, [*features, "appendOnly"]))
    transaction.set_metadata(msgspec.structs.replace(table.snapshot().metadata, configuration={"k": "v"}))
    transaction.commit(WRITE, policy=QUIET)
    assert table.kinds(2) == [
        "commitInfo", "metaData", "protocol", "domainMetadata", "txn", "add", "cdc", "remove", "domainMetadata",
    ]  # fmt: skip
    assert table.lines(2)[-1]["domainMetadata"]["domain"] == "delta.rowTracking"


def test_metadata_and_protocol_as_they_are_are_no_change(table: Table) -> None:
    transaction = table.start()
    transaction.set_metadata(table.snapshot().metadata)
    transaction.set_protocol(table.snapshot().protocol)
    done = transaction.commit(WRITE, policy=QUIET)
    assert table.kinds(done.version) == ["commitInfo"]


def test_removes_without_a_time_are_dated_now(storage: MemoryStorage) -> None:
    table = Table(storage, clock=lambda: 77)
    table.create()
    table.append("a")
    transaction = table.start()
    transaction.remove(RemoveFile("a", partition_values={}, size=1))
    transaction.commit(WRITE, policy=QUIET)
    assert table.actions(2, "remove")[0]["deletionTimestamp"] == 77


def test_many_removes_come_from_an_iterator(table: Table) -> None:
    paths = [f"f{i}" for i in range(25_000)]
    table.append(*paths)
    transaction = table.start()
    transaction.record_whole_table()
    transaction.remove(remove for path in paths for remove in removed(path))
    transaction.add(file("new"))
    transaction.commit(WRITE, policy=QUIET)
    assert table.live() == ["new"]


def test_a_transaction_commits_once(table: Table) -> None:
    transaction = table.start()
    transaction.commit(WRITE, policy=QUIET)
    for use in (
        lambda: transaction.commit(WRITE),
        lambda: transaction.add(file("a")),
        transaction.record_whole_table,
        lambda: transaction.record_application("a"),
    ):
        with pytest.raises(DeltaError, match="after its commit") as caught:
            use()
        assert caught.value.code == "DELTA_TRANSACTION_ALREADY_USED"
    assert table.snapshot().version == 1


def test_the_cost_of_a_commit_does_not_grow_with_the_log(storage: MemoryStorage, table: Table) -> None:
    def calls_of_a_commit() -> list[str]:
        transaction = table.start()
        transaction.add(file(f"x{table.snapshot().version}"))
        calls: list[str] = []
        storage.on_call = lambda operation, path: calls.append(f"{operation} {path.rsplit('.', 1)[-1]}")
        transaction.commit(WRITE, policy=CommitPolicy())
        storage.on_call = None
        return calls

    storage.delete(f"{ROOT}/_delta_log/{0:020d}.json")
    table.creation().commit(Operation("CREATE TABLE"))
    table.append("a", policy=CommitPolicy())
    few = calls_of_a_commit()
    for i in range(20):
        table.append(f"b{i}", policy=CommitPolicy())
    assert calls_of_a_commit() == few
    assert not [call for call in few if call.startswith("list_from")]
    assert len(few) <= 6


# --- races


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
    with pytest.raises(OptionError, match="0 attempts"):
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


# --- processes that die, answers that get lost


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


def test_an_answer_that_got_lost_is_settled_by_the_file(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    storage.after_call = on_first_put(fail)
    assert mine.commit(WRITE, policy=QUIET).version == 1
    assert table.live() == ["mine"]


def test_a_put_that_failed_before_its_effect_is_made_again(table: Table, storage: MemoryStorage) -> None:
    mine = table.start()
    mine.add(file("mine"))
    storage.on_call = on_first_put(fail)
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


# --- isolation


def test_write_serializable_is_honoured_where_the_table_says_it(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create(properties={"delta.isolationLevel": "WriteSerializable"})
    mine = _with_data(table)
    mine.record_whole_table()
    table.append("x")
    done = mine.commit(WRITE, policy=QUIET)
    assert table.info(done.version)["isolationLevel"] == "WriteSerializable"
    strict = _with_data(table)
    strict.record_whole_table()
    table.append("y")
    with pytest.raises(ConcurrentAppendError):
        strict.commit(WRITE, isolation_level="serializable", policy=QUIET)


def test_an_isolation_level_may_be_asked_for(table: Table) -> None:
    mine = _with_data(table)
    mine.record_whole_table()
    table.append("x")
    assert mine.commit(WRITE, isolation_level="WriteSerializable", policy=QUIET).version == 2
    assert table.info(2)["isolationLevel"] == "WriteSerializable"


def test_what_a_table_demands_is_not_weakened(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create(properties={"delta.isolationLevel": "Serializable"})
    with pytest.raises(OptionError, match="demands"):
        _with_data(table).commit(WRITE, isolation_level="WriteSerializable", policy=QUIET)
    with pytest.raises(OptionError, match="SnapshotIsolation"):
        _with_data(table).commit(WRITE, isolation_level="SnapshotIsolation", policy=QUIET)


def _with_data(table: Table) -> Transaction:
    transaction = table.start()
    transaction.add(file("a"))
    return transaction


def test_what_only_rearranges_files_passes_new_files_but_not_removed_ones(table: Table) -> None:
    table.append("a", "b")
    snapshot = table.snapshot()

    def compact(target: str) -> Transaction:
        transaction = table.start(snapshot)
        transaction.record_files(["a", "b"])
        transaction.remove(removed(["a", "b"], data_change=False))
        transaction.add(file(target, data_change=False))
        return transaction

    first, second = compact("ab"), compact("ab2")
    table.append("x")
    done = first.commit(Operation("OPTIMIZE"), policy=QUIET)
    assert table.info(done.version)["isolationLevel"] == "SnapshotIsolation"
    assert table.info(done.version)["dataChange"] is False
    assert table.info(done.version)["isBlindAppend"] is False
    with pytest.raises(ConcurrentDeleteReadError):
        second.commit(Operation("OPTIMIZE"), policy=QUIET)
    assert table.live() == ["ab", "x"]


READS: list[Callable[[Transaction], object]] = [
    lambda t: t.record_whole_table(),
    lambda t: t.record_where(where("p = 'x'")),
    lambda t: t.record_files(["a"]),
    lambda t: t.remove(removed("a")),
    lambda t: t.add_change_file(AddCDCFile("c", {}, 1)),
]


@pytest.mark.parametrize("read", READS)
def test_what_read_or_changed_rows_is_no_blind_append(table: Table, read: Callable[[Transaction], object]) -> None:
    table.append("a")
    mine = table.start()
    mine.add(file("mine"))
    read(mine)
    done = mine.commit(WRITE, policy=QUIET)
    assert table.info(done.version)["isBlindAppend"] is False


def test_what_read_an_application_or_sets_metadata_may_be_a_blind_append(table: Table) -> None:
    mine = table.start()
    mine.add(file("mine"))
    mine.set_application("app", 1)
    mine.set_metadata(msgspec.structs.replace(table.snapshot().metadata, description="new"))
    done = mine.commit(WRITE, policy=QUIET)
    assert table.info(done.version)["isBlindAppend"] is True


@pytest.mark.parametrize("read", READS)
def test_what_read_or_changed_rows_does_not_step_over_new_files(
    storage: MemoryStorage, read: Callable[[Transaction], object]
) -> None:
    table = Table(storage)
    table.create(properties={"delta.isolationLevel": "Serializable"})
    table.append("a")
    mine = table.start()
    mine.add(file("mine"))
    read(mine)
    table.append("x")
    with pytest.raises(ConcurrentAppendError):
        mine.commit(WRITE, policy=QUIET)


def test_change_rows_alone_are_a_change_of_data(table: Table) -> None:
    mine = table.start()
    mine.add_change_file(AddCDCFile("c", {}, 1))
    done = mine.commit(Operation("MERGE"), policy=QUIET)
    told = table.info(done.version)
    assert (told["dataChange"], told["isolationLevel"]) == (True, "Serializable")


@pytest.mark.parametrize("also", ["application", "domain", "nothing"])
def test_only_what_does_nothing_else_rearranges(storage: MemoryStorage, also: str) -> None:
    table = Table(storage)
    table.create(protocol=Protocol(1, 7, None, ["domainMetadata"]))
    table.append("a")
    mine = table.start()
    mine.remove(removed("a", data_change=False))
    mine.add(file("b", data_change=False))
    if also == "application":
        mine.set_application("app", 1)
    if also == "domain":
        mine.set_domain(DomainMetadata("d", "{}"))
    done = mine.commit(Operation("OPTIMIZE"), policy=QUIET)
    assert (table.info(done.version)["isolationLevel"] == "SnapshotIsolation") is (also == "nothing")


def test_a_new_isolation_level_counts_from_the_next_commit_on(table: Table) -> None:
    mine = table.start()
    mine.set_metadata(
        msgspec.structs.replace(table.snapshot().metadata, configuration={"delta.isolationLevel": "WriteSerializable"})
    )
    done = mine.commit(Operation("SET TBLPROPERTIES"), policy=QUIET)
    assert table.info(done.version)["isolationLevel"] == "Serializable"
    assert table.info(table.append("a").version)["isolationLevel"] == "WriteSerializable"


# --- in-commit timestamps


def test_times_in_commits_ascend_whatever_the_clock_says(storage: MemoryStorage) -> None:
    now = [1_000]
    table = Table(storage, clock=lambda: now[0])
    table.create(properties=ICT, protocol=WITH_ICT)
    assert table.info(0)["inCommitTimestamp"] == 1_000
    assert not set(ENABLEMENT) & table.actions(0, "metaData")[0]["configuration"].keys()
    now[0] = 500
    assert table.append("a").timestamp_ms == 1_001
    mine = table.start()
    mine.add(file("mine"))
    now[0] = 5_000
    table.append("b")
    now[0] = 600
    done = mine.commit(WRITE, policy=QUIET)
    assert table.info(done.version)["inCommitTimestamp"] == done.timestamp_ms == 5_001
    assert next(iter(table.info(done.version))) == "inCommitTimestamp"


def test_the_time_before_may_come_from_the_checksum(storage: MemoryStorage) -> None:
    table = Table(storage, clock=lambda: 1_000)
    table.create(properties=ICT, protocol=WITH_ICT)
    for i in range(10):
        table.append(f"f{i}", policy=CommitPolicy())
    assert table.info(10)["inCommitTimestamp"] == 1_010
    for version in range(11):
        storage.delete(f"{ROOT}/_delta_log/{version:020d}.json")
    assert table.append("next").timestamp_ms == 1_011


def test_a_version_that_lacks_its_time_is_not_followed(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create(properties=ICT, protocol=WITH_ICT)
    storage.put_if_absent(f"{ROOT}/_delta_log/{1:020d}.json", b'{"commitInfo":{"operation":"WRITE"}}\n')
    with pytest.raises(CorruptLogError, match="Version 1 of table"):
        table.append("a")


def test_times_that_begin_later_say_since_when(storage: MemoryStorage) -> None:
    now = [1_000]
    table = Table(storage, clock=lambda: now[0])
    table.create()
    mine = table.start()
    metadata = table.snapshot().metadata
    mine.set_metadata(msgspec.structs.replace(metadata, configuration=ICT))
    mine.set_protocol(Protocol(1, 7, None, ["appendOnly", "invariants", "inCommitTimestamp"]))
    table.append("x")
    file_time = storage.status(f"{ROOT}/_delta_log/{1:020d}.json").modification_time_ms
    done = mine.commit(Operation("SET TBLPROPERTIES"), policy=QUIET)
    # the version and the time are those that it got after the lost race; the files' clock is ahead of ours
    assert done.timestamp_ms == table.info(2)["inCommitTimestamp"] == file_time + 1
    configuration = table.actions(2, "metaData")[0]["configuration"]
    assert [configuration[key] for key in ENABLEMENT] == ["2", str(file_time + 1)]
    table.set_properties(user_key="v")
    assert [table.snapshot().configuration.configuration[key] for key in ENABLEMENT] == ["2", str(file_time + 1)]


def test_metadata_set_anew_keeps_since_when_times_are_in_commits(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create()
    table.set_properties(Protocol(1, 7, None, ["appendOnly", "invariants", "inCommitTimestamp"]), **_dots(ICT))
    since = {key: table.snapshot().configuration.configuration[key] for key in ENABLEMENT}
    mine = table.start()
    mine.set_metadata(msgspec.structs.replace(table.snapshot().metadata, configuration={**ICT, "k": "v"}))
    mine.commit(Operation("SET TBLPROPERTIES"), policy=QUIET)
    assert table.snapshot().configuration.configuration == {**ICT, "k": "v", **since}


def _dots(properties: dict[str, str]) -> dict[str, str]:
    return {key.replace(".", "_"): value for key, value in properties.items()}


def test_a_winner_that_turns_times_on_makes_us_carry_ours(storage: MemoryStorage) -> None:
    table = Table(storage, clock=lambda: 1_000)
    table.create()
    table.set_properties(Protocol(1, 7, None, ["appendOnly", "invariants", "inCommitTimestamp"]))
    mine = table.start()
    mine.add(file("mine"))
    enabled = table.set_properties(**_dots(ICT)).timestamp_ms
    done = mine.commit(WRITE, policy=QUIET)
    assert table.info(done.version)["inCommitTimestamp"] == enabled + 1
    assert table.kinds(done.version) == ["commitInfo", "add"]


def test_times_that_begin_with_the_feature_say_since_when(storage: MemoryStorage) -> None:
    now = [10**13]  # later than the files' clock
    table = Table(storage, clock=lambda: now[0])
    table.create(properties=ICT)
    table.append("a")
    assert "inCommitTimestamp" not in table.info(1)
    mine = table.start()
    mine.set_protocol(Protocol(1, 7, None, ["appendOnly", "invariants", "inCommitTimestamp"]))
    table.append("b")
    done = mine.commit(Operation("UPGRADE PROTOCOL"), policy=QUIET)
    assert table.kinds(3) == ["commitInfo", "metaData", "protocol"]
    assert table.info(3)["inCommitTimestamp"] == done.timestamp_ms == now[0]
    (metadata,) = table.actions(3, "metaData")
    assert [metadata["configuration"][key] for key in ENABLEMENT] == ["3", str(now[0])]
    assert metadata["configuration"].items() >= ICT.items()
    table.append("c")
    assert table.kinds(4) == ["commitInfo", "add"]


# --- type widening


def test_the_version_of_a_type_change_follows_the_commit(storage: MemoryStorage) -> None:
    table = Table(storage)
    features = ["typeWidening", "appendOnly", "invariants"]
    table.create(protocol=Protocol(3, 7, ["typeWidening"], features), properties={"delta.enableTypeWidening": "true"})
    mine = table.start()
    changes = [
        {"fromType": "byte", "toType": "integer", "tableVersion": 0},
        {"fromType": "integer", "toType": "long", "tableVersion": 1},
    ]
    widened = StructType((StructField("id", LONG, metadata={"delta.typeChanges": changes}), SCHEMA.fields[1]))
    mine.set_metadata(msgspec.structs.replace(table.snapshot().metadata, schema_string=schema_to_string(widened)))
    table.append("x")
    table.append("y")
    assert mine.commit(Operation("CHANGE COLUMN"), policy=QUIET).version == 3
    noted = table.snapshot().schema.fields[0].metadata["delta.typeChanges"]
    assert [change["tableVersion"] for change in noted] == [0, 3]


# --- what must not be committed

VECTOR = DeletionVectorDescriptor("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 2)
DV_TABLE = Protocol(3, 7, ["deletionVectors"], ["deletionVectors"])


def refused(table: Table, code: str, *adds: AddFile, remove: Any = (), cdc: Any = ()) -> DeltaError:
    transaction = table.start()
    version = table.snapshot().version
    with pytest.raises(DeltaError) as error:
        transaction.add(adds)
        transaction.remove(remove)
        transaction.add_change_file(cdc)
        transaction.commit(WRITE, policy=QUIET)
    assert error.value.code == code
    assert table.snapshot().version == version
    return error.value


def test_a_file_stands_once_in_a_commit(table: Table) -> None:
    code = "DELTA_DUPLICATE_ACTIONS_FOUND"
    assert "added twice" in str(refused(table, code, file("a"), file("a")))
    assert "removed twice" in str(refused(table, code, remove=removed(["a", "a"])))
    assert "added and removed" in str(refused(table, code, file("a"), remove=removed("a")))
    assert "file of changes" in str(refused(table, code, cdc=[AddCDCFile("c", {}, 1), AddCDCFile("c", {}, 1)]))


def test_a_path_may_change_its_deletion_vector(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create(protocol=DV_TABLE)
    table.append("a")
    mine = table.start()
    mine.remove(removed("a"))
    mine.add(file("a", stats='{"numRecords":5,"tightBounds":false}', deletion_vector=VECTOR))
    assert mine.commit(Operation("DELETE"), policy=QUIET).version == 2
    gone = removed("a", deletion_vector=VECTOR)
    wide = '{"numRecords":5,"tightBounds":false}'
    refused(table, "DELTA_DUPLICATE_ACTIONS_FOUND", file("a", stats=wide, deletion_vector=VECTOR), remove=gone)


@pytest.mark.parametrize(
    ("protocol", "given", "code"),
    [
        (Protocol(1, 2), {}, "DELTA_ADDING_DELETION_VECTORS_DISALLOWED"),
        (DV_TABLE, {"stats": None}, "DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS"),
        (DV_TABLE, {"stats": "{"}, "DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS"),
        (
            DV_TABLE,
            {"stats": '{"numRecords":5,"tightBounds":true}'},
            "DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED",
        ),
        (DV_TABLE, {}, "DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED"),
    ],
)
def test_a_deletion_vector_needs_wide_bounds_and_a_count(
    storage: MemoryStorage, protocol: Protocol, given: dict[str, Any], code: str
) -> None:
    table = Table(storage)
    table.create(protocol=protocol)
    refused(table, code, file("a", deletion_vector=VECTOR, **given))


@pytest.mark.parametrize(
    ("protocol", "properties", "code"),
    [
        (DV_TABLE, {}, "DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS"),
        (Protocol(1, 7, None, ["rowTracking", "domainMetadata"]), {}, "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"),
        (
            Protocol(2, 7, None, ["columnMapping", "icebergCompatV1"]),
            {"delta.enableIcebergCompatV1": "true", "delta.columnMapping.mode": "name"},
            "DELTA_ICEBERG_COMPAT_VIOLATION",
        ),
    ],
)
def test_some_tables_want_every_file_counted(
    storage: MemoryStorage, protocol: Protocol, properties: dict[str, str], code: str
) -> None:
    table = Table(storage)
    schema, last = assign_columns(SCHEMA, 0)
    table.create(
        protocol=protocol, properties={**properties, "delta.columnMapping.maxColumnId": str(last)}, schema=schema
    )
    refused(table, code, file("a", None))
    table.append("b")


def test_an_append_only_table_only_grows(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create(properties={"delta.appendOnly": "true"})
    table.append("a")
    refused(table, "DELTA_CANNOT_MODIFY_APPEND_ONLY", remove=removed("a"))
    mine = table.start()
    mine.remove(removed("a", data_change=False))
    mine.add(file("b", data_change=False))
    mine.commit(Operation("OPTIMIZE"), policy=QUIET)
    assert table.live() == ["b"]


def test_partition_values_are_those_of_the_partition_columns(partitioned: Table) -> None:
    code = "DELTA_INVALID_PARTITIONING_SCHEMA"
    refused(partitioned, code, file("a"))
    refused(partitioned, code, AddFile("a", {"p": "x", "q": "y"}, 1, 1))
    refused(partitioned, code, cdc=[AddCDCFile("c", {"P": "x"}, 1)])
    partitioned.append("a", p="x")


def test_partition_values_go_by_physical_names(storage: MemoryStorage) -> None:
    table = Table(storage)
    fields = [
        StructField(
            f.name,
            f.data_type,
            metadata={"delta.columnMapping.id": i, "delta.columnMapping.physicalName": f"col-{i}"},
        )
        for i, f in enumerate(SCHEMA, 1)
    ]
    table.create(
        schema=StructType(tuple(fields)),
        partitioned=True,
        protocol=Protocol(2, 5),
        properties={"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
    )
    refused(table, "DELTA_INVALID_PARTITIONING_SCHEMA", file("a", p="x"))
    mine = table.start()
    mine.add(AddFile("a", {"col-2": "x"}, 1, 1))
    assert mine.commit(WRITE, policy=QUIET).version == 1


def test_a_reader_version_never_shrinks(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create(protocol=Protocol(3, 7, [], ["appendOnly"]))
    mine = table.start()
    mine.set_protocol(Protocol(1, 7, None, ["appendOnly"]))
    with pytest.raises(DeltaError) as error:
        mine.commit(Operation("UPGRADE PROTOCOL"), policy=QUIET)
    assert error.value.code == "DELTA_INVALID_PROTOCOL_DOWNGRADE"


@pytest.mark.parametrize("protocol", [Protocol(1, 1), Protocol(1, 7, None, ["appendOnly"])])
def test_a_protocol_never_shrinks(table: Table, protocol: Protocol) -> None:
    mine = table.start()
    mine.set_protocol(protocol)
    with pytest.raises(DeltaError) as error:
        mine.commit(Operation("UPGRADE PROTOCOL"), policy=QUIET)
    assert error.value.code == "DELTA_INVALID_PROTOCOL_DOWNGRADE"
    assert table.snapshot().version == 0


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        (Metadata(id="i", schema_string="no schema"), "DELTA_INVALID_SCHEMA"),
        (Metadata(id="i"), "DELTA_STATE_RECOVER_ERROR"),
        (
            Metadata(id="i", schema_string=schema_to_string(SCHEMA), partition_columns=["q"]),
            "DELTA_MISSING_PARTITION_COLUMN",
        ),
        (
            Metadata(id="i", schema_string=schema_to_string(SCHEMA), configuration={"delta.appendOnly": "perhaps"}),
            "DELTA_INVALID_TABLE_PROPERTY",
        ),
    ],
)
def test_metadata_that_could_not_be_read_is_not_written(table: Table, metadata: Metadata, code: str) -> None:
    mine = table.start()
    mine.set_metadata(metadata)
    with pytest.raises(DeltaError) as error:
        mine.commit(WRITE, policy=QUIET)
    assert error.value.code == code
    assert table.snapshot().version == 0


def test_a_protocol_that_we_cannot_write_is_not_written(table: Table) -> None:
    mine = table.start()
    mine.set_protocol(Protocol(1, 7, None, ["appendOnly", "invariants", "fancyWrites"]))
    with pytest.raises(UnsupportedFeatureError, match="fancyWrites"):
        mine.commit(WRITE, policy=QUIET)


def test_a_table_needs_protocol_and_metadata(storage: MemoryStorage) -> None:
    mine = Transaction(TableToCreate(storage, ROOT))
    mine.set_protocol(Protocol(1, 2))
    with pytest.raises(DeltaError, match="metaData"):
        mine.commit(WRITE)


def test_domains_need_their_feature_and_the_row_tracking_one_is_ours(table: Table) -> None:
    mine = table.start()
    mine.set_domain(DomainMetadata("d", "{}"))
    with pytest.raises(DeltaError, match="domainMetadata") as error:
        mine.commit(WRITE, policy=QUIET)
    assert error.value.code == "DELTA_DOMAIN_METADATA_NOT_SUPPORTED"
    with pytest.raises(DeltaError, match="belongs to the transaction"):
        table.start().set_domain(DomainMetadata("delta.rowTracking", "{}"))


# --- others read it


def test_deltalake_reads_what_was_committed(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    table = Table(LocalStorage(), str(tmp_path / "t"))
    table.create(partitioned=True)
    table.append("p=a/x%20y.parquet", "p=a/2.parquet", p="a")
    mine = table.start()
    mine.record_whole_table()
    mine.remove(removed("p=a/2.parquet", partition_values={"p": "a"}))
    mine.add(file("p=b/3.parquet", p="b"))
    mine.set_application("app", 4)
    mine.commit(WRITE, user_metadata="mine", policy=CommitPolicy())
    other = DeltaTable(table.root)
    assert other.version() == 2
    assert {uri.rsplit("/", 2)[-2] + "/" + uri.rsplit("/", 1)[-1] for uri in other.file_uris()} == {
        "p=a/x y.parquet",
        "p=b/3.parquet",
    }
    assert other.transaction_version("app") == 4
    newest = other.history()[0]
    assert (newest["operation"], newest["userMetadata"]) == ("WRITE", "mine")
