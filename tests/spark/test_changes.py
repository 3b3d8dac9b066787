"""``delta_pyds.changes``: the rows that differ between versions of tables that recorded nothing."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import ExpressionError, OptionError

COLUMNS = ("id", "v", "_change_type", "_commit_version")


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*COLUMNS).collect())


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """Version 0 has the rows 0 to 9.

    Version 1 updates one, 2 deletes one, 3 writes values again as they are, 4 adds one, and 5 takes back the update.
    """
    table = str(tmp_path / "t")
    delta_pyds.write(spark.range(10).selectExpr("id", "id AS v").coalesce(1), table)
    handle = DeltaTable.forPath(spark, table)
    handle.update("id = 1", {"v": "10"})
    handle.delete("id = 2")
    handle.update("id > 3", {"v": "v"})
    delta_pyds.write(spark.range(10, 11).selectExpr("id", "id AS v"), table, mode="append")
    handle.update("id = 1", {"v": "1"})
    return table


def test_each_commit(spark: SparkSession, path: str) -> None:
    assert rows(delta_pyds.changes(spark, path, since=1)) == [
        (1, 1, "delete", 1), (1, 1, "insert", 5), (1, 10, "delete", 5), (1, 10, "insert", 1), (2, 2, "delete", 2),
        (10, 10, "insert", 4),
    ]  # fmt: skip
    assert rows(delta_pyds.changes(spark, path, since=2, until=3)) == [(2, 2, "delete", 2)]


def test_keys_make_updates_of_deletes_and_inserts(spark: SparkSession, path: str) -> None:
    found = delta_pyds.changes(spark, path, since=1, keys="ID")
    assert found.columns == ["id", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    expected = [
        (1, 1, "update_postimage", 5), (1, 1, "update_preimage", 1), (1, 10, "update_postimage", 1),
        (1, 10, "update_preimage", 5), (2, 2, "delete", 2), (10, 10, "insert", 4),
    ]  # fmt: skip
    assert rows(found) == expected
    # both images of an update, though one alone has this value
    chosen = delta_pyds.changes(spark, path, since=1, keys=["id"], where="v = 10")
    assert rows(chosen) == [row for row in expected if row[1] == 10]


def test_with_keys_the_session_computes_the_predicate(spark: SparkSession, path: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="session's zone"):
        delta_pyds.changes(spark, path, since=1, keys="id", where="v = 10", time_zone="Asia/Tokyo")
    with pytest.raises(ExpressionError, match=r"argument where.*nosuch"):
        delta_pyds.changes(spark, path, since=1, keys="id", where="nosuch = 1")
    dotted = str(tmp_path / "dotted")
    delta_pyds.write(spark.sql("SELECT 1 AS id, 2 AS `a.b`"), dotted)
    found = delta_pyds.changes(spark, dotted, since=0, keys="id")
    assert [row["a.b"] for row in found.collect()] == [2] and found.columns[:2] == ["id", "a.b"]


def test_the_net_changes_of_a_range(spark: SparkSession, path: str) -> None:
    assert rows(delta_pyds.changes(spark, path, since=1, net=True)) == [(2, 2, "delete", 5), (10, 10, "insert", 5)]
    until = rows(delta_pyds.changes(spark, path, since=1, until=4, net=True, keys="id", where="id < 5"))
    assert until == [(1, 1, "update_preimage", 4), (1, 10, "update_postimage", 4), (2, 2, "delete", 4)]


def test_times_bound_the_range(spark: SparkSession, path: str) -> None:
    times = {row.version: row.timestamp for row in DeltaTable.forPath(spark, path).history().collect()}
    found = delta_pyds.changes(spark, path, since=times[2], until=times[3])
    assert rows(found) == [(2, 2, "delete", 2)]
    assert rows(delta_pyds.changes(spark, path, since=str(times[4]), until=5)) == rows(
        delta_pyds.changes(spark, path, since=4)
    )


def test_explain_says_how_changes_are_found(spark: SparkSession, path: str) -> None:
    for given in ({}, {"keys": "id"}, {"keys": "id", "where": "v = 10"}):
        report = delta_pyds.explain(delta_pyds.changes(spark, path, since=1, **given))
        assert (report.engine, report.version) == ("arrow", 5)
        assert report.changes.ways == {"values": 4, "files": 1}
        assert "computed by values" in str(report) and "computed by values" in report._repr_html_()
    net = delta_pyds.explain(delta_pyds.changes(spark, path, since=1, until=4, net=True)).changes
    assert str(net) == str(delta_pyds.explain(path, since=1, until=4, net=True))
    # files that the condition rules out
    one = delta_pyds.explain(delta_pyds.changes(spark, path, since=4, until=4, where="id = 1")).changes
    assert (one.num_data_files, one.num_ruled_out) == (0, 1)
    assert delta_pyds.explain(delta_pyds.read(spark, path)).changes is None


def test_explain_of_the_batch_source_after_install(spark: SparkSession, path: str) -> None:
    delta_pyds.install(spark)
    try:
        reader = spark.read.format("deltapy").option("readChangeFeed", "true").option("startingVersion", 1)
        report = delta_pyds.explain(reader.load(path))
        assert report.changes.ways == {"values": 4, "files": 1}
    finally:
        delta_pyds.uninstall()


@pytest.mark.parametrize("choice", [{}, {"keys": "id"}, {"net": True}, {"net": True, "keys": "id"}, {"where": "v = 10"},
                                    {"where": "v = 10", "keys": "id"}, {"compute": "values", "since": 3}])  # fmt: skip
def test_the_arrow_form_has_the_same_rows(spark: SparkSession, path: str, choice: dict[str, Any]) -> None:
    given = {"since": 0, **choice}
    frame = delta_pyds.changes(spark, path, **given)
    here = delta_pyds.scan_changes(path, **given).to_table()
    assert here.column_names == frame.columns
    assert sorted(map(repr, here.select(COLUMNS).to_pylist())) == sorted(
        repr(dict(zip(COLUMNS, row, strict=True))) for row in rows(frame)
    )


def test_a_name_of_the_session(spark: SparkSession, path: str) -> None:
    delta_pyds.create_table(spark, "changes_of_a_name", path=path)
    try:
        found = rows(delta_pyds.changes(spark, table="changes_of_a_name", since=2, until=2))
        assert found == [(2, 2, "delete", 2)]
        listed = delta_pyds.sql(spark, "SELECT * FROM table_changes('changes_of_a_name', 2, 2)")
        assert rows(listed) == found
    finally:
        delta_pyds.drop_table(spark, "changes_of_a_name")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"since": 77}, "latest version is 5"),
        ({"since": -1}, "since"),
        ({"since": True}, "since is True"),
        ({"since": 2, "until": 1}, "DELTA_INVALID_CDC_RANGE"),
        ({"since": dt.datetime(2100, 1, 1)}, "2100"),
        ({"since": 1, "keys": "nope"}, "nope"),
        ({"since": 1, "keys": ""}, "keys needs the column ''"),
        ({"since": 1, "keys": "id", "columns": "v,_change_type"}, "Name it in columns"),
        ({"since": 1, "where": "nope = 1"}, "nope"),
        ({"since": 1, "compute": "rowIds"}, "have no ids"),
        ({"since": 1, "compute": "never"}, "DELTA_MISSING_CHANGE_DATA"),
        ({"since": 1, "compute": "some"}, "must be one of auto, rowIds, values, never"),
        ({"since": 1, "net": "yes"}, "net"),
    ],
)
def test_an_argument_that_cannot_be_is_named(
    spark: SparkSession, path: str, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(delta_pyds.DeltaError) as caught:
        try:
            delta_pyds.changes(spark, path, **arguments).collect()
        except Exception as error:
            found = error if isinstance(error, delta_pyds.DeltaError) else delta_pyds.error_of(error)
            raise (found or error) from None
    assert words in str(caught.value)


def test_a_path_without_a_table(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="DELTA_PATH_DOES_NOT_EXIST"):
        delta_pyds.changes(spark, str(tmp_path / "nothing"), since=0).collect()
