"""Tables by name in a Hive metastore: what one process names, another reads, writes, merges, alters and streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.connect import ROOT, connect_server
from tests.support.limits import ONLY_A_HANG_S


@pytest.mark.one_program_in(4)
@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("second", ["a session", "Spark Connect"])
def test_processes_share_names_through_a_metastore(tmp_path: Path, second: str) -> None:
    run("creates", tmp_path)
    if second == "a session":
        run("changes,streams", tmp_path)
        return
    with connect_server(tmp_path, str(tmp_path)) as server:
        run("changes,streams", tmp_path, server)


def run(steps: str, directory: Path, *server: str) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("metastore_process.py")), str(directory), steps, *server],
        capture_output=True,
        text=True,
        timeout=ONLY_A_HANG_S,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "all is well" in done.stdout
