"""The parts of a condition's text that may leave files out: never more than the condition itself says."""

from __future__ import annotations

import pytest

from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE
from delta_pyds.protocol.schema import LONG, STRING, StructField, StructType
from delta_pyds.spark.row_changes.expressions import (
    _without_alias,
    conjunct_texts,
    mentioned,
    names_any,
    padded_columns,
)

SCHEMA = StructType((StructField("id", LONG), StructField("Name", STRING), StructField("a`b", LONG)))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = 1", ["a = 1"]),
        ("a = 1 AND b = 2 and c", ["a = 1", "b = 2", "c"]),
        ("a = 1 AND b = 2 OR c", ["a = 1 AND b = 2 OR c"]),
        ("a AND (b OR c) AND f(x -> x AND y)", ["a", "(b OR c)", "f(x -> x AND y)"]),
        ("a BETWEEN 1 AND 2 AND NOT b BETWEEN 3 AND 4", ["a BETWEEN 1 AND 2", "NOT b BETWEEN 3 AND 4"]),
        (
            "a AND id IN (SELECT id FROM t WHERE x OR y) -- no AND here",
            ["a", "id IN (SELECT id FROM t WHERE x OR y) -- no AND here"],
        ),
        ("a = ' AND ' AND `x AND y`", ["a = ' AND '", "`x AND y`"]),
        # words that may be names: what they enclose is not known
        ("a = 1 AND end = 2 OR b = 3", ["a = 1 AND end = 2 OR b = 3"]),
        ("case = 1 OR end = 2 AND c = 3", ["case = 1 OR end = 2 AND c = 3"]),
        ("a AND CASE WHEN b THEN c AND d END", ["a AND CASE WHEN b THEN c AND d END"]),
        ("a) OR (b AND c", ["a) OR (b AND c"]),
        ("'not closed AND b", ["'not closed AND b"]),
    ],
)
def test_only_what_must_be_true_is_cut_off(text: str, parts: list[str]) -> None:
    assert conjunct_texts(text) == parts


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("t.id = 1 AND T.`name` = 't.id'", "id = 1 AND `name` = 't.id'"),
        ("t . id + s.t.id", "id + s.t.id"),
        ("id = 1", "id = 1"),
        ("'not closed t.id", None),
    ],
)
def test_the_alias_before_names_is_left_out(text: str, plain: str | None) -> None:
    assert _without_alias(text, SCHEMA, "t") == plain
    assert _without_alias("name.id = 1", SCHEMA, "name") is None  # which of the two it means is Spark's to say
    assert (
        _without_alias("name = 'name.'", SCHEMA, "name") == "name = 'name.'"
    )  # before a dot alone it can be the table


def test_columns_that_a_text_cannot_be_about() -> None:
    assert mentioned(["ID > 3"], SCHEMA) == ["id", "a`b"]
    assert mentioned(["f(naME)", "1"], SCHEMA) == ["Name", "a`b"]
    assert mentioned(["count(*)"], SCHEMA) is None
    assert mentioned(["IDENTIFIER('i' || 'd') = 1"], SCHEMA) is None


def test_no_text_about_a_char_column_is_certain() -> None:
    """Spark sees such values with spaces behind, whatever files and their statistics have."""
    kept = {CHAR_VARCHAR_TYPE: "char(3)"}, {CHAR_VARCHAR_TYPE: "varchar(3)"}
    inner = StructType((StructField("x", STRING, metadata=kept[0]),))
    padded = padded_columns(
        StructType(
            (
                StructField("Code", STRING, metadata=kept[0]),
                StructField("v", STRING, metadata=kept[1]),
                StructField("s", inner),
                StructField("t", STRING),
            )
        )
    )
    assert padded == {"code", "s"}
    for text in ("code = 'a'", "t.`CODE` <=> 'a' AND v = 'b'", "S.x = 'a'", "hash(*) = 1", "'open"):
        assert names_any(text, padded), text
    for text in ("v = 'code'", "t = 'a' -- code", "t.v = 1"):
        assert not names_any(text, padded), text
    assert not names_any("hash(*) = 1", frozenset())
