"""Whatever the history, and whatever runs beside it, vacuum deletes no file of a version within the retention."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum, run_vacuum
from delta_pyds.storage.base import DirectoryEntry
from delta_pyds.storage.local import LocalStorage
from tests.support.sampling import examples
from tests.support.table_builder import BASE_TIME_MS, TableBuilder
from tests.support.table_writes import read_rows

HOUR = 3_600_000

steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "mark", "remove", "replace", "back", "orphan", "change", "checkpoint"]),
        st.integers(0, 30),  # hours since the step before
        st.integers(
            0, 40
        ),  # hours from the begin of the step to its commit, by which its files and tombstones are older
    ),
    min_size=2,
    max_size=12,
)


class History:
    """A table by steps, each at its time. ``times``: of the versions. ``changes``: the change file of a version."""

    def __init__(self, folder: str) -> None:
        self.table = TableBuilder(
            folder,
            {"id": "long"},
            properties={
                "delta.enableDeletionVectors": "true",
                "delta.enableExpiredLogCleanup": "false",
                "delta.deletedFileRetentionDuration": "interval 20 hours",
            },
        )
        self.now = BASE_TIME_MS
        self.times: list[int] = []
        self.changes: dict[int, str] = {}
        self.gone: list[dict[str, Any]] = []
        self.orphans: dict[str, int] = {}
        self._id = 0
        self._seen: set[Path] = set()
        self.table.create(timestamp_ms=self.now)
        self.times.append(self.now)

    def step(self, kind: str, hours: int, took: int) -> None:
        self.now += hours * HOUR + 1
        begun = self.now - took * HOUR
        live = self.table.active()
        if kind == "checkpoint":
            self.table.checkpoint()
        elif kind == "orphan":
            self._id += 1
            name = f"d/orphan-{self._id}.parquet"
            (self.table.path / "d").mkdir(exist_ok=True)
            (self.table.path / name).write_bytes(b"x")
            self.orphans[name] = begun
        elif (actions := self._actions(kind, live, begun)) is not None:
            version = self.table.commit(actions, timestamp_ms=self.now)
            self.times.append(self.now)
            if kind == "change":
                self.changes[version] = actions[0]["cdc"]["path"]
        for path in self.table.path.rglob("*"):
            if "_delta_log" not in path.parts and path not in self._seen and path.is_file():
                self._seen.add(path)
                self.table.set_mtime(path, begun)

    def _actions(self, kind: str, live: list[dict[str, Any]], begun: int) -> list[Any] | None:
        if kind == "append":
            return [self._file()]
        if kind == "change":
            self._id += 1
            path = self.table.path / "_change_data" / f"cdc-{self._id}.parquet"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x")
            name = path.relative_to(self.table.path).as_posix()
            return [{"cdc": {"path": name, "partitionValues": {}, "size": 1, "dataChange": False}}, self._file()]
        if kind == "back":
            # as a restore does it, of files that may be older than any retention
            if not self.gone or not self.table.data_file(self.gone[-1]).exists():
                return None
            return [self.gone.pop()]
        if not live:
            return None
        add = live[0]
        if kind == "mark":
            remove, new = self.table.delete_rows(add, [len(live) % 3])
            remove["remove"]["deletionTimestamp"] = begun
            return [remove, new]
        self.gone.append(add)
        removal = self.table.remove(add, deletion_timestamp=begun)
        return [removal, self._file()] if kind == "replace" else [removal]

    def _file(self) -> dict[str, Any]:
        self._id += 3
        return self.table.write_file([{"id": self._id + n} for n in range(3)])


class Racing(LocalStorage):
    """Others commit when the root is listed, and when the first file goes."""

    def __init__(self, history: History, first: Any, second: Any) -> None:
        self.history, self.pending = history, [first, second]

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        yield from super().list_directory(directory)
        if len(self.pending) == 2:
            self.history.step(*self.pending.pop(0))

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        if len(self.pending) == 1:
            # right after the START entry
            self.history.table.version += 1
            self.history.times.append(self.history.now)
            os.utime(path, ns=(self.history.now * 1_000_000,) * 2)
            self.history.step(*self.pending.pop(0))


race = st.tuples(st.sampled_from(["append", "mark", "remove", "back"]), st.just(0), st.integers(0, 3))


@settings(deadline=None, max_examples=examples(40))
@given(steps, race, race, st.integers(0, 80), st.booleans(), st.booleans())
def test_no_file_of_a_retained_version_is_deleted(
    history_of: list[Any], first: Any, second: Any, retention_hours: int, lite: bool, races: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(folder)
        for step in history_of:
            history.step(*step)
        now = history.now + HOUR
        cutoff = now - retention_hours * HOUR
        storage = Racing(history, first, second) if races else LocalStorage()
        options = VacuumOptions(retention_hours=retention_hours, check_retention=False, lite=lite, log_entries=races)

        plan = plan_vacuum(storage, folder, options, now_ms=now)
        run_vacuum(plan)

        kept = max((v for v, time_ms in enumerate(history.times) if time_ms <= cutoff), default=0)
        for version in range(kept, history.table.version + 1):
            rows = sorted(row["id"] for row in read_rows(folder, version=version))
            assert rows == sorted(row["id"] for row in history.table.expected_rows(version)), version
        for version, path in history.changes.items():
            assert version <= kept or os.path.exists(f"{folder}/{path}")
        for name, time_ms in history.orphans.items():
            there = os.path.exists(f"{folder}/{name}")
            assert there == (lite or time_ms >= cutoff), name
