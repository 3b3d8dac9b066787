"""A command that lost races has the effect that it would have had after the winners: rows, changes, row ids, metrics.

Each example is a table with drawn features, a command that is planned, steps of others that come first, and the end of
the command. The model takes the steps in the order of their commits.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from delta_pyds.commands.layout.optimize import plan_optimize, plan_purge, plan_zorder
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.errors import ConflictError
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.table.snapshot import load_snapshot
from tests.support.change_feed import change_rows
from tests.support.commits import actions
from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.harness import Harness, data_files
from tests.support.row_model.steps import (
    DELETES,
    LAYOUTS,
    MERGES_IN_PROCESS,
    TASKS,
    UPDATES,
    Append,
    Checkpoint,
    Layout,
    Overwrite,
    Rows,
    Step,
)
from tests.support.row_model.upkeep import Optimize, Purge, Restore, ZOrder
from tests.support.sampling import examples

# the table's own level lets appends through that nobody read, as the reference does
_SERIALIZABLE = CommandOptions(isolation_level="Serializable")
KINDS = {"delete": DELETES, "update": UPDATES, "merge": MERGES_IN_PROCESS}
# none of these changes the table's definition, which would be a conflict
WINNERS: st.SearchStrategy[Step] = st.one_of(
    *KINDS.values(),
    st.builds(Append, TASKS),
    st.builds(Overwrite, TASKS),
    st.just(Checkpoint()),
    st.just(Optimize()),
    st.just(Purge()),
    st.just(ZOrder(("k",))),
    st.builds(Restore, st.integers(0, 3)),
)


def check_no_file_is_left(harness: Harness) -> None:
    """Every data file and vector below the root is named by a commit: a mend deletes what it replaces."""
    named: set[str] = set()
    for version in range(load_snapshot(str(harness.path)).version + 1):
        for action in actions(harness.path, version):
            file = action.get("add") or action.get("cdc")
            if file is not None:
                named.add(unquote(file["path"]))
            vector = (action.get("add") or {}).get("deletionVector")
            if vector is not None and vector["storageType"] == "u":
                named.add(msgspec.convert(vector, DeletionVectorDescriptor).relative_path())
    assert data_files(harness.path) <= named


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
        harness = Harness(Path(directory) / "t", layout, first[0], CoreEngine())
        for more in first[1:]:
            harness.run(Append(more))
        if data.draw(st.booleans()):
            # so that files have vectors before the race
            harness.run(data.draw(DELETES))
        step = data.draw(KINDS[kind])
        note(f"{step}, after {winners}")
        harness.race(step, winners, lambda meanwhile: CoreEngine(_SERIALIZABLE, meanwhile))
        check_no_file_is_left(harness)
        harness.finish()


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
        harness = Harness(Path(directory) / "t", layout, first[0], CoreEngine())
        for more in first[1:]:
            harness.run(Append(more))
        if data.draw(st.booleans()):
            harness.run(data.draw(DELETES))
        plan = LAYOUT_PLANS[kind](load_snapshot(str(harness.path)))
        for winner in winners:
            harness.run(winner)
        try:
            committed = run_layout(plan, Place("process", "a test says so.")).version
        except ConflictError:
            committed = None
        if committed is not None:
            assert not any(a["add"]["dataChange"] for a in actions(harness.path, committed) if "add" in a)
            assert not layout.change_feed or change_rows(harness.path, committed, committed) == []
        harness.check()
        check_no_file_is_left(harness)
        harness.finish()
