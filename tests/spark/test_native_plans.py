"""Spark's plans over the native engine: it prunes, hands filters down and broadcasts by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from tests.support.frames import native, physical
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)


@pytest.fixture(autouse=True)
def whole_plans(spark: SparkSession) -> Iterator[None]:
    """Plans are printed with all that they say of each scan."""
    spark.conf.set("spark.sql.maxMetadataStringLength", "10000")
    yield
    spark.conf.unset("spark.sql.maxMetadataStringLength")


def read_schemas(df: DataFrame) -> list[str]:
    return re.findall(r"ReadSchema: struct<(.*?)>(?=$|\n| )", physical(df))


@pytest.fixture
def events(tmp_path: Path) -> TableBuilder:
    """By team in Hive directories, one of two files with a deletion vector."""
    table = TableBuilder(
        tmp_path / "events",
        {"id": "long", "name": "string", "s": {"x": "long", "y": "string"}, "team": "string"},
        partition_columns=["team"],
        properties={"delta.enableDeletionVectors": "true"},
    )
    table.create()
    table.append(
        [{"id": i, "name": f"n{i}", "s": {"x": i, "y": "y"}, "team": "red" if i % 2 else "blue"} for i in range(50)]
    )
    table.commit(table.delete_rows(table.active()[0], [0, 7]))
    return table


def test_only_the_columns_and_nested_fields_of_the_query_are_read(spark: SparkSession, events: TableBuilder) -> None:
    df = native(spark, events)
    wanted = {"id:bigint", "id:bigint,_tmp_metadata_row_index:bigint"}
    assert set(read_schemas(df.select("id"))) == wanted
    nested = set(read_schemas(df.select("s.x")))
    assert nested == {"s:struct<x:bigint>", "s:struct<x:bigint>,_tmp_metadata_row_index:bigint"}
    assert len(read_schemas(df)) == 2


def test_nested_fields_are_pruned_under_mapped_names_too(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(
        tmp_path / "t",
        {"s": {"x": "long", "y": "string", "d": "double"}},
        properties={"delta.columnMapping.mode": "name"},
        physical_names={"s": "c1", "s.x": "c2", "s.y": "c3", "s.d": "c4"},
    )
    table.create()
    table.append([{"s": {"x": 1, "y": "a", "d": 0.5}}])
    df = native(spark, table).filter("s.x = 1").select("s.x")
    assert read_schemas(df) == ["c1:struct<c2:bigint>"]
    assert "EqualTo(c1.c2,1)" in physical(df)


def test_filters_are_handed_down_below_deletion_vectors(spark: SparkSession, events: TableBuilder) -> None:
    text = physical(native(spark, events).filter("id = 5 AND s.x > 3 AND name LIKE 'n%'"))
    pushed = re.findall(r"PushedFilters: \[(.*?)\]", text)
    assert len(pushed) == 2
    for filters in pushed:
        assert "EqualTo(id,5)" in filters
        assert "GreaterThan(s.x,3)" in filters
        assert "StringStartsWith(name,n)" in filters


def test_where_is_handed_down_as_well(spark: SparkSession, events: TableBuilder) -> None:
    text = physical(native(spark, events, where="id BETWEEN 5 AND 9 OR id = 40", columns="name"))
    assert "Or(And(GreaterThanOrEqual(id,5),LessThanOrEqual(id,9)),EqualTo(id,40))" in text


def test_partition_filters_prune_and_so_do_joins(spark: SparkSession, events: TableBuilder) -> None:
    df = native(spark, events)
    static = physical(df.filter("team = 'red'"))
    assert len(re.findall(r"PartitionFilters: \[isnotnull\(team#\d+\), \(team#\d+ = red\)\]", static)) == 2
    few = spark.createDataFrame([("red", 1), ("green", 2)], "team string, n int").filter("n = 1")
    joined = df.join(few, "team")
    assert "dynamicpruning" in physical(joined)
    assert joined.count() == 25


def test_partition_values_of_another_layout_are_still_right_where_they_filter(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = TableBuilder(
        tmp_path / "t",
        {"id": "long", "p": "string"},
        partition_columns=["p"],
        properties={"delta.columnMapping.mode": "name"},
    )
    table.create()
    table.append([{"id": i, "p": "ab"[i % 2]} for i in range(10)], path="files/x.parquet", partition_values={"p": "a"})
    df = native(spark, table)
    assert "PartitionFilters: []" in physical(df)
    assert df.filter("p = 'a'").count() == 10
    assert df.filter("p = 'b'").count() == 0


def test_a_small_table_is_broadcast_without_being_asked_for(spark: SparkSession, events: TableBuilder) -> None:
    df = native(spark, events)
    big = spark.range(100_000_000).withColumnRenamed("id", "key")
    hinted = physical(big.join(df, big.key == df.id))
    # one for the join itself; the deletion vector's is under it
    assert re.search(r"BroadcastHashJoin \[key#\d+L\], \[id#\d+L\], Inner", hinted)
    assert "SortMergeJoin" not in hinted
    source = delta_pyds.read(spark, str(events.path), engine="arrow")
    assert "SortMergeJoin" in physical(big.join(source, big.key == source.id))


def test_where_leaves_only_the_files_that_may_match(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    for start in range(0, 50, 10):
        table.append([{"id": i} for i in range(start, start + 10)])
    assert len(native(spark, table, where="id = 33").inputFiles()) == 1
    assert len(native(spark, table, where="id > 25").inputFiles()) == 3
    assert len(native(spark, table).inputFiles()) == 5


def test_many_files_are_handed_over_without_a_job_or_a_listing(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    table.commit([table.write_file([{"id": i}]) for i in range(40)])
    spark.sparkContext.setJobGroup("listing", "listing")
    try:
        df = native(spark, table)
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("listing")
    finally:
        spark.sparkContext.setJobGroup("", "")
    assert jobs == []
    assert "Location: MetadataLogFileIndex" in physical(df)
    assert df.count() == 40
