"""The text of a plan that Spark may have cut."""

from __future__ import annotations

import pytest

from delta_pyds.spark.plan_text import whole_text


class Plan:
    def __init__(self, text: str) -> None:
        self.text = text

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self.text


@pytest.mark.parametrize(
    "text, whole",
    [
        ("SubqueryAlias t\n+- LocalRelation [id#1L]\n", True),
        ("Project [concat(... 3 more characters) AS x#1]\n+- OneRowRelation\n", True),
        ("SubqueryA... 35 more characters", False),
        ("Truncated plan of 50 characters", False),
    ],
)
def test_a_cut_text_is_not_returned(text: str, whole: bool) -> None:
    assert whole_text(Plan(text)) == (text if whole else None)
