"""Spark Declarative Pipelines with delta_pyds installed: a real pipeline, by ``deltapy run -- spark-pipelines run``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import delta_pyds
from tests.support.installed_programs import run_installed
from tests.support.table_builder import TableBuilder

_SPEC = """
name: tables
storage: file://{folder}/storage
configuration: {{spark.sql.shuffle.partitions: "1"}}
libraries: [{{glob: {{include: "definitions/**"}}}}]
"""
_DEFINITIONS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

import delta_pyds

spark = SparkSession.active()
TABLE = "file://{folder}/t"
FILES = "file://{folder}/files"
refusals = []

@dp.materialized_view
def of_parquet():
    return spark.read.format("parquet").load(FILES).union(spark.read.parquet(FILES))

@dp.materialized_view
def by_path():
    return spark.read.format("delta").load(TABLE).union(spark.table(f"delta.`{{TABLE}}`")).where("id > 1")

@dp.materialized_view
def by_sql():
    text = f"SELECT t.id, '{{{{}}}}' AS braces FROM delta.`{{TABLE}}` VERSION AS OF 1 t JOIN by_path USING (id)"
    return spark.sql(text + f" UNION ALL SELECT id, s FROM delta.`{{TABLE}}` WHERE id = 1")

@dp.temporary_view
def events():
    return spark.read.option("versionAsOf", 1).load(TABLE, format="delta")

@dp.table
def streamed():
    return spark.readStream.format("delta").load(TABLE)

dp.create_sink("copy", "delta", {{"path": "file://{folder}/copy"}})

@dp.append_flow(target="copy")
def to_copy():
    return spark.readStream.table("streamed")

def refused(define):
    try:
        define()
    except delta_pyds.UnsupportedOperationError as error:
        refusals.append(error.message)

refused(lambda: dp.create_streaming_table("kept", format="delta"))
refused(lambda: dp.materialized_view(name="kept_too", format="deltapy")(lambda: spark.range(3)))
with open("{folder}/refusals", "w") as file:
    file.write("\\n".join(refusals))
"""
_SQL = "CREATE MATERIALIZED VIEW in_sql AS SELECT max(id) AS last FROM events"


def _rows(folder: Path, table: str) -> list[tuple[object, ...]]:
    found = pq.read_table(folder / "spark-warehouse" / table)
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.one_program_in(4)
@pytest.mark.skipif(importlib.util.find_spec("pyspark.pipelines") is None, reason="Spark 4.0 has no pipelines")
def test_a_pipeline_reads_tables_and_appends_to_sinks(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "s": "string"})
    table.create()
    table.append([{"id": 1, "s": "a"}, {"id": 2, "s": "b"}])
    table.append([{"id": 3, "s": "c"}])
    (tmp_path / "files").mkdir()
    pq.write_table(pq.read_table(next((tmp_path / "t").glob("*.parquet"))), tmp_path / "files" / "one.parquet")
    (tmp_path / "definitions").mkdir()
    (tmp_path / "definitions" / "tables.py").write_text(_DEFINITIONS.format(folder=tmp_path))
    (tmp_path / "definitions" / "more.sql").write_text(_SQL)
    (tmp_path / "spark-pipeline.yml").write_text(_SPEC.format(folder=tmp_path))
    done = run_installed(["spark-pipelines", "run"], tmp_path, timeout=500)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-4000:]}"
    assert len(_rows(tmp_path, "of_parquet")) in (2, 4)
    assert _rows(tmp_path, "by_path") == [(2, "b"), (2, "b"), (3, "c"), (3, "c")]
    assert _rows(tmp_path, "by_sql") == [(1, "a"), (2, "{}"), (2, "{}")]
    assert _rows(tmp_path, "in_sql") == [(2,)]
    assert sorted(delta_pyds.scan(str(tmp_path / "copy")).to_table().column("id").to_pylist()) == [1, 2, 3]
    refusals = (tmp_path / "refusals").read_text().splitlines()
    assert len(refusals) == 2
    assert all("dp.create_sink('events', 'deltapy'" in one for one in refusals)
    assert "the table 'kept' of format delta" in refusals[0]
