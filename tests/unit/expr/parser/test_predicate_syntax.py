"""Words that are columns or constructs, refusals with their place, and texts that repeat without end."""

from __future__ import annotations

import pytest

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Predicate, to_sql
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.protocol.schema import BOOLEAN, DATE, INTEGER, STRING, ArrayType, StructField, StructType

SCHEMA = StructType(
    (
        StructField("i", INTEGER),
        StructField("b", BOOLEAN),
        StructField("s", STRING),
        StructField("dt", DATE),
        StructField("ar", ArrayType(INTEGER)),
        StructField("st", StructType((StructField("x", INTEGER),))),
    )
)


def parse(text: str) -> Predicate:
    return parse_predicate(text, SCHEMA, time_zone="UTC")


WORDS = ("case", "interval", "end", "from", "as", "when", "then", "else", "div", "time", "symmetric", "distinct", "any",
         "date", "current_date", "select", "over", "int")  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    "text",
    ["{} = 1", "1 < {}", "{} IS NULL", "{} NOT IN (1)", "{} % 2 = 1", "{}::bigint = 1", "mod({} % 5, 2) = 1 OR b",
     "i BETWEEN {} AND 5", "{} BETWEEN 1 AND 2", "b AND i = {}"],
)  # fmt: skip
def test_words_of_constructs_are_columns_where_the_table_has_them(word: str, text: str) -> None:
    schema = StructType(tuple(StructField(n, t) for n, t in ((word, INTEGER), ("i", INTEGER), ("b", BOOLEAN))))
    plain = StructType(tuple(StructField(n, t) for n, t in (("plain", INTEGER), ("i", INTEGER), ("b", BOOLEAN))))
    found = to_sql(parse_predicate(text.format(word), schema, time_zone="UTC").expr)
    assert found.replace(word, "plain") == to_sql(parse_predicate(text.format("plain"), plain, time_zone="UTC").expr)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("i BETWEEN SYMMETRIC 1 AND 2", "BETWEEN SYMMETRIC"),
        ("CASE (b) WHEN true THEN b END", "CASE"),
        ("dt + INTERVAL 1 DAY > dt", "the operator +"),
        ("like(s, 'a', '!')", "the function like"),
        ("negative(i) = 1", "the function negative"),
        ("rlike(s, 'a')", "the function rlike"),
        ("trim(LEADING 'x' FROM s) = 'a'", "the function trim"),
        ("+(1) = i", "+ before anything but a number"),
        ("time = 1", "TIME"),
        ("current_user = s", "the function current_user"),
        ("(st).x = 1", "a field of an expression"),
    ],
)
def test_a_refusal_says_what_and_where(text: str, named: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.parameters["construct"] == named
    assert caught.value.message.startswith(f"{named} is not supported in a predicate, at position ")


@pytest.mark.parametrize("text", ["startswith(s)", "mod() = 1", "contains(s, 'a', 'b')"])
def test_a_wrong_number_of_arguments_is_told(text: str) -> None:
    with pytest.raises(ExpressionError, match="takes 2 arguments") as caught:
        parse(text)
    assert caught.value.code == "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"


def test_a_text_with_two_mistakes_is_a_syntax_error_first() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("nope = 1 AND i = ")
    assert caught.value.code == "PARSE_SYNTAX_ERROR"


@pytest.mark.parametrize("text", ["{}i = 1", "{}b"])
@pytest.mark.parametrize("prefix", ["-", "+ ", "ar[", "position(", "(", "cast(", "CASE "])
def test_whatever_repeats_without_end_is_refused(prefix: str, text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text.format(prefix * 3000))
