"""Sail, an engine without a JVM that speaks Spark Connect, in an environment and a process of its own.

Its client is another PySpark than this bench runs on, so nothing of it may be imported here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
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


class Engine:
    """An engine in a process of its own, which was started with pipes. ``version``: of its package."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.version = str(self._answer())

    def run(self, statements: Sequence[str]) -> float:
        """Run SQL statements. Returns: the seconds that they took there."""
        return float(self.ask(list(statements)))

    def query(self, sql: str) -> tuple[float, list[list[object]]]:
        """Run one query. Returns: the seconds that it took there, and its rows, dates and decimals as text.

        Raises: RuntimeError with what the engine says, if it cannot run it.
        """
        answer = json.loads(self.ask(sql))
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["seconds"], answer["rows"]

    def ask(self, question: object) -> str:
        """The answer to a question, which is sent as JSON."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.partition(" ")
            if word == "ANSWER":
                return rest.strip()
        raise RuntimeError(
            f"{self._process.args!r} ended with status {self._process.wait()}: run it by hand to see why"
        )


@contextmanager
def sail(data: Path) -> Iterator[Engine]:
    """Sail, until the block ends."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK", "PYTHONPATH"))}
    with running([str(environment(data)), str(_PROCESS)], kept) as engine:
        yield engine


@contextmanager
def running(command: Sequence[str], env: Mapping[str, str]) -> Iterator[Engine]:
    """The engine that a command starts, until the block ends."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    )
    try:
        yield Engine(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
