"""One writer of transactions, and what another engine reads of its commits."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from delta_pyds.errors import (
    DeltaError,
)
from delta_pyds.protocol.actions import AddCDCFile, DomainMetadata, Protocol, RemoveFile
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.transaction.transaction import CommitPolicy, Operation
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import QUIET, ROOT, WRITE, Table, file, removed

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
        with pytest.raises(DeltaError, match="commit was already called") as caught:
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
