"""Isolation levels, and the commits that they let pass."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from delta_pyds.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    OptionError,
)
from delta_pyds.protocol.actions import AddCDCFile, DomainMetadata, Protocol
from delta_pyds.table.transaction.transaction import Operation, Transaction
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import QUIET, WRITE, Table, file, removed, where


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
    with pytest.raises(OptionError, match="requires isolation level"):
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


@pytest.mark.parametrize("read", READS[:3])
def test_what_read_and_found_nothing_to_change_does_not_step_over_new_files(
    table: Table, read: Callable[[Transaction], object]
) -> None:
    """A restore or an overwrite of what is there already; the rows of the winner would remain."""
    table.append("a")
    mine, other = table.start(), table.start()
    read(mine)
    other.add(file("x"))
    other.commit(WRITE, policy=QUIET)
    with pytest.raises(ConcurrentAppendError):
        mine.commit(WRITE, policy=QUIET)


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
