"""``make test-comet``: reads with Comet, an accelerator of Spark, at most 3 GB of memory.

Tests of plans, the drawn SELECTs, the tests of native scans, and the conformance reads of ``delta_pyds.read``, all in
sessions with Comet. Each compares rows with those of a model. Arguments: ``--sample N`` reads one conformance table in
N; others go to pytest. Exit status 69: Maven cannot give Comet's JAR.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from tests.comet.environment import comet_environment, comet_jar, comet_settings, unavailable, variables
from tests.versions.conformance import GOLDEN
from tests.versions.environments import CHECKOUT

_LIMIT_S = 3600
_NATIVE = "tests/spark/test_native_scan.py"
_TESTS = (
    "tests/comet",
    "tests/spark/test_native_queries.py",
    "tests/spark/test_native_vectors.py::test_drawn_vectors_leave_the_rows_of_the_model",
    _NATIVE,
)


# Comet verifies no checksums of pages, moves no dates of the Julian calendar, and starts a job for no rows.
_DIFFERENT = (
    "test_damaged_pages_are_noticed_by_sparks_reader_too",
    "test_timestamps_of_the_julian_calendar_are_left_to_the_other_engine_and_dates_are_moved",
    "test_a_read_of_no_file_starts_no_job",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-comet")
    parser.add_argument("--sample", type=int, default=1, help="read one conformance table in so many")
    options, others = parser.parse_known_args()
    try:
        jar = comet_jar()
    except LookupError as error:
        return unavailable(error)
    python = str(comet_environment())
    with variables(comet_environment(), comet_settings(jar)) as environment:

        def run(*arguments: str) -> int:
            return subprocess.run(
                [python, *arguments], cwd=CHECKOUT, env=environment, timeout=_LIMIT_S, check=False
            ).returncode

        tests = others if any(one.startswith("tests/") for one in others) else [*_TESTS, *others]
        left_out = [f"--deselect={_NATIVE}::{name}" for name in _DIFFERENT]
        status = run("-m", "pytest", "-q", "-n", "0", *left_out, *tests)
        if others:
            return status
        if not (GOLDEN / "run_conformance.py").exists():
            print(f"Conformance was not run: this checkout has no {GOLDEN} beside it.")
            return status
        command = [python, "-m", "tests.conformance.sample", str(GOLDEN), str(options.sample)]
        sample = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=True)
        reads = ("--python-read", "tests.conformance.native_adapter:read", "--quiet")
        failed = run(str(GOLDEN / "run_conformance.py"), "--set", str(GOLDEN), *reads, *sample.stdout.split())
    return status or failed


if __name__ == "__main__":
    sys.exit(main())
