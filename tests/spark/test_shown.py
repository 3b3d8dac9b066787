"""What a user of Spark sees of our work: jobs by their names in the UI, a table as a table in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import OptionError, TableNotFoundError
from tests.support.table_writes import write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_jobs_have_names_while_they_run(spark: SparkSession, tmp_path: Path) -> None:
    """The user's own description comes back, and stands before ours until then."""
    for n in range(2):
        write_rows(tmp_path, {"id": "long"}, [{"id": n}])
    context = spark.sparkContext
    steps: list[delta_pyds.ProgressStep] = []
    context.setJobDescription("nightly")
    try:
        with delta_pyds.progress_to(steps.append):
            DeltaTable.forPath(spark, str(tmp_path), engine="tasks").optimize().executeCompaction()
        DeltaTable.forPath(spark, str(tmp_path), engine="spark").delete("id = 1")
        assert context.getLocalProperty("spark.job.description") == "nightly"
    finally:
        context.setLocalProperty("spark.job.description", None)
    assert [(s.name, s.done) for s in steps if s.ended] == [("optimize", 1)]
    scala = context._jsc.sc()
    scala.listenerBus().waitUntilEmpty()
    jobs = scala.statusStore().jobsList(None)
    described = [jobs.apply(n).description() for n in range(jobs.size())]
    names = {found.get() for found in described if found.isDefined()}
    assert f"nightly: delta_pyds: optimize of {tmp_path}" in names
    assert f"nightly: delta_pyds: rows that change in {tmp_path}" in names


def test_a_notebook_shows_a_table(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "t", {"id": "long"}, [{"id": 1}])
    table = DeltaTable.forPath(spark, str(tmp_path / "t"))
    shown = table._repr_html_()
    assert '<th scope="row">version</th><td class="n">0</td>' in shown and "id bigint" in shown
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").unlink()
    assert "cannot be opened" in table._repr_html_()
    result = delta_pyds.write(spark.range(2), str(tmp_path / "u"))
    assert '<th scope="row">rows</th><td class="n">2</td>' in result._repr_html_()


def test_sql_has_functions_over_a_tables_log(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for n in range(3):
        delta_pyds.write(spark.range(n, n + 1).selectExpr("id", "id % 2 AS p"), path, mode="append", partition_by="p")
    table = DeltaTable.forPath(spark, path)
    delta_pyds.register_functions(spark)
    delta_pyds.register_functions(spark)

    assert spark.sql(f"SELECT * FROM delta_history('{path}')").collect() == table.history().collect()
    assert spark.sql(f"SELECT * FROM delta_detail('{path}')").collect() == table.detail().collect()
    assert spark.sql(f"SELECT * FROM delta_history('{path}')").dtypes == table.history().dtypes
    joined = "SELECT h.version, d.numFiles FROM (SELECT :path AS p) t, LATERAL delta_history(t.p, 2) h"
    joined += ", LATERAL delta_detail(t.p) d ORDER BY version"
    assert [tuple(row) for row in spark.sql(joined, {"path": path}).collect()] == [(1, 3), (2, 3)]
    with pytest.raises(PySparkException, match="there is no directory") as raised:
        spark.sql(f"SELECT * FROM delta_detail('{path}-nothing')").collect()
    assert type(delta_pyds.error_of(raised.value)) is TableNotFoundError
    for text in ("delta_history(NULL)", "delta_history('t')", f"delta_history('{path}', 'x')"):
        with pytest.raises(PySparkException) as raised:
            spark.sql(f"SELECT * FROM {text}").collect()
        assert type(delta_pyds.error_of(raised.value)) is OptionError, text
