"""Lives of a Spark process that streams while others write, each ended by SIGKILL, and what must hold after them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delta_pyds import verify
from delta_pyds.table.snapshot import load_snapshot
from tests.concurrency.crashing_source import PLAN
from tests.concurrency.process_session import kill_session, members
from tests.concurrency.stream_process import CHANGE_NAMES, LINKS, RETRYABLE, checkpoint
from tests.concurrency.stream_writers import PROPERTIES, SCHEMA, WRITERS
from tests.support.applied_changes import from_change_feed, history_of, newest_of, overlapping
from tests.support.change_feed import applied, bag, change_rows
from tests.support.limits import ONLY_A_HANG_S
from tests.support.table_writes import read_rows, write_rows

ROOT = Path(__file__).parents[2]
# how long one life may take to reach its point on a slow machine
LIFE_S = ONLY_A_HANG_S
TABLES = ("S", "M", "T")
_VALUES = tuple(name for name in SCHEMA if name != "id")
# the log has the batch, and Spark's checkpoint does not know
AFTER_COMMIT = ("after commit", "after put", "before checkpoint")
# data files are there, and the log does not name them
BEFORE_COMMIT = ("after write", "before commit", "before put")
PLANNING = ("before latestOffset", "after latestOffset")
# Spark has noted the end of the batch
READING = ("before partitions", "after partitions", "after read")


@dataclass(frozen=True)
class Kill:
    """``table``: the one that is written (of commits) or read (of others). ``n``: at the n-th time in this life.

    ``random`` kills at any time after the streams were started: ``share`` of the
    time that this took, so that a slow machine gets as far as a fast one.
    """

    point: str
    table: str = ""
    n: int = 1
    share: float = 0.0

    def __str__(self) -> str:
        if self.point == "random":
            return f"at any time, {self.share:.2f} of the time that the start took"
        return f"{self.point} of {self.table}, time {self.n}"


def planned_kills(count: int, seed: int, kind: str) -> list[Kill]:
    """``count`` kills in a random order, a quarter of them of each kind of point and a quarter at any time.

    ``kind``: of the streams.
    """
    rng = random.Random(seed)
    kills: list[Kill] = []
    for number in range(count):
        kind, turn = number % 4, number // 4
        source, written = LINKS[kind][turn % 2]
        if kind == 0:
            point = AFTER_COMMIT[turn % 3]
            # every third commit has one
            kills.append(Kill(point, written, 1 if point == "before checkpoint" else rng.randint(1, 3)))
        elif kind == 1:
            kills.append(Kill(BEFORE_COMMIT[turn % 3], written, rng.randint(1, 3)))
        elif kind == 2:
            kills.append(Kill((PLANNING + READING)[turn % 5], source, rng.randint(1, 4)))
        else:
            kills.append(Kill("random", share=rng.uniform(0.0, 1.5)))
    rng.shuffle(kills)
    return kills


class CrashRun:
    """One run in one folder; ``close`` ends every process of it.

    ``kind``: of the streams. ``row_ids``: S has row tracking.
    """

    def __init__(self, folder: Path, seed: int, pause_s: float, kind: str = "rows", *, row_ids: bool = False) -> None:
        self.folder, self.seed, self.pause_s = folder, seed, pause_s
        self.kind, self.links = kind, LINKS[kind]
        self.properties = {**PROPERTIES, **({"delta.enableRowTracking": "true"} if row_ids else {})}
        self.writers: list[subprocess.Popen[str]] = []
        self.spark: subprocess.Popen[bytes] | None = None
        self.sessions: list[int] = []
        self.lives = 0
        self.report: list[str] = []

    # --- processes

    def start_writers(self) -> None:
        write_rows(self.folder / "S", SCHEMA, [], properties=self.properties)
        for number in range(WRITERS):
            args = [str(self.folder), str(number), str(self.seed), str(self.pause_s)]
            with open(self.folder / f"writer-{number}.log", "w") as log:
                self.writers.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "tests.concurrency.stream_writers", *args],
                        cwd=ROOT,
                        stdout=subprocess.PIPE,
                        stderr=log,
                        text=True,
                    )
                )

    def stop_writers(self) -> list[dict[str, Any]]:
        """The work of each writer; they end after their current operation."""
        (self.folder / "stop").touch()
        reports = []
        for number, writer in enumerate(self.writers):
            out = writer.communicate(timeout=ONLY_A_HANG_S)[0]
            error = (self.folder / f"writer-{number}.log").read_text()
            assert writer.returncode == 0, f"writer {number} failed:\n{error}"
            reports.append(json.loads(out.splitlines()[-1]))
        return reports

    def start_spark(self, mode: str) -> subprocess.Popen[bytes]:
        self.lives += 1
        for name in ("hit.json", "reached", "running"):
            (self.folder / name).unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(self.folder),
            PLAN: str(self.folder / "plan.json"),
        }
        with open(self.log_of(self.lives), "wb") as log:
            self.spark = subprocess.Popen(
                [sys.executable, "-m", "tests.concurrency.stream_process", str(self.folder), mode, self.kind],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.sessions.append(self.spark.pid)
        return self.spark

    def restarts(self) -> int:
        """The number of restarts of a query in a running session because a column was added."""
        logs = (self.log_of(life).read_text(errors="replace") for life in range(1, self.lives + 1))
        return sum(log.count(f"is restarted after {RETRYABLE}") for log in logs)

    def log_of(self, life: int) -> Path:
        return self.folder / f"life-{life:02d}.log"

    def close(self) -> None:
        """End what still runs. Raises: AssertionError if something does not end."""
        for writer in self.writers:
            if writer.poll() is None:
                writer.kill()
                writer.communicate()
        if self.spark is not None and self.spark.poll() is None:
            kill_session(self.spark.pid)
            self.spark.wait()
        for session in self.sessions:
            self._wait_for_none(session)

    def _wait_for_none(self, session: int) -> None:
        deadline = time.monotonic() + 30
        while left := members(session):
            assert time.monotonic() < deadline, f"the processes {left} of session {session} go on after its end"
            time.sleep(0.05)

    # --- a life

    def live(self, kill: Kill) -> None:
        """Start Spark, let it stream until it is killed, and see that it was killed where it was to be."""
        began = time.monotonic()
        before = [self._standing(*link)[0] for link in self.links]
        (self.folder / "plan.json").write_text(
            json.dumps({"point": kill.point, "table": kill.table, "n": kill.n} if kill.table else {})
        )
        spark = self.start_spark("run")
        if kill.point == "random":
            while not (self.folder / "running").exists():
                assert spark.poll() is None, self.said("Spark ended by itself")
                assert time.monotonic() < began + LIFE_S, self.said("the streams did not start")
                time.sleep(0.02)
            time.sleep(kill.share * (time.monotonic() - began))
            assert spark.poll() is None, self.said("Spark ended by itself")
            kill_session(spark.pid)
        try:
            code = spark.wait(timeout=LIFE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.said(f"{kill} was not reached")) from None
        assert code == -signal.SIGKILL, self.said(f"Spark ended with {code}")
        self._wait_for_none(spark.pid)
        found = self.examine(kill, before)
        seconds = time.monotonic() - began
        self.report.append(f"life {self.lives:2d}: {seconds:5.1f} s, killed {kill}: {found}")
        print(self.report[-1], flush=True)

    def drain(self) -> None:
        """A last life that is not disturbed: it ends when all that is there is delivered."""
        began = time.monotonic()
        (self.folder / "plan.json").write_text("{}")
        spark = self.start_spark("drain")
        try:
            code = spark.wait(timeout=LIFE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.said("the streams did not come to their end")) from None
        assert code == 0, self.said(f"Spark ended with {code}")
        self._wait_for_none(spark.pid)
        self.report.append(f"life {self.lives:2d}: {time.monotonic() - began:5.1f} s, not killed")
        print(self.report[-1], flush=True)

    def examine(self, kill: Kill, before: list[tuple[int, int, int]]) -> str:
        """The state of checkpoint and table after the kill, as the point wants it; ``before``: before the life."""
        if kill.point == "random":
            return "; ".join(self._standing(*link)[1] for link in self.links)
        hit = json.loads((self.folder / "hit.json").read_text())
        of_commit = kill.point in AFTER_COMMIT + BEFORE_COMMIT
        hits = [
            self._hit(kill.point, hit, link, written)
            for link, (_, _, written) in zip(self.links, before, strict=True)
            if kill.table == link[of_commit]
        ]
        text = "; ".join(text for _, text in hits)
        right = any(right for right, _ in hits)
        right = right and all((self.folder / kill.table / name).exists() for name in hit.get("files", ()))
        assert right, self.said(f"{kill} did not hit what it says: {hit}, {text}")
        return text

    def _hit(self, point: str, hit: dict[str, Any], link: tuple[str, str], before: int) -> tuple[bool, str]:
        """Whether the kill was at this point of this stream. ``before``: the batch that its target had already."""
        (planned, done, written), text = self._standing(*link)
        batch = hit.get("batch", planned)
        # a batch that an earlier life has committed is run again, and must be passed over
        again = written == batch == before
        text += ", before this life already" if again else ""
        if point in AFTER_COMMIT:
            return done == batch - 1 and planned == written == batch, text
        if point in BEFORE_COMMIT:
            return done == batch - 1 and planned == batch and (again or written < batch), text
        if point in READING:
            return planned == done + 1 and (again or written <= done), text
        return planned == done and written <= done, text

    def _standing(self, source: str, target: str) -> tuple[tuple[int, int, int], str]:
        """Last batch that Spark planned, that it noted as done, and that the target has; -1 for none."""
        folder = checkpoint(self.folder, source, target)
        planned, done = (
            max((int(p.name) for p in (folder / name).glob("[0-9]*")), default=-1) for name in ("offsets", "commits")
        )
        written = -1
        if (folder / "metadata").exists() and (self.folder / target / "_delta_log" / f"{0:020d}.json").exists():
            found = load_snapshot(str(self.folder / target)).transactions.get(self._application(source, target))
            written = -1 if found is None else found.version
        text = f"{source} to {target} has planned batch {planned}, noted {done}, written {written}"
        return (planned, done, written), text

    def _application(self, source: str, target: str) -> str:
        """The id under which the target has the batches of the stream."""
        if self.kind == "applied":
            return target
        return str(json.loads((checkpoint(self.folder, source, target) / "metadata").read_text())["id"])

    # --- the end

    def acknowledged(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """The rows of plain appends, by id, with the version of each."""
        found: dict[str, tuple[int, dict[str, Any]]] = {}
        for number in range(WRITERS):
            for line in (self.folder / f"acks-{number}.jsonl").read_text().splitlines():
                ack = json.loads(line)
                for row in ack["rows"]:
                    assert row["id"] not in found
                    found[row["id"]] = ack["version"], row
        return found

    def check(self) -> None:
        """Each row or change is once where it must be, and nothing else is."""
        problems = {"rows": self._check_rows, "changes": self._check_changes, "applied": self._check_applied}[
            self.kind
        ]()
        for source, target in self.links:
            problems += self._check_batches(source, target)
        assert not problems, self.said("\n".join(problems[:40]))
        for table in TABLES:
            report = verify(str(self.folder / table))
            assert report.ok and not report.findings, self.said(f"{table}: {report}")

    def _check_rows(self) -> list[str]:
        """Each acknowledged row is once in M and in T, as it was appended."""
        expected = self.acknowledged()
        problems = []
        for table in ("M", "T"):
            rows = read_rows(self.folder / table)
            counts = Counter(row["id"] for row in rows)
            for name, (version, _) in expected.items():
                if counts[name] != 1:
                    problems.append(f"{table} has the row {name} of version {version} of S {counts[name]} times")
            for row in rows:
                known = expected.get(row["id"])
                if known is None:
                    problems.append(f"{table} has the row {row}, which no append has written")
                elif {k: v for k, v in row.items() if v is not None} != known[1]:
                    problems.append(f"{table} has the row {row}, which was appended as {known[1]}")
        return problems

    def _check_changes(self) -> list[str]:
        """Each change of S is once in M and in T, and all of them make the rows of S."""
        changes = change_rows(self.folder / "S")
        rows = read_rows(self.folder / "S")
        problems = [] if applied([], changes) == bag(rows) else ["the changes do not make the rows of S"]
        expected = bag(
            {CHANGE_NAMES.get(k, k): v for k, v in row.items() if k != "_commit_timestamp"} for row in changes
        )
        for table in ("M", "T"):
            found = bag(read_rows(self.folder / table))
            problems += [f"{table} lacks {row} {n} times" for row, n in (expected - found).items()]
            problems += [f"{table} has {row} {n} times too often" for row, n in (found - expected).items()]
        return problems

    def _check_applied(self) -> list[str]:
        """M has the rows of S, and T their history: no row is twice, and no interval meets another."""
        changes = from_change_feed(change_rows(self.folder / "S"), "id", _VALUES)
        newest, history = (read_rows(self.folder / table) for table in ("M", "T"))
        tables = {"M": [_newest(row) for row in newest], "T": [_in_history(row) for row in history]}
        problems = [f"T has {row}, though another row is valid then" for row in overlapping(tables["T"])]
        for table, expected in (("M", newest_of(changes)), ("T", history_of(changes))):
            found, wanted = Counter(tables[table]), Counter(expected)
            problems += [f"{table} lacks {row} {n} times" for row, n in (wanted - found).items()]
            problems += [f"{table} has {row} {n} times too often" for row, n in (found - wanted).items()]
        there = bag([row for row in newest if not row["__DELETED"]], list(SCHEMA))
        if there != bag(read_rows(self.folder / "S"), list(SCHEMA)):
            problems.append("M has not the rows of S")
        return problems

    def _check_batches(self, source: str, target: str) -> list[str]:
        """A batch is one commit, and the source was read to its end."""
        query = self._application(source, target)
        latest = load_snapshot(str(self.folder / source)).version
        newest = max((checkpoint(self.folder, source, target) / "offsets").glob("[0-9]*"), key=lambda p: int(p.name))
        offset = json.loads(newest.read_text().splitlines()[2])
        problems = []
        if (offset["reservoirVersion"], offset["index"]) != (latest + 1, -1):
            problems.append(f"{source} is at version {latest}, and the stream into {target} ends at {offset}")
        batches: Counter[str] = Counter()
        for path in sorted((self.folder / target / "_delta_log").glob("*.json")):
            for line in path.read_text().splitlines():
                txn = json.loads(line).get("txn", {})
                if txn.get("appId") == query:
                    batches[txn["version"]] += 1
                elif txn:
                    problems.append(f"{path.name} of {target} is of another query than {query}: {txn}")
        problems += [f"batch {b} was committed to {target} {n} times" for b, n in batches.items() if n > 1]
        return problems

    def said(self, what: str) -> str:
        """The failure with all that helps to understand it."""
        parts = [f"seed {self.seed}, life {self.lives}: {what}", *self.report]
        for source, target in self.links:
            folder = checkpoint(self.folder, source, target) / "offsets"
            ends = sorted(folder.glob("[0-9]*"), key=lambda p: int(p.name)) if folder.exists() else []
            parts.append(f"ends of the batches from {source} to {target}:")
            for path in ends:
                with contextlib.suppress(IndexError, ValueError):
                    offset = json.loads(path.read_text().splitlines()[2])
                    parts.append(f"  {path.name}: version {offset['reservoirVersion']}, index {offset['index']}")
        for number in range(WRITERS):
            log = self.folder / f"writer-{number}.log"
            if log.exists() and log.read_text():
                parts.append(f"--- writer {number}\n{log.read_text()[-2000:]}")
        for life in range(max(1, self.lives - 2), self.lives + 1):
            log = self.log_of(life).read_text(errors="replace")
            cut = f"{log[:5000]}\n...\n{log[-5000:]}" if len(log) > 10_000 else log
            parts.append(f"--- {self.log_of(life).name}\n{cut}")
        return "\n".join(parts)


def _newest(row: dict[str, Any]) -> tuple[Any, ...]:
    """As of ``newest_of``."""
    return row["id"], _sequence(row["__SEQUENCE"]), _values(row, there=not row["__DELETED"]), row["__DELETED"]


def _in_history(row: dict[str, Any]) -> tuple[Any, ...]:
    """As of ``history_of``."""
    start, end = _sequence(row["__START_AT"]), _sequence(row["__END_AT"])
    there = start != end
    return row["id"], start if there else None, _values(row, there=there), start, end


def _values(row: dict[str, Any], *, there: bool) -> tuple[Any, ...] | None:
    found = tuple(row[name] for name in _VALUES)
    assert there or not any(found), f"{row} is a tombstone with values"
    return found if there else None


def _sequence(value: dict[str, Any] | None) -> tuple[Any, ...] | None:
    return None if value is None else tuple(value.values())
