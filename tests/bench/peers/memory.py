"""Peak memory of the driver, the planner and the workers: each work by each side in a session of its own.

It runs without a session beside it, so the tables are made before (see ``prepare``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.measure import Side, say
from tests.bench.peers import tpch
from tests.bench.peers.changes import DELETE, MERGE
from tests.bench.peers.goals import (
    AUTO,
    BY_SPARK,
    DRAINED,
    FORMAT,
    MINIMAL,
    PARQUET,
    PLAN_ONE_FILE,
    READ,
    REFERENCE,
    WRITE_PARQUET,
)
from tests.bench.peers.maintenance_tables import table_and_inventory
from tests.bench.peers.many_files import table_of
from tests.bench.peers.planning import key_of
from tests.bench.peers.processes import ROLES
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.row_changes import with_vectors
from tests.bench.peers.settings import CHECKOUT, PeerSettings
from tests.bench.tables import data_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class _Work:
    """``work`` as goals name it; ``arguments`` of the process; the pairs that are compared."""

    work: str
    what: str
    sides: tuple[str, ...]
    pairs: tuple[Pair, ...]
    arguments: dict[str, Any] = field(default_factory=dict)


def prepare(spark: SparkSession, settings: PeerSettings) -> None:
    """The tables that only Spark can make."""
    tpch.table(spark, settings, settings.makers[0], "lineitem")
    tpch.table(spark, settings, settings.makers[0], "customer")
    for table in _changed_tables(settings):
        with_vectors(settings.data, table)


def _changed_tables(settings: PeerSettings) -> tuple[Path, Path]:
    """One to change, and a small one to warm up with."""
    sizes = (settings.change_rows, settings.change_files), (10_000, 1)
    large, small = (data_table(settings.data, *size) for size in sizes)
    return large, small


def memory(settings: PeerSettings, results: Results) -> None:
    """For each work: what all processes take more at its peak, and the peak of each kind of process."""
    for each in _works(settings):
        added = {side: Side() for side in each.sides}
        roles = {role: {side: Side() for side in each.sides} for role in ROLES}
        say(f"memory of {each.what}")
        for _ in range(settings.memory_rounds):
            for side in each.sides:
                measured = _measure({**each.arguments, "side": side})
                added[side].peak_mb.append(measured["added"])
                for role in ROLES:
                    roles[role][side].peak_mb.append(measured["roles"][role])
                say(f"  {side}: {measured['added']:.0f} MB more")
        results.add(each.work, f"{each.what}: memory that it takes, all processes", added, each.pairs, "MB")
        for role, sides in roles.items():
            results.add("memory", f"{each.what}: peak of {role}", sides, each.pairs, "MB")


def _works(settings: PeerSettings) -> list[_Work]:
    size = max(settings.planning_files)
    folder = tpch.generated(settings, "lineitem").parent
    made = folder.parent / settings.makers[0]
    common = {"data": str(settings.data), "key": 0, "warm_up_key": 0}
    works = [
        _Work(
            "planning", f"planning, {size:,} files",
            (READ, FORMAT, REFERENCE, PLAN_ONE_FILE),
            (Pair(READ, REFERENCE, PLAN_ONE_FILE), Pair(FORMAT, REFERENCE, PLAN_ONE_FILE)),
            {**common, "work": "planning", "table": str(table_of(settings, size)), "key": key_of(size),
             "warm_up": str(table_of(settings, 10)), "warm_up_key": key_of(10)},
        ),
        _Work(
            "memory", "full scan of lineitem",
            (READ, FORMAT, REFERENCE, PARQUET, MINIMAL),
            (Pair(READ, REFERENCE, PARQUET), Pair(FORMAT, REFERENCE, MINIMAL)),
            {**common, "work": "full scan", "table": str(made / "lineitem"), "warm_up": str(made / "customer")},
        ),
        _Work(
            "memory", "write of lineitem",
            (FORMAT, REFERENCE, WRITE_PARQUET, DRAINED),
            (Pair(FORMAT, REFERENCE, WRITE_PARQUET), Pair(FORMAT, DRAINED)),
            {**common, "work": "write", "table": str(folder / "lineitem.parquet"),
             "warm_up": str(folder / "customer.parquet")},
        ),
    ]  # fmt: skip
    return [*works, *_changes(settings), _vacuum(settings)][: settings.memory_works]


def _vacuum(settings: PeerSettings) -> _Work:
    (large, listing, _), (small, its_listing, _) = (
        table_and_inventory(settings, size) for size in (max(settings.planning_files), 100)
    )
    arguments = {
        "data": str(settings.data), "work": "vacuum planning", "key": 0, "warm_up_key": 0,
        "table": f"{large}\n{listing}", "warm_up": f"{small}\n{its_listing}",
    }  # fmt: skip
    what = f"vacuum planning, {max(settings.planning_files):,} files, the listing given"
    return _Work("vacuum planning", what, (AUTO, REFERENCE), (Pair(AUTO, REFERENCE),), arguments)


def _changes(settings: PeerSettings) -> Iterator[_Work]:
    sides = (AUTO, BY_SPARK, REFERENCE)
    pairs = Pair(AUTO, REFERENCE), Pair(BY_SPARK, REFERENCE)
    for change, vectors in ((DELETE, True), (MERGE, True), (MERGE, False)):
        large, small = (with_vectors(settings.data, t) if vectors else t for t in _changed_tables(settings))
        arguments = {
            "data": str(settings.data), "work": "row changes", "change": change.name,
            "table": str(large), "key": settings.change_rows, "warm_up": str(small), "warm_up_key": 10_000,
        }  # fmt: skip
        what = f"{change.name}, {'with deletion vectors' if vectors else 'by rewriting'}"
        yield _Work("row changes", what, sides, pairs, arguments)


def _measure(arguments: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.peers.memory_process", json.dumps(arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=CHECKOUT)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
