"""Damage tables and read them, or spell expressions that a table may not have, and see what Spark runs of them.

python -m tests.fuzz [--seed N] [--count N] [--part footers|expressions] [--only N [--through spark]]

Ends with 1 if a fault was found: a crash, a hang, an exception that is not a DeltaError, wrong rows, an expression that
ran what it may not.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz import expressions
from tests.fuzz.damage import PARTS
from tests.fuzz.runner import run
from tests.fuzz.verdicts import Summary


def main() -> int:
    """Run what was asked for and print the summary."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", default="1", help="which damages (default: 1)")
    parser.add_argument("--count", type=int, default=10_000, help="how many (default: 10,000)")
    parser.add_argument("--first", type=int, default=0, help="the first number (default: 0)")
    parser.add_argument("--only", type=int, help="this number alone, all of its outcomes, and where the table is")
    parser.add_argument("--spark", type=int, help="how many more through Spark (default: one for each 50)")
    parser.add_argument("--through", choices=["core", "spark"], default="core", help="what reads the one of --only")
    parser.add_argument(
        "--part", choices=[*PARTS, "expressions"], default=PARTS[0], help="what of a table (default: anything)"
    )
    parser.add_argument("--processes", type=int, default=2, help="how many processes read by the core (default: 2)")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if given.part == "expressions":
        return expressions.main(given.seed, given.first, given.count, given.only)
    if given.only is not None:
        return _one(given.seed, given.only, given.through, given.part)
    summary, started = Summary(), time.monotonic()
    numbers = range(given.first, given.first + given.count)
    spark = range(given.first, given.first + (given.count // 50 if given.spark is None else given.spark))
    try:
        for result in run(given.seed, numbers, given.processes, through_spark=spark, part=given.part):
            summary.add(result)
            if summary.total % 1_000 == 0:
                rate = summary.total / (time.monotonic() - started)
                print(f"{summary.total} done, {summary.num_faults} with a fault, {rate:.0f} a second", file=sys.stderr)
    except KeyboardInterrupt:
        print("Interrupted; this is what was found until then.")
    print(f"Seed {given.seed}, numbers from {given.first}.")
    print("\n".join(summary.lines()))
    return 1 if summary.num_faults else 0


def _one(seed: str, number: int, through: str, part: str) -> int:
    folder = Path(tempfile.mkdtemp(prefix="delta_pyds_fuzz_"))
    core, spark = ([number], []) if through == "core" else ([], [number])
    [result] = run(seed, core, 1, keep=folder, through_spark=spark, part=part)
    for damage in result.damages:
        print(f"{damage.kind} {damage.file}: {damage.how}: {damage.what!a}")
    for verdict in result.verdicts:
        print(f"{verdict.operation}: {verdict.kind} {verdict.text}")
    print(f"verify names it: {result.verify_names_it}")
    print(f"The table is {folder / ('00' if through == 'core' else 'spark') / 'tables' / result.table}.")
    return 1 if result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
