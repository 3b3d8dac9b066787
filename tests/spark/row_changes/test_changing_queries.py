"""Writers of one session change rows of one table at once, by queries and by our own evaluator: a serial execution."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_pyds import verify
from delta_pyds.table.snapshot import load_snapshot
from tests.concurrency.changing_process import changer
from tests.concurrency.changing_queries import querying
from tests.concurrency.changing_workload import LAYOUTS, Report, overlooked, replay, run
from tests.support.change_feed import applied, bag, change_rows
from tests.support.row_model.harness import read_all
from tests.support.row_model.steps import BASE
from tests.support.table_writes import write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

STEPS = 5
SEED = 11
LAYOUTS_WEIGHT = 3


@pytest.mark.parametrize("way", LAYOUTS)
def test_queries_and_the_core_change_rows(spark: SparkSession, tmp_path: Path, way: str) -> None:
    layout, table = LAYOUTS[way], tmp_path / "table"
    write_rows(table, BASE, [], partition_by=(("p",),), properties=layout.properties)
    changes = [querying(spark, table), querying(spark, table), changer(table)]
    # the core is quicker
    steps = [STEPS, STEPS, 3 * STEPS]
    reports: dict[int, Report] = {}

    def write(n: int) -> None:
        reports[n] = run(n, steps[n], SEED, changes[n], layouts=LAYOUTS_WEIGHT)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(len(changes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == len(changes)

    versions = load_snapshot(str(table)).version
    model, told = replay(table, layout, versions, SEED, layouts=LAYOUTS_WEIGHT)
    rows = read_all(table, row_ids=True)
    assert bag(rows, list(BASE)) == bag(model.values(), list(BASE)), "the rows are of no serial order of the commits."
    assert len({row["_row_id"] for row in rows}) == len(rows)
    assert applied([], change_rows(table)) == bag(model.values())
    acknowledged = sorted(d["version"] for report in reports.values() for d in report.done if d["version"] is not None)
    assert acknowledged == list(range(1, versions + 1)), "a commit was lost, or told of twice."
    assert overlooked(table, SEED, told, layouts=LAYOUTS_WEIGHT) == []
    assert not any(report.refused for report in reports.values()), "a writer was turned away."
    assert any(commit["numMends"] and commit["writer"] < 2 for commit in told), (
        "no query was mended: there was no race."
    )
    report = verify(str(table))
    assert report.findings == (), str(report)
    assert load_snapshot(str(table)).verify_checksum()
