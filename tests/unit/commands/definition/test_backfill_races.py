"""Row ids for the files of a table that others change meanwhile: nobody is refused, and no file lacks ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from delta_pyds.commands.definition.change import DefinitionOptions, run_change
from delta_pyds.commands.definition.properties import set_properties
from delta_pyds.commands.definition.row_tracking import backfill
from delta_pyds.commands.layout.optimize import plan_optimize
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.errors import ConflictError, MetadataChangedError
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from delta_pyds.table.transaction.transaction import Transaction
from delta_pyds.verification.verify import verify
from tests.support.planned_changes import delete, planned_delete
from tests.support.table_writes import ids, read_rows, read_sorted, write_rows

IDS = {"id": "long"}
VECTORS = {"delta.enableDeletionVectors": "true"}
HERE = Place("process", "a test says so.")


def opened(path: Path) -> Snapshot:
    return load_snapshot(str(path))


def number(path: Path) -> None:
    backfill(lambda: opened(path), DefinitionOptions())


def set_property(path: Path, key: str) -> None:
    run_change(lambda: opened(path), lambda s: set_properties(s, {key: "true"}), DefinitionOptions())


def compact(path: Path) -> None:
    run_layout(plan_optimize(opened(path), [], CommandOptions()), HERE)


WINNERS: dict[str, tuple[Callable[[Path], Any], list[int]]] = {
    "append": (lambda path: write_rows(path, IDS, ids(77)), [0, 1, 2, 3, 4, 5, 77]),
    "delete": (lambda path: delete(path, "id = 1"), [0, 2, 3, 4, 5]),
    "overwrite": (lambda path: write_rows(path, IDS, ids(77), mode="overwrite"), [77]),
    "compaction": (compact, [0, 1, 2, 3, 4, 5]),
    "another backfill": (number, [0, 1, 2, 3, 4, 5]),
    "property": (lambda path: set_property(path, "mine"), [0, 1, 2, 3, 4, 5]),
}


@pytest.fixture(params=[{}, VECTORS], ids=["plain", "vectors"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "t"
    write_rows(path, IDS, [ids(0, 1), ids(2, 3), ids(4, 5)], properties=request.param)
    return path


def check(path: Path, rows: list[int]) -> None:
    assert all(file.base_row_id is not None for file in live_files(plan_scan(opened(path))))
    set_property(path, "delta.enableRowTracking")
    found = read_rows(path, row_ids=True)
    assert sorted(row["id"] for row in found) == rows
    assert len({row["_row_id"] for row in found}) == len(rows)
    assert verify(str(path)).findings == ()


@pytest.mark.parametrize("winner", WINNERS)
def test_a_backfill_that_lost_races_goes_on(table: Path, winner: str) -> None:
    before, (change, rows) = Transaction.commit, WINNERS[winner]
    waiting = [change] * 2

    def late(self: Transaction, *given: Any, **more: Any) -> Any:
        if waiting:
            with mock.patch.object(Transaction, "commit", before):
                waiting.pop()(table)
        return before(self, *given, **more)

    with mock.patch.object(Transaction, "commit", late):
        number(table)
    # the other backfill did everything
    assert len(waiting) == (winner == "another backfill")
    check(table, [*rows, 77] if winner == "append" else rows)


def test_a_backfill_gives_up_if_the_definition_never_rests(table: Path) -> None:
    with (
        mock.patch.object(Transaction, "commit", side_effect=MetadataChangedError("changed", table=str(table))),
        pytest.raises(ConflictError),
    ):
        number(table)


def test_commands_follow_a_backfill_and_a_change_of_rows(table: Path) -> None:
    plan = planned_delete(opened(table), "id IN (1, 77)", CommandOptions())
    number(table)
    write_rows(table, IDS, ids(77, 78))
    run_delete(plan, HERE)
    check(table, [0, 2, 3, 4, 5, 78])


@pytest.mark.parametrize("request_of", [{}, {"replace_where": "id < 3 OR id > 70"}])
def test_overwrites_follow_a_backfill_and_a_change_of_rows(table: Path, request_of: dict[str, Any]) -> None:
    def others() -> None:
        number(table)
        write_rows(table, IDS, ids(77, 78))

    write_rows(table, IDS, ids(1, 2), mode="overwrite", reads_table=False, pause=others, **request_of)
    check(table, [1, 2, 3, 4, 5] if request_of else [1, 2])


def test_an_overwrite_follows_the_commit_that_enables_row_tracking(table: Path) -> None:
    def others() -> None:
        number(table)
        set_property(table, "delta.enableRowTracking")
        write_rows(table, IDS, ids(77, 78))

    write_rows(table, IDS, ids(1, 2), mode="overwrite", reads_table=False, pause=others)
    check(table, [1, 2])


def test_a_bin_follows_a_backfill_if_others_change_another_bin(tmp_path: Path) -> None:
    path, schema = tmp_path / "t", {"id": "long", "p": "string"}
    for first in (0, 2):
        write_rows(path, schema, [{"id": first + n, "p": p} for n, p in enumerate("ab")], partition_by=(("p",),))
    plan = plan_optimize(opened(path), [], CommandOptions())
    number(path)
    delete(path, "p = 'a' AND id = 0")
    assert run_layout(plan, HERE).version is not None
    assert sum(file.partition_values == {"p": "b"} for file in live_files(plan_scan(opened(path)))) == 1
    check(path, [1, 2, 3])


def test_files_that_come_back_get_ids(table: Path) -> None:
    write_rows(table, IDS, ids(7), mode="overwrite")
    number(table)
    restore(opened(table), RestoreOptions(version=0))
    assert read_sorted(table, "id") == [0, 1, 2, 3, 4, 5]
    check(table, [0, 1, 2, 3, 4, 5])
