"""Commands through Spark Connect, whose client keeps expressions unresolved: the same merges, and the model of rows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.spark.test_connect import server
from tests.support.connect import run_client
from tests.support.sampling import exhaustive, seed

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

__all__ = ["server"]


def _run(client: str, *arguments: str, cwd: Path) -> None:
    run_client(sys.executable, Path(__file__).with_name(client), *arguments, cwd=cwd)


def test_merging_through_spark_connect(server: str, tmp_path: Path) -> None:
    _run("merge_client.py", server, str(tmp_path), cwd=tmp_path)


def test_drawn_commands_through_spark_connect(server: str, tmp_path: Path) -> None:
    """Drawn by the commit. A failure names the step; the same commit draws it again."""
    _run("model_client.py", server, str(tmp_path), "10" if exhaustive() else "1", seed(), cwd=tmp_path)


def test_lost_races_through_spark_connect(server: str, tmp_path: Path) -> None:
    _run("mended_client.py", server, str(tmp_path), "10" if exhaustive() else "2", seed(), cwd=tmp_path)
