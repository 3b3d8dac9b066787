"""This project beside the reference, deltalake and the floor: python -m tests.bench.peers [work ...] [--quick].

Run by `make bench-peers` in the environment of `make interop`. Results of all works go to ``tests/bench/RESULTS.md``
and ``RESULTS.json``; a quick run and one that leaves works out write into the data directory, unless told where.
``--go-on --data D`` keeps what an earlier run with that data found: it runs the works that were named, or else those
that are missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.bench.measure import say
from tests.bench.peers import (
    applied_changes,
    arrow_scan,
    comet,
    computed_changes,
    contention,
    life,
    maintenance,
    memory,
    planning,
    queries,
    reads_of_many_files,
    row_changes,
    scans,
    streams,
    writes,
)
from tests.bench.peers.results import Results
from tests.bench.peers.session import java_version, start, versions
from tests.bench.peers.settings import CHECKOUT, PeerSettings

# Those of one session run first; the others start processes of their own and need it gone.
IN_SESSION = {
    "planning": planning.through_spark,
    "scans": scans.scans,
    "tpch": queries.tpch,
    "tpcds": queries.tpcds,
    "life": life.life,
    "writes": writes.writes,
    "commits": writes.commits,
    "row-changes": row_changes.row_changes,
    "changes": computed_changes.computed_changes,
    "apply-changes": applied_changes.applied_changes,
    "maintenance": maintenance.maintenance,
    "backlog": streams.backlog,
    "micro-batch": streams.micro_batch,
}
ALONE = {
    "many-files": reads_of_many_files.on_disk,
    "many-files-in-a-store": reads_of_many_files.in_a_store,
    "planning-core": planning.without_spark,
    "scan": arrow_scan.arrow_scan,
    "comet": comet.tpch,
    "contention": contention.contention,
    "memory": memory.memory,
}
WORKS = (*IN_SESSION, *ALONE)

_ABOUT_RATIOS = """
A ratio is our median over their median; sides ran in turn after one round that is not counted, in alternating
order (A B C, C B A ...) if the run says so. Memory is the proportional set size of all processes at its peak, in a
session of its own after the same work on a small table. `cold`: both engines forgot the table before; `warm`: they had
just planned the same query.
""".strip()
_ABOUT_FLOORS = """
A floor is the least that the same work costs here with no Delta in it. Where a goal is missed, the row says where the
floor stands, as a ratio to theirs: a floor above the goal cannot be met by this way of working.
""".strip()


def main() -> None:
    """Run what was asked for, and write the results after each work."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description="Works: " + ", ".join(WORKS) + ".")
    parser.add_argument("works", nargs="*", metavar="work", help="which works; all without one")
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs, not how fast")
    parser.add_argument("--scale", type=float, help="scale of TPC-H and TPC-DS (default 1; 0.01 with --quick)")
    parser.add_argument("--queries", type=int, nargs="+", help="numbers of TPC-H and TPC-DS; all without one")
    parser.add_argument("--without-other-engines", action="store_true", help="run TPC-H and TPC-DS in Spark alone")
    parser.add_argument("--sessions", type=int, help="sessions of a table's life")
    parser.add_argument("--rounds", type=int, help="repetitions of each side")
    parser.add_argument("--spare-seconds", type=float, help="repeat short works for so long (default 240)")
    parser.add_argument("--files", type=int, nargs="+", help="sizes of the synthetic logs")
    parser.add_argument(
        "--many-files", type=int, nargs=4, metavar="N",
        help="files of the tables that are read whole, read by one file, planned only, and read in a store",
    )  # fmt: skip
    parser.add_argument("--commits", type=int, help="commits that the stream reads")
    parser.add_argument(
        "--change-rows", type=int, help="rows of the table that is deleted from, updated and merged into"
    )
    parser.add_argument("--race-commands", type=int, help="of each kind by each of the writers that race")
    parser.add_argument("--race-seconds", type=float, help="other engines begin no command of a race after it")
    parser.add_argument("--race-reference-files", type=int, nargs="*", help="tables on which the reference races too")
    parser.add_argument("--sail", action="store_true", help="compare with Sail, which is installed on its own for it")
    parser.add_argument("--data", type=Path, help="where tables are kept (about 6 GB; default: a temporary directory)")
    parser.add_argument("--out", type=Path, help="folder of RESULTS.md and RESULTS.json")
    parser.add_argument("--go-on", action="store_true", help="keep what the last run with this --data found")
    given = parser.parse_args()
    if unknown := set(given.works) - set(WORKS):
        parser.error(f"no such work: {' '.join(sorted(unknown))}")
    settings = _settings(given)
    settings.data.mkdir(parents=True, exist_ok=True)
    # a run that is ended early leaves what it had, and not in the repository
    about = {"sizes": _sizes(settings), "rows to change": f"{settings.change_rows:,}", **versions()}
    results = Results(settings.data / "peers-results", WORKS, _run(settings), about, _notes(given.quick))
    if given.go_on:
        results.go_on()
    chosen = [work for work in WORKS if work in (given.works or results.missing)]
    _run_in_session(settings, results, chosen)
    for work in chosen:
        if work in ALONE:
            with results.part(work):
                ALONE[work](settings, results)
    whole = not given.quick and not results.missing
    target = results.write(given.out or (CHECKOUT / "tests" / "bench" if whole else None))
    shutil.rmtree(settings.scratch, ignore_errors=True)
    print(results.markdown())
    say(f"written: {target}")


def _run_in_session(settings: PeerSettings, results: Results, chosen: list[str]) -> None:
    if not any(work in IN_SESSION or work == "memory" for work in chosen):
        return
    spark = start(settings.data)
    try:
        results.about({"Java": java_version(spark)})
        for work in chosen:
            if work in IN_SESSION:
                with results.part(work):
                    IN_SESSION[work](spark, settings, results)
        if "memory" in chosen:
            memory.prepare(spark, settings)
    finally:
        spark.stop()


def _settings(given: argparse.Namespace) -> PeerSettings:
    data = (given.data or Path(tempfile.gettempdir()) / "delta_pyds_bench").resolve()
    settings = PeerSettings.quick(data) if given.quick else PeerSettings(data)
    changes = {
        "scale": given.scale,
        "rounds": given.rounds,
        "spare_seconds": given.spare_seconds,
        "queries": tuple(given.queries) if given.queries else None,
        "other_engines": False if given.without_other_engines else None,
        "sessions": given.sessions,
        "planning_files": tuple(given.files) if given.files else None,
        "commits": given.commits,
        "change_rows": given.change_rows,
        "race_commands": given.race_commands,
        "race_seconds": given.race_seconds,
        "race_reference_files": None if given.race_reference_files is None else tuple(given.race_reference_files),
        "sail": given.sail,
    }
    sizes = ("read_files", "pruned_files", "planned_files", "stored_files")
    changes |= dict(zip(sizes, given.many_files or (), strict=False))
    return dataclasses.replace(settings, **{k: v for k, v in changes.items() if v is not None})


def _run(settings: PeerSettings) -> str:
    begun = dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    spare = settings.spare_seconds
    # those of the suites, of the life of a table and of many files take exactly these rounds
    more = f"; short works more, up to {spare:g} seconds" if spare else ""
    return f"{begun}, commit {_commit()} ({settings.rounds} rounds in alternating order{more})"


def _commit() -> str:
    git = ["git", "-C", str(CHECKOUT), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _sizes(settings: PeerSettings) -> str:
    files = ", ".join(f"{size:,}" for size in settings.planning_files)
    return f"TPC-H and TPC-DS scale {settings.scale:g}, synthetic logs of {files} files, {settings.commits:,} commits"


def _notes(quick: bool) -> list[str]:
    notes = [_ABOUT_RATIOS, _ABOUT_FLOORS]
    if quick:
        notes.insert(0, "**A quick run: the tables are too small for these ratios to mean anything.**")
    return notes


if __name__ == "__main__":
    main()
