"""A writer that dies at any step leaves the old version or the new one, and the next writer goes on."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Iterator
from multiprocessing.context import BaseContext
from pathlib import Path

import pytest

from delta_pyds import verify
from tests.concurrency.killed_process import run
from tests.concurrency.kinds_of_writes import AFTERWARDS, IDS, PROPERTIES
from tests.support.table_writes import read_sorted, write_rows

POLICIES: dict[str, dict[str, str]] = {"classic": {}, "v2": {"delta.checkpointPolicy": "v2"}}


@pytest.fixture(scope="module")
def processes() -> Iterator[BaseContext]:
    """New processes that have imported all that a write needs, so that one takes milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.concurrency.kinds_of_writes", "tests.concurrency.preloaded"])
    yield context


def written(processes: BaseContext, table: Path, kind: str, kill_at: int) -> tuple[int | None, list[str]]:
    """The exit code, and the steps taken by a process that was not killed."""
    ours, theirs = processes.Pipe(duplex=False)
    process = processes.Process(target=run, args=(str(table), kind, kill_at, theirs))
    process.start()
    theirs.close()
    try:
        steps = ours.recv()
    except EOFError:
        steps = []
    process.join()
    return process.exitcode, steps


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        ("append", "classic"),
        ("append", "v2"),
        ("overwrite", "v2"),
        ("replace_rows", "classic"),
        ("delete", "v2"),
        ("delete by rewriting", "classic"),
        ("update", "classic"),
        ("update by rewriting", "v2"),
        ("merge", "classic"),
    ],
)
def test_a_writer_killed_at_each_step(processes: BaseContext, tmp_path: Path, kind: str, policy: str) -> None:
    original = tmp_path / "original"
    properties = {"delta.checkpointInterval": "1", **POLICIES[policy], **PROPERTIES.get(kind, {})}
    write_rows(original, IDS, [{"id": 1}, {"id": 2}], properties=properties)
    counting = shutil.copytree(original, tmp_path / "counting")
    exit_code, steps = written(processes, counting, kind, 0)
    assert exit_code == 0 and len(steps) > 10
    assert read_sorted(counting, "id") == AFTERWARDS[kind]
    outcomes = []
    for number, step in enumerate(steps, start=1):
        table = shutil.copytree(original, tmp_path / f"step{number}")
        exit_code, _ = written(processes, table, kind, number)
        assert exit_code == -9, step
        rows = read_sorted(table, "id")
        assert rows in ([1, 2], AFTERWARDS[kind]), step
        outcomes.append(rows == AFTERWARDS[kind])
        write_rows(table, IDS, [{"id": 99}])
        assert read_sorted(table, "id") == sorted([*rows, 99]), step
        report = verify(str(table))
        assert report.ok, f"{step}\n{report}"
    # the version appears at one step, and never goes again
    assert outcomes == sorted(outcomes) and True in outcomes and False in outcomes
