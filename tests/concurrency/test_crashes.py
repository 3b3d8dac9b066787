"""Two streams deliver each row and each change once, however often Spark is killed.

``make test-crashes`` kills each 20 times. Among all other tests streams of rows are
killed twice and those of changes once, by the commit at some of these: between the
commit and Spark's own checkpoint, between the data files and the commit, and while a
batch is planned or read. Of the four ways to stream changes a run takes one, by the
commit; ``EXHAUSTIVE=1`` takes all.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.concurrency.crash_run import CrashRun, Kill, planned_kills
from tests.concurrency.process_session import kill_session, members
from tests.support.sampling import part_of

KILLS = int(os.environ.get("DELTA_PYDS_CRASHES", "0"))
SEED = int(os.environ.get("DELTA_PYDS_CRASH_SEED", "4"))
FEW = [Kill("after write", "M", 2), Kill("after commit", "T"), Kill("after partitions", "S", 3)]
FEW_OF_CHANGES = [Kill("after commit", "M", 2), Kill("after read", "S", 3), Kill("before put", "T", 2)]


# a child in a group of its own, as Spark's Python daemons are
_TREE = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import os, time; os.setpgid(0, 0); print('up', flush=True); time.sleep(600)"])
time.sleep(600)
"""


def test_a_killed_session_leaves_no_process(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _TREE], stdout=subprocess.PIPE, start_new_session=True, cwd=tmp_path
    )
    assert parent.stdout is not None
    with parent.stdout:
        assert parent.stdout.readline() == b"up\n"
    assert len(members(parent.pid)) == 2
    kill_session(parent.pid)
    assert parent.wait() == -signal.SIGKILL
    assert members(parent.pid) == []


@pytest.mark.one_program_in(4)
def test_each_row_arrives_once_though_spark_is_killed(tmp_path: Path) -> None:
    run_with_kills(CrashRun(tmp_path, SEED, pause_s=1.0), FEW)


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize("row_ids", [False, True], ids=["by values", "by row ids"])
@pytest.mark.parametrize("kind", ["changes", "applied"])
def test_each_change_arrives_once_though_spark_is_killed(tmp_path: Path, kind: str, *, row_ids: bool) -> None:
    """The table does not record its changes. They are rows of two tables, or applied to one and to a history."""
    # where it costs seconds to apply a batch, writers must not go far ahead
    pause_s = 4.0 if kind == "applied" else 1.0
    run_with_kills(CrashRun(tmp_path, SEED, pause_s, kind, row_ids=row_ids), FEW_OF_CHANGES)


def run_with_kills(run: CrashRun, few: list[Kill]) -> None:
    kills = planned_kills(KILLS, SEED, run.kind) if KILLS else part_of(few, 2 if run.kind == "rows" else 3)
    print(f"seed {SEED}, {len(kills)} kills, {run.kind}")
    try:
        run.start_writers()
        for kill in kills:
            run.live(kill)
        reports = run.stop_writers()
        run.drain()
        run.check()
    finally:
        run.close()
    done = sum((Counter(report["done"]) for report in reports), Counter())
    refused = sum((Counter(report["refused"]) for report in reports), Counter())
    print(f"{len(run.acknowledged())} rows, {run.restarts()} restarts for a new column")
    print(f"operations of the writers: {dict(done)}; refused: {dict(refused)}")
    assert done["append"] >= 20
    for operation in ("delete rows", "delete files", "update", "rewrite", "optimize S", "evolve"):
        assert done[operation], f"no writer did: {operation}"
