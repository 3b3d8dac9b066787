"""Changes that no table recorded, against the model, with rows that wait on the local disk.

The harness of the row model compares the computed changes of every command; here each batch of rows spills.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_pyds.data.read import held_rows
from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.harness import Harness
from tests.support.row_model.steps import DELETES, MERGES_IN_PROCESS, OTHERS, TASKS, UPDATES, Layout, Rows, Step
from tests.support.row_model.upkeep import UPKEEP
from tests.support.sampling import examples

_STEPS = st.lists(st.one_of(UPDATES, UPDATES, MERGES_IN_PROCESS, DELETES, OTHERS, UPKEEP), min_size=1, max_size=6)
_LAYOUTS = st.builds(
    Layout, partitioned=st.booleans(), deletion_vectors=st.booleans(), mapped=st.booleans(), row_tracking=st.booleans()
)


@pytest.mark.parametrize("held_bytes", [0, held_rows.HELD_BYTES], ids=["spilled", "in memory"])
@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(layout=_LAYOUTS, first=TASKS, steps=_STEPS)
def test_computed_changes_are_those_of_the_model(
    held_bytes: int, layout: Layout, first: tuple[Rows, ...], steps: list[Step]
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as directory:
        patch.setattr(held_rows, "HELD_BYTES", held_bytes)
        harness = Harness(Path(directory) / "t", layout, first, CoreEngine())
        for step in steps:
            harness.run(step)
        harness.finish()
