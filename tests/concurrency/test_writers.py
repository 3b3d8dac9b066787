"""Many writers of one table: nothing lost, nothing doubled, every refusal the right one."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_pyds import verify
from delta_pyds.errors import StorageError
from delta_pyds.storage import resolve
from delta_pyds.table.snapshot import load_snapshot
from tests.concurrency.workload import Report, create, replay, run
from tests.support.limits import ONLY_A_HANG_S
from tests.support.memory_storage import MemoryStorage
from tests.support.table_writes import read_rows

WRITERS = 8
COMMITS = int(os.environ.get("DELTA_PYDS_CONCURRENT_COMMITS", "50"))
ROOT = Path(__file__).parents[2]


def reports_of_processes(table: str, commits: int = COMMITS, *options: str) -> list[Report]:
    """The reports of eight processes that write to the table."""
    command = [sys.executable, "-m", "tests.concurrency.writer_process", table]
    processes = [
        subprocess.Popen([*command, str(n), str(commits), "1", *options], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for n in range(WRITERS)
    ]
    try:
        outputs = [process.communicate(timeout=ONLY_A_HANG_S)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * WRITERS
    return [Report(**json.loads(text.splitlines()[-1])) for text in outputs]


def check(path: str, reports: list[Report], infos: list[dict[str, Any]], commits: int = WRITERS * COMMITS) -> None:
    """``infos``: the commit infos of the log, by version."""
    assert [text for report in reports for text in report.unexpected] == []
    committed = sorted(version for report in reports for version in report.committed)
    assert committed == list(range(1, commits + 1)), "a commit was lost, or told of twice"
    done = [json.loads(info["userMetadata"]) for info in infos]
    assert len({d.get("row") for d in done}) == len(done)
    assert sorted((r["p"], r["id"]) for r in read_rows(path)) == replay(done)
    times = [info["timestamp"] for info in infos]
    assert len(times) == commits + 1


def test_processes_on_a_disk(tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    create(table)
    reports = reports_of_processes(table)
    log = tmp_path / "table" / "_delta_log"
    infos = [
        json.loads((log / f"{version:020d}.json").read_text().splitlines()[0])["commitInfo"]
        for version in range(WRITERS * COMMITS + 1)
    ]
    check(table, reports, infos)
    assert any("DELTA_CONCURRENT" in text for report in reports for text in report.refused)
    report = verify(table)
    assert report.ok, str(report)
    assert load_snapshot(table).verify_checksum()


class Faults:
    """Makes a store misbehave: errors before and after effects, slow answers, stale listings."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.on = False
        self.injected = 0
        self.stale = 0

    def _maybe(self, chance: float, what: str, path: str) -> None:
        with self.lock:
            if not self.on or self.random.random() >= chance:
                return
            self.injected += 1
        raise StorageError(f"injected: {what} of {path}", path=path)

    def before(self, operation: str, path: str) -> None:
        if self.on and operation == "list_from":
            with self.lock:
                pause = self.random.choice([0, 0, 0.002, 0.01])
            time.sleep(pause)
        if operation == "put_if_absent" and path.endswith(".json"):
            self._maybe(0.05, "an error before the put", path)

    def after(self, operation: str, path: str) -> None:
        if operation == "put_if_absent" and path.endswith(".json"):
            self._maybe(0.10, "an error after the put", path)

    def listed(self, directory: str, names: list[str]) -> list[str]:
        """Now and then a listing that is not yet aware of the newest files; never one without any commit."""
        with self.lock:
            stale = self.random.choice([0, 0, 0, 1, 2, 5]) if self.on and directory.endswith("_delta_log") else 0
            self.stale += bool(stale)
        commits = [name for name in names if name.endswith(".json")]
        hidden = set(commits[max(1, len(commits) - stale) :])
        return [name for name in names if name not in hidden]


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[tuple[str, Faults]]:
    faults = Faults(seed=7)
    storage = MemoryStorage(on_call=faults.before, after_call=faults.after, listed=faults.listed)
    real = resolve.open_storage
    monkeypatch.setattr(
        resolve,
        "open_storage",
        lambda scheme, uri, options: storage if scheme == "memory" else real(scheme, uri, options),
    )
    yield f"memory://{request.node.name}/table", faults


def test_threads_on_a_store_that_fails(faulty: tuple[str, Faults]) -> None:
    table, faults = faulty
    create(table)
    reports: list[Report] = []
    faults.on = True
    threads = [
        threading.Thread(target=lambda n=n: reports.append(run(table, n, COMMITS, 2, lambda: time.sleep(0.001))))
        for n in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    faults.on = False
    assert faults.injected > 10 and faults.stale > 10
    assert len(reports) == WRITERS
    storage = resolve.resolve_storage(table)
    infos = [
        json.loads(storage.read(f"{table}/_delta_log/{version:020d}.json").splitlines()[0])["commitInfo"]
        for version in range(WRITERS * COMMITS + 1)
    ]
    check(table, reports, infos)
