"""Writes that are killed in the middle: each takes a table that has version 0 with the rows 1 and 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from delta_pyds.commands.row_changes.delete import plan_delete, run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import plan_update, run_update
from delta_pyds.table.snapshot import load_snapshot
from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.expressions import Column, call
from tests.support.row_model.steps import Clause, Merge
from tests.support.table_writes import write_rows

IDS = {"id": "long"}


def append(table: str) -> None:
    """Two tasks, one version, and with this table's interval a checkpoint after it."""
    write_rows(table, IDS, [[{"id": 10}], [{"id": 11}]])


def overwrite(table: str) -> None:
    write_rows(table, IDS, [{"id": 10}, {"id": 11}], mode="overwrite")


def replace_rows(table: str) -> None:
    """Rewrites the file that holds both rows."""
    write_rows(table, IDS, [{"id": 2}, {"id": 3}], mode="overwrite", replace_where="id >= 2")


def delete(table: str) -> None:
    run_delete(plan_delete(load_snapshot(table), "id = 2", CommandOptions()), _HERE)


def update(table: str) -> None:
    plan = plan_update(load_snapshot(table), "id = 2", {"id": "id + 5"}, CommandOptions())
    run_update(plan, _HERE)


def merge(table: str) -> None:
    """A row goes, another one comes."""
    rows = tuple({"id": i, "z": None} for i in (2, 10))
    by_id = call("({0} = {1})", Column("id", "t"), Column("id", "s"))
    CoreEngine().merge(Path(table), Merge(rows, by_id, (Clause("delete"),), (Clause("insert"),)), list(IDS))


_HERE = Place("process", "a test says so")
_MARKS = {"delta.enableDeletionVectors": "true"}
_FEED = {"delta.enableChangeDataFeed": "true"}
KINDS: dict[str, Callable[[str], None]] = {
    "append": append,
    "overwrite": overwrite,
    "replace_rows": replace_rows,
    "delete": delete,
    "delete by rewriting": delete,
    "update": update,
    "update by rewriting": update,
    "merge": merge,
}
AFTERWARDS = {
    "append": [1, 2, 10, 11],
    "overwrite": [10, 11],
    "replace_rows": [1, 2, 3],
    "delete": [1],
    "delete by rewriting": [1],
    "update": [1, 7],
    "update by rewriting": [1, 7],
    "merge": [1, 10],
}
# of the table that the write finds
PROPERTIES = {
    "delete": _MARKS,
    "delete by rewriting": _FEED,
    "update": _MARKS | _FEED,
    "update by rewriting": _FEED,
    "merge": _MARKS | _FEED,
}
