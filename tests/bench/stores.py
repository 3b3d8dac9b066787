"""(s) Tables in a store: requests and bytes beside deltalake on the same server, and time where a request takes 30 ms.

The store is S3's protocol over a directory, in a process of its own, with a proxy before it that counts and waits.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.measure import Line, in_turn, ratio_line, say
from tests.bench.settings import Settings
from tests.bench.store_server import StoreServer, store_server
from tests.bench.tables import data_table, planning_table, wanted
from tests.support.faulty_proxy import Exchange
from tests.support.large_table import ROWS

_LATENCY_S = 0.03
# a gigabit
_BYTES_PER_S = 125e6
_TAILS = (0, 10, 100)
_FILES = 20


def stores(settings: Settings) -> list[Line]:
    """(s): all of it."""
    root = settings.data / "store"
    bucket = root / "bucket"
    data_table(bucket, 1000, 2)
    with store_server(root) as server:
        run = _Runs(settings, server, bucket)
        return [line for size in settings.store_files for line in run.log(size)] + run.scans()


class _Runs:
    def __init__(self, settings: Settings, server: StoreServer, bucket: Path) -> None:
        self._settings = settings
        self._server = server
        self._bucket = bucket
        self._number = 0

    def log(self, size: int) -> list[Line]:
        """The measures that depend on the length of the log."""
        lines: list[Line] = []
        key = str(wanted(size) * ROWS + ROWS // 2)
        for tail in _TAILS:
            table = planning_table(self._bucket, size, "struct" if size > 100_000 else "json", tail)
            what = f"{size:,} files, {tail} commits after the checkpoint"
            lines += self._counted(f"open and plan, {what}", "plan", table, key, found=1)
            took = in_turn(
                {s: self._timed(s, "plan", table, key) for s in ("deltapy", "deltalake")}, self._settings.rounds
            )
            lines.append(ratio_line("s", "  at 30 ms", took["deltapy"], took["deltalake"], 0.7))
            lines += self._counted(f"poll, {what}", "poll", table, "", found=0)
        with self._copies(planning_table(self._bucket, size, "json", 10)) as copy:
            lines += self._counted(f"append of one file, {size:,} files", "append", copy, "")
        return lines

    def scans(self) -> list[Line]:
        """Reading of data files."""
        rows = self._settings.store_rows
        table = data_table(self._bucket, rows, _FILES)
        files = [(f"bucket/{table.name}/{f.name}", f.stat().st_size) for f in sorted(table.glob("*.parquet"))]
        total = sum(size for _, size in files)
        say(f"{total / 1e6:.0f} MB in {len(files)} files")
        lines = []
        for columns in ("*", "customer"):
            what = f"scan of {'one column of seven' if columns != '*' else 'all columns'}, {total / 1e6:.0f} MB"
            lines += self._counted(what, "scan", table, columns, found=rows)
            for speed, name in ((0.0, "at 30 ms"), (_BYTES_PER_S, "at 30 ms and 1 Gbit/s")):
                sides = {s: self._timed(s, "scan", table, columns, speed) for s in ("deltapy", "deltalake")}
                if columns == "*":
                    sides["floor"] = self._timed("floor", "scan", table, json.dumps(files), speed)
                took = in_turn(sides, self._settings.rounds)
                lines.append(ratio_line("s", f"  {name}, vs deltalake", took["deltapy"], took["deltalake"]))
                if columns == "*":
                    lines.append(ratio_line("s", f"  {name}, vs the floor", took["deltapy"], took["floor"], 1.3))
        return lines

    def _counted(
        self, what: str, work: str, table: Path | Callable[[], Path], argument: str, found: int | None = None
    ) -> list[Line]:
        """Requests and bytes of both sides, without latency."""
        sides = {}
        for side in ("deltapy", "deltalake"):
            say(f"(s) {what}: {side}")
            seen, _, made = self._run(side, work, table if isinstance(table, Path) else table(), argument)
            if found is not None and seen != found:
                raise RuntimeError(f"{side} finds {seen} where there are {found}: {what}")
            sides[side] = made
        ours, theirs = sides["deltapy"], sides["deltalake"]
        return [
            Line("s", f"{what}: requests", _kinds(ours), _kinds(theirs), _ratio(len(ours), len(theirs)),
                 _most(len(ours), len(theirs))),
            Line("s", "  bytes", f"{_bytes(ours):,}", f"{_bytes(theirs):,}", _ratio(_bytes(ours), _bytes(theirs)),
                 _most(_bytes(ours), _bytes(theirs))),
        ]  # fmt: skip

    def _timed(
        self, side: str, work: str, table: Path, argument: str, speed: float = 0.0
    ) -> Callable[[], tuple[float]]:
        return lambda: (self._run(side, work, table, argument, _LATENCY_S, speed)[1],)

    def _run(
        self, side: str, work: str, table: Path, argument: str, latency_s: float = 0.0, speed: float = 0.0
    ) -> tuple[int, float, list[Exchange]]:
        """The files found, seconds, requests."""
        with self._copies(self._bucket / "rows-1000-2") as copy:
            warm_up = copy() if work == "append" else self._bucket / "rows-1000-2"
            options = self._server.deltalake_options() if side == "deltalake" else self._server.options()
            names = [f"s3://bucket/{path.relative_to(self._bucket)}" for path in (table, warm_up)]
            command = [sys.executable, "-m", "tests.bench.store_process", side, work, *names]
            first = {"plan": "7", "scan": argument if side != "floor" else "[]"}.get(work, "")
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self._settings.checkout
            ) as process:
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(json.dumps([options, argument, first]) + "\n")
                process.stdin.flush()
                if process.stdout.readline() != "ready\n":
                    raise RuntimeError(f"{side} does not do: {work}")
                self._server.behave(latency_s, speed)
                self._server.taken()
                process.stdin.write("\n")
                process.stdin.flush()
                told = json.loads(process.stdout.readline())
                self._server.behave()
        return told["found"], told["seconds"], list(self._server.taken())

    @contextmanager
    def _copies(self, table: Path) -> Iterator[Callable[[], Path]]:
        """Makes tables to write to, by links."""
        made: list[Path] = []

        def copy() -> Path:
            self._number += 1
            made.append(self._bucket / "copies" / str(self._number))
            shutil.copytree(table, made[-1], copy_function=os.link)
            return made[-1]

        try:
            yield copy
        finally:
            for path in made:
                shutil.rmtree(path)


def _kinds(made: list[Exchange]) -> str:
    counts = Counter(one.kind for one in made)
    return f"{len(made)} ({', '.join(f'{number} {kind}' for kind, number in sorted(counts.items()))})"


def _bytes(made: list[Exchange]) -> int:
    return sum(one.bytes_sent + one.bytes_received for one in made)


def _ratio(ours: int, theirs: int) -> str:
    return f"{ours / theirs:.2f}" if theirs else "-"


def _most(ours: int, theirs: int) -> str:
    return f"<= 1.00 {'met' if ours <= theirs else 'MISSED'}"
