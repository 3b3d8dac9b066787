"""Processes that change one table at once, some of which are killed: a serial execution, and only lawful refusals.

A seed draws a history; a run takes a few by its commit. ``make test-histories`` runs a thousand. The same again:
``make test-histories HISTORIES=1 DELTA_PYDS_FIRST_HISTORY=17``. The order of the commits differs each time.
"""

from __future__ import annotations

import multiprocessing
import os
import zlib
from collections.abc import Iterator
from multiprocessing.context import BaseContext
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from delta_pyds.table.snapshot import load_snapshot
from tests.concurrency.changing_workload import LAYOUTS
from tests.concurrency.drawn_history import History, run_history
from tests.support import sampling
from tests.support.row_model.model import bag
from tests.support.row_model.steps import BASE, Layout
from tests.support.table_writes import read_rows

HISTORIES = int(os.environ.get("DELTA_PYDS_HISTORIES", "5"))
FIRST = int(os.environ.get("DELTA_PYDS_FIRST_HISTORY", str(zlib.crc32(sampling.seed().encode()) % 1_000_000)))


@pytest.fixture(scope="module")
def processes() -> Iterator[BaseContext]:
    """New processes that have imported all that a writer needs."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.concurrency.changing_process", "tests.stores.preloaded"])
    yield context


@pytest.mark.parametrize("seed", range(FIRST, FIRST + HISTORIES))
def test_a_drawn_history(processes: BaseContext, tmp_path: Path, seed: int) -> None:
    history = History.of(seed)
    print(history)
    print(run_history(history, processes, tmp_path))


@pytest.mark.parametrize("way", LAYOUTS)
def test_four_processes_change_rows(processes: BaseContext, tmp_path: Path, way: str) -> None:
    """So many steps that some of them must be mended."""
    history = History(
        3, "disk", LAYOUTS[way], "none", generated=False, identity=False, checkpoint_interval=10, writers=4, steps=12,
        kills=0, layouts=3, replacements=0, longest_pause_s=0.01,
    )  # fmt: skip
    outcome = run_history(history, processes, tmp_path)
    assert outcome.mends and not outcome.refused
    assert load_snapshot(tmp_path / "table").verify_checksum()


# what deltalake can write
FEATURES = {
    "plain": Layout(),
    "partitioned": Layout(partitioned=True, v2_checkpoints=True),
    "constrained": Layout(constrained=True, partitioned=True),
    "change feed": Layout(change_feed=True, partitioned=True),
}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("features", FEATURES)
def test_two_of_ours_and_two_of_deltalake(processes: BaseContext, tmp_path: Path, features: str) -> None:
    """Each is winner and loser. Ours are never refused."""
    history = History(
        int(os.environ.get("DELTA_PYDS_FIRST_HISTORY", "5")), "disk", FEATURES[features], "none", generated=False,
        identity=False, checkpoint_interval=10, writers=4, steps=8, kills=0, layouts=2, replacements=0,
        longest_pause_s=0.05, by_deltalake=2,
    )  # fmt: skip
    outcome = run_history(history, processes, tmp_path)
    print(outcome)
    assert outcome.mends, "none of our commands lost a race."
    table = deltalake.DeltaTable(tmp_path / "table")
    rows = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
    assert bag(pa.table(rows).to_pylist(), list(BASE)) == bag(read_rows(tmp_path / "table"), list(BASE))
