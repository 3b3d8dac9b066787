"""A stream of changes that no table recorded: each comes once, wherever its process dies and whatever its limits are.

Streams of files, whose rows nobody reads, are in ``test_stream_source``.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_pyds.errors import UserError
from delta_pyds.protocol.stream_offset import StreamOffset
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.stream.source import StreamOptions
from tests.support.change_feed import bag, change_rows
from tests.support.row_model.core_engine import take_in_place
from tests.support.row_model.harness import create, read_all
from tests.support.row_model.model import Model
from tests.support.row_model.programs import FIRST
from tests.support.row_model.steps import (
    DELETES,
    MERGES_IN_PROCESS,
    OTHERS,
    UPDATES,
    Append,
    Layout,
    Rows,
    Step,
)
from tests.support.row_model.upkeep import LAYOUT_STEPS, AddColumn, Restore, Turn
from tests.support.sampling import examples
from tests.support.stream_query import Query

_TOGGLE = "toggle"
# one_of takes the parts of its parts, and then most steps would be layouts
_CHANGES = st.sampled_from(
    [
        *[UPDATES, UPDATES, MERGES_IN_PROCESS, MERGES_IN_PROCESS, DELETES, OTHERS, LAYOUT_STEPS],
        *[st.builds(AddColumn), st.builds(Restore, st.integers(0, 5)), st.just(_TOGGLE), st.just(_TOGGLE)],
    ]
).flatmap(lambda steps: steps)
_LIMITS = st.fixed_dictionaries(
    {"max_files": st.none() | st.integers(1, 3), "max_bytes": st.none() | st.sampled_from([1, 1000, 3000])}
)
_LAYOUTS = st.builds(
    Layout, partitioned=st.booleans(), deletion_vectors=st.booleans(), mapped=st.booleans(), row_tracking=st.booleans()
)
# where the process of a batch dies: after Spark noted its end, or after the sink has its rows
_DEATHS = st.sampled_from([None, None, "logged", "delivered"])
_EVENTS = [*[_CHANGES] * 4, *[st.tuples(st.just("trigger"), _DEATHS)] * 2, st.tuples(st.just("restart"), _LIMITS)]
_STEPS = st.lists(st.sampled_from(_EVENTS).flatmap(lambda events: events), min_size=8, max_size=16)


class Sink(Query):
    """It has the rows that each batch delivered last, as an idempotent sink."""

    def __init__(self, path: Path, options: StreamOptions) -> None:
        super().__init__(path, options)
        self.found: dict[int, list[dict[str, Any]]] = {}

    def go(self, death: str | None = None) -> bool:
        """A batch, if there is one. A stream that stops because a column came is started again."""
        for _ in range(3):
            try:
                return self.trigger(death)
            except UserError as error:
                if not error.code.startswith("DELTA_SCHEMA_CHANGED"):
                    raise
                self.crash()
        raise AssertionError("the stream stops again and again for one new column.")

    def _deliver(self, start: StreamOffset) -> None:
        super()._deliver(start)
        end = StreamOffset.from_json(json.loads(self.offsets[-1]))
        self.found[len(self.offsets) - 1] = self.rows(start, end)


@pytest.mark.parametrize("compute", ["auto", "values"])
@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(layout=_LAYOUTS, first=FIRST, limits=_LIMITS, whole=st.booleans(), steps=_STEPS)
def test_each_change_comes_once(
    compute: Any, layout: Layout, first: tuple[Rows, ...], limits: dict[str, Any], whole: bool, steps: list[Any]
) -> None:
    """``whole``: the stream begins with version 0, else with the rows that are there."""
    with tempfile.TemporaryDirectory() as directory:
        path, model = Path(directory) / "t", Model(layout)
        create(path, model)
        _change(path, model, Append(first))
        options = StreamOptions(
            **limits, read_change_feed=True, compute_changes=compute, starting_version=0 if whole else None
        )
        query = Sink(path, options)
        for step in steps:
            if step == _TOGGLE:
                _change(path, model, Turn("change_feed", not model.layout.change_feed))
            elif not isinstance(step, tuple):
                _change(path, model, step)
            elif step[0] == "trigger":
                query.go(step[1])
            else:
                query.crash()
                query.options = replace(query.options, **step[1])
        while query.go():
            pass
        begun, there = -1, []
        if not whole:
            # which version that is, the first batch says
            first_end = json.loads(query.offsets[0])
            begun = int(first_end["reservoirVersion"]) - (not first_end["isStartingVersion"])
            there = read_all(path, begun)
        names = ["_change_type", "_commit_version", *model.columns]
        expected = [{**row, "_change_type": "insert", "_commit_version": begun} for row in there]
        if begun < model.version:
            expected += change_rows(path, begun + 1, compute=compute)
        found = [_whole(row, names) for rows in query.found.values() for row in rows]
        assert bag(found, names) == bag([_whole(row, names) for row in expected], names)
        # a commit is never split
        batches = [{row["_commit_version"] for row in rows} - {begun} for rows in query.found.values()]
        assert sum(map(len, batches)) == len(set().union(*batches))


def _change(path: Path, model: Model, step: Step) -> None:
    """Take a step, if it means something and later rows can be read with earlier ones."""
    effect = model.effect(step)
    if effect.errors or effect.impossible or not model.keeps_columns(effect):
        return
    take_in_place(path, model, step)
    model.take(effect)
    model.version = load_snapshot(str(path)).version


def _whole(row: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: row.get(name) for name in names}
