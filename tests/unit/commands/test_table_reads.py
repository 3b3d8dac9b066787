"""Commands whose rows were computed from one partition of their table, beside writers of this one and of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pyarrow as pa
import pytest

from delta_pyds.commands.layout.optimize import plan_optimize
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.merge import run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import commit_write, plan_write
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import ConflictError
from delta_pyds.table.scan.live_files import live_files, removal
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.commit_encoding import CommitEncoder
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Transaction
from tests.support.calls import count_calls
from tests.support.planned_changes import delete, planned_merge
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import batch_of, read_rows, struct, write_rows

SCHEMA = {"p": "long", "k": "long"}
HERE = Place("process", "a test says so.")
READS: dict[str, Any] = {"reads_table": True, "reads_where": "p = 1"}


def append(path: Path) -> None:
    write_rows(path, SCHEMA, [{"p": 9, "k": 6}], mode="append", **READS)


def overwrite(path: Path) -> None:
    write_rows(path, SCHEMA, [{"p": 9, "k": 6}], mode="overwrite", replace_where="p = 9", **READS)


def merge(path: Path) -> None:
    clauses: list[MergeClause[str]] = [
        MergeClause("matched", "update", None, {"k": "s.k"}),
        MergeClause("not_matched", "insert", None, {"p": "s.p", "k": "s.k"}),
    ]
    rows = pa.Table.from_batches(batch_of([{"p": 9, "k": 6}], struct(SCHEMA)))
    options = CommandOptions(isolation_level="Serializable", **READS)
    on = "t.p = 9 AND t.p = s.p"
    assert run_merge(planned_merge(load_snapshot(str(path)), on, clauses, rows, struct(SCHEMA), options), HERE).version


def deleted(p: int) -> Callable[[Path], Any]:
    return lambda path: delete(path, f"p = {p}")


def appended(p: int) -> Callable[[Path], Any]:
    return lambda path: write_rows(path, SCHEMA, [{"p": p, "k": 7}], mode="append")


def compacted(p: int) -> Callable[[Path], Any]:
    return lambda path: run_layout(plan_optimize(load_snapshot(str(path)), [f"p = {p}"], CommandOptions()), HERE)


def removed_without_values(path: Path) -> None:
    """Remove the files of another partition, as a writer that leaves out what it may."""
    snapshot = load_snapshot(str(path))
    winner = Transaction(snapshot)
    winner.record_whole_table()
    for file in live_files(plan_scan(snapshot, where="p = 2")):
        gone = removal(file, deletion_timestamp_ms=1, data_change=True)
        winner.remove(msgspec.structs.replace(gone, extended_file_metadata=None, partition_values=None))
    winner.commit(Operation("DELETE"))


def at_once(*winners: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Commits that a command finds after one lost race."""

    def commit(path: Path) -> None:
        for winner in winners:
            winner(path)

    return commit


# each loses one race after another
CONFLICTS = {
    "its rows are gone": [deleted(1)],
    "it has new rows": [appended(1)],
    "its rows are moved, and gone": [compacted(1), deleted(1)],
    "others are moved, and its rows are gone": [compacted(9), deleted(1)],
    "files are gone, and nobody says whose": [removed_without_values],
    "its rows are moved and gone at once": [at_once(compacted(1), deleted(1))],
    "its rows are gone, and others are moved at once": [at_once(deleted(1), compacted(9))],
}
NONE = {
    "others are gone": [deleted(2)],
    "others are new": [appended(2)],
    "its rows are moved": [compacted(1)],
    "its rows are moved, and others are gone": [compacted(1), deleted(2)],
    "others are gone, and its rows are moved at once": [at_once(deleted(2), compacted(1))],
    "its own rows are changed": [appended(9)],
    "its own rows are changed, and its rows are moved at once": [at_once(appended(9), deleted(2), compacted(1))],
}


@pytest.fixture(params=["true", "false"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    properties = {"delta.enableDeletionVectors": request.param}
    for k in range(3):
        rows = [[{"p": p, "k": k}] for p in (1, 2, 9)]
        more = {"partition_by": (("p",),), "properties": properties} if k == 0 else {}
        write_rows(tmp_path, SCHEMA, rows, mode="append", **more)
    return tmp_path


def run(path: Path, command: Callable[[Path], None], winners: list[Callable[[Path], Any]]) -> None:
    waiting, encode, busy = list(winners), CommitEncoder.encode, []

    def late(self: CommitEncoder, *given: Any, **more: Any) -> Any:
        encoded = encode(self, *given, **more)
        if waiting and not busy:
            busy.append(True)
            waiting.pop(0)(path)
            busy.clear()
        return encoded

    with mock.patch.object(CommitEncoder, "encode", late):
        command(path)
    assert not waiting


@pytest.mark.parametrize("command", [append, overwrite, merge])
@pytest.mark.parametrize("winners", CONFLICTS)
def test_its_partition_was_changed(table: Path, command: Callable[[Path], None], winners: str) -> None:
    with pytest.raises(ConflictError):
        run(table, command, CONFLICTS[winners])
    assert {"p": 9, "k": 6} not in read_rows(table)


@pytest.mark.parametrize("command", [append, overwrite, merge])
@pytest.mark.parametrize("winners", NONE)
def test_its_partition_is_as_before(table: Path, command: Callable[[Path], None], winners: str) -> None:
    run(table, command, NONE[winners])
    assert {"p": 9, "k": 6} in read_rows(table)


@pytest.mark.parametrize("where", ["k = 1", "p = 1 OR k = 1", "other = 1", "p =", " "])
def test_a_condition_that_selects_no_partition(table: Path, where: str) -> None:
    with mock.patch.dict(READS, reads_where=where), pytest.raises(ConflictError):
        run(table, append, NONE["others are gone"])


@pytest.mark.parametrize("how", [{"mode": "append"}, {"mode": "overwrite", "replace_where": "p = 9"}])
def test_a_commit_costs_the_same_on_a_table_of_any_size(tmp_path: Path, how: dict[str, Any]) -> None:
    def calls(name: str, number: int) -> int:
        path = tmp_path / name
        table = TableBuilder(path, {"p": "long", "k": "long"}, ["p"])
        table.create([table.add(f"p={n % 2}/{n}.parquet", partitionValues={"p": str(n % 2)}) for n in range(number)])
        table.checkpoint()
        plan = plan_write(WriteRequest(str(path), struct(SCHEMA), **how, **READS))
        assert plan.state is not None
        output = write(plan.state, iter(batch_of([{"p": 9, "k": 6}], struct(SCHEMA))), TaskSession(0))
        return count_calls(lambda: commit_write(plan, [output]))

    calls("first of all", 2)
    few, many = calls("few", 2), calls("many", 2000)
    assert many < 1.5 * few
