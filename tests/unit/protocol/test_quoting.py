"""Names in backticks."""

from __future__ import annotations

import pytest

from delta_pyds.protocol.quoting import quote_name, quote_where_needed


def test_each_part_is_quoted() -> None:
    assert quote_name("a`b") == "`a``b`"
    assert quote_name("spark_catalog", "a.b", "c") == "`spark_catalog`.`a.b`.`c`"
    assert quote_name() == ""


@pytest.mark.parametrize("name", ["a", "_1", "A9_z"])
def test_plain_names_stay(name: str) -> None:
    assert quote_where_needed(name) == name


@pytest.mark.parametrize("name", ["", "1a", "a b", "größe", "a.b", "a\n"])
def test_other_names_are_quoted(name: str) -> None:
    assert quote_where_needed(name) == f"`{name}`"
