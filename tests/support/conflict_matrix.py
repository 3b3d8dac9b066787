"""The outcomes of two commands at once, as the page "Conflicts, case by case" has them, and the commands.

A cell has the outcome of the reference for the command that lost, and after a comma ours, if it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.commands.definition.change import DefinitionChange, DefinitionOptions, commit_change
from delta_pyds.commands.definition.columns import NewColumn, add_columns
from delta_pyds.commands.definition.constraints import add_constraint, drop_constraint
from delta_pyds.commands.definition.drop_feature import drop_feature
from delta_pyds.commands.definition.feature_artifacts import Dropping
from delta_pyds.commands.definition.properties import set_properties
from delta_pyds.commands.layout.optimize import plan_optimize, plan_purge, plan_zorder
from delta_pyds.commands.layout.plan import LayoutPlan
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.row_changes.delete import plan_truncate, run_delete
from delta_pyds.commands.row_changes.merge import run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import commit_write, plan_write
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.protocol.schema import LONG, StructField
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.support.planned_changes import planned_delete, planned_merge, planned_update
from tests.support.table_writes import batch_of, struct, write_rows

TABLE = """\
| lost \\ won | INSERT | UPDATE | UPDATE elsewhere | OPTIMIZE | TRUNCATE | overwrite | \
RESTORE | new column | new property | V2 checkpoints | dropped feature | same stream |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
| INSERT | ok | ok | ok | ok | ok | ok | ok | M | M | ok | P | ok |
| stream | ok | ok | ok | ok | ok | ok | ok | M | M | ok | P | T |
| DELETE | A, mended | A, mended | ok | A, mended | R, nothing | A, nothing | A, mended | M | M | ok | P | A, mended |
| UPDATE | A, mended | A, mended | ok | A, mended | R, nothing | A, nothing | A, mended | M | M | ok | P | A, mended |
| MERGE | A, mended | A, mended | ok | A, mended | R, mended | A, mended | A, mended | M | M | ok | P | A, mended |
| DELETE of a partition | A, mended | A, mended | ok | A, mended | R, nothing | A, mended | A, mended | \
M | M | ok | P | A, mended |
| TRUNCATE | A, mended | A, mended | A, mended | A, mended | R, nothing | A, mended | A, mended | \
M | M | ok | P | A, mended |
| overwrite | A, mended | A, mended | A, mended | A, mended | R, mended | A, mended | A, mended | \
M | M | ok | P | A, mended |
| replaceWhere | A, mended | A, mended | ok | A, mended | R, mended | A, mended | A, mended | \
M | M | ok | P | A, mended |
| dynamic overwrite | A, mended | A, mended | ok | A, mended | R, mended | A, mended | A, mended | \
M | M | ok | P | A, mended |
| OPTIMIZE | ok | R, mended | ok | R, nothing | R, nothing | R, nothing | R, nothing | \
ok, M | ok, M | ok | ok, P | ok |
| Z-order | ok | R, mended | ok | R, nothing | R, nothing | R, nothing | R, nothing | \
ok, M | ok, M | ok | ok, P | ok |
| REORG | ok | R, mended | ok | R | R | R | R | ok, M | ok, M | ok | ok, P | ok |
| RESTORE | W, A | W, A | W, A | W, A | W, R | W, A | W, A | W, M | W, M | W, ok | W, P | W, A |
| new column | ok | ok | ok | ok | ok | ok | ok | M | M | M | P | ok |
"""
CODES = {
    "A": "DELTA_CONCURRENT_APPEND",
    "R": "DELTA_CONCURRENT_DELETE_READ",
    "M": "DELTA_METADATA_CHANGED",
    "P": "DELTA_PROTOCOL_CHANGED",
    "T": "DELTA_CONCURRENT_TRANSACTION",
    "W": "DELTA_CONCURRENT_WRITE",
}

End = Callable[[], Any]
Command = Callable[[Path], End]
_HERE = Place("process", "a test says so.")
_COLUMNS = {"k": "long", "v": "long", "p": "string"}


def cells() -> dict[tuple[str, str], tuple[str, str]]:
    """The outcomes by loser and winner: of the reference, and ours."""
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines())
    found = {}
    for loser, *outcomes in rows:
        for winner, outcome in zip(header[1:], outcomes, strict=True):
            theirs, _, ours = outcome.partition(", ")
            found[loser, winner] = theirs, ours or theirs
    return found


def make_table(path: Path, properties: Mapping[str, str]) -> None:
    """Partitions ``x`` and ``y`` of two files each. Version 1 deleted a row of ``x``, which a restore brings back."""
    rows = [[_row(k, p) for k in range(first, first + 3)] for p, first in (("x", 0), ("x", 3), ("y", 10), ("y", 13))]
    vectors = {"delta.enableDeletionVectors": "true", **properties}
    write_rows(path, _COLUMNS, rows, partition_by=(("p",),), properties=vectors)
    _delete("k = 0")(path)()
    _alter(lambda snapshot: add_constraint(snapshot, "positive", "k >= 0"))(path)()
    _alter(lambda snapshot: drop_constraint(snapshot, "positive"))(path)()


def _row(k: int, p: str) -> dict[str, Any]:
    return {"k": k, "v": k, "p": p}


# --- commands: each is planned by its call, and ends by the call of the function that it returns


def _delete(condition: str) -> Command:
    def command(path: Path) -> End:
        plan = planned_delete(_opened(path), condition, CommandOptions())
        return lambda: run_delete(plan, _HERE)

    return command


def _update(condition: str) -> Command:
    def command(path: Path) -> End:
        plan = planned_update(_opened(path), condition, {"v": "v + 1"}, CommandOptions())
        return lambda: run_update(plan, _HERE)

    return command


def _merge(path: Path) -> End:
    source = struct(_COLUMNS)
    rows = pa.Table.from_pylist([_row(1, "x"), _row(9, "x")], schema=arrow_schema(source))
    clauses = [MergeClause("matched", "update", None, {"v": "s.v"}), MergeClause("not_matched", "insert")]
    plan = planned_merge(_opened(path), "t.p = 'x' AND t.k = s.k", clauses, rows, source, CommandOptions())
    return lambda: run_merge(plan, _HERE)


def _truncate(path: Path) -> End:
    plan = plan_truncate(_opened(path), CommandOptions())
    return lambda: run_delete(plan, _HERE)


def _layout(plan: Callable[[Snapshot], LayoutPlan]) -> Command:
    def command(path: Path) -> End:
        planned = plan(_opened(path))
        return lambda: run_layout(planned, _HERE)

    return command


def _write(k: int, p: str, **request: Any) -> Command:
    def command(path: Path) -> End:
        incoming = struct(_COLUMNS)
        given = {"mode": "append", "reads_table": False, **request}
        plan = plan_write(WriteRequest(table_root=str(path), incoming=incoming, **given))
        assert plan.state is not None
        output = write(plan.state, iter(batch_of([_row(k, p)], incoming)), TaskSession(0))
        return lambda: commit_write(plan, [output])

    return command


def _restore(path: Path) -> End:
    latest = _opened(path)
    return lambda: restore(latest, RestoreOptions(version=0))


def _alter(plan: Callable[[Snapshot], DefinitionChange]) -> Command:
    def command(path: Path) -> End:
        snapshot = _opened(path)
        change = plan(snapshot)
        return lambda: commit_change(snapshot, change, DefinitionOptions())

    return command


def _drop_feature(path: Path) -> End:
    return lambda: drop_feature(Dropping(lambda: _opened(path), DefinitionOptions()), "checkConstraints")


def _opened(path: Path) -> Snapshot:
    return load_snapshot(str(path))


_NEW_COLUMN = NewColumn(StructField("w", LONG))
_IN_X = "p = 'x'"
LOSERS: dict[str, Command] = {
    "INSERT": _write(100, "x"),
    "stream": _write(101, "x", application=("app", 2)),
    "DELETE": _delete(f"{_IN_X} AND k = 1"),
    "UPDATE": _update(f"{_IN_X} AND k = 1"),
    "MERGE": _merge,
    "DELETE of a partition": _delete(_IN_X),
    "TRUNCATE": _truncate,
    "overwrite": _write(102, "x", mode="overwrite"),
    "replaceWhere": _write(103, "x", mode="overwrite", replace_where=_IN_X),
    "dynamic overwrite": _write(104, "x", mode="overwrite", partition_overwrite="dynamic"),
    "OPTIMIZE": _layout(lambda snapshot: plan_optimize(snapshot, [_IN_X], CommandOptions())),
    "Z-order": _layout(lambda snapshot: plan_zorder(snapshot, ["k"], [_IN_X], CommandOptions())),
    "REORG": _layout(lambda snapshot: plan_purge(snapshot, [_IN_X], CommandOptions())),
    "RESTORE": _restore,
    "new column": _alter(lambda snapshot: add_columns(snapshot, [_NEW_COLUMN])),
}
WINNERS: dict[str, Command] = {
    "INSERT": _write(200, "x"),
    "UPDATE": _update(f"{_IN_X} AND k IN (1, 4)"),
    "UPDATE elsewhere": _update("p = 'y' AND k = 11"),
    "OPTIMIZE": _layout(lambda snapshot: plan_optimize(snapshot, [_IN_X], CommandOptions())),
    "TRUNCATE": _truncate,
    "overwrite": _write(201, "x", mode="overwrite"),
    "RESTORE": _restore,
    "new column": LOSERS["new column"],
    "new property": _alter(lambda snapshot: set_properties(snapshot, {"delta.appendOnly": "false"})),
    "V2 checkpoints": _alter(lambda snapshot: set_properties(snapshot, {"delta.checkpointPolicy": "v2"})),
    "dropped feature": _drop_feature,
    "same stream": _write(202, "x", application=("app", 1)),
}
