"""Ratios against the alternatives, both sides in one run: python -m tests.bench [a ... s] [--quick].

Times depend on the machine, so they are printed and never asserted.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from pathlib import Path

from tests.bench import catalogs, native, planning, scans, statements, stores, streams, wide, writes
from tests.bench.measure import Line, report
from tests.bench.settings import Settings

PLANNING = {
    "a": planning.open_and_prune,
    "d": planning.commits_since_checkpoint,
    "h": writes.commits_per_second,
    "i": writes.commit_to_many_files,
    "q": catalogs.through_sqlite,
    "s": stores.stores,
}
SCANS = {"b": scans.full_scan, "c": scans.one_file_of_many, "e": scans.fixed_cost, "f": scans.deletion_vectors,
         "g": writes.rows_to_files, "j": streams.backlog, "k": streams.empty_poll, "l": streams.micro_batch,
         "m": streams.memory, "n": native.queries, "o": native.load, "p": wide.many_columns,
         "r": statements.statements}  # fmt: skip
_ABOUT = {
    "a": "open a table and prune to one file, against deltalake",
    "b": "full scan through Spark",
    "c": "a predicate that matches one file in a thousand",
    "d": "many commits since the checkpoint",
    "e": "fixed cost of a warm query",
    "f": "scan with deletion vectors",
    "g": "write rows, against df.write.parquet and deltalake",
    "h": "commits per second of one writer and of eight",
    "i": "a commit to a table of very many files",
    "j": "a stream through a backlog of commits",
    "k": "a poll of a stream that finds nothing",
    "l": "a micro-batch of one file, source to sink",
    "m": "memory over many micro-batches",
    "n": "queries by the native engine, against spark.read.parquet and the Python source",
    "o": "telling Spark's Parquet reader of very many files",
    "p": "a table of very many columns, written and read",
    "q": "what a catalog in SQLite costs: appends, and commits that are not published",
    "r": "what SQL costs beside what it stands for, and what passes through install",
    "s": "tables in a store: requests, bytes, and time with latency, against deltalake",
}


def main() -> None:
    """Run what was asked for and print the table."""
    names = sorted(_ABOUT)
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Benchmarks: " + "; ".join(f"{n}: {_ABOUT[n]}" for n in names) + ".",
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"which of {' '.join(names)}; all without one")
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs, not how fast")
    parser.add_argument(
        "--data", type=Path, help="where generated tables are kept (about 2 GB; default: a temporary directory)"
    )
    parser.add_argument("--rounds", type=int, help="repetitions of each side")
    parser.add_argument("--rows", type=int, help="rows of the full scan")
    parser.add_argument("--files", type=int, nargs="+", help="sizes of the planning tables")
    parser.add_argument("--deltalake-query", action="store_true", help="plan with deltalake's query engine instead")
    given = parser.parse_args()
    if unknown := set(given.names) - set(names):
        parser.error(f"no such benchmark: {' '.join(sorted(unknown))}")
    chosen = given.names or names
    settings = _settings(given)
    lines: list[Line] = []
    for name in chosen:
        if name in PLANNING:
            lines += PLANNING[name](settings)
    if any(name in SCANS for name in chosen):
        spark = scans.start_spark(settings)
        try:
            for name in chosen:
                if name in SCANS:
                    lines += SCANS[name](spark, settings)
        finally:
            spark.stop()
    print(report(sorted(lines, key=lambda line: line.name)))
    if given.quick:
        print("A quick run: the tables are too small for these ratios to mean anything.")


def _settings(given: argparse.Namespace) -> Settings:
    data = (given.data or Path(tempfile.gettempdir()) / "delta_pyds_bench").resolve()
    settings = Settings.quick(data) if given.quick else Settings(data)
    changes = {
        "rounds": given.rounds,
        "scan_rows": given.rows,
        "planning_files": tuple(given.files) if given.files else None,
        "store_files": tuple(given.files) if given.files else None,
        "deltalake": "deltalake-query" if given.deltalake_query else None,
    }
    return dataclasses.replace(settings, **{k: v for k, v in changes.items() if v is not None})


if __name__ == "__main__":
    main()
