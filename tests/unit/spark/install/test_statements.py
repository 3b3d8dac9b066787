"""Which texts an installed ``spark.sql`` looks at."""

from __future__ import annotations

import pytest

from delta_pyds.spark.install.statements import _COMMAND, _VIEW_USING_DELTA, creates_delta


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/* a */ -- b\n (/* c ** */INSERT INTO t SELECT 1", True),
        ("/* INSERT */ SELECT 1", False),
        ("/**/ MERGE INTO t", True),
        ("SELECT /* x */ INSERT", False),
        ("/* INSERT INTO t", False),
    ],
)
def test_a_command_may_stand_behind_comments(text: str, command: bool) -> None:
    assert bool(_COMMAND.match(text)) == command


def test_many_comments_take_no_longer_than_a_few() -> None:
    """The pattern knows one way alone to read a comment: else this would take as long as the universe is old."""
    assert not _COMMAND.match("/* c */ -- d\n" * 1_000 + "SELECT 1")


@pytest.mark.parametrize(
    ("text", "creates"),
    [
        ("/* x */ create or replace\nTABLE t (a INT) using\n`Delta` AS SELECT 1", True),
        ("CREATE TABLE t USING parquet AS SELECT 1", False),
        ("CREATE TABLE t (a INT); SELECT USING delta", False),
        ("CREATE VIEW v AS SELECT * FROM a JOIN b USING delta", False),
        ("CREATE TABLE t AS " + "SELECT TABLE USING x " * 20_000, False),  # quadratic, it would take minutes
    ],
)
def test_a_table_of_delta_is_known_by_its_words(text: str, creates: bool) -> None:
    assert creates_delta(text) == creates


@pytest.mark.parametrize(
    ("text", "provider"),
    [
        ("/* x */ create or replace temp view `a b` (a DECIMAL(1,2)) using\n`delta` OPTIONS (path '/x')", "`delta`"),
        ("CREATE GLOBAL TEMPORARY VIEW v(a INT)USING Delta", "Delta"),
        ("CREATE TEMP VIEW v USING deltapy", None),
        ("CREATE TEMP VIEW v AS SELECT 1 USING delta", None),
        ("CREATE VIEW v USING delta", None),
        ("CREATE TEMP VIEW v (" + ") " * 20_000, None),
    ],
)
def test_a_view_of_the_source_delta_is_known_by_its_words(text: str, provider: str | None) -> None:
    found = _VIEW_USING_DELTA.match(text)
    assert (found and found[1]) == provider
