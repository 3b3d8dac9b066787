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
from tests.concurrency.stream_process import LINKS, RETRYABLE, checkpoint
from tests.concurrency.stream_writers import PROPERTIES, SCHEMA, WRITERS
from tests.support.limits import ONLY_A_HANG_S
from tests.support.table_writes import read_rows, write_rows

ROOT = Path(__file__).parents[2]
# how long one life may take to reach its point on a slow machine
LIFE_S = ONLY_A_HANG_S
TABLES = ("S", "M", "T")
# the log has the batch, and Spark's checkpoint does not know
AFTER_COMMIT = ("after commit", "after put", "before checkpoint")
# data files are there, and the log does not name them
BEFORE_COMMIT = ("after write", "before commit", "before put")
PLANNING = ("before latestOffset", "after latestOffset", "before partitions", "after partitions")


@dataclass(frozen=True)
class Kill:
    """``table``: the one that is written (of commits) or read (of planning). ``n``: at the n-th time in this life.

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


def planned_kills(count: int, seed: int) -> list[Kill]:
    """``count`` kills in a random order, a quarter of them of each kind of point and a quarter at any time."""
    rng = random.Random(seed)
    kills: list[Kill] = []
    for number in range(count):
        kind, turn = number % 4, number // 4
        written, read = (("M", "S"), ("T", "M"))[turn % 2]
        if kind == 0:
            point = AFTER_COMMIT[turn % 3]
            # every third commit has one
            kills.append(Kill(point, written, 1 if point == "before checkpoint" else rng.randint(1, 3)))
        elif kind == 1:
            kills.append(Kill(BEFORE_COMMIT[turn % 3], written, rng.randint(1, 3)))
        elif kind == 2:
            kills.append(Kill(PLANNING[turn % 4], read, rng.randint(1, 4)))
        else:
            kills.append(Kill("random", share=rng.uniform(0.0, 1.5)))
    rng.shuffle(kills)
    return kills


class CrashRun:
    """One run in one folder; ``close`` ends every process of it."""

    def __init__(self, folder: Path, seed: int, pause_s: float) -> None:
        self.folder, self.seed, self.pause_s = folder, seed, pause_s
        self.writers: list[subprocess.Popen[str]] = []
        self.spark: subprocess.Popen[bytes] | None = None
        self.sessions: list[int] = []
        self.lives = 0
        self.report: list[str] = []

    # --- processes

    def start_writers(self) -> None:
        write_rows(self.folder / "S", SCHEMA, [], properties=PROPERTIES)
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
                [sys.executable, "-m", "tests.concurrency.stream_process", str(self.folder), mode],
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
        before = [self._standing(*link)[0] for link in LINKS]
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
            return "; ".join(self._standing(*link)[1] for link in LINKS)
        hit = json.loads((self.folder / "hit.json").read_text())
        link = next(link for link in LINKS if kill.table == link[kill.point not in PLANNING])
        (planned, done, written), text = self._standing(*link)
        batch = hit.get("batch")
        if kill.point in AFTER_COMMIT:
            right = done == batch - 1 and planned == written == batch
        elif kill.point in BEFORE_COMMIT:
            # a batch that an earlier life has committed is run again, and must be passed over
            again = before[LINKS.index(link)][2] == batch
            right = done == batch - 1 and planned == batch and (written == batch if again else written < batch)
            text += ", before this life already" if again else ""
            right = right and all((self.folder / kill.table / name).exists() for name in hit.get("files", ()))
        elif kill.point.endswith("partitions"):
            right = planned == done + 1 and written <= done
        else:
            right = planned == done and written <= done
        assert right, self.said(f"{kill} did not hit what it says: {hit}, {text}")
        return text

    def _standing(self, source: str, target: str) -> tuple[tuple[int, int, int], str]:
        """Last batch that Spark planned, that it noted as done, and that the target has; -1 for none."""
        folder = checkpoint(self.folder, source, target)
        planned, done = (
            max((int(p.name) for p in (folder / name).glob("[0-9]*")), default=-1) for name in ("offsets", "commits")
        )
        written = -1
        if (folder / "metadata").exists() and (self.folder / target / "_delta_log" / f"{0:020d}.json").exists():
            query = json.loads((folder / "metadata").read_text())["id"]
            found = load_snapshot(str(self.folder / target)).transactions.get(query)
            written = -1 if found is None else found.version
        text = f"{source} to {target} has planned batch {planned}, noted {done}, written {written}"
        return (planned, done, written), text

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
        """Each acknowledged row is once in M and in T, as it was appended, and nothing else is."""
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
        for source, target in LINKS:
            problems += self._check_batches(source, target)
        assert not problems, self.said("\n".join(problems[:40]))
        for table in TABLES:
            report = verify(str(self.folder / table))
            assert report.ok and not report.findings, self.said(f"{table}: {report}")

    def _check_batches(self, source: str, target: str) -> list[str]:
        """A batch is one commit, and the source was read to its end."""
        query = json.loads((checkpoint(self.folder, source, target) / "metadata").read_text())["id"]
        latest = load_snapshot(str(self.folder / source)).version
        newest = max((checkpoint(self.folder, source, target) / "offsets").glob("[0-9]*"), key=lambda p: int(p.name))
        offset = json.loads(newest.read_text().splitlines()[2])
        problems = []
        if (offset["reservoirVersion"], offset["index"]) != (latest + 1, -1):
            problems.append(f"{source} is at version {latest}, and the stream into {target} ends at {offset}")
        batches: Counter[str] = Counter()
        for path in sorted((self.folder / target / "_delta_log").glob("*.json")):
            for line in path.read_text().splitlines():
                info = json.loads(line).get("commitInfo", {})
                if info.get("operation") == "STREAMING UPDATE":
                    batches[info["operationParameters"]["epochId"].strip('"')] += 1
                    if info["operationParameters"]["queryId"].strip('"') != query:
                        problems.append(f"{path.name} of {target} is of another query than {query}: {info}")
        problems += [f"batch {b} was committed to {target} {n} times" for b, n in batches.items() if n > 1]
        return problems

    def said(self, what: str) -> str:
        """The failure with all that helps to understand it."""
        parts = [f"seed {self.seed}, life {self.lives}: {what}", *self.report]
        for source, target in LINKS:
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
