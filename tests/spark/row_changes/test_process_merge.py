"""A merge that joins in the user's process leaves the rows that Spark's query leaves, whatever its keys are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.merge import merge_rows

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

_TARGET = """
    VALUES (1, 1L, '1', 1.50BD, CAST('NaN' AS DOUBLE), DATE'2024-01-01', TIMESTAMP'2024-01-01 00:00:00', X'01', true),
           (2, NULL, '02', 2.00BD, -0.0D, DATE'2024-01-02', TIMESTAMP'2024-01-02 00:00:00', X'02', false),
           (3, 3L, NULL, 3.00BD, 1.5D, NULL, NULL, NULL, NULL),
           (4, 4L, 'é', NULL, NULL, DATE'2024-03-31', TIMESTAMP'2024-03-31 02:30:00', X'', true)
        AS t(id, l, s, d, f, day, ts, b, flag)"""
_SOURCE = """
    SELECT id + 100 AS id, l, s, CAST(d AS DECIMAL(20, 4)) AS d, CAST(f AS FLOAT) AS f, day, ts, b, flag FROM VALUES
        (1, 1L, '1', 1.50BD, CAST('NaN' AS DOUBLE), DATE'2024-01-01', TIMESTAMP'2024-01-01 00:00:00', X'01', true),
        (2, NULL, '2', 2.00BD, 0.0D, DATE'2024-01-02', TIMESTAMP'2024-01-02 00:00:01', X'02', NULL),
        (7, 30L, 'e', 9.99BD, 7.5D, NULL, NULL, X'FF', false)
        AS s(id, l, s, d, f, day, ts, b, flag)"""
# one condition each, and whether rows of either side meet more than once is the same for both ways
_KEYS = (
    "t.l = s.l", "t.l <=> s.l", "t.id = s.l", "t.s = s.s", "t.d = s.d", "t.f = s.f", "t.f <=> s.f", "t.day = s.day",
    "t.ts = s.ts", "t.b = s.b", "t.id + 100 = s.id", "t.id = s.id - 100 AND t.flag = s.flag", "t.d = s.l",
    "t.id = s.d", "upper(t.s) = upper(s.s)", "year(t.day) = year(s.day) AND t.id = s.l", "t.l = s.l AND s.d > 1",
)  # fmt: skip
_CLAUSES = (
    MergeClause("matched", "update", None, {"l": "s.l + 10", "s": "concat(t.s, '-', s.s)", "f": "s.f", "d": "s.d"}),
    MergeClause("not_matched", "insert", None, {"id": "s.id", "l": "s.d", "ts": "s.day", "s": "s.id"}),
    MergeClause("not_matched_by_source", "update", "t.id > 1", {"flag": "NOT t.flag"}),
)


@pytest.fixture(autouse=True)
def amsterdam(spark: SparkSession) -> Iterator[None]:
    delta_pyds.register(spark)
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "Europe/Amsterdam")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def outcome(spark: SparkSession, path: Path, on: str, engine: Any) -> tuple[Any, ...]:
    """The rows afterwards, and the counts; or the error's code."""
    source = spark.sql(_SOURCE).coalesce(1).alias("s")
    handle = TableHandle(spark, str(path), alias="t", engine=engine, time_zone="Europe/Amsterdam")
    result = merge_rows(handle, source, on, _CLAUSES)
    rows = sorted(repr(tuple(row)) for row in delta_pyds.read(spark, str(path)).collect())
    return result.place.where_run, rows, result.num_updated_rows, result.num_inserted_rows


def test_both_ways_leave_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    differing = []
    for number, on in enumerate(_KEYS):
        found = {}
        for engine in ("process", "spark"):
            path = tmp_path / f"{engine}-{number}"
            delta_pyds.write(spark.sql(f"SELECT * FROM {_TARGET}").coalesce(1), str(path))
            where, *found[engine] = outcome(spark, path, on, engine)
            assert where == engine
        if found["process"] != found["spark"]:
            differing.append((on, found))

    assert differing == []


def test_a_policy_that_changes_what_is_stored_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.sql(f"SELECT * FROM {_TARGET}").coalesce(1), str(tmp_path / "t"))
    spark.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
    try:
        with pytest.raises(UnsupportedOperationError):
            outcome(spark, tmp_path / "t", "t.l = s.l", "process")
    finally:
        spark.conf.unset("spark.sql.storeAssignmentPolicy")
