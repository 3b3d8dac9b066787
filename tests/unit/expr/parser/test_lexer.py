"""Words, comments and symbols as Spark's lexer has them; tests/spark/test_lexer.py holds both against each other."""

from __future__ import annotations

import pytest

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.parser.lexer import tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a/*/**/*/b", "a b"),
        ("a/* /* */ ' */b", "a b"),
        ("a -- b\\\n c\n d", "a d"),
        ("a -- b\r c", "a c"),
        ("a/*x/*+ */b", "a b"),
        ("a !< b !> c >>> d |> e", "a !< b !> c >>> d |> e"),
        ("gs://bucket/day=1--x b3://c", "gs://bucket/day=1--x b3 : / / c"),
        ("1.5\u00e9", "1.5 \u00e9"),
        ("1e3\u00e9 1\u00e9", "1e3\u00e9 1\u00e9"),
        ("1.\u017f", "1 . \u017f"),
        ("1e+12L 1e12L 1e+12Dx 1e-1BD", "1e+12 L 1e12L 1e+12D x 1e-1BD"),
    ],
)
def test_texts_are_cut_as_spark_cuts_them(text: str, tokens: str) -> None:
    assert [token.text for token in tokenize(text)[:-1]] == tokens.split()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a */ b", r"near '\*/'"),
        ("a*/*c*/b", r"near '\*/'"),
        ("a /*+ BROADCAST(t) */", "only a query can have a hint"),
        ("a /* /* */", "the comment is not closed"),
        ("a\u00b2", "near '\u00b2': no such character"),
        ("\u0661 + 1", "near '\u0661"),
    ],
)
def test_what_is_no_text_of_sparks_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError, match=problem):
        tokenize(text)
