"""Both engines change rows of one table at once: a serial execution, and no refusal without a reason."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.table.snapshot import load_snapshot
from tests.concurrency.changing_workload import LAYOUTS, Log, Report, Workload, wrongly_refused
from tests.concurrency.history_check import TableAt, check_history
from tests.interop.changing_race import OURS_FOR_ONE
from tests.interop.engines import Engines
from tests.interop.racing import OURS, REFERENCE, compile_log_store, race
from tests.support.change_feed import bag
from tests.support.row_model.harness import read_all
from tests.support.row_model.steps import BASE
from tests.support.table_writes import write_rows

# of each writer of the reference; in a bounded run a few
_STEPS, _BOUNDED_STEPS = int(os.environ.get("INTEROP_COMMITS", "8")), 3
_STEP_S = 60
_SEED = 2
_WRITERS = [*((OURS, n) for n in range(4)), (REFERENCE, 4), (REFERENCE, 5)]


def _ways() -> list[Any]:
    return [
        pytest.param(way, marks=[cell, pytest.mark.also_bounded] if way == "vectors" else cell)
        for way in LAYOUTS
        for cell in [pytest.mark.cell(f"two engines change rows at once, {way}", "ping-pong")]
    ]


@pytest.mark.parametrize("way", _ways())
def test_four_of_ours_and_two_of_the_reference_change_rows(
    engines: Engines, tmp_path: Path, way: str, pytestconfig: pytest.Config
) -> None:
    steps = _BOUNDED_STEPS if pytestconfig.getoption("bounded") else _STEPS
    layout, table = LAYOUTS[way], tmp_path / "table"
    compile_log_store(engines, tmp_path / "classes")
    write_rows(table, BASE, [], partition_by=(("p",),), properties=layout.properties)
    names = race("tests.interop.changing_race", tmp_path, _WRITERS, [steps, _SEED], _STEP_S * (steps + 3))
    reports = {name: Report(**json.loads((tmp_path / f"{name}.json").read_text())) for name in names}

    workload = Workload(_SEED)
    # the reference does not tell which versions it made
    log = check_history(TableAt(str(table)), layout, workload, list(reports.values()), all_acknowledged=False)
    versions = len(log)
    assert Counter(len(report.done) for report in reports.values()) == {OURS_FOR_ONE * steps: 4, steps: 2}
    assert wrongly_refused(Log(load_snapshot(str(table))), workload, list(reports.values())) == []
    refused = {name: len(report.refused) for name, report in reports.items()}
    assert any(refused.values()), "nobody was refused anything: there was no race."
    assert not any(number for name, number in refused.items() if name.startswith(OURS)), f"ours were refused: {refused}"
    by_reference = [commit["writer"] >= 4 for commit in log]
    turns = sum(a != b for a, b in pairwise(by_reference))
    assert turns >= steps, f"in {versions} commits the engines took {turns} turns: they did not run at once."
    print(f"{versions} commits, {turns} turns, refused: {refused}")

    engines.agree(table)
    rows = read_all(table, row_ids=True)
    found = engines.reference(table).selectExpr("*", "_metadata.row_id AS _row_id").toArrow().to_pylist()
    names_of_row = [*BASE, "_row_id"]
    assert bag(found, names_of_row) == bag(rows, names_of_row)
    engines.assert_sound(table)
