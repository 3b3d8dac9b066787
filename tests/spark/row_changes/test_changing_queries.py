"""Writers of one session change rows of one table at once, by queries and by our own evaluator: a serial execution."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.concurrency.changing_process import Changer
from tests.concurrency.changing_queries import querying
from tests.concurrency.changing_workload import LAYOUTS, Report, Workload, run
from tests.concurrency.history_check import TableAt, check_history
from tests.support.row_model.steps import BASE
from tests.support.table_writes import write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

STEPS = 5
SEED = 11


@pytest.mark.parametrize("way", LAYOUTS)
def test_queries_and_the_core_change_rows(spark: SparkSession, tmp_path: Path, way: str) -> None:
    layout, table = LAYOUTS[way], tmp_path / "table"
    write_rows(table, BASE, [], partition_by=(("p",),), properties=layout.properties)
    changes = [querying(spark, table), querying(spark, table), Changer(str(table))]
    # the core is quicker
    steps = [STEPS, STEPS, 10 * STEPS]
    workload, reports = Workload(SEED, layouts=3), dict[int, Report]()

    def write(n: int) -> None:
        reports[n] = run(workload, n, range(steps[n]), changes[n])

    threads = [threading.Thread(target=write, args=(n,)) for n in range(len(changes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == len(changes)

    log = check_history(TableAt(str(table)), layout, workload, list(reports.values()))
    assert not any(report.refused for report in reports.values()), "a writer was turned away."
    assert any(commit["numMends"] and commit["writer"] < 2 for commit in log), "no query was mended: there was no race."
