"""The text of a plan of the JVM."""

from __future__ import annotations

import re
from typing import Any

# the end of a text that is longer than spark.sql.maxPlanStringLength
_CUT = re.compile(r"(?:\.\.\. -?\d+ more characters|Truncated plan of -?\d+ characters)\s*\Z")


def whole_text(plan: Any) -> str | None:
    """The text of each node of a plan. Returns: None if Spark cut it. A node may show only some of its fields."""
    text: str = plan.toString()
    return None if _CUT.search(text) else text
