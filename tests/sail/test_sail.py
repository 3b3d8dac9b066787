"""Another engine under Spark Connect: what it reads is right, and it does nothing that it cannot be trusted with."""

from __future__ import annotations

import datetime as dt
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import UnsupportedOperationError
from tests.support.limits import ONLY_A_HANG_S
from tests.support.table_builder import TableBuilder

ROOT = Path(__file__).parents[2]
SCHEMA = {"id": "long", "x": "double", "at": "timestamp", "p": "string"}
ROWS = [
    {"id": i, "x": float("nan") if i % 3 else i / 2, "at": dt.datetime(2024, 1, i, tzinfo=dt.timezone.utc), "p": "a b"}
    for i in range(1, 7)
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [str(Path(sys.executable).with_name("sail")), "spark", "server", "--port", str(port)],
        cwd=tmp_path_factory.mktemp("sail"),
        env={**os.environ, "PYTHONPATH": str(ROOT), "TZ": "UTC"},
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + ONLY_A_HANG_S
        while True:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None and time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.1)
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        yield session
        session.stop()
    finally:
        server.terminate()
        server.wait(ONLY_A_HANG_S)


@pytest.fixture(params=["plain", "partitioned"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> TableBuilder:
    """Three files; the partitioned table has a deletion vector."""
    columns = ["p"] if request.param == "partitioned" else []
    properties = {"delta.enableDeletionVectors": "true"} if columns else {}
    made = TableBuilder(tmp_path / "t", SCHEMA, partition_columns=columns, properties=properties)
    made.create()
    adds = [made.append(ROWS[start : start + 2])[0] for start in (0, 2, 4)]
    if columns:
        made.delete(adds[0], [1])
    return made


def rows_of(rows: Any) -> list[tuple[str, ...]]:
    return sorted(tuple(map(repr, (r["id"], r["x"], r["p"]))) for r in rows)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_every_row_is_read(spark: SparkSession, table: TableBuilder, scheme: str) -> None:
    path = f"{scheme}{table.path}"
    expected = rows_of(table.expected_rows())
    frame = delta_pyds.read(spark, path)
    assert rows_of(row.asDict() for row in frame.collect()) == expected
    assert frame.count() == len(expected)
    assert frame.filter("id > 4").select("p").count() == 2
    assert frame.join(frame.select("id"), "id").count() == len(expected)
    assert delta_pyds.sql(spark, f"SELECT id FROM delta.`{path}` WHERE x > 1").count() == len(
        expected
    )  # NaN is largest
    assert spark.read.format("deltapy").load(path).count() == len(expected)
    assert delta_pyds.read(spark, path, where="at >= '2024-01-05'", columns="id").count() == 2
    assert [f.name for f in delta_pyds.read(spark, path, row_position=True).schema][-1] == "_row_position"
    with pytest.raises(Exception, match="Leave out the schema"):
        spark.read.format("deltapy").schema("id int").load(path).collect()


def test_why_its_own_parquet_reader_is_not_taken_is_said(spark: SparkSession, table: TableBuilder) -> None:
    report = delta_pyds.explain(delta_pyds.read(spark, f"file://{table.path}"))
    assert report.engine == "arrow" and "does not read Parquet files as Spark does" in report.reasons[0]
    with pytest.raises(UnsupportedOperationError, match="does not read Parquet files as Spark does"):
        delta_pyds.read(spark, f"file://{table.path}", engine="native")


def test_rows_change_by_our_own_evaluator(spark: SparkSession, table: TableBuilder) -> None:
    target = DeltaTable.forPath(spark, f"file://{table.path}")
    target.delete("id = 1")
    merge(spark, target)
    found = sorted(row["id"] for row in delta_pyds.read(spark, str(table.path)).collect())
    assert found == [*sorted({row["id"] for row in table.expected_rows()} - {1, 3}), 9]
    delta_pyds.verify(str(table.path)).raise_for_errors()


def merge(spark: SparkSession, target: DeltaTable) -> None:
    source = spark.createDataFrame([(3, "new"), (9, "new")], "id long, p string")
    target.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete().whenNotMatchedInsert(
        values={"id": "s.id", "p": "s.p"}
    ).execute()


COMMANDS: dict[str, Callable[[SparkSession, str], Any]] = {
    "delete": lambda spark, path: DeltaTable.forPath(spark, path, engine="spark").delete("id = 5"),
    "unknown function": lambda spark, path: DeltaTable.forPath(spark, path).delete("levenshtein(p, 'a') >= 0"),
    "update": lambda spark, path: DeltaTable.forPath(spark, path, engine="spark").update("id = 5", {"id": "7"}),
    "merge": lambda spark, path: merge(spark, DeltaTable.forPath(spark, path, engine="spark")),
    "append": lambda spark, path: delta_pyds.write(spark.range(3), path, mode="append"),
    "format": lambda spark, path: spark.range(3).write.format("deltapy").mode("append").save(path),
    "replaceWhere": lambda spark, path: delta_pyds.write(
        spark.sql("SELECT 5L AS id, 'a b' AS p"), path, mode="overwrite", replace_where="id > 4"
    ),
    "replaceUsing": lambda spark, path: delta_pyds.write(
        spark.sql("SELECT 5L AS id, 'a b' AS p"), path, mode="overwrite", options={"replaceUsing": "id"}
    ),
    "INSERT": lambda spark, path: delta_pyds.sql(spark, f"INSERT INTO delta.`{path}` (id) VALUES (7)"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_needs_spark_is_refused_and_commits_nothing(
    spark: SparkSession, table: TableBuilder, command: str
) -> None:
    log = sorted(os.listdir(table.log_path))
    with pytest.raises(Exception, match="Apache Spark") as raised:
        COMMANDS[command](spark, f"file://{table.path}")
    assert isinstance(delta_pyds.error_of(raised.value), UnsupportedOperationError), raised.value
    assert sorted(os.listdir(table.log_path)) == log


def test_a_time_zone_that_a_task_does_not_know_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t", {"id": "long", "at": "timestamp"}, partition_columns=["at"])
    made.create()
    add, *_ = made.append([{"id": 1, "at": dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)}])
    add["add"]["partitionValues"]["at"] = "2024-01-01 00:00:00"
    made.commit([add])
    with pytest.raises(Exception, match='option\\("timeZone"'):
        spark.read.format("deltapy").load(str(made.path)).collect()
    assert delta_pyds.read(spark, str(made.path)).count() == 1
