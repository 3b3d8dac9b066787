"""``make test-versions``: the core of tests on each Spark, and README's table of versions.

Each Spark whose core ran writes its row. Arguments:

- ``--drawn``: the one Spark and the part of each subject that the commit draws, and no row
- ``--spark 4.1``: this one
- ``--whole``: all tests with Spark, and the conformance reads
- ``--conformance``: the conformance reads alone
- ``--dependencies oldest`` or ``newest``: the unit tests that need no Spark, with the oldest or newest packages that
  ``pyproject.toml`` promises. The running Python counts: ``make test-versions PYTHON=python3.13``. Writes its row of
  the table of dependencies.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.support.sampling import part_of
from tests.versions.conformance import conformance
from tests.versions.core import CORE, drawn, whole
from tests.versions.dependencies import AGES, UNITS, dependencies_environment
from tests.versions.environments import CHECKOUT
from tests.versions.sparks import SPARKS, spark_environment
from tests.versions.table import write_dependencies_row, write_spark_row

# a test that hangs must not hold the whole run; the unit tests took more than half an hour on a busy machine
_CORE_LIMIT_S, _UNITS_LIMIT_S, _WHOLE_LIMIT_S = 1800, 5400, 14_400
_WHOLE = ("tests/spark", "tests/concurrency/test_crashes.py", "tests/unit/spark")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-versions")
    parser.add_argument("--spark", action="append", choices=list(SPARKS), help="only this Spark")
    parser.add_argument("--drawn", action="store_true", help="one Spark and a part of the core, drawn by the commit")
    parser.add_argument("--whole", action="store_true", help="all tests with Spark, and the conformance reads")
    parser.add_argument("--conformance", action="store_true", help="the conformance reads alone")
    parser.add_argument("--dependencies", choices=AGES, help="the unit tests without Spark, with these packages")
    options = parser.parse_args()
    if options.dependencies is not None:
        python = dependencies_environment(options.dependencies)
        status = _pytest(python, UNITS, _UNITS_LIMIT_S)
        write_dependencies_row(python, options.dependencies, passed=status == 0)
        return status
    chosen = options.spark or (part_of(SPARKS, len(SPARKS)) if options.drawn else list(SPARKS))
    status = 0
    for spark in chosen:
        python = spark_environment(spark)
        print(f"== Spark {SPARKS[spark]}", flush=True)
        if options.whole or options.conformance:
            failed = 0 if options.conformance else _pytest(python, _WHOLE, _WHOLE_LIMIT_S)
            failed = conformance(python) or failed
        else:
            failed, passed = _core(python, drawn() if options.drawn else whole())
            if not options.drawn:
                write_spark_row(spark, passed, _lacks(python))
        status = status or failed
    return status


def _core(python: Path, tests: tuple[str, ...]) -> tuple[int, dict[str, bool]]:
    """The exit status of pytest, and whether all tests of a subject passed."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        status = _pytest(python, (f"--junitxml={report}", *tests), _CORE_LIMIT_S)
        if not report.exists():
            return status or 1, dict.fromkeys(CORE, False)
        cases = ElementTree.parse(report).getroot().iter("testcase")
        passed = [(f"{case.get('classname')}::{case.get('name')}", not len(case)) for case in cases]
    return status, {subject: _passed(tests, passed) for subject, tests in CORE.items()}


def _pytest(python: Path, arguments: tuple[str, ...], limit_s: int) -> int:
    """The exit status of pytest; 1 if it does not end in time."""
    command = [str(python), "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "--durations=10", *arguments]
    variables = {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    with subprocess.Popen(command, cwd=CHECKOUT, env={**os.environ, **variables}) as running:
        try:
            return running.wait(limit_s)
        except subprocess.TimeoutExpired:
            print("The tests did not end in time.", file=sys.stderr)
            # pytest then says what failed
            running.send_signal(signal.SIGINT)
            try:
                running.wait(60)
            except subprocess.TimeoutExpired:
                running.kill()
            return 1


def _passed(tests: tuple[str, ...], cases: list[tuple[str, bool]]) -> bool:
    """Whether each of the tests ran, and all its cases passed."""
    for test in tests:
        name = test.replace(".py", "").replace("/", ".")
        found = [passed for case, passed in cases if case == name or case.startswith((f"{name}[", f"{name}::"))]
        if not found or not all(found):
            return False
    return True


def _lacks(python: Path) -> list[str]:
    """The parts that ``delta_pyds.spark.versions`` finds missing in an environment."""
    code = "from delta_pyds.spark.versions import lacks; print(*lacks(), sep='\\n', end='')"
    done = subprocess.run([str(python), "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
