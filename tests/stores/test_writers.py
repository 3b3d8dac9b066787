"""Eight processes write to one table, and one that is killed at any request leaves the old version or the new one."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from multiprocessing.context import BaseContext

import pytest

from delta_pyds import verify
from delta_pyds.storage.base import Storage
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.snapshot import load_snapshot
from tests.concurrency.killed_process import steps_of
from tests.concurrency.kinds_of_writes import AFTERWARDS, IDS, KINDS, UPKEEP, used_table
from tests.concurrency.test_writers import COMMITS, WRITERS, check, reports_of_processes
from tests.concurrency.workload import create
from tests.stores.killed_process import run
from tests.support.stores import Store
from tests.support.table_writes import read_sorted, write_rows

pytestmark = pytest.mark.usefixtures("environment")


def test_eight_writers(store: Store) -> None:
    table = store.root()
    create(table)
    reports = reports_of_processes(table)
    storage = resolve_storage(table)
    infos = [
        json.loads(storage.read(f"{table}/_delta_log/{version:020d}.json").splitlines()[0])["commitInfo"]
        for version in range(WRITERS * COMMITS + 1)
    ]
    check(table, reports, infos)
    # a few commits each may pass one another by
    assert COMMITS < 50 or any("DELTA_CONCURRENT" in text for report in reports for text in report.refused)
    report = verify(table)
    assert report.ok, str(report)
    assert load_snapshot(table).verify_checksum()


@pytest.fixture(scope="module")
def processes() -> Iterator[BaseContext]:
    """New processes that have imported all that a write needs, so that one takes little time."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["tests.concurrency.kinds_of_writes", "tests.concurrency.preloaded", "tests.stores.preloaded"]
    )
    yield context


def written(processes: BaseContext, store: Store, table: str, kind: str, kill_at: int) -> tuple[int | None, list[str]]:
    return steps_of(processes, run, table, kind, store.environment, kill_at)


def files_below(storage: Storage, directory: str, inner: str = "") -> Iterator[str]:
    for entry in storage.list_directory(f"{directory}/{inner}".rstrip("/")):
        if entry.kind == "directory":
            yield from files_below(storage, directory, f"{inner}{entry.name}/")
        else:
            yield f"{inner}{entry.name}"


def copied(store: Store, table: str) -> str:
    storage, copy = resolve_storage(table), store.root()
    for path in sorted(files_below(storage, table)):
        store.put(f"{copy}/{path}", storage.read(f"{table}/{path}"))
    return copy


@pytest.mark.one_case_in(12)
@pytest.mark.parametrize("kind", ["append", "update by rewriting", "optimize", "vacuum"])
def test_a_writer_killed_at_each_request(processes: BaseContext, store: Store, kind: str) -> None:
    original = store.root()
    properties = {"delta.checkpointInterval": "1", "delta.checkpointPolicy": "v2"}
    if kind in UPKEEP:
        used_table(original, properties)
    else:
        feed = {"delta.enableChangeDataFeed": "true"} if kind.startswith("update") else {}
        write_rows(original, IDS, [{"id": 1}, {"id": 2}], properties=properties | feed)
    counting = copied(store, original)
    exit_code, steps = written(processes, store, counting, kind, 0)
    assert exit_code == 0 and len(steps) > 5
    assert read_sorted(counting, "id") == AFTERWARDS[kind]
    outcomes = []
    for number, step in enumerate(steps, start=1):
        table = copied(store, original)
        exit_code, _ = written(processes, store, table, kind, number)
        assert exit_code == -9, step
        rows, live = read_sorted(table, "id"), load_snapshot(table).totals.num_files
        assert rows in ([1, 2], AFTERWARDS[kind]), step
        outcomes.append((rows, live) != (read_sorted(original, "id"), load_snapshot(original).totals.num_files))
        if kind in UPKEEP:
            KINDS[kind](table)
            rows = read_sorted(table, "id")
            assert rows == AFTERWARDS[kind] and load_snapshot(table).totals.num_files == UPKEEP[kind][1], step
        write_rows(table, IDS, [{"id": 99}])
        assert read_sorted(table, "id") == sorted([*rows, 99]), step
        report = verify(table)
        assert report.ok, f"{step}\n{report}"
    # the version appears at one step, and never goes again
    assert outcomes == sorted(outcomes) and (kind == "vacuum" or {True, False} == set(outcomes))
