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
    ],
)
def test_a_text_that_something_else_may_decide(text: str) -> None:
    assert not _has_only(text, NAMES)


@pytest.mark.parametrize("text", ["cast('now' AS date)", "date'today'", "'Tomorrow '", "${limit}", "Column<'a...'>"])
def test_words_that_mean_the_time_of_a_query(text: str) -> None:
    assert _CLOCK.search(text)


def test_other_words_do_not() -> None:
    assert _CLOCK.search("known = 'nowhere' AND todays = 1") is None
