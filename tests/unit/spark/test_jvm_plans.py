"""The text of a plan that Spark may have cut."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError

from delta_pyds.spark.jvm_plans import whole_text


class Plan:
    def __init__(self, text: str) -> None:
        self.text = text

    def treeString(self, *_: Any) -> str:  # noqa: N802 - Java's name
        return self.text


class OldPlan(Plan):
    """Of a Spark that lacks the method."""

    def treeString(self, *_: Any) -> str:  # noqa: N802 - Java's name
        raise Py4JError("Method treeString does not exist")

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
    for plan in (Plan(text), OldPlan(text)):
        assert whole_text(plan) == (text if whole else None)


def test_a_text_that_lacks_fields_is_not_returned() -> None:
    assert whole_text(OldPlan("Project [a#1, ... 30 more fields]\n+- OneRowRelation\n")) is None
