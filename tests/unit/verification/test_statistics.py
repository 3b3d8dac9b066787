"""Statistics of files that are not true of their rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.file_statistics import stats_to_json
from tests.support.verification import make, rules


def stats(**changes: Any) -> dict[str, Any]:
    """Of one file with the ids 3, 5 and null."""
    right = {"numRecords": 3, "minValues": {"id": 3}, "maxValues": {"id": 5}, "nullCount": {"id": 1}}
    return {**right, **changes}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"numRecords": 4}, ["error statistics.num-records"]),
        ({"nullCount": {"id": 0}}, ["error statistics.null-count"]),
        ({"nullCount": {"id": 2}}, ["error statistics.null-count"]),
        ({"nullCount": {"id": "1"}}, ["error statistics.null-count"]),
        ({"minValues": {"id": 4}}, ["error statistics.bound"]),
        ({"maxValues": {"id": 4}}, ["error statistics.bound"]),
        ({"minValues": {"id": 2}}, ["error statistics.not-tight"]),
        ({"maxValues": {"id": 6}}, ["error statistics.not-tight"]),
        ({"minValues": {"id": 2}, "maxValues": {"id": 6}, "tightBounds": False}, []),
        ({"minValues": {"id": 4}, "tightBounds": False}, ["error statistics.bound"]),
        ({"nullCount": {"id": 2}, "tightBounds": False}, []),
        ({"nullCount": {"id": 0}, "tightBounds": False}, ["error statistics.null-count"]),
        ({"nullCount": {"id": 3}, "tightBounds": False}, ["error statistics.null-count"]),
        ({"minValues": {"id": "three"}}, ["error statistics.value"]),
        ({"minValues": {"id": 3.5}}, ["error statistics.value"]),
        ({"minValues": {"other": 3}, "nullCount": {"other": 9}}, []),
        ({"minValues": {"id": None}, "maxValues": {}}, []),
    ],
)
def test_statistics(tmp_path: Path, change: Mapping[str, Any], expected: list[str]) -> None:
    t = make(tmp_path, rows=())
    t.append([{"id": 3}, {"id": None}, {"id": 5}], stats=stats(**change))
    assert rules(t) == expected


NAN, INF = float("nan"), float("inf")
UTC = dt.timezone.utc


def at(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "values", "low", "high", "expected"),
    [
        ("string", ["abc", "abd"], "abc", "abd", []),
        ("string", ["abc" * 20], "abc" * 10, "abc" * 10 + "\U0010ffff", []),
        ("string", ["abc" * 20], "abc" * 10, "abc" * 10, ["error statistics.bound"]),
        ("string", ["abc"], "abcd", "abc", ["error statistics.bound"]),
        ("string", ["abc"], "a", "abd", []),
        ("string", ["abc"], "Abc", "zbc", ["warning statistics.not-tight"]),
        ("string", ["\uffee", "\U0001f600"], "\uffee", "\U0001f600", []),
        ("string", ["é"], 7, "é", ["error statistics.value"]),
        ("float", [0.7, 0.1], 0.1, 0.7, []),
        ("float", [0.7], 0.699, 0.7, ["error statistics.not-tight"]),
        ("double", [1.5, NAN], 1.5, "NaN", []),
        ("double", [1.5, NAN], 1.5, 1.5, ["warning statistics.nan"]),
        ("double", [NAN], "NaN", "NaN", []),
        ("double", [1.5], "NaN", 1.5, ["error statistics.bound"]),
        ("double", [1.5], 1.5, "NaN", ["error statistics.not-tight"]),
        ("double", [1.5, NAN], 1.5, 1.0, ["error statistics.bound", "warning statistics.nan"]),
        ("double", [NAN], 1.5, 1.5, ["error statistics.not-tight", "warning statistics.nan"]),
        ("double", [-INF, INF], "-Infinity", "Infinity", []),
        ("double", [0.0], -0.0, -0.0, []),
        ("date", [dt.date(2024, 2, 29)], "2024-02-29", "2024-02-29", []),
        ("date", [dt.date(2024, 2, 29)], "2024-03-01", "2024-02-29", ["error statistics.bound"]),
        ("date", [dt.date(2024, 2, 29)], "2024-02-30", "2024-02-29", ["error statistics.value"]),
        ("timestamp", [at(2024, 1, 1, 0, 0, 0, 1999)], "2024-01-01T00:00:00.001Z", "2024-01-01T00:00:00.001Z", []),
        ("timestamp", [at(2024, 1, 1, 0, 0, 0, 1999)], "2024-01-01T00:00:00.001999Z", "2024-01-01T00:00:00.001999Z",
         []),
        ("timestamp", [at(2024, 1, 1, 0, 0, 0, 1999)], "2024-01-01T00:00:00.002Z", "2024-01-01T00:00:00.001Z",
         ["error statistics.bound"]),
        ("timestamp", [at(2024, 1, 1, 0, 0, 0, 1999)], "2024-01-01T00:00:00.001Z", "2024-01-01T00:00:00Z",
         ["error statistics.bound"]),
        ("timestamp", [at(2024, 1, 1)], "2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z",
         ["warning statistics.not-tight"]),
        ("timestamp", [at(1969, 12, 31, 23, 59, 59, 999_999)], "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z",
         []),
        ("timestamp", [at(2024, 1, 1)], "2024-01-01T01:00:00+01:00", "2024-01-01T00:00:00.000Z", []),
        ("timestamp", [at(2024, 1, 1)], "1999-01-01T01:00:00", "1999-01-01T00:00:00", []),
        ("timestamp_ntz", [dt.datetime(2024, 1, 1, 0, 0, 0, 1500)], "2024-01-01T00:00:00.001",
         "2024-01-01T00:00:00.001", []),
        ("boolean", [True, False], False, True, []),
        ("boolean", [True, False], True, True, ["error statistics.bound"]),
        ("binary", [b"\0"], "anything", "at all", []),
        ("short", [-5, 5], -5, 5, []),
    ],
)  # fmt: skip
def test_bounds_of_every_type(
    tmp_path: Path, kind: str, values: list[Any], low: Any, high: Any, expected: list[str]
) -> None:
    t = make(tmp_path, {"a": kind}, rows=())
    t.append([{"a": v} for v in values], stats={"minValues": {"a": low}, "maxValues": {"a": high}})
    assert rules(t) == expected


@pytest.mark.parametrize(
    ("low", "expected"),
    [
        ("12345678901234567.89", []),
        ("12345678901234568.0", ["warning statistics.rounded"]),
        ("12345678901234999", ["error statistics.bound"]),
        ("12345678901234567.88", ["error statistics.not-tight"]),
    ],
)
def test_bounds_of_decimals_are_compared_digit_by_digit(tmp_path: Path, low: str, expected: list[str]) -> None:
    t = make(tmp_path, {"a": "decimal(20,2)"}, rows=())
    t.append([{"a": Decimal("12345678901234567.89")}], stats=f'{{"minValues":{{"a":{low}}}}}')
    assert rules(t) == expected


def test_statistics_of_nested_columns_count_nulls_around_them(tmp_path: Path) -> None:
    t = make(tmp_path, {"s": {"x": "long"}}, rows=())
    right = {"minValues": {"s": {"x": 1}}, "maxValues": {"s": {"x": 1}}, "nullCount": {"s": {"x": 2}}}
    rows = [{"s": {"x": 1}}, {"s": {"x": None}}, {"s": None}]
    t.append(rows, stats=right)
    assert rules(t) == []
    t.append(rows, stats={**right, "nullCount": {"s": {"x": 1}}, "minValues": {"s": {"x": 2}}})
    assert rules(t) == ["error statistics.bound", "error statistics.null-count"]


def test_bounds_of_a_column_with_parts(tmp_path: Path) -> None:
    t = make(tmp_path, {"s": {"x": "long"}}, rows=())
    t.append([{"s": {"x": 1}}], stats={"minValues": {"s": 1}})
    assert rules(t) == ["error statistics.value"]


def test_statistics_are_followed_through_row_groups_and_column_mapping(tmp_path: Path) -> None:
    t = make(tmp_path, {"id": "long"}, rows=(), properties={"delta.columnMapping.mode": "id"})
    t.append([{"id": i} for i in range(1000)], row_group_size=10)
    assert rules(t) == []
    name = next(iter(t.schema["fields"]))["metadata"]["delta.columnMapping.physicalName"]
    t.append([{"id": i} for i in range(1000)], row_group_size=10, stats={"maxValues": {name: 998}})
    assert rules(t) == ["error statistics.bound"]


def test_with_a_deletion_vector_bounds_are_those_of_the_rows_that_are_left(tmp_path: Path) -> None:
    t = make(tmp_path, rows=(), properties={"delta.enableDeletionVectors": "true"})
    [add] = t.append([{"id": i} for i in range(5)])
    remove, new = t.delete_rows(add, [0])
    claimed = {"numRecords": 5, "minValues": {"id": 1}, "maxValues": {"id": 4}, "nullCount": {"id": 0}}
    new["add"]["stats"] = stats_to_json(claimed)
    t.commit([remove, new])
    assert rules(t) == []
    new["add"]["stats"] = stats_to_json({**claimed, "minValues": {"id": 0}})
    t.commit([{"add": {**new["add"], "dataChange": False}}])
    assert rules(t) == ["warning statistics.not-tight"]


@pytest.mark.parametrize(
    ("nulls", "expected"),
    [
        ({"nullCount": {"id": 2}}, []),  # of the rows of the file
        ({"nullCount": {"id": 1}}, []),  # of the rows that are left
        ({"nullCount": {"id": 0}}, ["error statistics.null-count"]),
        ({"nullCount": {"id": 3}}, ["error statistics.null-count"]),
        ({"nullCount": {"id": 2}, "tightBounds": False}, []),
        ({"nullCount": {"id": 0}, "tightBounds": False}, ["error statistics.null-count"]),
        ({"nullCount": {"id": 5}, "tightBounds": False}, ["error statistics.null-count"]),
    ],
)
def test_with_a_deletion_vector_nulls_are_counted_in_the_file_or_among_the_rows_that_are_left(
    tmp_path: Path, nulls: Mapping[str, Any], expected: list[str]
) -> None:
    t = make(tmp_path, rows=(), properties={"delta.enableDeletionVectors": "true"})
    [add] = t.append([{"id": i} for i in (None, 1, None, 3, 4)])
    remove, new = t.delete_rows(add, [0, 1])
    new["add"]["stats"] = stats_to_json({"numRecords": 5, **nulls})
    t.commit([remove, new])
    assert rules(t) == expected


@pytest.mark.parametrize("claimed", [0, 2, 3])
def test_wide_null_counts_of_a_file_whose_values_were_all_deleted(tmp_path: Path, claimed: int) -> None:
    t = make(tmp_path, rows=(), properties={"delta.enableDeletionVectors": "true"})
    [add] = t.append([{"id": i} for i in (None, 1, None)])
    remove, new = t.delete_rows(add, [1])
    new["add"]["stats"] = stats_to_json({"numRecords": 3, "nullCount": {"id": claimed}, "tightBounds": False})
    t.commit([remove, new])
    assert rules(t) == (["error statistics.null-count"] if claimed == 0 else [])
