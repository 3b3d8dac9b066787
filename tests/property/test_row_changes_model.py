"""Any sequence of commands leaves the rows, the changes and the row ids that a plain model in Python has.

Each example is a table with drawn features and steps; the commands run in this process, without Spark. The same steps
through Spark are in ``tests/spark/row_changes``, and by the reference in ``tests/interop``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.harness import Harness
from tests.support.row_model.steps import (
    DELETES,
    LAYOUTS,
    MERGES_IN_PROCESS,
    OTHERS,
    TASKS,
    UPDATES,
    Layout,
    Rows,
    Step,
)
from tests.support.row_model.upkeep import UPKEEP
from tests.support.sampling import examples

KINDS = {"delete": DELETES, "update": UPDATES, "merge": MERGES_IN_PROCESS}
_CHANGES = st.one_of(*KINDS.values(), OTHERS)


def run(layout: Layout, first: tuple[Rows, ...], steps: Sequence[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        harness = Harness(Path(directory) / "t", layout, first, CoreEngine())
        for step in steps:
            harness.run(step)
        harness.finish()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), layout=LAYOUTS, first=TASKS)
def test_a_command_does_what_the_model_does(kind: str, data: st.DataObject, layout: Layout, first: tuple[Rows]) -> None:
    run(layout, first, data.draw(st.lists(KINDS[kind], min_size=1, max_size=3)))


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(layout=LAYOUTS, first=TASKS, steps=st.lists(_CHANGES, min_size=1, max_size=8))
def test_commands_one_after_another(layout: Layout, first: tuple[Rows], steps: list[Step]) -> None:
    run(layout, first, steps)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(layout=LAYOUTS, first=TASKS, steps=st.lists(st.one_of(_CHANGES, UPKEEP, UPKEEP), min_size=2, max_size=10))
def test_a_life_of_a_table(layout: Layout, first: tuple[Rows], steps: list[Step]) -> None:
    run(layout, first, steps)
