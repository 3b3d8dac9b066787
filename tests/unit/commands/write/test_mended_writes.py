"""Writes that lost a race: which are mended, which stay a conflict, and what they commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from delta_pyds.commands.layout.optimize import plan_optimize
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.write.replace_files import FileRemoval
from delta_pyds.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    ConflictError,
    OptionError,
    ProtocolError,
)
from delta_pyds.expr.nodes import TRUE
from delta_pyds.protocol.actions import AddFile
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.conflict import TransactionInfo, WinningCommit
from delta_pyds.table.transaction.mend import NetChanges
from delta_pyds.table.transaction.transaction import Committed
from delta_pyds.verification.verify import verify
from tests.support.data_files import files
from tests.support.planned_changes import delete
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import ids, read_rows, read_sorted, struct, write_rows

IDS = {"id": "long"}
VECTORS = {"delta.enableDeletionVectors": "true"}
LOSER = TransactionInfo("WRITE", "t", "Serializable", struct(IDS))


def append(path: Path) -> None:
    write_rows(path, IDS, ids(77))


def delete_row(path: Path) -> None:
    delete(path, "id = 1")


def compact(path: Path) -> None:
    run_layout(plan_optimize(load_snapshot(str(path)), [], CommandOptions()), Place("process", "a test says so."))


def raced(path: Path, winner: Callable[[Path], Any], *rows: int, **request: Any) -> Committed | None:
    """Write rows with the mode overwrite. ``winner`` comes first."""
    request = {"mode": "overwrite", "reads_table": False, **request}
    return write_rows(path, IDS, ids(*rows), pause=lambda: winner(path), **request)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two files with the rows 0 to 3."""
    path = tmp_path / "t"
    write_rows(path, IDS, [ids(0, 1), ids(2, 3)])
    return path


def test_a_mend_of_an_overwrite_lists_no_file_again(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, [ids(n) for n in range(5)])
    removal = FileRemoval(plan_scan(load_snapshot(str(tmp_path))), TRUE, counts_rows=True)
    first = removal.run([], now_ms=1)
    net = NetChanges()
    new = AddFile("new.parquet", {}, 10, 0, data_change=True, stats='{"numRecords":7}')
    net.take(WinningCommit(2, adds=(new,), removes=(first.removes[0],)), LOSER)
    removal.after(net)
    with mock.patch("delta_pyds.commands.write.replace_files.live_files", side_effect=AssertionError):
        mended = removal.run([], now_ms=2)
    assert [file.path for file in mended.removes] == [*(file.path for file in first.removes[1:]), "new.parquet"]
    assert (first.deleted_rows, mended.deleted_rows) == (5, 11)


def test_the_last_attempt_is_not_mended(table: Path) -> None:
    """It would be in vain."""
    with (
        mock.patch.object(FileRemoval, "after", side_effect=AssertionError),
        pytest.raises(ConcurrentAppendError, match="version 1 "),
    ):
        raced(table, delete_row, 9, max_attempts=1)
    assert read_sorted(table, "id") == [0, 2, 3]
    assert raced(table, append, 9) is not None and read_sorted(table, "id") == [9]


def test_an_overwrite_of_a_path_that_is_live_twice_is_refused(tmp_path: Path) -> None:
    """Removing one of its entries would leave the rows of the other."""
    table = TableBuilder(tmp_path / "t", IDS, properties=VECTORS)
    table.create()
    [add] = table.append([{"id": n} for n in range(4)])
    table.commit(table.delete_rows(add, range(2, 4)))
    table.commit([action for action in table.delete_rows(add, range(2)) if "add" in action])
    with pytest.raises(ProtocolError, match="removed twice"):
        write_rows(table.path, IDS, ids(9), mode="overwrite")
    assert read_sorted(table.path, "id") == [0, 1, 2, 3]


def metrics(committed: Committed | None) -> dict[str, Any]:
    assert committed is not None
    return dict(committed.info.operation_metrics or {})


READS_TABLE: dict[str, dict[str, Any]] = {
    "overwrite": {"reads_table": True},
    "append": {"mode": "append", "reads_table": True},
    "append of a version": {"mode": "append", "reads_table": None, "read_version": 0},
}


@pytest.mark.parametrize("winner", [append, delete_row])
@pytest.mark.parametrize("kind", READS_TABLE)
def test_rows_that_may_come_from_changed_rows_are_a_conflict(
    table: Path, kind: str, winner: Callable[[Path], Any]
) -> None:
    with pytest.raises((ConcurrentAppendError, ConcurrentDeleteReadError)):
        raced(table, winner, 5, **READS_TABLE[kind])
    assert 5 not in read_sorted(table, "id")
    assert len(files(table)) == 3  # two, and the winner's


@pytest.mark.parametrize("kind", ["append", "append of a version"])
def test_an_append_that_read_its_table_follows_a_compaction(table: Path, kind: str) -> None:
    committed = raced(table, compact, 0, 1, 2, 3, **READS_TABLE[kind])
    assert metrics(committed)["numMends"] == "1"
    assert read_sorted(table, "id") == [0, 0, 1, 1, 2, 2, 3, 3]


def test_an_overwrite_of_rows_of_its_table_follows_a_compaction(table: Path) -> None:
    assert metrics(raced(table, compact, 1, 2, **READS_TABLE["overwrite"]))["numMends"] == "1"
    assert read_sorted(table, "id") == [1, 2]


def test_an_append_and_a_compaction_are_a_conflict_for_rows_of_the_table(table: Path) -> None:
    def both(path: Path) -> None:
        append(path)
        compact(path)

    with pytest.raises(ConflictError):
        raced(table, both, 0, 1, 2, 3, reads_table=True)
    assert read_sorted(table, "id") == [0, 1, 2, 3, 77]


@pytest.mark.parametrize("off", ["option", "property", "data change"])
def test_it_can_be_turned_off(table: Path, off: str) -> None:
    if off == "property":
        write_rows(
            table, IDS, ids(0), mode="overwrite", create_mode="createOrReplace",
            properties={"deltapy.rowLevelConcurrency": "false"},
        )  # fmt: skip
    request = {"option": {"row_level_concurrency": False}, "property": {}, "data change": {"data_change": False}}[off]
    before = files(table)
    with pytest.raises(ConflictError):
        raced(table, compact if off == "data change" else append, 5, **request)
    assert 5 not in read_sorted(table, "id")
    if off != "data change":
        assert len(files(table)) == len(before) + 1


@pytest.mark.parametrize("properties", [{}, VECTORS])
def test_a_replacement_that_finds_nothing_any_more_commits_nothing(tmp_path: Path, properties: dict[str, str]) -> None:
    path = tmp_path / "t"
    write_rows(path, IDS, ids(0, 1, 2), properties=properties)
    assert raced(path, delete_row, replace_where="id = 1") is None
    assert load_snapshot(str(path)).version == 1 and read_sorted(path, "id") == [0, 2]
    assert verify(str(path)).findings == ()


def test_a_write_of_an_application_commits_even_if_nothing_is_left(table: Path) -> None:
    committed = raced(table, delete_row, replace_where="id = 1", application=("job", 3))
    assert committed is not None and load_snapshot(str(table)).transactions["job"].version == 3


@pytest.mark.parametrize(
    "request_of",
    [
        {"overwrite_schema": True},
        {"create_mode": "createOrReplace", "properties": {"delta.enableRowTracking": "true"}},
        {"merge_schema": True},
    ],
)
def test_new_metadata_goes_with_the_mended_files(table: Path, request_of: dict[str, Any]) -> None:
    rows = [{"id": 5, "s": "x"}]
    committed = write_rows(
        table, {"id": "long", "s": "string"}, rows, mode="overwrite", reads_table=False, pause=lambda: append(table),
        **request_of,
    )  # fmt: skip
    assert metrics(committed)["numMends"] == "1" and read_rows(table) == rows
    assert verify(str(table)).findings == ()


def test_a_definition_that_is_replaced_by_an_equal_one(table: Path) -> None:
    committed = raced(table, append, 5, create_mode="createOrReplace")
    assert metrics(committed)["numMends"] == "1" and read_sorted(table, "id") == [5]


def test_metrics_count_what_is_removed_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_rows(path, IDS, [ids(0, 1), ids(2, 3)], properties=VECTORS)

    def others(path: Path) -> None:
        delete(path, "id = 0")
        append(path)

    found = metrics(raced(path, others, 5, 6, replace_where="id < 2 OR id > 4"))
    assert {name: found[name] for name in ("numDeletedRows", "numOutputRows", "numRemovedFiles", "numMends")} == {
        "numDeletedRows": "2", "numOutputRows": "2", "numRemovedFiles": "2", "numMends": "1",
    }  # fmt: skip
    assert found["numMendedRows"] == "2"  # the row that went, and the one that came
    assert read_sorted(path, "id") == [2, 3, 5, 6]


def test_partitions_that_others_filled_meanwhile(tmp_path: Path) -> None:
    path, schema = tmp_path / "t", {"id": "long", "p": "string"}
    write_rows(path, schema, [{"id": n, "p": p} for n, p in enumerate("ab")], partition_by=(("p",),))

    def others(path: Path) -> None:
        write_rows(path, schema, [{"id": n, "p": p} for n, p in enumerate("abc", 10)])
        delete(path, "p = 'a' AND id = 0")

    rows = [{"id": 5, "p": "a"}]
    for request in ({"partition_overwrite": "dynamic"}, {"replace_where": "p = 'a'"}):
        committed = write_rows(
            path, schema, rows, mode="overwrite", reads_table=False, pause=lambda: others(path), **request
        )
        found = metrics(committed)
        assert found["numMends"] == "1" and found.get("numMendedRows") == "0"
        assert [r["id"] for r in read_rows(path) if r["p"] == "a"] == [5]
        assert {11, 12} <= {r["id"] for r in read_rows(path)}
    assert verify(str(path)).findings == ()


def test_contradictions_are_refused(table: Path) -> None:
    with pytest.raises(OptionError, match="readsTable=false"):
        write_rows(table, IDS, ids(5), read_version=0, reads_table=False)


@pytest.mark.parametrize(
    ("reads", "message"), [(None, "readsTable=true is missing"), (False, "readsTable=false says that none were")]
)
def test_rows_that_were_read_are_rows_of_the_table(table: Path, reads: bool | None, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        write_rows(table, IDS, ids(5), reads_table=reads, reads_where="id = 1")
