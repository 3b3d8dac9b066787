"""Names of the table in conditions of ``df.mergeInto``."""

from __future__ import annotations

import pytest

from delta_pyds.spark.install.merges import bare_names


@pytest.mark.parametrize(
    ("text", "kept", "bare"),
    [
        ("s.id = id", "s.id = id", "s.id = id"),
        ("s.id = delta.`/x`.id", "s.id = `/x`.id", "s.id = id"),
        ("`spark_catalog` . Delta.`/x` .id+`/x`.n.m", "`/x` .id+`/x`.n.m", "id+n.m"),
        ("DELTAPY.`/x`.`a``b` > 1", "`/x`.`a``b` > 1", "`a``b` > 1"),
        ("a = 'delta.`/x`.id' -- delta.`/x`.id", "a = 'delta.`/x`.id' -- delta.`/x`.id", None),
        ("delta.`/y`.id = other.delta.`/x`.id", "delta.`/y`.id = other.delta.`/x`.id", None),
        ("spark_catalog.`/x`.id = delta.`/x`", "spark_catalog.`/x`.id = delta.`/x`", None),
        ("a = 'open", "a = 'open", None),
    ],
)
def test_the_tables_own_name_goes_and_nothing_else(text: str, kept: str, bare: str | None) -> None:
    assert bare_names(text, "/x", keep=True) == kept
    assert bare_names(text, "/x") == (text if bare is None else bare)
