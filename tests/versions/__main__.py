"""``make test-versions``: the core of tests on each Spark, and README's table of versions.

The table is written if all Sparks ran. ``--drawn``: the one Spark that the commit draws, and no table. ``--spark 4.1``:
this one. ``--whole``: all tests with Spark, and not the core alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.support.sampling import part_of
from tests.versions.core import CORE
from tests.versions.sparks import CHECKOUT, SPARKS, environment
from tests.versions.table import write_table

# a test that hangs must not hold the whole run
_LIMIT_S = {"core": 900, "whole": 14_400}
_WHOLE = ("tests/spark", "tests/concurrency/test_crashes.py", "tests/unit/spark")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-versions")
    parser.add_argument("--spark", action="append", choices=list(SPARKS), help="only this Spark")
    parser.add_argument("--drawn", action="store_true", help="one Spark, drawn by the commit")
    parser.add_argument("--whole", action="store_true", help="all tests with Spark")
    options = parser.parse_args()
    chosen = options.spark or (part_of(SPARKS, len(SPARKS)) if options.drawn else list(SPARKS))
    outcomes: dict[str, dict[str, bool]] = {}
    lacks: dict[str, list[str]] = {}
    status = 0
    for spark in chosen:
        python = environment(spark)
        print(f"== Spark {SPARKS[spark]}", flush=True)
        failed, outcomes[spark] = _run(python, whole=options.whole)
        lacks[spark] = _lacks(python)
        status = status or failed
    if chosen == list(SPARKS) and not options.whole:
        write_table(outcomes, lacks)
    return status


def _run(python: Path, *, whole: bool) -> tuple[int, dict[str, bool]]:
    """The exit status of pytest, and whether all tests of a subject passed."""
    tests = _WHOLE if whole else tuple(test for subject in CORE.values() for test in subject)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [str(python), "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "--durations=5"]
        try:
            done = subprocess.run(
                [*command, f"--junitxml={report}", *tests],
                cwd=CHECKOUT,
                env={**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)},
                timeout=_LIMIT_S["whole" if whole else "core"],
                check=False,
            )
        except subprocess.TimeoutExpired:
            print("The tests did not end in time.", file=sys.stderr)
            return 1, dict.fromkeys(CORE, False)
        if not report.exists():
            return done.returncode or 1, dict.fromkeys(CORE, False)
        cases = ElementTree.parse(report).getroot().iter("testcase")
        passed = [(f"{case.get('classname')}::{case.get('name')}", not len(case)) for case in cases]
    return done.returncode, {subject: _passed(tests, passed) for subject, tests in CORE.items()}


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
