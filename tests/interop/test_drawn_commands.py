"""Drawn commands by the reference and by us, in every place where we run them, on copies of one table: all are alike.

What is drawn follows from the commit (``SAMPLE_SEED`` gives another commit's).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.interop.drawn_twins import Twins
from tests.interop.engines import Engines
from tests.support.row_model.programs import PAIRS_OF_FEATURES, drawn_programs
from tests.support.row_model.steps import DELETES, MERGES, MERGES_IN_PROCESS, OTHERS, UPDATES, Layout
from tests.support.row_model.upkeep import (
    CLONES,
    DEFINITIONS_OF_BOTH,
    LAYOUT_STEPS,
    LIFE_STEPS,
    STATEMENTS,
    AddColumn,
    Convert,
)
from tests.support.sampling import seed

_EVERYWHERE = ("process", "tasks", "spark")
# of each step, where we run it; a merge has no tasks of delta_pyds
_STEPS: tuple[tuple[Any, Sequence[str]], ...] = (
    (UPDATES, _EVERYWHERE),
    (MERGES_IN_PROCESS, ("process", "spark")),
    (OTHERS, ()),
    (DELETES, _EVERYWHERE),
    (MERGES, ("spark",)),
)
# of each kind of table; in a bounded run one
_PROGRAMS = int(os.environ.get("INTEROP_PROGRAMS", "3"))
_LIVES = {
    "all but partitions": Layout(deletion_vectors=True, change_feed=True, mapped=True, row_tracking=True),
    "no features": Layout(),
    "all six features": PAIRS_OF_FEATURES["all six features"],
}
_BOUNDED = ("changes, row tracking, constraint", "all six features")


def _layouts() -> list[Any]:
    cells = [pytest.mark.cell(f"drawn commands: {name}", "ping-pong") for name in PAIRS_OF_FEATURES]
    return [
        pytest.param(name, marks=[cell, pytest.mark.also_bounded] if name in _BOUNDED else cell)
        for name, cell in zip(PAIRS_OF_FEATURES, cells, strict=True)
    ]


@pytest.mark.parametrize("name", _layouts())
def test_drawn_commands(engines: Engines, tmp_path: Path, name: str, pytestconfig: pytest.Config) -> None:
    count = 1 if pytestconfig.getoption("bounded") else _PROGRAMS
    programs = drawn_programs(count, f"{seed()} {name}", st.just(PAIRS_OF_FEATURES[name]), [s for s, _ in _STEPS])
    for number, program in enumerate(programs):
        folder = tmp_path / str(number)
        folder.mkdir()
        Twins(engines, folder, program, [places for _, places in _STEPS]).run()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[
                pytest.mark.cell(f"drawn upkeep: {name}", "ping-pong"),
                *[pytest.mark.also_bounded] * (name == "all but partitions"),
            ],
        )
        for name in _LIVES
    ],
)
def test_drawn_upkeep(engines: Engines, tmp_path: Path, name: str) -> None:
    """Maintenance between writes of our core: each step by both, and the table goes on as either's."""
    writes = st.one_of(UPDATES, DELETES)
    steps = [writes, LAYOUT_STEPS, st.builds(AddColumn), OTHERS, LAYOUT_STEPS, LIFE_STEPS, writes, DEFINITIONS_OF_BOTH]
    steps += [STATEMENTS, OTHERS, STATEMENTS]
    steps += [OTHERS, CLONES, writes, LAYOUT_STEPS, LIFE_STEPS, st.builds(Convert), OTHERS]
    (program,) = drawn_programs(1, f"{seed()} upkeep {name}", st.just(_LIVES[name]), steps)
    Twins(engines, tmp_path, program, [()] * len(program.steps)).run()
