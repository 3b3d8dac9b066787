"""Names in backticks, as SQL and the options quote them."""

from __future__ import annotations

import re

_PLAIN = re.compile("[a-zA-Z_][a-zA-Z0-9_]*")


def quote_name(*parts: str) -> str:
    """The name of a column, a nested field or a table, each part quoted.

    >>> quote_name("events", "a.b")
    '`events`.`a.b`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quote_where_needed(name: str) -> str:
    """The name as Spark shows it: bare if it is a word of ASCII letters, digits and ``_``, and begins with no digit."""
    return name if _PLAIN.fullmatch(name) else quote_name(name)
