from __future__ import annotations

import pytest

from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.spark.built_in_functions import called


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id + 1 IN (2) AND (p DIV (3)) > CAST(x AS DECIMAL(3, 1))", ["DECIMAL"]),
        ("exp(id) < session.fsum()", ["exp", "fsum"]),
        ("sum(id) FILTER (WHERE id > 1) OVER (ORDER BY id)", ["sum"]),
        # words of expressions, which may be names of a session's functions
        ("X() + long(1) > year(2) OR date(3)", ["X", "long", "year", "date"]),
        ("CASE WHEN (a) THEN `end`(1) END", ["end"]),
    ],
)
def test_called_functions(text: str, names: list[str]) -> None:
    assert [token.value for token in called(tokenize(text))] == names
