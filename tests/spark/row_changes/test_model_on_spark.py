"""The model of rows against ``DeltaTable``, wherever its commands run, on a classic session."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.row_model.delta_table_engine import DeltaTableEngine
from tests.support.row_model.harness import Harness
from tests.support.row_model.steps import DELETES, LAYOUTS, MERGES, OTHERS, TASKS, UPDATES, Layout, Rows, Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

STEPS = st.lists(st.one_of(DELETES, UPDATES, MERGES, MERGES, OTHERS), min_size=2, max_size=4)
_FEW = settings(
    max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=True
)


def run(layout: Layout, first: tuple[Rows, ...], steps: Sequence[Step], engine: DeltaTableEngine) -> None:
    with tempfile.TemporaryDirectory() as directory:
        harness = Harness(Path(directory) / "t", layout, first, engine)
        for step in steps:
            harness.run(step)
        harness.finish()


@pytest.mark.parametrize("engine", ["spark", "auto"])
@_FEW
@given(layout=LAYOUTS, first=TASKS, steps=STEPS)
def test_any_steps(spark: SparkSession, engine: str, layout: Layout, first: tuple[Rows], steps: list[Step]) -> None:
    run(layout, first, steps, DeltaTableEngine(spark, engine))


@_FEW
@given(layout=LAYOUTS, first=TASKS, steps=st.lists(st.one_of(DELETES, UPDATES), min_size=1, max_size=3))
def test_what_spark_only_hands_out_files_for(
    spark: SparkSession, layout: Layout, first: tuple[Rows], steps: list[Step]
) -> None:
    run(layout, first, steps, DeltaTableEngine(spark, "tasks"))
