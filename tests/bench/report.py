"""The report of a table of very many files: python -m tests.bench.report [FILES].

Prints seconds, peak memory and the length of the page; nothing is asserted, for a machine is as fast as it is.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.measure import say
from tests.bench.planning_process import peak_mb
from tests.support.large_table import generate_large

_FILES = 1_000_000


def main() -> None:
    """Make a table, partitioned by a day, and its report in a process of its own."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else _FILES
    with tempfile.TemporaryDirectory() as folder:
        say(f"making a table of {number:,} files")
        generate_large(Path(folder) / "t", number, partitioned=True)
        subprocess.run([sys.executable, "-m", "tests.bench.report", "--one", str(Path(folder) / "t")], check=True)


def one(path: str) -> None:
    """Measure one report."""
    import delta_pyds

    started = time.perf_counter()
    page = delta_pyds.report(path)
    took = time.perf_counter() - started
    print(f"{took:.1f} s, peak {peak_mb():.0f} MB, a page of {len(page.encode()) / 1024:.0f} KiB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2])
    else:
        main()
