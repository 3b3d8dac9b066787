"""The conformance reads of one Spark: by the format, and by ``delta_pyds.read``. The core's reads need no Spark."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.versions.environments import CHECKOUT

GOLDEN = CHECKOUT.parent / "shared" / "golden"
_READERS = {
    "the format": (
        *("--spark-format", "deltapy_recorded", "--spark-setup", "tests.conformance.recorded_feed:register"),
        "--spark-cdf",
    ),
    "delta_pyds.read": ("--python-read", "tests.conformance.native_adapter:read"),
}


def conformance(python: Path) -> int:
    """The exit status of both readers; 0 in a checkout that has no conformance tables beside it."""
    runner = GOLDEN / "run_conformance.py"
    if not runner.exists():
        print(f"Conformance was not run: this checkout has no {runner.name} beside it.")
        return 0
    status = 0
    variables = {"PYTHONPATH": str(CHECKOUT), "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    for reader, arguments in _READERS.items():
        print(f"conformance of {reader}:", flush=True)
        done = subprocess.run(
            [str(python), str(runner), "--set", str(GOLDEN), *arguments, "--quiet"],
            cwd=CHECKOUT,
            env={**os.environ, **variables},
            check=False,
        )
        status = status or done.returncode
    return status
