"""Texts of other dialects in Spark SQL, and when two engines' rows are the same."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from tests.bench.peers.dialect import spark_sql, without_limit
from tests.bench.peers.rows import first_difference


def test_adaptations_are_named_and_leave_texts_alone() -> None:
    sql, rules = spark_sql("""SELECT a AS "order count", '"no name"', 'it''s "x"' FROM t;\n""")
    assert sql == """SELECT a AS `order count`, '"no name"', 'it''s "x"' FROM t"""
    assert rules == ["no semicolon at the end", "names in backticks, not in double quotes"]
    assert spark_sql("SELECT 1") == ("SELECT 1", [])


def test_only_the_last_limit_goes() -> None:
    inner = "SELECT * FROM (SELECT a FROM t LIMIT 5) ORDER BY a"
    assert without_limit(f"{inner}\nLIMIT 100") == inner
    assert without_limit(inner) == inner


def test_numbers_are_nearly_equal_and_everything_else_exactly() -> None:
    left = [(1, Decimal("2.50"), 0.1 + 0.2, "a", None, dt.date(2026, 1, 2), float("nan"))]
    right = [(1.0, 2.5, 0.3, "a", None, "2026-01-02", float("nan"))]
    assert first_difference(left, right, ordered=True) == ""
    for place, other in enumerate((2, 2.51, 0.31, "b", 0, "2026-01-03", 1.0)):
        changed = [*right[0][:place], other, *right[0][place + 1 :]]
        assert first_difference(left, [changed], ordered=False).startswith("row 0")


@pytest.mark.parametrize("ordered", [True, False])
def test_order_counts_where_it_was_asked_for(ordered: bool) -> None:
    rows: list[tuple[object, ...]] = [(1, "a"), (2, None), (2, "b")]
    found = first_difference(rows, rows[::-1], ordered=ordered)
    assert bool(found) == ordered
    assert first_difference(rows, rows[:2], ordered=ordered) == "3 rows and 2"
    assert first_difference(rows, [*rows[:2], rows[1]], ordered=ordered)
