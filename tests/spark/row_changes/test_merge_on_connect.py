"""Commands through Spark Connect, whose client keeps expressions unresolved: the same merges, and the model of rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.test_connect import ROOT, server
from tests.support.limits import ONLY_A_HANG_S
from tests.support.sampling import exhaustive, seed

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

__all__ = ["server"]


def _run(client: str, *arguments: str, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(client)), *arguments],
        capture_output=True,
        text=True,
        timeout=ONLY_A_HANG_S,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "all is well" in done.stdout


def test_merging_through_spark_connect(server: str, tmp_path: Path) -> None:
    _run("merge_client.py", server, str(tmp_path), cwd=tmp_path)


def test_drawn_commands_through_spark_connect(server: str, tmp_path: Path) -> None:
    """Drawn by the commit. A failure names the step; the same commit draws it again."""
    _run("model_client.py", server, str(tmp_path), "10" if exhaustive() else "1", seed(), cwd=tmp_path)
