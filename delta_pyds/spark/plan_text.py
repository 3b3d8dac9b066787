"""The text of a plan of the JVM."""

from __future__ import annotations

import re
from typing import Any

# the end of a text that is longer than spark.sql.maxPlanStringLength
_CUT = re.compile(r"(?:\.\.\. -?\d+ more characters|Truncated plan of -?\d+ characters)\s*\Z")


# by default, Spark shows at most 25 expressions of a node
_ALL_FIELDS = 1 << 30
_SOME_FIELDS = re.compile(r"\.\.\. -?\d+ more fields")


def whole_text(plan: Any) -> str | None:
    """The text of each node of a plan, with all its expressions. Returns: None if Spark cut it."""
    from py4j.protocol import Py4JError

    try:
        # verbose, without a suffix; neither numbers of operators nor their output
        text: str = plan.treeString(True, False, _ALL_FIELDS, False, False)
    except Py4JError:  # another version of Spark
        text = plan.toString()
        if _SOME_FIELDS.search(text):
            return None
    return None if _CUT.search(text) else text
