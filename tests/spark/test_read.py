"""``spark.read.format("deltapy")`` and the native engine, end to end: options, pinning, what Spark sees."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import delta_pyds
from tests.support.frames import rows
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

Load = Callable[..., DataFrame]


def source(spark: SparkSession, path: Any, **options: Any) -> DataFrame:
    return spark.read.format("deltapy").options(**options).load(str(path))


def expected(table: TableBuilder, version: int | None = None) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in table.expected_rows(version)), key=repr)


@pytest.fixture
def people(tmp_path: Path) -> TableBuilder:
    """Partitions, a checkpoint, deletion vectors, five versions."""
    table = TableBuilder(
        tmp_path / "people",
        {"id": "long", "name": "string", "team": "string"},
        partition_columns=["team"],
        features=(["deletionVectors"], ["deletionVectors"]),
    )
    table.create()
    table.append([{"id": i, "name": f"n{i}", "team": "red" if i % 2 else "blue"} for i in range(20)])
    (first, *_) = table.active()
    table.delete(first, [0, 3])
    table.checkpoint()
    table.append([{"id": 100, "name": None, "team": None}])
    return table


def test_a_table_with_partitions_checkpoint_and_deletion_vectors_reads_whole(
    spark: SparkSession, people: TableBuilder, load: Load
) -> None:
    df = load(spark, people.path)
    assert df.schema.simpleString() == "struct<id:bigint,name:string,team:string>"
    assert rows(df) == expected(people)
    assert df.count() == len(expected(people))


def test_versions_can_be_named_by_option_and_by_path(spark: SparkSession, people: TableBuilder, load: Load) -> None:
    assert rows(load(spark, people.path, versionAsOf=1)) == expected(people, 1)
    assert rows(load(spark, f"{people.path}@v1")) == expected(people, 1)
    assert rows(load(spark, f"{people.path}@V2")) == expected(people, 2)


def test_times_can_be_named_by_option_and_by_path(spark: SparkSession, people: TableBuilder, load: Load) -> None:
    base = 1_700_000_000_000
    for version in range(people.version + 1):
        people.set_mtime(version, base + version * 60_000)
    at = dt.datetime.fromtimestamp(base / 1000 + 90, dt.timezone.utc)
    assert rows(load(spark, people.path, timestampAsOf=at.strftime("%Y-%m-%d %H:%M:%S"))) == expected(people, 1)
    assert rows(load(spark, people.path, timestampAsOf=at.isoformat())) == expected(people, 1)
    assert rows(load(spark, f"{people.path}@{at.strftime('%Y%m%d%H%M%S')}000")) == expected(people, 1)
    assert rows(delta_pyds.read(spark, str(people.path), timestamp=at)) == expected(people, 1)


def test_a_dataframe_stays_at_the_version_it_was_made_at(spark: SparkSession, people: TableBuilder, load: Load) -> None:
    df = load(spark, people.path)
    before = expected(people)
    people.append([{"id": 7777, "name": "late", "team": "red"}])
    assert rows(df) == before
    assert rows(load(spark, people.path)) == expected(people)


def test_columns_can_be_listed_and_nested_fields_picked(spark: SparkSession, tmp_path: Path, load: Load) -> None:
    schema = {"id": "long", "s": {"x": "long", "y": "string"}, "last": "string"}
    table = TableBuilder(tmp_path / "t", schema)
    table.create()
    table.append([{"id": 1, "s": {"x": 2, "y": "three"}, "last": "z"}, {"id": 2, "s": None, "last": None}])
    df = load(spark, table.path, columns="LAST, s.y")
    assert df.schema.simpleString() == "struct<last:string,s:struct<y:string>>"
    assert rows(df) == sorted([(None, None), ("z", Row(y="three"))], key=repr)


def test_a_user_schema_selects_reorders_and_respells(spark: SparkSession, people: TableBuilder) -> None:
    df = spark.read.format("deltapy").schema("TEAM string, Id bigint").load(str(people.path))
    assert df.columns == ["TEAM", "Id"]
    assert rows(df) == sorted(((team, i) for i, _, team in expected(people)), key=repr)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("where", "keep"),
    [
        ("id >= 10 AND team = 'red'", lambda r: r[0] >= 10 and r[2] == "red"),
        ("name IS NULL OR id IN (1, 2)", lambda r: r[1] is None or r[0] in (1, 2)),
        ("team <=> NULL", lambda r: r[2] is None),
        ("name LIKE 'n1%'", lambda r: r[1] is not None and r[1].startswith("n1")),
        ("NOT (id < 100)", lambda r: r[0] >= 100),
        ("1 = 0", lambda _: False),
    ],
)
def test_where_is_part_of_what_the_dataframe_is(
    spark: SparkSession, people: TableBuilder, where: str, keep: Any, load: Load
) -> None:
    want = [r for r in expected(people) if keep(r)]
    assert rows(load(spark, people.path, where=where)) == want
    both = delta_pyds.read(spark, str(people.path), where=where, columns=["name"])
    assert rows(both) == sorted(((r[1],) for r in want), key=repr)


def test_row_positions_name_the_place_in_the_file(spark: SparkSession, people: TableBuilder) -> None:
    import pyarrow.parquet as pq

    df = source(spark, people.path, rowPosition=True, where="id < 50", columns="id")
    found = df.collect()
    assert df.columns == ["id", "_file_path", "_row_position"]
    assert len(found) == 18
    for row in found:
        assert pq.read_table(row._file_path).column("id")[row._row_position].as_py() == row.id


def test_row_ids_come_from_the_file_or_the_materialised_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(
        tmp_path / "t",
        {"id": "long"},
        properties={
            "delta.enableRowTracking": "true",
            "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
            "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
        },
    )
    table.create()
    table.append([{"id": 10}, {"id": 11}], baseRowId=0, defaultRowCommitVersion=1)
    table.append([{"id": 12}], baseRowId=2, defaultRowCommitVersion=2)
    found = rows(source(spark, table.path, rowIds=True))
    assert found == [(10, 0, 1), (11, 1, 1), (12, 2, 2)]


def test_a_table_of_every_type_reads_with_its_values(spark: SparkSession, tmp_path: Path, load: Load) -> None:
    schema = {
        "b": "boolean", "i8": "byte", "i16": "short", "i32": "integer", "i64": "long", "f": "float", "d": "double",
        "dec": "decimal(38,10)", "s": "string", "bin": "binary", "day": "date", "ts": "timestamp",
        "ntz": "timestamp_ntz",
    }  # fmt: skip
    table = TableBuilder(tmp_path / "t", schema, features=(["timestampNtz"], ["timestampNtz"]))
    table.create()
    full = {
        "b": True, "i8": -128, "i16": 32767, "i32": -5, "i64": 1 << 62, "f": 0.5, "d": -1e300,
        "dec": Decimal("1234567890123456789012345678.0123456789"), "s": "é\u0000日本", "bin": b"\x00\xff",
        "day": dt.date(1, 1, 1), "ts": dt.datetime(9999, 12, 31, 23, 59, 59, 999999, dt.timezone.utc),
        "ntz": dt.datetime(1582, 10, 4, 1, 2, 3),
    }  # fmt: skip
    table.append([full, dict.fromkeys(full)])
    found = {tuple(r.values()) for r in load(spark, table.path).toArrow().to_pylist()}
    assert found == {tuple(full.values()), tuple(None for _ in full)}


def test_the_source_works_in_sql_views_and_new_sessions(spark: SparkSession, people: TableBuilder) -> None:
    other = spark.newSession()
    other.sql(f"CREATE TEMPORARY VIEW v USING deltapy OPTIONS (path '{people.path}', where 'id < 5')")
    assert other.sql("SELECT count(*) FROM v").first()[0] == sum(r[0] < 5 for r in expected(people))


def test_explicit_registration_serves_every_session_and_can_be_repeated(
    spark: SparkSession, people: TableBuilder
) -> None:
    session = spark.newSession()
    delta_pyds.register(session)
    delta_pyds.register(session)
    assert source(session, people.path).count() == len(expected(people))


def test_large_files_are_split_and_small_ones_packed(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "text": "string"})
    table.create()
    table.append([{"id": i, "text": f"{i:0>200}"} for i in range(4000)], row_group_size=200)
    for i in range(6):
        table.append([{"id": -i, "text": ""}])
    size = table.active()[0]["add"]["size"]
    split = source(spark, table.path, maxPartitionBytes=size // 4 + 1, openCostInBytes=10, minPartitions=1)
    assert 4 <= split.rdd.getNumPartitions() <= 6
    assert rows(split) == expected(table)
    assert source(spark, table.path, minPartitions=1).rdd.getNumPartitions() == 1


def test_one_dataframe_serves_many_queries(spark: SparkSession, people: TableBuilder, load: Load) -> None:
    df = load(spark, people.path)
    total = len(expected(people))
    assert df.filter("team = 'red'").count() == sum(r[2] == "red" for r in expected(people))
    assert df.count() == total
    assert df.filter("id = 1").union(df.filter("id = 2")).count() == 2
    assert df.alias("a").join(df.alias("b"), "id").count() == total


def test_a_user_schema_is_pinned_too_even_where_spark_makes_a_reader_per_filter(
    spark: SparkSession, people: TableBuilder
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    df = session.read.format("deltapy").schema("id bigint").load(str(people.path))
    before = len(expected(people))
    assert df.filter("id >= 0").count() == before
    people.append([{"id": 555, "name": "late", "team": "red"}])
    assert df.filter("id >= 1").count() == before - sum(r[0] == 0 for r in expected(people))
    assert df.count() == before
