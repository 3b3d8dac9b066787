"""Processes that delete, update, merge, overwrite and append on one table: a serial order, and only lawful refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from delta_pyds import verify
from delta_pyds.table.snapshot import load_snapshot
from tests.concurrency.changing_workload import LAYOUTS, Report, overlooked, replay
from tests.support.change_feed import applied, bag, change_rows
from tests.support.row_model.harness import read_all
from tests.support.row_model.steps import BASE
from tests.support.table_writes import write_rows

WRITERS = 4
STEPS = int(os.environ.get("DELTA_PYDS_CONCURRENT_CHANGES", "12"))
# a seed draws one history; all of them: DELTA_PYDS_HISTORIES=1000
SEEDS = range(3, 3 + int(os.environ.get("DELTA_PYDS_HISTORIES", "1")))
# the weight of compactions and Z-orders; other steps have 16 in all
LAYOUTS_WEIGHT = 3
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", LAYOUTS)
def test_four_processes_change_rows(tmp_path: Path, way: str, seed: int) -> None:
    layout, table = LAYOUTS[way], tmp_path / "table"
    write_rows(table, BASE, [], partition_by=(("p",),), properties=layout.properties)
    command = [sys.executable, "-m", "tests.concurrency.changing_process", str(table)]
    arguments = [str(STEPS), str(seed), str(LAYOUTS_WEIGHT)]
    processes = [
        subprocess.Popen([*command, str(n), *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for n in range(WRITERS)
    ]
    (tmp_path / "start").touch()
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * WRITERS
    reports = [Report(**json.loads(text.splitlines()[-1])) for text in outputs]

    versions = load_snapshot(str(table)).version
    model, told = replay(table, layout, versions, seed, layouts=LAYOUTS_WEIGHT)
    rows = read_all(table, row_ids=True)
    assert bag(rows, list(BASE)) == bag(model.values(), list(BASE)), "the rows are of no serial order of the commits."
    assert len({row["_row_id"] for row in rows}) == len(rows)
    assert applied([], change_rows(table)) == bag(model.values())
    acknowledged = sorted(d["version"] for report in reports for d in report.done if d["version"] is not None)
    assert acknowledged == list(range(1, versions + 1)), "a commit was lost, or told of twice."
    assert len({(t["writer"], t["n"]) for t in told}) == len(told)
    assert overlooked(table, seed, told, layouts=LAYOUTS_WEIGHT) == []
    assert not any(report.refused for report in reports), "a writer was turned away."
    assert any(commit["numMends"] for commit in told), "no command was mended: there was no race."
    report = verify(str(table))
    assert report.findings == (), str(report)
    assert load_snapshot(str(table)).verify_checksum()
