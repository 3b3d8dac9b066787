"""Sail, an engine without a JVM that speaks Spark Connect, in an environment and a process of its own.

Its client is another PySpark than this bench runs on, so nothing of it may be imported here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.measure import say

REQUIREMENTS = Path(__file__).with_name("sail-requirements.txt")
_PROCESS = Path(__file__).with_name("sail_process.py")


def environment(data: Path) -> Path:
    """Python with Sail, made once in the data directory."""
    home = data / "sail-environment"
    python = home / "bin" / "python"
    done = home / "installed.txt"
    if not done.exists() or done.read_text() != REQUIREMENTS.read_text():
        say(f"making {home}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
        subprocess.run([str(python), *install], check=True)
        done.write_text(REQUIREMENTS.read_text())
    return python


class Sail:
    """A running Sail. ``version``: of its package."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.version = str(self._answer())

    def run(self, statements: Sequence[str]) -> float:
        """Run SQL statements. Returns: the seconds that they took there."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(list(statements)) + "\n")
        self._process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.partition(" ")
            if word == "ANSWER":
                return rest.strip()
        raise RuntimeError(f"Sail ended with status {self._process.wait()}: run {_PROCESS.name} by hand to see why")


@contextmanager
def sail(data: Path) -> Iterator[Sail]:
    """Sail, until the block ends."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK", "PYTHONPATH"))}
    process = subprocess.Popen(
        [str(environment(data)), str(_PROCESS)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=kept,
    )  # fmt: skip
    try:
        yield Sail(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
