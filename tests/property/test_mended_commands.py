"""A command that lost races has the effect that it would have had after the winners: rows, changes, row ids, metrics.

Each example is a table with drawn features, a command that is planned, steps of others that come first, and the end of
the command. The model takes the steps in the order of their commits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_pyds import verify
from delta_pyds.commands.layout.optimize import plan_optimize, plan_purge, plan_zorder
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.commit_rows import commit_rows
from delta_pyds.commands.row_changes.mend import RowMend
from delta_pyds.commands.row_changes.merge import run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.errors import ConflictError
from delta_pyds.table.snapshot import load_snapshot
from tests.support.change_feed import applied, bag, change_rows
from tests.support.commits import actions
from tests.support.planned_changes import planned_merge, planned_update
from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.expressions import Column, call
from tests.support.row_model.expressions import Literal as Constant
from tests.support.row_model.harness import Engine, Harness
from tests.support.row_model.losing import KINDS, WINNERS, Losing, Races, check_no_file_is_left, check_race
from tests.support.row_model.steps import (
    DELETES,
    LAYOUTS,
    TASKS,
    Append,
    Delete,
    Layout,
    Overwrite,
    Rows,
    Step,
    Update,
)
from tests.support.row_model.upkeep import Restore
from tests.support.sampling import examples
from tests.support.table_writes import read_rows, struct, write_rows

# the table's own level lets appends through that nobody read, as the reference does
_SERIALIZABLE = CommandOptions(isolation_level="Serializable")


def made(path: Path, layout: Layout, first: Sequence[tuple[Rows, ...]], data: st.DataObject) -> Harness:
    """A table of some commits. ``data``: draws whether its files have vectors."""
    harness = Harness(path, layout, first[0], CoreEngine())
    for more in first[1:]:
        harness.run(Append(more))
    if data.draw(st.booleans()):
        harness.run(data.draw(DELETES))
    return harness


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    data=st.data(),
    layout=LAYOUTS,
    first=st.lists(TASKS, min_size=1, max_size=3),
    winners=st.lists(WINNERS, min_size=1, max_size=3),
)
def test_a_command_that_lost_races(
    kind: str, data: st.DataObject, layout: Layout, first: list[tuple[Rows, ...]], winners: list[Step]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        harness = made(Path(directory) / "t", layout, first, data)
        step = data.draw(KINDS[kind])
        check_race(harness, step, [winners], lambda meanwhile: CoreEngine(_SERIALIZABLE, meanwhile))


class LosingEngine(Losing, CoreEngine):
    """An engine that loses races after its tasks have run. ``meanwhile``: lets others commit."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__(_SERIALIZABLE)
        modules = [f"delta_pyds.commands.row_changes.{name}" for name in ("delete", "update", "merge")]
        self._races = Races(meanwhile, modules)

    def overwrite(
        self, path: Path, step: Overwrite, columns: Sequence[str], tasks: Sequence[Sequence[Mapping[str, Any]]]
    ) -> None:
        self._pause = self._races.lose
        with self._races.lost():
            super().overwrite(path, step, columns, tasks)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    data=st.data(),
    layout=LAYOUTS,
    first=st.lists(TASKS, min_size=1, max_size=3),
    winners=st.lists(st.lists(WINNERS, min_size=1, max_size=2), min_size=1, max_size=3),
)
def test_a_command_that_lost_again_and_again(
    kind: str, data: st.DataObject, layout: Layout, first: list[tuple[Rows, ...]], winners: list[list[Step]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        harness = made(Path(directory) / "t", layout, first, data)
        step = data.draw(KINDS[kind])
        check_race(harness, step, winners, LosingEngine)


def row(k: int) -> dict[str, Any]:
    return {"k": k, "n": k, "s": "a", "p": "x", "z": 0}


BACK: dict[str, Step] = {
    "delete": Delete(call("({0} > {1})", Column("k"), Constant(7))),
    "update": Update(call("({0} > {1})", Column("k"), Constant(7)), (("n", Constant(1)),)),
    "replaceWhere": Overwrite(((row(20),),), call("({0} > {1})", Column("k"), Constant(7))),
    "delete of rows that are back": Delete(
        call("({0} = {1})", call("({0} % {1})", Column("k"), Constant(2)), Constant(0))
    ),
}


@pytest.mark.parametrize("engine", [LosingEngine, lambda meanwhile: CoreEngine(_SERIALIZABLE, meanwhile)])
@pytest.mark.parametrize("tracking", [False, True])
@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("kind", BACK)
def test_rows_that_a_restore_brought_back_stay(
    tmp_path: Path, kind: str, vectors: bool, tracking: bool, engine: Callable[[Callable[[], None]], Engine]
) -> None:
    layout = Layout(deletion_vectors=vectors, change_feed=tracking, row_tracking=tracking)
    harness = Harness(tmp_path / "t", layout, (tuple(map(row, range(10))),), CoreEngine())
    harness.run(Delete(call("({0} < {1})", Column("k"), Constant(3))))
    assert check_race(harness, BACK[kind], [[Restore(1)]], engine)


def test_a_file_that_was_rewritten_before_two_lost_races_is_deleted(tmp_path: Path) -> None:
    first = tuple(tuple(row(k) for k in keys) for keys in ((0, 1), (10, 11)))
    harness = Harness(tmp_path / "t", Layout(), first, CoreEngine())
    tens = Delete(call("({0} = {1})", call("({0} % {1})", Column("k"), Constant(10)), Constant(0)))
    # the first race leaves both rewritten files as they are, the second one takes one away
    winners = [[Append(((row(5),),))], [Delete(call("({0} = {1})", Column("k"), Constant(1)))]]
    assert check_race(harness, tens, winners, LosingEngine)


@pytest.mark.parametrize("vectors", [False, True])
def test_a_mend_that_fails_leaves_no_file(tmp_path: Path, vectors: bool) -> None:
    layout = Layout(deletion_vectors=vectors, change_feed=True, constrained=True)
    harness = Harness(tmp_path / "t", layout, (tuple(map(row, range(4))),), CoreEngine())
    more = Update(
        call("({0} >= {1})", Column("k"), Constant(0)), (("n", call("({0} + {1})", Column("n"), Constant(1))),)
    )
    # its value becomes 7, which the constraint forbids
    assert harness.race(more, [[Append(((row(6),),))]], LosingEngine)
    check_no_file_is_left(harness)

    with mock.patch.object(RowMend, "_difference", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        harness.race(Update(None, (("n", Constant(1)),)), [[Append(((row(8),),))]], LosingEngine)
    check_no_file_is_left(harness)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_table_that_finds_columns_by_id(tmp_path: Path, vectors: str) -> None:
    """Change files and row id columns have no field ids."""
    properties = {
        "delta.columnMapping.mode": "id", "delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true",
        "delta.enableDeletionVectors": vectors,
    }  # fmt: skip
    path = tmp_path / "t"
    write_rows(path, {"k": "long", "n": "long"}, [{"k": k, "n": 0} for k in range(6)], properties=properties)
    plan = planned_merge(
        load_snapshot(str(path)),
        "t.k = s.k",
        [MergeClause("matched", "update", None, {"n": "1"}), MergeClause("not_matched", "insert")],
        pa.table({"k": [1, 2, 9], "n": [0, 0, 0]}),
        struct({"k": "long", "n": "long"}),
        _SERIALIZABLE,
    )

    def late_commit(*given: Any, **more: Any) -> Any:
        winner = planned_update(load_snapshot(str(path)), "k = 2", {"n": "5", "k": "7"}, CommandOptions())
        with mock.patch("delta_pyds.commands.row_changes.update.commit_rows", commit_rows):
            run_update(winner, Place("process", "a test says so."))
        return commit_rows(*given, **more)

    with mock.patch("delta_pyds.commands.row_changes.merge.commit_rows", late_commit):
        run_merge(plan, Place("process", "a test says so."))
    rows = sorted((r["k"], r["n"]) for r in read_rows(path))
    assert rows == [(0, 0), (1, 1), (2, 0), (3, 0), (4, 0), (5, 0), (7, 5), (9, 0)]
    assert verify(str(path)).findings == ()
    assert applied([], change_rows(path)) == bag(read_rows(path))


LAYOUT_PLANS = {
    "compaction": lambda snapshot: plan_optimize(snapshot, [], _SERIALIZABLE),
    "curve": lambda snapshot: plan_zorder(snapshot, ["k"], [], _SERIALIZABLE),
    "purge": lambda snapshot: plan_purge(snapshot, [], _SERIALIZABLE),
}


@pytest.mark.parametrize("kind", LAYOUT_PLANS)
@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    data=st.data(),
    layout=LAYOUTS,
    first=st.lists(TASKS, min_size=2, max_size=3),
    winners=st.lists(WINNERS, min_size=1, max_size=3),
)
def test_a_layout_that_lost_races(
    kind: str, data: st.DataObject, layout: Layout, first: list[tuple[Rows, ...]], winners: list[Step]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        harness = made(Path(directory) / "t", layout, first, data)
        plan = LAYOUT_PLANS[kind](load_snapshot(str(harness.path)))
        for winner in winners:
            harness.run(winner)
        try:
            committed = run_layout(plan, Place("process", "a test says so.")).version
        except ConflictError:
            # rows may be back that it should have purged
            assert kind == "purge"
            committed = None
        if committed is not None:
            assert not any(a["add"]["dataChange"] for a in actions(harness.path, committed) if "add" in a)
            assert not layout.change_feed or change_rows(harness.path, committed, committed) == []
        harness.check()
        check_no_file_is_left(harness)
        harness.finish()
