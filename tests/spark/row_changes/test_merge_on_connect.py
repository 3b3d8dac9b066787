"""The same merges through Spark Connect, whose client keeps expressions unresolved."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.spark.test_connect import ROOT, server
from tests.support.limits import ONLY_A_HANG_S

__all__ = ["server"]


def test_merging_through_spark_connect(server: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("merge_client.py")), server, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=ONLY_A_HANG_S,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "all is well" in done.stdout
