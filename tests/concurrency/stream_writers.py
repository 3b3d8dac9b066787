"""One of the writers of a table that is streamed, without Spark: it appends rows and changes those that are there.

``python -m tests.concurrency.stream_writers FOLDER NUMBER SEED PAUSE``: until
the file ``stop`` is in the folder. Rows of plain appends are written to
``acks-NUMBER.jsonl`` once the table has them: these, and no others, a stream
must deliver that passes over changes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import plan_write
from delta_pyds.data.read.reader import read
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import ConflictError
from delta_pyds.protocol.actions import AddFile
from delta_pyds.table.scan.live_files import live_files, removal
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Committed, Transaction
from delta_pyds.tasks.scan_file import scan_file
from tests.concurrency.workload import EXPECTED_REFUSALS
from tests.support.planned_changes import planned_update
from tests.support.table_writes import write_rows

SCHEMA = {"id": "string", "n": "long", "v": "string"}
# with the default level, writers that change an unpartitioned table wait for every append
PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.isolationLevel": "WriteSerializable"}
# what comes again and again, begun by each writer at another place
CYCLE = (
    "append", "append", "delete rows", "append", "update", "append", "optimize S", "append", "delete files",
    "append", "append", "rewrite", "append", "append", "optimize M", "append", "delete rows", "append",
)  # fmt: skip
WRITERS = 4
_SMALL = 6
_HERE, _OPTIONS = Place("process", "a test says so."), CommandOptions()
_STEPS_IN_A_LIFE = 15


class Writer:
    def __init__(self, folder: Path, number: int, seed: int) -> None:
        self.folder, self.table = folder, str(folder / "S")
        self.number = number
        self.rng = random.Random(f"{seed}/{number}")
        self.schema = dict(SCHEMA)
        # the rows of each of our appends that were not deleted since
        self.batches: list[list[str]] = []
        self.appended = 0
        self.life = self.evolved_in = self.steps = 0
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def step(self, n: int) -> None:
        """One operation, tried again after a conflict; a change of rows is given up in the end."""
        life = len(list(self.folder.glob("life-*.log")))
        if life != self.life:
            self.life, self.steps = life, 0
        self.steps += 1
        operation = CYCLE[(n + 5 * self.number) % len(CYCLE)]
        if self._evolves():
            operation = "evolve"
        rows = self._rows() if operation in ("append", "evolve") else []
        for _ in range(200 if rows else 5):
            try:
                if self._do(operation, n, rows):
                    self.done[operation] += 1
                return
            except ConflictError as error:
                if error.code not in EXPECTED_REFUSALS:
                    raise
                self.refused[f"{operation}: {error.code}"] += 1
        assert not rows, f"{operation} never got through"

    def _evolves(self) -> bool:
        """In every second life of Spark one writer adds a column: in the first at once, later while the streams run."""
        if self.life % 2 == 0 or self.life // 2 % WRITERS != self.number or self.life == self.evolved_in:
            return False
        if self.life > 1 and not (self.folder / "running").exists():
            return False
        self.evolved_in = self.life
        return True

    def _do(self, operation: str, n: int, rows: list[dict[str, Any]]) -> bool:
        if operation == "append":
            return self._acknowledge(write_rows(self.table, self.schema, rows), rows)
        if operation == "evolve":
            column = f"c{self.number}_{n}"
            wider = {**self.schema, column: "long"}
            filled = [{**row, column: n} for row in rows]
            done = self._acknowledge(write_rows(self.table, wider, filled, merge_schema=True), filled)
            self.schema = wider
            return done
        if operation == "optimize M":
            return (self.folder / "M" / "_delta_log" / f"{0:020d}.json").exists() and self._replace_files("M")
        if operation == "optimize S":
            return self._replace_files("S")
        if operation == "rewrite":
            return self._replace_files("S", change=True)
        if not self.batches:
            return False
        ids = self.rng.choice(self.batches)
        if operation == "update":
            assignments = {"n": "n - 1", "v": "'updated'"}
            run_update(planned_update(load_snapshot(self.table), f"id = '{ids[0]}'", assignments, _OPTIONS), _HERE)
            return True
        if operation == "delete rows":
            gone = ids[:1]
            self._replace_where(gone, [])
            ids.remove(gone[0])
            self.batches = [batch for batch in self.batches if batch]
            return True
        assert operation == "delete files"
        self._replace_where(ids, [])
        self.batches.remove(ids)
        return True

    def _rows(self) -> list[dict[str, Any]]:
        extra = {name: self.rng.randrange(100) for name in self.schema if name not in SCHEMA}
        rows = []
        for _ in range(self.rng.randint(1, 4)):
            self.appended += 1
            rows.append({"id": f"{self.number}-{self.appended}", "n": self.appended, "v": "appended", **extra})
        return rows

    def _acknowledge(self, committed: Committed | None, rows: list[dict[str, Any]]) -> bool:
        assert committed is not None
        with open(self.folder / f"acks-{self.number}.jsonl", "a") as file:
            file.write(json.dumps({"version": committed.version, "rows": rows}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.batches.append([row["id"] for row in rows])
        return True

    def _replace_where(self, ids: list[str], rows: list[dict[str, Any]]) -> bool:
        quoted = ", ".join(f"'{one}'" for one in ids)
        write_rows(self.table, SCHEMA, rows, mode="overwrite", replace_where=f"id IN ({quoted})")
        return True

    def _replace_files(self, name: str, change: bool = False) -> bool:
        """Put the rows of some small files into one: as they are, or each with another value."""
        path = str(self.folder / name)
        snapshot = load_snapshot(path)
        scan = plan_scan(snapshot)
        smallest = sorted(live_files(scan), key=lambda file: file.size)
        files = smallest[: 1 if change else _SMALL * 3]
        if len(files) < (1 if change else _SMALL):
            return False
        batches = [b for f in files for b in read(scan.state, scan_file(f, scan.state, f.deletion_vector))]
        if change:
            batches = [_with_value(batch, "rewritten") for batch in batches]
        plan = plan_write(WriteRequest(table_root=path, incoming=snapshot.schema, mode="append"))
        assert plan.state is not None
        written = write(plan.state, batches, TaskSession(0)).files
        transaction = Transaction(snapshot)
        transaction.record_files(file.path for file in files)
        now_ms = int(time.time() * 1000)
        transaction.remove(removal(file, deletion_timestamp_ms=now_ms, data_change=change) for file in files)
        transaction.add(
            AddFile(
                path=file.path,
                partition_values=dict(file.partition_values),
                size=file.size_bytes,
                modification_time=file.modification_time_ms,
                data_change=change,
                stats=file.statistics,
            )
            for file in written
        )
        transaction.commit(Operation("UPDATE" if change else "OPTIMIZE", {"predicate": "[]"}))
        return True


def _with_value(batch: pa.RecordBatch, value: str) -> pa.RecordBatch:
    values = pa.repeat(pa.scalar(value, pa.string()), batch.num_rows)
    return batch.set_column(batch.schema.get_field_index("v"), "v", values)


def main(folder: Path, number: int, seed: int, pause: float) -> None:
    writer = Writer(folder, number, seed)
    parent = os.getppid()
    n = 0
    while not (folder / "stop").exists():
        if os.getppid() != parent:
            raise SystemExit("the process that started this one is gone")
        writer.step(n)
        n += 1
        # where Spark is slow, it should not find more and more to do
        time.sleep(pause * writer.rng.uniform(0.2, 1.8) * (1 if writer.steps < _STEPS_IN_A_LIFE else 8))
    print(json.dumps({"appended": writer.appended, "done": writer.done, "refused": writer.refused}))


if __name__ == "__main__":
    logging.disable(logging.INFO)
    with contextlib.suppress(KeyboardInterrupt):
        main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
