"""Writers of both engines, each a process of its own, which begin together on one table.

The reference commits here through ``LinkLogStore``: the store that it has for local disks lets two processes commit
the same version, with any other engine. In the folder of a race lie the table (``table``), the log store's
``classes``, and of each writer what it says (``NAME.log``) and that it is ready (``NAME.ready``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.concurrency.process_session import kill_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.interop.engines import Engines

OURS, REFERENCE = "ours", "reference"
_START_S = 180
_ROOT = Path(__file__).parents[2]


def wait_for_start(folder: Path, name: str) -> None:
    """In a writer: say that it is ready, and wait for the others."""
    (folder / f"{name}.ready").touch()
    while not (folder / "start").exists():
        time.sleep(0.02)


def racing_reference(folder: Path, number: int) -> SparkSession:
    """A Spark of its own, as small as it can be; what is loaded and compiled at first use is not part of the race."""
    from tests.interop.reference_session import for_few_rows, reference_session

    scratch = folder / f"spark-{number}"
    builder = for_few_rows(reference_session(1, scratch, memory="700m", classes=folder / "classes"))
    spark = builder.config("spark.delta.logStore.file.impl", "LinkLogStore").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.read.format("delta").load(str(folder / "table")).collect()
    return spark


def compile_log_store(engines: Engines, folder: Path) -> None:
    """Spark brings a compiler of Java along, so that no JDK is needed."""
    folder.mkdir()
    compiler = engines.spark._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(Path(__file__).with_name("LinkLogStore.java").read_text())
    for name, code in dict(compiler.getBytecodes()).items():
        (folder / f"{name}.class").write_bytes(code)


def race(
    module: str, folder: Path, writers: Sequence[tuple[str, int]], arguments: Sequence[object], seconds: float
) -> list[str]:
    """Run all writers to their end. Returns: their names.

    Each is ``python -m module ENGINE FOLDER NUMBER ARGUMENTS...``. Raises: AssertionError as soon as one failed, or
    after so many seconds.
    """
    with ExitStack() as stack:
        processes = {
            f"{engine}{number}": stack.enter_context(
                Apart(
                    [module, engine, str(folder), str(number), *map(str, arguments)], folder / f"{engine}{number}.log"
                )
            )
            for engine, number in writers
        }
        _until(lambda: all((folder / f"{name}.ready").exists() for name in processes), folder, processes, _START_S)
        (folder / "start").touch()
        _until(lambda: not _running(processes), folder, processes, seconds)
    return list(processes)


class Apart:
    """``python -m command...`` in a session of the operating system of its own, of which nothing is left at the end."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = [sys.executable, "-m", *command]
        self._log = log

    def __enter__(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                self._command, cwd=_ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        return self._process

    def __exit__(self, *_: object) -> None:
        kill_session(self._process.pid)
        self._process.wait()


def _running(processes: dict[str, Any]) -> list[str]:
    return [name for name, process in processes.items() if process.poll() is None]


def _until(reached: Any, folder: Path, processes: dict[str, Any], seconds: float) -> None:
    """Wait. Raises: AssertionError as soon as a writer failed, or if it takes longer."""
    deadline = time.monotonic() + seconds
    while True:
        over = reached()
        for name, process in processes.items():
            if process.poll() not in (None, 0):
                raise AssertionError(f"{name} failed:\n{(folder / f'{name}.log').read_text()[-4000:]}")
        if over:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds:.0f} seconds these writers still run: {_running(processes)}")
        time.sleep(0.1)
