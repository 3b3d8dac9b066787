"""Programs in processes of their own, also under ``deltapy run``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import delta_pyds

CHECKOUT = Path(delta_pyds.__file__).parents[1]


def run_python(*arguments: str, path: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python without our variables of this process. ``path``: a directory that is searched before the checkout."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("DELTA_PYDS_")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (path, str(CHECKOUT))))
    command = [sys.executable, *arguments]
    return subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, timeout=60)


def run_installed(program: list[str], directory: Path, *, timeout: int) -> subprocess.CompletedProcess[str]:
    """Run a program and its arguments in ``directory``. A failure of the installation is a failure of the program."""
    return subprocess.run(
        [sys.executable, "-m", "delta_pyds.cli.main", "run", "--required", "--", *program],
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": str(CHECKOUT),
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
