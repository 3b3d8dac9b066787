"""Writers that change rows of one table at once: aborted commands, commits a second, latency, bytes of a mend.

Ours and deltalake: a process for each writer. The reference: a thread for each one in one JVM. Afterwards the table
must have the rows of a model, which takes the commands in the order of the log.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.bench.measure import Side, say
from tests.bench.peers.contention_commands import NUM_ROWS, SCHEMA, Race, commits, expected, first_rows
from tests.bench.peers.contention_process import Engine, Report, Writers
from tests.bench.peers.goals import (
    ALONE_AT_IT,
    DELTALAKE,
    FIRST_RUN,
    MEND,
    NO_ABORT,
    OUR_WRITERS,
    QUIET_TABLE,
    REFERENCE,
)
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.settings import CHECKOUT, PeerSettings
from tests.bench.tables import made_once
from tests.support.table_writes import read_rows, write_rows

_FILES = (1, 8, 100)
_WORK = "contention"
_WRITERS = "tests.bench.peers.contention_process"
_VECTORS = {True: "with deletion vectors", False: "by rewriting"}


@dataclass(frozen=True)
class _Run:
    """The reports of the writers of one side. ``mends``: their number by the history."""

    reports: list[Report]
    mends: int

    @property
    def num_commits(self) -> int:
        return sum(len(report.seconds) for report in self.reports)

    @property
    def aborts(self) -> Side:
        """Of 1,000 commands."""
        number = sum(len(report.aborted) for report in self.reports)
        return Side([1000 * number / (number + self.num_commits)])

    @property
    def for_each_commit(self) -> Side:
        """Seconds, from the first command to the end of the last one."""
        took = max(report.end for report in self.reports) - min(report.begin for report in self.reports)
        return Side([took / self.num_commits])

    @property
    def slowest(self) -> Side:
        """The 99th percentile of the commands' seconds."""
        every = sorted(seconds for report in self.reports for seconds in report.seconds)
        return Side([every[math.ceil(0.99 * len(every)) - 1]])

    def kilobytes(self, part: str) -> Side:
        """The mean of what one command or mend read."""
        every = [number for report in self.reports for number in report.read_bytes.get(part, ())]
        return Side([sum(every) / 1000 / max(1, len(every))])


def contention(settings: PeerSettings, results: Results) -> None:
    """All tables by all sides, then a compaction among updates."""
    for vectors in _VECTORS:
        for files in _FILES:
            for disjoint in (True, False):
                race(settings, results, vectors=vectors, files=files, disjoint=disjoint)
    _compaction(settings, results)


def race(settings: PeerSettings, results: Results, *, vectors: bool, files: int, disjoint: bool) -> None:
    """Our writers and their peers on copies of one table."""
    rows = "disjoint rows" if disjoint else "overlapping rows"
    what = f"{files} file{'s' * (files > 1)}, {rows}"
    say(f"{_WORK} {_VECTORS[vectors]}, {what}")
    commands = Race(settings.race_writers, settings.race_commands, disjoint)
    original = _table(settings, files, vectors)
    alone = _run(settings, original, commands, "ours", processes=1)
    ours = _run(settings, original, commands, "ours")
    took = {OUR_WRITERS: ours, ALONE_AT_IT: alone}
    if not vectors:
        took[DELTALAKE] = _run(settings, original, commands, "deltalake")
    if files in settings.race_reference_files:
        took[REFERENCE] = _run(settings, original, commands, "reference", processes=1)
    kind = f"{_WORK} {_VECTORS[vectors]}"
    peers = [Pair(OUR_WRITERS, side) for side in took if side not in (OUR_WRITERS, ALONE_AT_IT)]
    every = [Pair(OUR_WRITERS, ALONE_AT_IT), *peers]
    aborts = {NO_ABORT: Side([0.0]), **{name: run.aborts for name, run in took.items()}}
    results.add(kind, f"{what}: aborts of 1,000", aborts, [Pair(OUR_WRITERS, NO_ABORT), *peers], "aborts")
    pace = {name: run.for_each_commit for name, run in took.items()}
    results.add(f"{kind}, {rows}", f"{what}: time for each commit", pace, every)
    slowest = {name: run.slowest for name, run in took.items()}
    results.add(kind, f"{what}: 99th percentile of the latency", slowest, every)
    parts = {MEND: ours.kilobytes("mend"), FIRST_RUN: ours.kilobytes("command")}
    results.add(kind, f"{what}: bytes read by a mend", parts, [Pair(MEND, FIRST_RUN)], "kB")
    counts = ", ".join(f"{name}: {run.num_commits:,}" for name, run in took.items())
    results.note(f"{kind}, {what}: commits: {counts}; {ours.mends:,} mends.")


def _compaction(settings: PeerSettings, results: Results) -> None:
    """OPTIMIZE of the whole table while others update it, and on the same table without them."""
    original = _table(settings, max(_FILES), vectors=True)
    say(f"{_WORK}: a compaction among updates")
    race = Race(settings.race_writers, settings.race_commands, disjoint=True)
    quiet = _run(settings, original, replace(race, writers=1), "optimize")
    among = _run(settings, original, race, "ours", beside="optimize")
    layout, writers = among.reports[-1], replace(among, reports=among.reports[:-1])
    took = {OUR_WRITERS: Side(layout.seconds), QUIET_TABLE: Side(quiet.reports[0].seconds)}
    results.add(_WORK, "a compaction of 100 files among updates", took, [Pair(OUR_WRITERS, QUIET_TABLE)])
    failed = sum(len(report.aborted) for report in among.reports)
    results.note(f"A compaction of {max(_FILES)} files ended among {writers.num_commits:,} commits; {failed} failed.")


def _table(settings: PeerSettings, files: int, vectors: bool) -> Path:
    def make(path: Path) -> None:
        step = NUM_ROWS // files
        starts = [step * n for n in range(files)]
        ends = [*starts[1:], NUM_ROWS]
        tasks = [first_rows(*ends_of).to_pylist() for ends_of in zip(starts, ends, strict=True)]
        write_rows(path, SCHEMA, tasks, properties={"delta.enableDeletionVectors": str(vectors).lower()})

    return made_once(settings.data / f"race-{files}-{'vectors' if vectors else 'plain'}", make)


def _run(
    settings: PeerSettings,
    original: Path,
    race: Race,
    engine: Engine,
    *,
    processes: int | None = None,
    beside: Engine | None = None,
) -> _Run:
    """``processes``: all writers share so many. ``beside``: one more process."""
    settings.scratch.mkdir(parents=True, exist_ok=True)
    table = settings.scratch / "race"
    shutil.rmtree(table, ignore_errors=True)
    shutil.copytree(original, table)
    number = processes or race.writers
    shares = [list(range(n, race.writers, number)) for n in range(number)]
    limit = None if engine == "ours" else settings.race_seconds
    wanted = [Writers(engine, str(table), race, share, limit, str(settings.scratch)) for share in shares]
    if beside is not None:
        wanted.append(Writers(beside, str(table), race, [0], None, str(settings.scratch)))
    run = _Run(
        _reports(wanted), sum(int(info.get("operationMetrics", {}).get("numMends", 0)) for info in commits(table))
    )
    _check_rows(race, table)
    say(f"  {engine} in {number}: {run.for_each_commit.median * 1000:.0f} ms for each of {run.num_commits} commits")
    return run


def _reports(wanted: Sequence[Writers]) -> list[Report]:
    command = [sys.executable, "-m", _WRITERS]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")])),
    }
    processes = [
        subprocess.Popen(
            [*command, json.dumps(asdict(writers))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
            env=environment,
        )
        for writers in wanted
    ]
    for process in processes:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"a writer did not begin: {process.args}")
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError("a writer failed.")
    return [Report(**json.loads(output.splitlines()[-1])) for output in outputs]


def _check_rows(race: Race, table: Path) -> None:
    """Commands that ran at once are worth nothing when the table is of no serial order of them."""
    rows = read_rows(table)
    found = {row["id"]: (row["v"], row["note"]) for row in rows}
    wanted = expected(race, table)
    if len(found) != len(rows) or found != wanted:
        wrong = [i for i in found.keys() | wanted.keys() if found.get(i) != wanted.get(i)]
        raise RuntimeError(
            f"{table} has {len(rows)} rows, and the model {len(wanted)}; they differ for ids {wrong[:9]}."
        )
