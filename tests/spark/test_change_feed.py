"""The change feed through Spark: a batch against deltalake and by hand, and a stream against the batch."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds.table.snapshot import load_snapshot
from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.expressions import Column, Literal, call
from tests.support.row_model.steps import Update
from tests.support.streams import Sink, stream
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import write_rows

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

CHANGE = ("_change_type", "_commit_version")
FEED = {"delta.enableChangeDataFeed": "true"}


def changes(spark: SparkSession, path: Any, start: Any = 0, **options: Any) -> DataFrame:
    given = {"readChangeFeed": "true", "startingVersion": start, **options}
    return spark.read.format("deltapy").options(**given).load(str(path))


def sorted_rows(df: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in (df.select(*columns) if columns else df).collect()), key=repr)


def with_change_files(path: Path) -> None:
    """Appends, an update and a delete by deltalake, which writes change data files."""
    table = pa.table({"id": pa.array(range(6), pa.int64()), "p": ["a", "a", "b", "b", None, None], "v": [0] * 6})
    deltalake.write_deltalake(path, table, partition_by=["p"], configuration=FEED)
    dt = deltalake.DeltaTable(path)
    dt.update(updates={"v": "v + 10"}, predicate="id >= 2 AND id < 4")
    dt.delete("id = 0")
    deltalake.write_deltalake(path, table.slice(0, 1), mode="append")
    dt = deltalake.DeltaTable(path)
    dt.delete("p = 'b'")


def without_change_files(path: Path) -> None:
    """Appends, an overwrite and a partition that is replaced: only adds and removes."""
    schema = {"id": "long", "p": "string", "v": "long"}
    rows = [{"id": i, "p": "ab"[i % 2], "v": i} for i in range(6)]
    write_rows(path, schema, rows, properties=FEED, partition_by=(("p",),))
    write_rows(path, schema, [{"id": 10, "p": "a", "v": 1}])
    write_rows(path, schema, [{"id": 20, "p": "b", "v": 2}], "overwrite", replace_where="p = 'b'")
    write_rows(path, schema, [{"id": 30, "p": None, "v": 3}], "overwrite")


def with_vectors(path: Path) -> None:
    """Deletes by deletion vectors, one of them taken back, on a table with mapped columns and partitions."""
    properties = {**FEED, "delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "id"}
    table = TableBuilder(path, {"id": "long", "p": "string", "v": "long"}, ["p"], properties)
    table.create()
    rows = [{"id": i, "p": "x y" if i % 2 else None, "v": i} for i in range(12)]
    adds = table.append(rows)
    once = table.delete(adds[0], [1, 3])
    table.delete(once, [0], storage="i")
    restored = {"add": dict(adds[1]["add"])}
    gone = table.delete(adds[1], range(4))
    table.commit([table.remove(gone), restored], operation="RESTORE")
    table.commit([table.remove(restored)], operation="DELETE")


def not_recorded(path: Path, *, tracked: bool = False) -> None:
    """Files that updates rewrote and marked while the feed was off, and one update while it was on."""
    schema = {"id": "long", "p": "string", "v": "long"}
    rows = [{"id": i, "p": "ab"[i % 2], "v": i} for i in range(12)]
    properties = {"delta.enableRowTracking": str(tracked).lower()}
    write_rows(path, schema, [rows[:6], rows[6:]], properties=properties, partition_by=(("p",),))
    engine = CoreEngine()

    def turn_on(name: str, on: bool = True) -> None:
        delta_pyds.sql(
            SparkSession.active(), f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{name}' = '{str(on).lower()}')"
        )

    def update(below: int, value: int) -> None:
        condition = call("({0} < {1})", Column("id"), Literal(below))
        engine.update(path, Update(condition, (("v", Literal(value)),)))

    update(4, 9)
    turn_on("delta.enableDeletionVectors")
    update(3, 9)
    turn_on("delta.enableChangeDataFeed")
    update(2, 10)
    turn_on("delta.enableChangeDataFeed", False)
    update(12, 11)


KINDS = {
    "change files": with_change_files,
    "adds and removes": without_change_files,
    "vectors": with_vectors,
    "not recorded": not_recorded,
    "not recorded, with row ids": partial(not_recorded, tracked=True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_of_changes_is_the_batch_of_changes(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    KINDS[kind](tmp_path / "t")
    expected = sorted_rows(changes(spark, tmp_path / "t"))
    assert expected
    sink = Sink(tmp_path / "sink")
    sink.run(stream(spark, tmp_path / "t", readChangeFeed="true", startingVersion=0, maxFilesPerTrigger=1))
    assert sink.rows(spark) == expected
    # from the snapshot on: its rows are inserts, of its version
    later = Sink(tmp_path / "later")
    later.run(stream(spark, tmp_path / "t", readChangeFeed="true"))
    now = spark.read.format("deltapy").load(str(tmp_path / "t"))
    version = load_snapshot(tmp_path / "t").version
    assert later.rows(spark, "id", "p", "v", *CHANGE) == sorted(
        ((*row, "insert", version) for row in sorted_rows(now)), key=repr
    )


@pytest.mark.parametrize("tracked", [False, True])
def test_changes_that_were_not_recorded_are_computed(spark: SparkSession, tmp_path: Path, tracked: bool) -> None:
    not_recorded(tmp_path, tracked=tracked)
    rows = {i: ("ab"[i % 2], i) for i in range(12)}
    expected = [(i, *row, "insert", 0) for i, row in rows.items()]
    for version, below, value in ((1, 4, 9), (3, 3, 9), (5, 2, 10), (7, 12, 11)):
        recorded = tracked or version == 5
        for i in range(below):
            (p, v), rows[i] = rows[i], (rows[i][0], value)
            if recorded or v != value:
                expected.append((i, p, v, "update_preimage" if recorded else "delete", version))
                expected.append((i, p, value, "update_postimage" if recorded else "insert", version))
    found = changes(spark, tmp_path)
    assert sorted_rows(found, "id", "p", "v", *CHANGE) == sorted(expected, key=repr)
    by_values = sorted_rows(changes(spark, tmp_path, 1, endingVersion=3, computeChanges="values"), "id", *CHANGE)
    assert by_values == sorted(((i, kind, 1) for i in range(4) for kind in ("delete", "insert")), key=repr)
    where = "v = 9 AND _change_type <> 'delete'"
    assert sorted_rows(changes(spark, tmp_path, where=where)) == sorted_rows(found.filter(where))


def test_changes_are_those_that_deltalake_reads(spark: SparkSession, tmp_path: Path) -> None:
    with_change_files(tmp_path)
    theirs = pa.table(deltalake.DeltaTable(tmp_path).load_cdf(0).read_all())
    columns = ("id", "p", "v", *CHANGE)
    expected = sorted((tuple(r[c] for c in columns) for r in theirs.select(columns).to_pylist()), key=repr)
    ours = changes(spark, tmp_path)
    assert sorted_rows(ours, *columns) == expected
    assert ours.dtypes[-3:] == [
        ("_change_type", "string"),
        ("_commit_version", "bigint"),
        ("_commit_timestamp", "timestamp"),
    ]


def test_columns_and_where_apply_to_change_rows(spark: SparkSession, tmp_path: Path) -> None:
    with_change_files(tmp_path)
    everything = changes(spark, tmp_path)
    for where in (
        "_change_type = 'update_postimage'",
        "_change_type <> 'insert' AND p = 'b'",
        "_commit_version >= 2 AND id < 4",
        "_commit_timestamp > '2000-01-01' AND v = 10",
        "p IS NULL",
    ):
        expected = sorted_rows(everything.filter(where), "id", *CHANGE)
        assert sorted_rows(changes(spark, tmp_path, where=where, columns="id,_change_type,_commit_version")) == expected
    # deletes only: no inserts are returned, in any order of columns
    only = changes(spark, tmp_path, columns="_change_type,id", where="_change_type = 'delete'")
    assert only.columns == ["_change_type", "id"] and {r[0] for r in only.collect()} == {"delete"}


def test_a_range_of_versions_or_of_times(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"}, (), FEED)
    table.create(timestamp_ms=1_700_000_000_000)
    for i in range(4):
        table.append([{"id": i}], commit={"timestamp_ms": 1_700_000_010_000 + i * 10_000})

    def ids(**options: Any) -> list[int]:
        df = spark.read.format("deltapy").options(readChangeFeed="true", **options).load(str(tmp_path))
        return sorted(r.id for r in df.collect())

    assert ids(startingVersion=1, endingVersion=2) == [0, 1]
    assert ids(startingVersion=3, endingVersion=99) == [2, 3]
    assert ids(startingTimestamp="2023-11-14 22:13:41", endingTimestamp="2023-11-14T22:13:59Z") == [2]
    assert ids(startingVersion=2, endingTimestamp="2023-11-14 22:13:50") == [1, 2]
    assert ids(startingTimestamp="2023-11-14 22:13:30", startingVersion=4) == [3]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"startingVersion": "9"}, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ({"startingVersion": "2", "endingVersion": "1"}, "DELTA_INVALID_CDC_RANGE"),
        ({"startingVersion": "0", "computeChanges": "never"}, "DELTA_MISSING_CHANGE_DATA"),
        ({"startingVersion": "0", "computeChanges": "rowIds"}, "DELTA_MISSING_CHANGE_DATA"),
        ({"startingVersion": "latest"}, "startingVersion"),
        ({"startingVersion": "1", "versionAsOf": "1"}, "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"),
        ({"startingVersion": "1", "rowIds": "true"}, "rowIds"),
        ({"startingTimestamp": "2100-01-01"}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        ({"startingTimestamp": "tomorrow"}, "DELTA_TIMESTAMP_INVALID"),
    ],
)
def test_ranges_that_cannot_be_had(spark: SparkSession, tmp_path: Path, options: dict[str, str], code: str) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.commit([table.metadata(properties=FEED)], operation="SET TBLPROPERTIES")
    table.append([{"id": 1}])
    with pytest.raises(PySparkException) as error:
        spark.read.format("deltapy").options(readChangeFeed="true", **options).load(str(tmp_path)).collect()
    assert code in str(error.value)


def test_turning_the_feed_off_stops_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, (), FEED)
    table.create()
    table.append([{"id": 1}])
    sink = Sink(tmp_path / "sink")
    never = {"readChangeFeed": "true", "computeChanges": "never"}
    sink.run(stream(spark, table.path, **never))
    table.commit([table.metadata(properties={"delta.enableChangeDataFeed": "false"})], operation="SET TBLPROPERTIES")
    table.append([{"id": 2}])
    assert "DELTA_MISSING_CHANGE_DATA" in sink.refusal(stream(spark, table.path, **never))
    sink.run(stream(spark, table.path, readChangeFeed="true"))
    assert sink.ids(spark) == [1, 2]


def test_a_frozen_batch_of_changes_does_not_grow(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path, {"id": "long"}, [{"id": 1}], properties=FEED)
    df = changes(spark, tmp_path)
    assert df.count() == 1
    write_rows(tmp_path, {"id": "long"}, [{"id": 2}])
    assert df.count() == 1
    assert changes(spark, tmp_path).count() == 2
