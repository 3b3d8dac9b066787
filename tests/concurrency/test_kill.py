"""A writer that dies at any step leaves the old version or the new one, and the next writer goes on."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Iterator
from multiprocessing.context import BaseContext
from pathlib import Path

import pytest

from delta_pyds import verify
from delta_pyds.table.snapshot import load_snapshot
from tests.concurrency.killed_process import run, steps_of
from tests.concurrency.kinds_of_writes import AFTERWARDS, IDS, KINDS, MENDED, PROPERTIES, UPKEEP, used_table
from tests.support.change_feed import applied, bag, change_rows
from tests.support.sampling import sampled
from tests.support.table_writes import read_rows, read_sorted, write_rows

POLICIES: dict[str, dict[str, str]] = {"classic": {}, "v2": {"delta.checkpointPolicy": "v2"}}


@pytest.fixture(scope="module")
def processes() -> Iterator[BaseContext]:
    """New processes that have imported all that a write needs, so that one takes milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.concurrency.kinds_of_writes", "tests.concurrency.preloaded"])
    yield context


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
    exit_code, steps = steps_of(processes, run, str(counting), kind, 0)
    assert exit_code == 0 and len(steps) > 10
    assert read_sorted(counting, "id") == AFTERWARDS[kind]
    outcomes = []
    for number, step in enumerate(steps, start=1):
        table = shutil.copytree(original, tmp_path / f"step{number}")
        exit_code, _ = steps_of(processes, run, str(table), kind, number)
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


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize(
    ("kind", "policy"),
    [("optimize", "classic"), ("vacuum", "v2"), ("vacuum lite", "classic"), ("restore", "v2")],
)
def test_upkeep_killed_at_each_step(processes: BaseContext, tmp_path: Path, kind: str, policy: str) -> None:
    """The table reads as before or as afterwards, and the same verb run again ends as if nothing had happened."""
    original = tmp_path / "original"
    used_table(str(original), {"delta.checkpointInterval": "1", **POLICIES[policy]})
    counting = shutil.copytree(original, tmp_path / "counting")
    exit_code, steps = steps_of(processes, run, str(counting), kind, 0)
    assert exit_code == 0 and len(steps) > 10
    assert read_sorted(counting, "id") == AFTERWARDS[kind]
    assert (data_files(counting), load_snapshot(str(counting)).totals.num_files) == UPKEEP[kind]
    outcomes = []
    for number, step in enumerate(steps, start=1):
        table = shutil.copytree(original, tmp_path / f"step{number}")
        exit_code, _ = steps_of(processes, run, str(table), kind, number)
        assert exit_code == -9, step
        rows = read_sorted(table, "id")
        assert rows in ([1, 2], AFTERWARDS[kind]), step
        assert verify(str(table)).ok, step
        live = load_snapshot(str(table)).totals.num_files
        outcomes.append((rows, live, data_files(table)) == (AFTERWARDS[kind], *reversed(UPKEEP[kind])))
        KINDS[kind](str(table))
        assert read_sorted(table, "id") == AFTERWARDS[kind], step
        assert load_snapshot(str(table)).totals.num_files == UPKEEP[kind][1], step
        assert kind not in ("vacuum", "vacuum lite") or data_files(table) == UPKEEP[kind][0], step
        write_rows(table, IDS, [{"id": 99}])
        assert read_sorted(table, "id") == sorted([*AFTERWARDS[kind], 99]), step
        report = verify(str(table))
        assert report.ok, f"{step}\n{report}"
    assert outcomes == sorted(outcomes) and True in outcomes and False in outcomes


# without vectors, a bin of which a file is gone keeps its old files
LOST_RACES = [(kind, "true") for kind in MENDED] + [(kind, "false") for kind in MENDED if kind != "mended optimize"]


@pytest.mark.one_case_in(7)
@pytest.mark.parametrize(("kind", "vectors"), LOST_RACES)
def test_a_command_killed_at_each_step_of_a_lost_race(
    processes: BaseContext, tmp_path: Path, kind: str, vectors: str
) -> None:
    """Also between its files, the mend and the second attempt: the winners stay, and the command is in or is not."""
    original = tmp_path / "original"
    properties = {
        "delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true",
        "delta.checkpointInterval": "3",
    }  # fmt: skip
    write_rows(original, IDS, [[{"id": 1}], [{"id": 2}]], properties=properties)
    counting = shutil.copytree(original, tmp_path / "counting")
    exit_code, steps = steps_of(processes, run, str(counting), kind, 0)
    assert exit_code == 0 and "before mend" in steps
    states = [[1, 2], *MENDED[kind]]
    assert load_snapshot(str(counting)).version == 3 and read_sorted(counting, "id") == states[-1]
    outcomes = []
    for number, step in sampled(list(enumerate(steps, start=1)), one_in=3):
        table = shutil.copytree(original, tmp_path / f"step{number}")
        exit_code, _ = steps_of(processes, run, str(table), kind, number)
        assert exit_code == -9, step
        version = load_snapshot(str(table)).version
        rows = read_sorted(table, "id")
        assert rows == states[version], step
        outcomes.append(version)
        write_rows(table, IDS, [{"id": 99}])
        assert read_sorted(table, "id") == sorted([*rows, 99]), step
        assert applied([], change_rows(table)) == bag(read_rows(table)), step
        report = verify(str(table))
        assert report.ok, f"{step}\n{report}"
    assert outcomes == sorted(outcomes)


def data_files(table: Path) -> int:
    """The number of data files below the root, named by a commit or not."""
    return len(list(table.rglob("*.parquet"))) - len(list((table / "_delta_log").rglob("*.parquet")))
