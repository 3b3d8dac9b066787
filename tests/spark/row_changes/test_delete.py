"""Delete, by every condition that Spark evaluates: what is left is what Spark's own filter leaves, in a sound table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds.commands.row_changes.result import RowChangeResult
from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.spark.row_changes.delete import delete_rows
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.table.snapshot import load_snapshot
from tests.support.row_changes import CHANGES, VECTORS, handle, small_table
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = [pytest.mark.one_test_in(6), pytest.mark.usefixtures("others")]

SCHEMA = {"id": "long", "s": "string", "d": "double", "n": {"x": "long"}, "a.b": "long", "p": "string"}


def made(path: Path, properties: dict[str, str] | None = None, **options: Any) -> TableBuilder:
    """Two files of ten rows: ids, texts with nulls, NaN, a struct, a name with a dot, one deleted row if vectors."""
    table = small_table(path, SCHEMA, properties or {}, **options)
    for start in (0, 10):
        add, *_ = table.append([row(start + i) for i in range(10)])
        if properties == VECTORS:
            table.delete(add, [9])
    return table


def row(i: int) -> dict[str, Any]:
    return {
        "id": i,
        "s": None if i % 5 == 0 else f"s{i}",
        "d": float("nan") if i % 4 == 0 else i / 2,
        "n": {"x": i} if i % 3 else None,
        "a.b": i * 10,
        "p": "p",
    }


def check(spark: SparkSession, table: TableBuilder, condition: Column | str | None, **options: Any) -> RowChangeResult:
    """Delete, and compare with what Spark's own evaluation of the condition leaves of the same rows."""
    frame = delta_pyds.read(spark, table.path)
    given = F.lit(True) if condition is None else F.expr(condition) if isinstance(condition, str) else condition
    told = frame.alias(options.get("alias") or "t").select("*", given.cast("boolean").alias("leaves")).collect()
    expected = sorted(repr(tuple(r)[:-1]) for r in told if not r["leaves"])
    result = delete_rows(handle(spark, table, **options), condition)
    assert sorted(repr(tuple(r)) for r in delta_pyds.read(spark, table.path).collect()) == expected
    assert result.num_deleted_rows == result.num_affected_rows == len(told) - len(expected)
    delta_pyds.verify(str(table.path)).raise_for_errors()
    return result


CONDITIONS: list[Callable[[], Column | str | None]] = [
    lambda: "id > 3 AND s LIKE 's1%'",
    lambda: "s = 's1' OR s IS NULL",
    lambda: "NOT (s = 's1')",
    lambda: "d = double('NaN')",
    lambda: "d > 4",
    lambda: "n.x % 2 = 0",
    lambda: "`a.b` = 30 OR ID = 5",
    lambda: "id IN (SELECT id FROM others)",
    lambda: "id NOT IN (SELECT id FROM others WHERE id IS NOT NULL)",
    lambda: "id < 15 AND id = (SELECT max(id) FROM others)",
    lambda: "upper(s) = 'S7' AND length(s) + 1 = 3",
    lambda: "aggregate(sequence(1, 3), 0, (a, b) -> a + b) = id",
    lambda: (F.col("id") % 2 == 0) & F.col("s").isNotNull(),
    lambda: F.udf(lambda i: i % 7 == 0, "boolean")("id"),
    lambda: (F.col("id") < 5) & F.udf(lambda i: i % 2 == 0, "boolean")("id"),
    lambda: F.expr("hash(id) % 3 = 0"),
    lambda: "true",
    lambda: "CAST(null AS boolean)",
    lambda: None,
]


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize("number", range(len(CONDITIONS)))
def test_rows_for_which_the_condition_is_true_leave(spark: SparkSession, tmp_path: Path, number: int) -> None:
    result = check(spark, made(tmp_path / "t", VECTORS), CONDITIONS[number]())
    assert result.place.where_run == "spark"


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("engine", ["auto", "tasks"])
@pytest.mark.parametrize("properties", [{}, VECTORS, CHANGES], ids=["rewritten", "vectors", "change feed"])
def test_our_own_evaluator_does_the_same(
    spark: SparkSession, tmp_path: Path, engine: str, properties: dict[str, str]
) -> None:
    result = check(spark, made(tmp_path / "t", properties), F.col("id").isin(3, 15) & F.col("s").isNotNull(),
                   engine=engine)  # fmt: skip
    assert result.place.where_run == ("process" if engine == "auto" else "tasks")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "properties",
    [{}, CHANGES, {**VECTORS, **CHANGES}, {"delta.columnMapping.mode": "name"}, {"delta.columnMapping.mode": "id"}],
    ids=["plain", "change feed", "vectors and feed", "names", "ids"],
)
@pytest.mark.parametrize("partitioned", [False, True])
def test_tables_of_every_kind(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], partitioned: bool
) -> None:
    table = made(tmp_path / "t", properties, partition_columns=["p"] if partitioned else [])
    check(spark, table, "t.id % 3 = 1 AND t.p IN (SELECT min('p') FROM others)", alias="t")
    if "delta.enableChangeDataFeed" in properties:
        feed = spark.read.format("deltapy").option("readChangeFeed", "true").option("startingVersion", 3)
        changes = feed.load(str(table.path)).select("id", "_change_type").collect()
        assert sorted(changes) == [(i, "delete") for i in range(1, 20, 3)]


def test_row_ids_of_rows_that_stay_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(
        spark.range(20).withColumn("s", F.lit("x")).coalesce(1),
        tmp_path / "t",
        properties={"delta.enableRowTracking": "true"},
    )
    ids = {r["id"]: r["_row_id"] for r in delta_pyds.read(spark, tmp_path / "t", row_ids=True).collect()}
    target = TableHandle(spark, str(tmp_path / "t"), engine="spark")
    delete_rows(target, F.expr("hash(s) IS NOT NULL AND id IN (SELECT id FROM others)"))
    left = {r["id"]: r["_row_id"] for r in delta_pyds.read(spark, tmp_path / "t", row_ids=True).collect()}
    assert left == {i: row_id for i, row_id in ids.items() if i not in (3, 4)}
    delta_pyds.verify(str(tmp_path / "t")).raise_for_errors()


def test_a_random_condition_is_asked_once(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t", VECTORS)
    before = delta_pyds.read(spark, table.path).count()
    result = delete_rows(handle(spark, table), "rand() < 0.5 AND id < 100")
    assert result.num_deleted_rows == before - delta_pyds.read(spark, table.path).count()
    delta_pyds.verify(str(table.path)).raise_for_errors()


def test_a_variable_in_a_text_is_what_spark_puts_there(spark: SparkSession, tmp_path: Path) -> None:
    """Inside of quotes too, and with words of its own: no part of such a text is known before."""
    spark.conf.set("deltapy.wanted", "s7' OR s = 's8")
    try:
        for n, engine in enumerate(("auto", "spark")):
            condition = "id > 1 AND s = '${deltapy.wanted}' AND id < 8"
            result = check(spark, made(tmp_path / f"{n}"), condition, engine=engine)
            assert (result.num_deleted_rows, result.place.where_run) == (1, "spark")
            condition = "id < 5 AND s = '${deltapy.wanted}'"
            assert check(spark, made(tmp_path / f"more{n}"), condition, engine=engine).num_deleted_rows == 1
    finally:
        spark.conf.unset("deltapy.wanted")


def test_a_function_of_a_schema_that_is_called_as_the_table(spark: SparkSession, tmp_path: Path) -> None:
    result = check(spark, made(tmp_path / "t"), "builtin.abs(builtin.id) = 3", alias="builtin")
    assert (result.num_deleted_rows, result.place.where_run) == (1, "spark")


def test_the_session_says_what_a_timestamp_is(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "at": "timestamp"})
    table.create()
    noon = dt.datetime(2024, 7, 1, 12, tzinfo=dt.timezone.utc)
    table.append([{"id": i, "at": noon + dt.timedelta(hours=i)} for i in range(10)])
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        for engine in ("auto", "spark"):
            target = handle(spark, table, time_zone="Asia/Tokyo", engine=engine)
            # nine hours ahead: the first rows alone are of that evening
            condition = "at < '2024-07-01 22:30:00'" if engine == "auto" else "date_format(at, 'HH') = '23'"
            delete_rows(target, condition)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert [r["id"] for r in delta_pyds.read(spark, table.path).orderBy("id").collect()] == list(range(3, 10))


def test_a_wrong_condition_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for wrong in ("nosuch = 1", "id +", "max(id) > 1", "raise_error('no') IS NULL"):
        with pytest.raises(PySparkException):
            delete_rows(handle(spark, table, engine="auto"), wrong)
    assert load_snapshot(table.path).version == 2
    with pytest.raises(UnsupportedOperationError, match="our evaluator does not support"):
        delete_rows(handle(spark, table, engine="process"), "hash(id) = 1")


def test_nothing_is_committed_where_no_row_leaves(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    for engine in ("auto", "spark"):
        for none in ("id > 1000", "id < 5 AND d = 100.5"):
            result = delete_rows(handle(spark, table, engine=engine), none)
            assert (result.version, result.num_affected_rows) == (None, 0)
    assert load_snapshot(table.path).version == 2


def test_only_files_that_may_have_such_rows_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    result = check(spark, table, "t.id BETWEEN 12 AND 13 AND hash(t.s) IS NOT NULL", alias="t")
    assert (result.num_files_read, result.num_deleted_rows) == (1, 2)
    other = (F.col("t.id") == 3) & F.udf(lambda i: i is not None, "boolean")("id")
    assert check(spark, table, other, alias="t").num_files_read == 1


def test_without_ansi_mode_files_stay_whose_rows_are_compared_as_texts(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    for n in (1, 5):
        table.append([{"id": n}])
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        # '1' is not '01'; as a number it is
        check(spark, table, "id NOT IN ('01') AND rand() < 2")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_an_append_only_table_keeps_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path / "t", {"delta.appendOnly": "true"})
    with pytest.raises(UserError, match="append-only"):
        delete_rows(handle(spark, table), "id = 1")
