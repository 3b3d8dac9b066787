"""The parts of native reads that Comet takes: plans, rows, errors and what ``explain`` says."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds.spark.native import parts as native_parts
from delta_pyds.spark.native.vectors import ROW
from delta_pyds.spark.native.word_join import require, without_deleted, word_table
from delta_pyds.table.scan.read_report import Acceleration
from tests.support.frames import native, rows
from tests.support.table_builder import TableBuilder, build

VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
CONVERT, LOCAL_TABLES = "spark.comet.convert.parquet.enabled", "spark.comet.exec.localTableScan.enabled"
ROWS = 200
GONE = [1, 5, 64, 199]


@pytest.fixture
def changed(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Sets a setting until the test ends."""
    before: dict[str, str | None] = {}

    def change(key: str, value: str) -> None:
        before.setdefault(key, spark.conf.get(key, None))
        spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def table_of(path: Path, lengths: list[int], *, properties: Any = None, partitioned: bool = False) -> TableBuilder:
    """Files with vectors, of sizes that follow the lengths of their texts, and a last file without one."""
    columns = ["part"] if partitioned else []
    table = TableBuilder(
        path,
        {"id": "long", "d": "double", "text": "string", "part": "string"},
        partition_columns=columns,
        properties={**VECTORS, **(properties or {})},
    )
    table.create()
    for number, length in enumerate([*lengths, 9]):
        start = number * ROWS
        values = [{"id": start + n, "d": n / 4, "text": "x" * length, "part": "ab"[n % 2]} for n in range(ROWS)]
        [add, *_] = table.append(values)
        if number < len(lengths):
            table.commit(table.delete_rows(add, [n for n in GONE if n < ROWS // (2 if partitioned else 1)]))
    return table


def taken(frame: DataFrame) -> tuple[int, int]:
    """The number of Comet's scans in the plan, and of all scans."""
    found = acceleration(frame)
    return found.num_accelerated, found.num_scans


def acceleration(frame: DataFrame) -> Acceleration:
    from delta_pyds.spark.native.comet import acceleration

    return acceleration(frame)


def whole_plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def sums(frame: DataFrame) -> DataFrame:
    return frame.filter("d >= 1").groupBy("text").agg(F.count("*"), F.sum("id"), F.sum("d"))


def model(table: TableBuilder) -> list[tuple[Any, ...]]:
    found: dict[str, list[Any]] = {}
    for row in table.expected_rows():
        if row["d"] >= 1:
            sums = found.setdefault(row["text"], [0, 0, 0.0])
            for n, value in enumerate((1, row["id"], row["d"])):
                sums[n] += value
    return sorted(((text, *values) for text, values in found.items()), key=repr)


def stays_in_comet(frame: DataFrame) -> bool:
    """Whether nothing of the plan is Spark's, except scans of row positions."""
    plan = whole_plan(frame)
    of_spark = re.search(r"(?m)^[\s:+\-*()\d]*(HashAggregate|BroadcastHashJoin|Union|Filter)\b", plan)
    return "CometHashAggregate" in plan and of_spark is None


def test_comet_is_on(spark: SparkSession) -> None:
    assert "CometSparkSessionExtensions" in (spark.conf.get("spark.sql.extensions") or "")


@pytest.mark.parametrize("properties", [{}, MAPPED])
@pytest.mark.parametrize("partitioned", [False, True])
def test_all_of_a_query_of_files_without_vectors_is_comets(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], partitioned: bool
) -> None:
    table = table_of(tmp_path / "t", [], properties=properties, partitioned=partitioned)
    query = sums(native(spark, table))
    assert rows(query) == model(table)
    assert stays_in_comet(query)
    done, scans = taken(query)
    assert done == scans > 0


@pytest.mark.parametrize("large", [0, 1, 250_000])
@pytest.mark.parametrize("lengths", [[1], [1, 2, 3], [1, 2, 2], [1] * 6])
def test_vectors_cost_the_scans_of_their_files_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lengths: list[int], large: int
) -> None:
    monkeypatch.setattr(native_parts, "LARGE_FILE_ROWS", large)
    table = table_of(tmp_path / "t", lengths)
    frame = native(spark, table)
    query = sums(frame)
    assert rows(query) == model(table)
    assert stays_in_comet(query)
    assert taken(query)[0] == 1
    assert "CometBroadcastHashJoin" in whole_plan(query)
    assert sorted(row.id for row in frame.select("id").collect()) == sorted(r["id"] for r in table.expected_rows())
    assert frame.count() == len(table.expected_rows())


@pytest.mark.parametrize("properties", [{}, MAPPED])
def test_vectors_of_partitioned_tables(spark: SparkSession, tmp_path: Path, properties: dict[str, str]) -> None:
    table = table_of(tmp_path / "t", [1, 2, 2], properties=properties, partitioned=True)
    query = sums(native(spark, table).filter("part = 'a'"))
    found = {row[0]: row[1] for row in rows(query)}
    wanted: dict[str, int] = {}
    for row in table.expected_rows():
        if row["part"] == "a" and row["d"] >= 1:
            wanted[row["text"]] = wanted.get(row["text"], 0) + 1
    assert found == wanted
    assert stays_in_comet(query)
    assert taken(query)[0] > 0


@pytest.mark.parametrize("setting", [CONVERT, LOCAL_TABLES])
def test_without_a_setting_spark_filters_as_ever_and_explain_names_it(
    spark: SparkSession, tmp_path: Path, changed: Callable[[str, str], None], setting: str
) -> None:
    table = table_of(tmp_path / "t", [1, 2, 3])
    changed(setting, "false")
    frame = native(spark, table)
    assert rows(sums(frame)) == model(table)
    assert "Join" not in whole_plan(frame)
    text = str(delta_pyds.explain(frame))
    assert "Comet takes 1 of 2 scans" in text
    assert f"3 files with deletion vectors, and Comet does not take their rows, because {setting} is not true" in text


def test_comet_can_be_turned_off_in_a_session(
    spark: SparkSession, tmp_path: Path, changed: Callable[[str, str], None]
) -> None:
    table = table_of(tmp_path / "t", [1, 2, 3])
    changed("spark.comet.enabled", "false")
    frame = native(spark, table)
    assert rows(sums(frame)) == model(table)
    assert "Comet" not in whole_plan(frame)
    assert delta_pyds.explain(frame).acceleration is None
    assert "Comet" not in str(delta_pyds.explain(frame))


def test_explain_says_what_comet_takes_of_a_read_and_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    plain, vectors = table_of(tmp_path / "a", []), table_of(tmp_path / "b", [1, 2])
    assert str(delta_pyds.explain(native(spark, plain))).endswith("; Comet takes 1 of 1 scans")
    report = delta_pyds.explain(native(spark, vectors))
    assert "Comet takes 1 of 2 scans (Spark must read the row positions of 2 files with deletion vectors" in str(report)
    assert "acceleration" in report._repr_html_()
    assert "accelerator" not in report._repr_html_() and "accelerator" not in repr(report)
    query = delta_pyds.sql(spark, f"SELECT a.id FROM delta.`{plain.path}` a JOIN delta.`{vectors.path}` b USING (id)")
    of_query = delta_pyds.explain(query)
    assert (of_query.acceleration.num_accelerated, of_query.acceleration.num_scans) == (2, 3)
    assert str(of_query).splitlines()[-1].startswith("Comet takes 2 of 3 scans (")


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("comet", ["true", "false"])
def test_a_row_without_a_position_or_of_an_unknown_file_is_an_error(
    spark: SparkSession, tmp_path: Path, changed: Callable[[str, str], None], ansi: str, comet: str
) -> None:
    import pyarrow as pa

    changed("spark.sql.ansi.enabled", ansi)
    changed("spark.comet.enabled", comet)
    table = build(tmp_path / "t", {"id": "long"}, properties=VECTORS)
    table.append([{"id": n} for n in range(ROWS)])
    [path] = [str(table.path / add["add"]["path"]) for add in table.active()]
    words = spark.createDataFrame(word_table([pa.array([0b101, 0, -1], pa.int64())], [0]))

    def positions(value: str) -> DataFrame:
        frame = spark.read.schema(f"id long, {ROW} long").parquet(path)
        return frame.withColumn(ROW, F.expr(value))

    live = without_deleted(positions(ROW), words)
    gone = {0, 2, *range(128, 192)}
    assert sorted(row.id for row in live.collect()) == [n for n in range(ROWS) if n not in gone]
    # Spark shows the text of an expression in ANSI mode alone, Comet in both
    shown = ansi == "true" or comet == "true"
    with pytest.raises(PySparkException, match="Spark gave no position of a row" if shown else "INDEX_OF_ZERO"):
        without_deleted(positions(f"CASE WHEN id < 150 THEN {ROW} END"), words).count()
    with pytest.raises(PySparkException, match="an unknown row" if shown else "INDEX_OF_ZERO"):
        positions(ROW).filter(require("id < 150", "an unknown row")).count()


@pytest.mark.parametrize("lengths", [[1], [1, 2, 3], [1, 2, 2]])
@pytest.mark.parametrize("large", [0, 250_000])
def test_row_commands_find_their_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lengths: list[int], large: int
) -> None:
    monkeypatch.setattr(native_parts, "LARGE_FILE_ROWS", large)
    table = table_of(tmp_path / "t", lengths)
    wanted = {r["id"] for r in table.expected_rows()}
    target = delta_pyds.DeltaTable.forPath(spark, str(table.path))
    # Spark evaluates it, because our evaluator has no hash
    target.delete("hash(id) % 3 = 0")
    kept = {
        row.id for row in spark.createDataFrame([(n,) for n in wanted], "id long").filter("hash(id) % 3 <> 0").collect()
    }
    assert {row.id for row in native(spark, table).select("id").collect()} == kept
    target.update("id = 0 OR id = 3", {"d": "-1.0"})
    assert {row.id for row in native(spark, table).select("id").collect()} == kept


@pytest.mark.parametrize("lengths", [[1], [1, 2, 3], [1, 2, 2]])
def test_metadata_of_files_is_that_of_each_row(spark: SparkSession, tmp_path: Path, lengths: list[int]) -> None:
    table = table_of(tmp_path / "t", lengths)
    query = f"SELECT id, _metadata.row_index AS at, _metadata.file_size AS size FROM delta.`{table.path}`"
    sizes = [add["add"]["size"] for add in table.active()]
    found = rows(delta_pyds.sql(spark, query))
    assert [at for _, at, _ in found] == [number % ROWS for number, _, _ in found]
    assert sorted(number for number, _, _ in found) == sorted(r["id"] for r in table.expected_rows())
    assert {size for _, _, size in found} == set(sizes)


def test_dates_of_the_julian_calendar_are_found_by_footers(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = build(tmp_path / "t", {"day": "date"})
    old = pa.schema([("day", pa.date32())], {"org.apache.spark.version": "2.4.8"})
    pq.write_table(pa.table({"day": [dt.date(1400, 1, 1)]}, schema=old), table.path / "x.parquet")
    table.commit([table.add("x.parquet", size=(table.path / "x.parquet").stat().st_size)])
    frame = delta_pyds.read(spark, str(table.path), check_footers=True)
    assert "dates of the Julian calendar" in delta_pyds.explain(frame).reasons[0]
    assert frame.collect()[0].day == dt.date(1399, 12, 24)
