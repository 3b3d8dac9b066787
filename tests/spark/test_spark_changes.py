"""Spark's own reads of changes: ``spark.read.changes``, ``readStream.changes`` and CHANGES FROM, beside Spark's rules.

Spark's rules for raw changes with carry-overs are computed here from the rows of each version, by their row ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.spark import versions
from tests.support.streams import Sink

COLUMNS = ("id", "v", "_change_type", "_commit_version")
ALL = ["id", "v", "_change_type", "_commit_version", "_commit_timestamp"]
IMAGES = {"update_preimage": "delete", "update_postimage": "insert"}
KINDS = {
    "nothing": {},
    "row tracking": {"delta.enableRowTracking": "true"},
    "the feed": {"delta.enableChangeDataFeed": "true"},
    "both": {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"},
    "row tracking, no vectors": {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "false"},
}
# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = [
    pytest.mark.one_test_in(2),
    pytest.mark.skipif(not versions.has_changes(), reason="this Spark has no reads of changes"),
]
Row = tuple[Any, ...]


@pytest.fixture(autouse=True)
def installed(spark: SparkSession) -> Iterator[None]:
    delta_pyds.install(spark, delta=True)
    yield
    delta_pyds.uninstall()


def with_history(spark: SparkSession, path: Path, kind: str) -> str:
    """Version 1 updates the row 1, 2 deletes 2, 3 adds 10, 4 optimizes, 5 updates 1 again, 6 merges."""
    delta_pyds.write(spark.range(10).selectExpr("id", "id AS v").coalesce(1), str(path), properties=KINDS[kind])
    table = DeltaTable.forPath(spark, str(path))
    table.update("id = 1", {"v": "11"})
    table.delete("id = 2")
    delta_pyds.write(spark.range(10, 11).selectExpr("id", "id AS v"), str(path), mode="append")
    table.optimize().executeCompaction()
    table.update("id = 1", {"v": "12"})
    source = spark.createDataFrame([(3, 33), (20, 20)], "id long, v long")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().whenNotMatchedBySourceDelete("t.id = 4").execute()
    return str(path)


def updates(version: int, row: int, before: int, after: int) -> list[Row]:
    return [(row, before, "update_preimage", version), (row, after, "update_postimage", version)]


def expected(first: int = 1, last: int = 6, *, images: bool) -> list[Row]:
    """The changes of the history of ``with_history``, by Spark's rules."""
    every = [
        *updates(1, 1, 1, 11),
        (2, 2, "delete", 2),
        (10, 10, "insert", 3),
        *updates(5, 1, 11, 12),
        *updates(6, 3, 3, 33), (20, 20, "insert", 6), (4, 4, "delete", 6),
    ]  # fmt: skip
    chosen = [row for row in every if first <= row[3] <= last]
    return sorted(chosen if images else [(*r[:2], IMAGES.get(r[2], r[2]), r[3]) for r in chosen])


def rows(frame: DataFrame) -> list[Row]:
    return sorted(tuple(row) for row in frame.select(*COLUMNS).collect())


def read(spark: SparkSession, name: str, start: Any = 1, **options: Any) -> DataFrame:
    return spark.read.options(startingVersion=start, **options).changes(name)


@pytest.mark.parametrize("kind", KINDS)
def test_each_mode_is_sparks(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    name = f"delta.`{with_history(spark, tmp_path / 't', kind)}`"
    found = read(spark, name)
    assert found.columns == ALL
    assert rows(found) == expected(images=False)
    # no carry-over is in our feed, so Spark's raw changes are the same
    assert rows(read(spark, name, deduplicationMode="none")) == expected(images=False)
    assert rows(read(spark, name, deduplicationMode="dropCarryovers", computeUpdates=False)) == expected(images=False)
    assert rows(spark.sql(f"SELECT * FROM {name} CHANGES FROM VERSION 1")) == expected(images=False)
    net = [(1, 1, "update_preimage"), (1, 12, "update_postimage"), (2, 2, "delete"), (3, 3, "update_preimage"),
           (3, 33, "update_postimage"), (4, 4, "delete"), (10, 10, "insert"), (20, 20, "insert")]  # fmt: skip
    plain = read(spark, name, deduplicationMode="netChanges")
    assert rows(plain) == sorted((*row[:2], IMAGES.get(row[2], row[2]), 6) for row in net)
    tracked = "delta.enableRowTracking" in KINDS[kind]
    if tracked or kind == "the feed":
        shown = spark.sql(f"SELECT * FROM {name} CHANGES FROM VERSION 1 WITH (computeUpdates = 'true')")
        assert rows(read(spark, name, computeUpdates=True)) == rows(shown) == expected(images=True)
    with_images = read(spark, name, deduplicationMode="netChanges", computeUpdates=True)
    if tracked:
        assert rows(with_images) == sorted((*row, 6) for row in net)
    else:
        with pytest.raises(PySparkException, match="by row ids"):
            with_images.collect()


def test_updates_that_nothing_shows_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Without row ids and a record an update is a delete and an insert, which was not asked for."""
    name = f"delta.`{with_history(spark, tmp_path / 't', 'nothing')}`"
    with pytest.raises(PySparkException, match="computeUpdates") as caught:
        read(spark, name, computeUpdates=True).collect()
    error = delta_pyds.error_of(caught.value)
    assert error is not None and error.code == "DELTA_MISSING_CHANGE_DATA"
    # unless the way to compute them is chosen
    assert rows(read(spark, name, computeUpdates=True, computeChanges="values")) == expected(images=False)


def test_a_row_that_came_and_went_is_no_net_change(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    delta_pyds.write(spark.range(1).selectExpr("id", "id AS v"), path, properties=KINDS["row tracking"])
    table = DeltaTable.forPath(spark, path)
    delta_pyds.write(spark.range(5, 6).selectExpr("id", "id AS v"), path, mode="append")
    table.update("id = 5", {"v": "6"})
    name = f"delta.`{path}`"
    assert rows(read(spark, name, deduplicationMode="netChanges")) == [(5, 6, "insert", 2)]
    table.delete("id = 5")
    assert rows(read(spark, name, deduplicationMode="netChanges")) == []
    # the row has its first value again, but was updated in between
    table.update("id = 0", {"v": "1"})
    table.update("id = 0", {"v": "0"})
    again = read(spark, name, deduplicationMode="netChanges", computeUpdates=True)
    assert rows(again) == [(0, 0, "update_postimage", 5), (0, 0, "update_preimage", 5)]


def test_bounds_by_version(spark: SparkSession, tmp_path: Path) -> None:
    name = f"deltapy.`{with_history(spark, tmp_path / 't', 'both')}`"
    for clause, options, first, last in (
        ("FROM VERSION 1 TO VERSION 4", {"endingVersion": 4}, 1, 4),
        ("FROM VERSION '1' INCLUSIVE TO SYSTEM_VERSION '4' INCLUSIVE", {"endingVersion": 4}, 1, 4),
        ("FROM VERSION 1 EXCLUSIVE TO VERSION 4", {"endingVersion": 4, "startingBoundInclusive": False}, 2, 4),
        ("FROM VERSION 1 TO VERSION 4 EXCLUSIVE", {"endingVersion": 4, "endingBoundInclusive": "false"}, 1, 3),
        (
            "FROM SYSTEM_VERSION 1 EXCLUSIVE TO VERSION 4 EXCLUSIVE",
            {"endingVersion": 4, "startingBoundInclusive": False, "endingBoundInclusive": False},
            2,
            3,
        ),
        ("FROM VERSION 1 EXCLUSIVE", {"startingBoundInclusive": False}, 2, 6),
        ("FROM VERSION 1 TO VERSION 99", {"endingVersion": 99}, 1, 6),
    ):
        found = expected(first, last, images=False)
        assert rows(spark.sql(f"SELECT * FROM {name} CHANGES {clause}")) == found, clause
        assert rows(read(spark, name, **options)) == found, clause


def test_bounds_by_time(spark: SparkSession, tmp_path: Path) -> None:
    path = with_history(spark, tmp_path / "t", "row tracking")
    name = f"delta.`{path}`"
    zone = "+05:30"
    times = {row.version: row.timestamp for row in DeltaTable.forPath(spark, path).history().collect()}
    utc = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        # a text without a zone is in the session's
        shown = {v: spark.sql(f"SELECT CAST(TIMESTAMP'{t}Z' AS STRING) AS t").first()[0] for v, t in times.items()}  # type: ignore[index]
        ends = {"startingTimestamp": shown[1], "endingTimestamp": shown[4]}
        between = f"TIMESTAMP '{shown[1]}' - INTERVAL 1 MILLISECOND"
        for clause, options, first, last in (
            (f"FROM TIMESTAMP '{shown[1]}' TO TIMESTAMP '{shown[4]}'", ends, 1, 4),
            (f"FROM TIMESTAMP '{shown[1]}' EXCLUSIVE TO SYSTEM_TIME '{shown[4]}'",
             ends | {"startingBoundInclusive": "false"}, 2, 4),
            (f"FROM SYSTEM_TIME '{shown[1]}' TO TIMESTAMP '{shown[4]}' EXCLUSIVE",
             ends | {"endingBoundInclusive": "false"}, 1, 3),
            (f"FROM TIMESTAMP {between} EXCLUSIVE TO TIMESTAMP '{shown[4]}'", ends, 1, 4),
        ):  # fmt: skip
            found = expected(first, last, images=False)
            assert rows(spark.sql(f"SELECT * FROM {name} CHANGES {clause}")) == found, clause
            assert rows(spark.read.options(**options).changes(name)) == found, clause
    finally:
        spark.conf.set("spark.sql.session.timeZone", utc)


def test_a_name_and_a_query_around_it(spark: SparkSession, tmp_path: Path) -> None:
    path = with_history(spark, tmp_path / "t", "row tracking")
    delta_pyds.create_table(spark, "changed", path=path)
    try:
        assert rows(read(spark, "changed")) == rows(read(spark, "default.changed")) == expected(images=False)
        # the name qualifies the columns, as that of a table does
        assert read(spark, "changed").where("changed.id = 20").select("changed.v").collect() == [(20,)]
        text = "SELECT * FROM changed CHANGES FROM VERSION 2 TO VERSION 4"
        assert rows(spark.sql(text)) == expected(2, 4, images=False)
        assert rows(delta_pyds.sql(spark, text.replace("changed", "IDENTIFIER('changed')"))) == rows(spark.sql(text))
        given = spark.sql("SELECT count(*) FROM changed CHANGES FROM VERSION :a TO VERSION :b", {"a": 2, "b": 4})
        assert given.collect() == [(2,)]
        joined = spark.sql(
            "SELECT c.id, t.v, c._change_type FROM changed CHANGES FROM VERSION 5 AS c JOIN changed t ON c.id = t.id "
            "WHERE c._change_type = 'insert' ORDER BY c.id, c._commit_version"
        )
        assert joined.collect() == [(1, 12, "insert"), (3, 33, "insert"), (20, 20, "insert")]
        spark.sql("CREATE OR REPLACE TEMPORARY VIEW latest AS SELECT * FROM changed CHANGES FROM VERSION 6 c")
        assert rows(spark.table("latest")) == expected(6, images=False)
        target = str(tmp_path / "copy")
        spark.sql(f"CREATE TABLE delta.`{target}` USING delta AS {text}")
        assert rows(delta_pyds.read(spark, target)) == expected(2, 4, images=False)
        with pytest.raises(PySparkException, match="cannot read"):
            spark.sql(f"CREATE VIEW kept AS SELECT * FROM delta.`{path}` CHANGES FROM VERSION 2")
    finally:
        spark.catalog.dropTempView("latest")
        delta_pyds.drop_table(spark, "changed")


def test_options_of_ours_and_conditions(spark: SparkSession, tmp_path: Path) -> None:
    name = f"delta.`{with_history(spark, tmp_path / 't', 'both')}`"
    deleted = [row for row in expected(images=False) if row[2] == "delete"]
    assert rows(read(spark, name, where="_change_type = 'delete'")) == deleted
    assert rows(read(spark, name, where="id = 1", computeUpdates=True)) == updates_of(1)
    assert read(spark, name, columns="v,_commit_version").columns == ["v", "_commit_version"]
    chosen = spark.sql(f"SELECT * FROM {name} CHANGES FROM VERSION 1 WITH (where = 'id < 2') WHERE v = 12")
    assert rows(chosen) == [(1, 12, "insert", 5)]


def updates_of(row: int) -> list[Row]:
    return [one for one in expected(images=True) if one[0] == row]


@pytest.mark.parametrize("images", [False, True])
def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path, images: bool) -> None:
    name = f"delta.`{with_history(spark, tmp_path / 't', 'row tracking')}`"
    sink = Sink(tmp_path / "sink")

    def changes() -> DataFrame:
        reader = spark.readStream.option("startingVersion", 1).options(computeUpdates=images, maxFilesPerTrigger=1)
        return reader.changes(name)

    assert changes().isStreaming and changes().columns == ALL
    sink.run(changes())
    assert sink.rows(spark, *COLUMNS) == sorted(expected(images=images), key=repr)
    DeltaTable.forPath(spark, str(tmp_path / "t")).update("id = 5", {"v": "55"})
    sink.run(changes())
    more = [row if images else (*row[:2], IMAGES[row[2]], row[3]) for row in updates(7, 5, 5, 55)]
    assert sink.rows(spark, *COLUMNS) == sorted([*expected(images=images), *more], key=repr)


def test_a_stream_of_sql(spark: SparkSession, tmp_path: Path) -> None:
    path = with_history(spark, tmp_path / "t", "the feed")
    delta_pyds.create_table(spark, "streamed", path=path)
    try:
        text = "SELECT c.* FROM STREAM streamed CHANGES FROM VERSION 1 EXCLUSIVE WITH (computeUpdates = 'true') c"
        sink = Sink(tmp_path / "sink")
        sink.run(spark.sql(text))
        assert sink.rows(spark, *COLUMNS) == sorted(expected(2, images=True), key=repr)
        # without a start, the rows of the table are the first changes
        whole = Sink(tmp_path / "whole")
        whole.run(spark.sql(f"SELECT * FROM STREAM delta.`{path}` CHANGES"))
        now = [(*row, "insert", 6) for row in delta_pyds.read(spark, path).collect()]
        assert whole.rows(spark, *COLUMNS) == sorted(now, key=repr)
        named = Sink(tmp_path / "named")
        named.run(spark.readStream.changes("streamed"))
        assert named.rows(spark) == whole.rows(spark)
    finally:
        delta_pyds.drop_table(spark, "streamed")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "DELTA_CHANGELOG_UNBOUNDED_RANGE"),
        ({"endingVersion": 1}, "MISSING_STARTING_VERSION"),
        ({"startingVersion": 1, "startingTimestamp": "2026-01-01"}, "CONFLICTING_RANGE_TYPES"),
        ({"startingVersion": 1, "deduplicationMode": "some"}, "none, dropCarryovers, netChanges"),
        ({"startingVersion": 1, "computeUpdates": "maybe"}, "computeUpdates"),
        ({"startingVersion": 1, "versionAsOf": 1}, "versionAsOf"),
        ({"startingVersion": "one"}, "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE"),
        ({"startingVersion": 1, "endingVersion": 1, "startingBoundInclusive": False}, "DELTA_INVALID_CDC_RANGE"),
        ({"startingVersion": 3, "startingBoundInclusive": False}, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ({"startingTimestamp": "soon"}, "DELTA_TIMESTAMP_INVALID"),
    ],
)
def test_options_that_cannot_be_are_named(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    path = str(tmp_path / "t")
    for _ in range(4):
        delta_pyds.write(spark.range(1), path, mode="append")
    with pytest.raises(PySparkException, match=words):
        spark.read.options(**options).changes(f"delta.`{path}`").collect()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"deduplicationMode": "netChanges"}, "a stream has no end"),
        ({"startingVersion": 0, "endingVersion": 1}, "a stream has no end"),
        ({"startingVersion": "latest", "startingBoundInclusive": False}, "startingVersion"),
    ],
)
def test_options_that_a_stream_cannot_have(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    delta_pyds.write(spark.range(1), str(tmp_path / "t"))
    with pytest.raises(PySparkException, match=words):
        spark.readStream.options(**options).changes(f"delta.`{tmp_path / 't'}`")


ASKS: tuple[Callable[[SparkSession, str], DataFrame], ...] = (
    lambda spark, name: read(spark, name),
    lambda spark, name: spark.readStream.changes(name),
    lambda spark, name: spark.sql(f"SELECT * FROM {name} CHANGES FROM VERSION 1"),
    lambda spark, name: spark.sql(f"SELECT * FROM STREAM {name} CHANGES"),
)


def refusal(ask: Callable[[SparkSession, str], DataFrame], spark: SparkSession, name: str) -> str:
    with pytest.raises(AnalysisException) as caught:
        ask(spark, name)
    assert not isinstance(caught.value, delta_pyds.DeltaError)
    return str(caught.value)


def test_what_is_not_ours_is_sparks(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).createOrReplaceTempView("a_view")
    spark.range(1).write.saveAsTable("of_parquet")
    try:
        for name in ("of_parquet", "a_view", "nowhere"):
            ours = [refusal(ask, spark, name) for ask in ASKS]
            delta_pyds.uninstall()
            assert [refusal(ask, spark, name) for ask in ASKS] == ours
            delta_pyds.install(spark, delta=True)
        delta_pyds.write(spark.range(1), str(tmp_path / "t"))
        for reader in (spark.read, spark.readStream):
            with pytest.raises(AnalysisException, match="schema"):
                reader.schema("id long").option("startingVersion", 0).changes(f"delta.`{tmp_path / 't'}`")
        with pytest.raises(ParseException):
            spark.sql(f"SELECT * FROM delta.`{tmp_path / 't'}` CHANGES FROM VERSION 0 TO TIMESTAMP '2026-01-01'")
        with pytest.raises(ParseException):
            spark.sql("SELECT * FROM of_parquet CHANGES FROM VERSION -1")
        # the word alone is an alias
        assert spark.sql(f"SELECT changes.id FROM delta.`{tmp_path / 't'}` CHANGES").collect() == [(0,)]
    finally:
        spark.catalog.dropTempView("a_view")
        spark.sql("DROP TABLE of_parquet")


def test_a_spark_without_the_clause_says_so(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta_pyds.write(spark.range(1), str(tmp_path / "t"))
    monkeypatch.setattr(versions, "has_changes", lambda: False)
    with pytest.raises(ParseException, match="no clause CHANGES"):
        spark.sql(f"SELECT * FROM delta.`{tmp_path / 't'}` CHANGES FROM VERSION 0")
