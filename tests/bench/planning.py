"""Opening a table and finding the one file that matters: (a) against deltalake, (d) with many commits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench.measure import Line, Side, duration, in_turn, ratio_line, say
from tests.bench.settings import Settings
from tests.bench.tables import planning_table, wanted
from tests.support.large_table import ROWS


def open_and_prune(settings: Settings) -> list[Line]:
    """(a): at each size, with statistics as JSON and as struct; memory; growth."""
    lines: list[Line] = []
    for stats in ("json", "struct"):
        previous: tuple[int, Side] | None = None
        for size in settings.planning_files:
            table = planning_table(settings.data, size, stats)
            say(f"(a) {size:,} files, stats as {stats}")
            other = settings.deltalake
            sides = {s: _process(settings, s, table, size) for s in ("deltapy", other)}
            took = in_turn(sides, settings.rounds)
            ours, theirs = took["deltapy"], took[other]
            what = f"open and prune, {size:,} files, stats {stats}, vs {other}"
            lines.append(ratio_line("a", what, ours, theirs, 1.0))
            target = f"<= 1024 MB {'met' if ours.peak <= 1024 else 'MISSED'}"
            memory = f"{ours.peak / theirs.peak:.2f}"
            lines.append(Line("a", "  peak memory", f"{ours.peak:.0f} MB", f"{theirs.peak:.0f} MB", memory, target))
            if previous is not None:
                grown = ours.median / previous[1].median
                lines.append(
                    Line(
                        "a",
                        f"  growth from {previous[0]:,} files, vs linear",
                        f"x {grown:.1f}",
                        f"x {size / previous[0]:.1f}",
                        f"{grown / (size / previous[0]):.2f}",
                    )
                )
            previous = (size, ours)
    return lines


def commits_since_checkpoint(settings: Settings) -> list[Line]:
    """(d): with ``settings.commits`` commits since the checkpoint, against none."""
    size = settings.planning_files[0]
    with_commits = planning_table(settings.data, size, "json", settings.commits)
    without = planning_table(settings.data, size, "json")
    say(f"(d) {settings.commits:,} commits since the checkpoint")
    took = in_turn(
        {
            "with": _process(settings, "deltapy", with_commits, size),
            "without": _process(settings, "deltapy", without, size),
            "deltalake": _process(settings, settings.deltalake, with_commits, size),
        },
        settings.rounds,
    )
    more = took["with"].median - took["without"].median
    each = f" (+{duration(more)}, {more / settings.commits * 1e6:.0f} us a commit)"
    what = f"open and prune, {size:,} files, {settings.commits:,} commits since the checkpoint, vs none"
    against = f"  the same table, vs {settings.deltalake}"
    return [
        ratio_line("d", what, took["with"], took["without"], note=each),
        ratio_line("d", against, took["with"], took["deltalake"]),
    ]


def _process(settings: Settings, side: str, table: Path, size: int) -> Callable[[], tuple[float, float]]:
    warm_up = planning_table(settings.data, 10, "json")
    key = wanted(size) * ROWS + ROWS // 2
    command = [sys.executable, "-m", "tests.bench.planning_process", side, str(table), str(key), str(warm_up)]

    def run() -> tuple[float, float]:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=settings.checkout)
        result = json.loads(done.stdout.splitlines()[-1])
        if result["files"] != 1:
            raise RuntimeError(f"{side} keeps {result['files']} files of {table}, not 1")
        return result["seconds"], result["peak_mb"]

    return run
