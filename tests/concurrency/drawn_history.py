"""Histories that a seed draws: a table, its place, and processes that change it at once, some of which are killed."""

from __future__ import annotations

import json
import multiprocessing.connection
import random
import signal
import time
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from tests.concurrency.changing_process import Writer, live
from tests.concurrency.changing_workload import Report, Workload
from tests.concurrency.history_check import TableAt, check_history
from tests.concurrency.history_places import PLACES, Place, place
from tests.support.definitions import define
from tests.support.delta_types import field
from tests.support.limits import ONLY_A_HANG_S
from tests.support.row_model.steps import BASE, Layout, Merge, Overwrite
from tests.support.row_model.upkeep import Restore
from tests.support.table_writes import struct

GENERATED = {"delta.generationExpression": "n + 1"}
IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
# what may be refused where commits give identity values, and what a store that fails does
_METADATA, _STORAGE = "DELTA_METADATA_CHANGED", "DELTA_STORAGE_ERROR"
# after a kill, a request of the dead process may still be on its way
_ON_ITS_WAY_S = 0.3


@dataclass(frozen=True)
class History:
    """All of it follows from the seed. ``by_deltalake``: the number of the last writers that are ``deltalake``."""

    seed: int
    place: str
    layout: Layout
    mapping: str
    generated: bool
    identity: bool
    checkpoint_interval: int
    writers: int
    steps: int
    kills: int
    layouts: int
    replacements: int
    longest_pause_s: float
    by_deltalake: int = 0

    @staticmethod
    def of(seed: int) -> History:
        rng = random.Random(seed)

        def maybe() -> bool:
            return rng.random() < 0.5

        mapping = rng.choice(["none", "none", "name", "id"])
        where = rng.choices(list(PLACES), list(PLACES.values()))[0]
        layout = Layout(
            deletion_vectors=rng.random() < 0.6,
            change_feed=maybe(),
            mapped=mapping != "none",
            row_tracking=maybe(),
            partitioned=maybe(),
            constrained=maybe(),
            v2_checkpoints=maybe(),
        )
        return History(
            seed,
            where,
            layout,
            mapping,
            generated=rng.random() < 0.3,
            identity=rng.random() < 0.2,
            checkpoint_interval=rng.choice([3, 10, 100]),
            writers=rng.choice([2, 3, 4]),
            steps=rng.choice([3, 5, 8]),
            kills=rng.choice([0, 1, 3]),
            layouts=rng.choice([0, 3, 6]),
            replacements=rng.choice([0, 0, 2, 4]),
            longest_pause_s=rng.choice([0, 0.01, 0.05]),
        )

    @cached_property
    def properties(self) -> dict[str, str]:
        mapping = {} if self.mapping == "none" else {"delta.columnMapping.mode": self.mapping}
        return {
            **self.layout.properties,
            **mapping,
            "delta.checkpointInterval": str(self.checkpoint_interval),
        }

    @property
    def schema(self) -> dict[str, Any]:
        fields = [field(name, kind) for name, kind in BASE.items()]
        if self.generated:
            fields.append(field("g", "integer", metadata=GENERATED))
        if self.identity:
            fields.append(field("i", "long", metadata=IDENTITY))
        return {"type": "struct", "fields": fields}

    @property
    def workload(self) -> Workload:
        columns = tuple(BASE) if self.generated or self.identity else None
        # an overwrite by deltalake does not notice a compaction that won
        overwrites = 0 if self.by_deltalake else 3
        return Workload(self.seed, self.layouts, self.replacements, overwrites, columns)

    def allows(self, refused: dict[str, Any]) -> bool:
        """Whether a refusal is lawful."""
        if refused["writer"] >= self.writers - self.by_deltalake:
            return True
        step = self.workload.planned(refused["writer"], refused["n"]).step
        code = refused["code"]
        if code == _STORAGE:
            return self.place == "store"
        if code == _METADATA:
            return self.identity
        # a restore is not mended, and neither is what gives its first identity values after it lost
        kinds = (Restore, Merge, Overwrite) if self.identity else (Restore,)
        return isinstance(step, kinds) and code.startswith("DELTA_CONCURRENT_")


@dataclass(frozen=True)
class Outcome:
    """The numbers of a history that passed."""

    commits: int
    mends: int
    kills: int
    refused: int


def run_history(history: History, processes: BaseContext, folder: Path) -> Outcome:
    """Let the processes race, and check what they leave. Raises: AssertionError, with what is wrong."""
    with place(history.place, folder, history.seed) as at:
        by = ("p",) if history.layout.partitioned else ()
        define(
            at.new.root,
            struct(history.schema),
            partition_columns=by,
            properties=history.properties,
            storage_options=at.new.options,
        )
        table, writers_table = at.created()
        reports, kills = race(history, at, writers_table, processes, folder)
        refused = [one for report in reports for one in report.refused]
        refused_wrongly = [one for one in refused if not history.allows(one)]
        told = check_history(table, history.layout, history.workload, reports, all_acknowledged=not kills)
        assert not refused_wrongly, f"a writer was turned away: {refused_wrongly}"
        mends = sum(commit["numMends"] for commit in told)
        return Outcome(len(told), mends, kills, len(refused))


def race(history: History, at: Place, table: TableAt, processes: BaseContext, folder: Path) -> tuple[list[Report], int]:
    """Run all writers to their end. Returns: their reports, and how many processes were killed."""
    rng = random.Random(f"kills of {history.seed}")
    # each step of a workload is some 20 steps of a process
    kill_at = [rng.randrange(1, 15 * history.steps) for _ in range(history.kills)]
    writers = [
        Writer(
            table.root, dict(table.options), dict(at.environment), history.workload, number, history.steps, folder,
            at.catalog, history.longest_pause_s, kill_at.pop() if kill_at else 0,
            by_deltalake=number >= history.writers - history.by_deltalake,
        )
        for number in range(history.writers)
    ]  # fmt: skip
    running = {_started(processes, writer): writer for writer in writers}
    while not all((folder / f"ready{writer.number}").exists() for writer in writers):
        assert all(process.is_alive() for process in running), "a writer did not begin."
        time.sleep(0.01)
    (folder / "start").touch()
    kills, deadline = 0, time.monotonic() + ONLY_A_HANG_S
    try:
        while running:
            assert time.monotonic() < deadline, f"these writers hang: {list(running.values())}"
            ended = multiprocessing.connection.wait([process.sentinel for process in running], timeout=1)
            for process in [process for process in running if process.sentinel in ended]:
                process.join()
                writer = running.pop(process)
                if process.exitcode == -signal.SIGKILL:
                    kills += 1
                    if history.place != "disk":
                        time.sleep(_ON_ITS_WAY_S)
                    again = replace(writer, kill_at=kill_at.pop() if kill_at else 0, follows=True)
                    running[_started(processes, again)] = again
                elif process.exitcode:
                    error = folder / f"error{writer.number}"
                    raise AssertionError(
                        f"writer {writer.number} failed:\n{error.read_text() if error.exists() else ''}"
                    )
    finally:
        for process in running:
            process.kill()
            process.join()
    return [_report_of(writer) for writer in writers], kills


def _started(processes: BaseContext, writer: Writer) -> Any:
    process = processes.Process(target=live, args=(writer,))  # type: ignore[attr-defined]
    process.start()
    return process


def _report_of(writer: Writer) -> Report:
    report = Report()
    for line in writer.report.read_text().splitlines():
        one = json.loads(line)
        report.done += one["done"]
        report.refused += one.get("refused", [])
    return report
