"""Which texts an installed ``spark.sql`` looks at."""

from __future__ import annotations

import pytest

from delta_pyds.spark.install.statements import _COMMAND


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
