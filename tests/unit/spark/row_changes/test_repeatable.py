"""Texts that decide the same way again: what Spark Connect must go by."""

from __future__ import annotations

import pytest

from delta_pyds.spark.row_changes.repeatable import _CLOCK, _has_only

NAMES = {"id", "name", "t", "a.b"}


@pytest.mark.parametrize(
    "text",
    [
        "id > 3 AND t.name LIKE 'a%'",
        "upper(name) = 'X' OR id IS NOT NULL",
        "CASE WHEN id BETWEEN 1 AND 2 THEN true ELSE false END",
        "cast(id AS string) = '3' AND id IN (1, 2)",
        "ID = 1 and Name = 'rand() is a text'",
        "`a.b` = 1",
        "id > to_date('2020-01-01') AND cast('2020-01-01' AS date) < make_date(2020, 1, id)",
        "name || 'day' = 'a' AND concat('to', upper(name)) = 'b'",
    ],
)
def test_a_text_that_only_columns_decide(text: str) -> None:
    assert _has_only(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "rand() < 0.5",
        "id < RAND ( ) * 5",
        "uuid() = name",
        "shuffle(array(id))[0] = 1",
        "current_date() > date'2020-01-01'",
        "CURRENT_DATE > date'2020-01-01'",
        "current_user() = name",
        "now() IS NULL",
        "unix_timestamp() > id",
        "id IN (SELECT id FROM others)",
        "EXISTS (SELECT 1 FROM others)",
        "variable = id",
        "session.variable = id",
        "name = 'not closed",
        "cast('to' || 'day' AS date) > id",
        "cast('to' 'day' AS date) > id",
        "id = concat('to', 'day')",
        "id = concat('to', lower('DAY'), upper(name))",
        "to_date(reverse('yadot')) = id",
        "id = cast(X'746F646179' AS string)",
        r"id = cast('to\u0064ay' AS date)",
        "id = array('x')[0]",
    ],
)
def test_a_text_that_something_else_may_decide(text: str) -> None:
    assert not _has_only(text, NAMES)


@pytest.mark.parametrize("text", ["cast('now' AS date)", "date'today'", "'Tomorrow '", "${limit}", "Column<'a...'>"])
def test_words_that_mean_the_time_of_a_query(text: str) -> None:
    assert _CLOCK.search(text)


def test_other_words_do_not() -> None:
    assert _CLOCK.search("known = 'nowhere' AND todays = 1") is None
