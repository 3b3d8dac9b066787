"""Planning a command by Spark's query opens no data file; a file that Spark's reader cannot read is still changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import RowChangeResult
from delta_pyds.spark.native.read import SPARK_ERRORS
from delta_pyds.spark.row_changes import apply
from delta_pyds.spark.row_changes.delete import delete_rows
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.merge import merge_rows
from delta_pyds.spark.row_changes.update import update_rows
from delta_pyds.storage.local import LocalStorage
from tests.support.row_changes import VECTORS, handle, small_table
from tests.support.table_builder import TableBuilder

Command = Callable[[TableHandle], RowChangeResult]


@pytest.fixture(autouse=True)
def format_registered(spark: SparkSession) -> None:
    delta_pyds.register(spark)


def merge(target: TableHandle) -> RowChangeResult:
    source = target.spark.createDataFrame([(3, 30), (100, 1000)], "id long, c long")
    clauses = [
        MergeClause("matched", "update", None, {"c": "s.c"}),
        MergeClause("not_matched", "insert", None, {"id": "s.id", "c": "s.c"}),
    ]
    # the keys rule no file out: those files would be checked
    return merge_rows(target, source.alias("s"), "t.id + 0 = s.id", clauses)


COMMANDS = pytest.mark.parametrize(
    ("command", "rows"),
    [
        pytest.param(lambda target: delete_rows(target, "id = 3"), {3: None}, id="delete"),
        pytest.param(lambda target: update_rows(target, "id = 3", {"c": "id * 10"}), {3: 30}, id="update"),
        pytest.param(merge, {3: 30, 100: 1000}, id="merge"),
    ],
)


@COMMANDS
def test_planning_opens_no_data_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command, rows: dict[int, int | None]
) -> None:
    table = small_table(tmp_path / "t", {"id": "long", "c": "long"}, VECTORS)
    for start in (0, 10, 20):
        table.append([{"id": start + i, "c": 0} for i in range(10)])
    opened: list[str] = []
    planned: list[list[str]] = []
    parquet_source, collected = LocalStorage.parquet_source, apply.collected

    def recorded(self: LocalStorage, path: str, *args: Any, **options: Any) -> Any:
        opened.append(path)
        return parquet_source(self, path, *args, **options)

    def run(*args: Any) -> Any:
        planned.append(list(opened))
        return collected(*args)

    monkeypatch.setattr(LocalStorage, "parquet_source", recorded)
    monkeypatch.setattr(apply, "collected", run)
    command(handle(spark, table, alias="t"))
    assert planned[0] == []
    assert content(spark, table) == expected(30, rows)


@COMMANDS
def test_a_file_that_only_the_python_source_reads_is_changed(
    spark: SparkSession, tmp_path: Path, command: Command, rows: dict[int, int | None]
) -> None:
    table = small_table(tmp_path / "t", {"id": "long", "c": "long"}, {})
    data = pa.table({"id": pa.array(range(10)), "c": pa.array([0] * 10)})
    pq.write_table(data, table.path / "x.parquet", compression="brotli")
    table.commit([table.add("x.parquet", size=(table.path / "x.parquet").stat().st_size)])
    with pytest.raises(SPARK_ERRORS, match="FAILED_READ_FILE"):
        delta_pyds.read(spark, str(table.path), engine="native").collect()
    command(handle(spark, table, alias="t"))
    assert content(spark, table) == expected(10, rows)


def test_an_error_of_a_condition_is_not_tried_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small_table(tmp_path / "t", {"id": "long", "c": "long"}, {})
    table.append([{"id": 1, "c": 0}])
    runs: list[Any] = []
    collected = apply.collected
    monkeypatch.setattr(apply, "collected", lambda *args: runs.append(args) or collected(*args))
    with pytest.raises(SPARK_ERRORS, match="no such row"):
        delete_rows(handle(spark, table), "raise_error('no such row') = id")
    assert len(runs) == 1


def content(spark: SparkSession, table: TableBuilder) -> dict[int, int]:
    read = delta_pyds.read(spark, str(table.path), engine="arrow").collect()
    rows = {row["id"]: row["c"] for row in read}
    assert len(rows) == len(read)
    return rows


def expected(count: int, rows: dict[int, int | None]) -> dict[int, int]:
    changed = {**dict.fromkeys(range(count), 0), **rows}
    return {id_: value for id_, value in changed.items() if value is not None}
