"""A server of Spark Connect in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.java_options import QUICK_COMPILER
from tests.support.limits import ONLY_A_HANG_S

ROOT = Path(__file__).parents[2]


@contextmanager
def connect_server(directory: Path, *arguments: str, submit: str = "") -> Iterator[str]:
    """The address of a server of the whole PySpark, which works in a directory. ``submit``: more of spark-submit's."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "spark" / "connect_server.py"), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": f"--driver-java-options '{QUICK_COMPILER} -XX:+UseSerialGC' {submit} pyspark-shell",
        },
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        said = process.stdout.readline().split()
        assert said[:1] == ["port"], said
        yield f"sc://127.0.0.1:{said[1]}"
    finally:
        process.stdin.close()
        process.wait(ONLY_A_HANG_S)


def run_client(python: str, program: Path, *arguments: str, cwd: Path) -> None:
    """Run a program that ends with "all is well"."""
    done = subprocess.run(
        [python, str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=ONLY_A_HANG_S,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "all is well" in done.stdout
