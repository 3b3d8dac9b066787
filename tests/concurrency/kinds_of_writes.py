"""Writes that are killed in the middle: each takes a table that has version 0 with the rows 1 and 2.

Those that keep a table (``UPKEEP``) take the one of ``used_table``, and can be run again whatever they did before.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from delta_pyds.commands.layout.optimize import plan_optimize
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.maintenance.restore import RestoreOptions
from delta_pyds.commands.maintenance.restore import restore as restore_table
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum, run_vacuum
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.snapshot import load_snapshot
from tests.support.planned_changes import planned_delete, planned_update
from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.expressions import Column, Expression, call
from tests.support.row_model.expressions import Literal as Constant
from tests.support.row_model.steps import Clause, Delete, Merge, Update
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
    run_delete(planned_delete(load_snapshot(table), "id = 2", CommandOptions()), _HERE)


def update(table: str) -> None:
    plan = planned_update(load_snapshot(table), "id = 2", {"id": "id + 5"}, CommandOptions())
    run_update(plan, _HERE)


def merge(table: str) -> None:
    """A row goes, another one comes."""
    rows = tuple({"id": i, "z": None} for i in (2, 10))
    by_id = call("({0} = {1})", Column("id", "t"), Column("id", "s"))
    CoreEngine().merge(Path(table), Merge(rows, by_id, (Clause("delete"),), (Clause("insert"),)), list(IDS))


def mended(kind: str) -> Callable[[str], None]:
    """A command that loses a race to an append of row 3 and a delete of row 1, and is mended."""

    def run(table: str) -> None:
        engine = CoreEngine(pause=lambda: _win(table))
        if kind == "delete":
            engine.delete(table, Delete(_at_least(2)))
        elif kind == "update":
            more = call("({0} + {1})", Column("id"), Constant(5))
            engine.update(table, Update(_at_least(2), (("id", more),)))
        elif kind == "merge":
            rows = tuple({"id": i, "z": None} for i in (1, 2, 10))
            by_id = call("({0} = {1})", Column("id", "t"), Column("id", "s"))
            engine.merge(table, Merge(rows, by_id, (Clause("delete"),), (Clause("insert"),)), list(IDS))
        else:
            plan = plan_optimize(load_snapshot(table), [], CommandOptions())
            _win(table)
            run_layout(plan, _HERE, LocalRunner(1))

    return run


def _win(table: str) -> None:
    write_rows(table, IDS, [{"id": 3}])
    run_delete(planned_delete(load_snapshot(table), "id = 1", CommandOptions()), _HERE)


def _at_least(number: int) -> Expression:
    return call("({0} >= {1})", Column("id"), Constant(number))


def used_table(table: str, properties: dict[str, str]) -> None:
    """Rows 1 and 2 in a file each. Version 0 had two more: one is marked as deleted, and one's file is removed."""
    write_rows(table, IDS, [[{"id": 1}, {"id": 5}], [{"id": 2}], [{"id": 3}]], properties=properties | _MARKS)
    run_delete(planned_delete(load_snapshot(table), "id >= 3", CommandOptions()), _HERE)


def optimize(table: str) -> None:
    """Two files become one, without the row that is marked."""
    run_layout(plan_optimize(load_snapshot(table), [], CommandOptions()), _HERE, LocalRunner(1))


def vacuum(table: str, *, lite: bool = False) -> None:
    """The file of row 3 goes."""
    # in one thread steps come in one order
    options = VacuumOptions(retention_hours=0, check_retention=False, lite=lite, threads=1)
    run_vacuum(plan_vacuum(resolve_storage(table), table, options))


def vacuum_lite(table: str) -> None:
    vacuum(table, lite=True)


def restore(table: str) -> None:
    restore_table(load_snapshot(table), RestoreOptions(version=0))


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
    "optimize": optimize,
    "vacuum": vacuum,
    "vacuum lite": vacuum_lite,
    "restore": restore,
    **{f"mended {kind}": mended(kind) for kind in ("delete", "update", "merge", "optimize")},
}
# the rows after each of the two winners, and after the command
MENDED = {
    "mended delete": [[1, 2, 3], [2, 3], []],
    "mended update": [[1, 2, 3], [2, 3], [7, 8]],
    "mended merge": [[1, 2, 3], [2, 3], [1, 3, 10]],
    "mended optimize": [[1, 2, 3], [2, 3], [2, 3]],
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
    "optimize": [1, 2],
    "vacuum": [1, 2],
    "vacuum lite": [1, 2],
    "restore": [1, 2, 3, 5],
}
# of a used table: how many data files there are afterwards, and how many the table names
UPKEEP = {"optimize": (4, 1), "vacuum": (2, 2), "vacuum lite": (2, 2), "restore": (3, 3)}
# of the table that the write finds
PROPERTIES = {
    "delete": _MARKS,
    "delete by rewriting": _FEED,
    "update": _MARKS | _FEED,
    "update by rewriting": _FEED,
    "merge": _MARKS | _FEED,
}
