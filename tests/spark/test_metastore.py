"""Tables by name in a Hive metastore: what one process names, another reads, writes, merges, alters and streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.connect import ROOT, connect_server
from tests.support.limits import ONLY_A_HANG_S


def test_processes_share_names_through_a_metastore(tmp_path: Path) -> None:
    step("creates", tmp_path)
    with connect_server(tmp_path, str(tmp_path)) as server:
        step("changes", tmp_path, server)
    step("streams", tmp_path)


def step(name: str, directory: Path, *server: str) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("metastore_process.py")), str(directory), name, *server],
        capture_output=True,
        text=True,
        timeout=ONLY_A_HANG_S,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "all is well" in done.stdout
