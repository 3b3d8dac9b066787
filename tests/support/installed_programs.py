"""Programs that run under ``deltapy run``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import delta_pyds

_CHECKOUT = Path(delta_pyds.__file__).parents[1]


def run_installed(program: list[str], directory: Path, *, timeout: int) -> subprocess.CompletedProcess[str]:
    """Run a program and its arguments in ``directory``. A failure of the installation is a failure of the program."""
    return subprocess.run(
        [sys.executable, "-m", "delta_pyds.cli.main", "run", "--required", "--", *program],
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": str(_CHECKOUT),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            # a server of Spark Connect that the program starts takes a free port
            "SPARK_TESTING": "1",
        },
        capture_output=True,
        text=True,
        timeout=timeout,
    )
