"""Two chained streams deliver each row once, however often Spark is killed.

``make test-crashes`` kills 20 times; among all other tests it is twice, by the
commit two of these: between the commit and Spark's own checkpoint, between the
data files and the commit, and while a batch is planned.
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
    kills = planned_kills(KILLS, SEED) if KILLS else part_of(FEW, 2)
    run = CrashRun(tmp_path, SEED, pause_s=1.0)
    print(f"seed {SEED}, {len(kills)} kills")
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
