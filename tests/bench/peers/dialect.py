"""Query texts of DuckDB's benchmark extensions in Spark SQL: each adaptation is a named rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_TEXT = r"'(?:[^']|'')*'"


class Rule(NamedTuple):
    """``name``: what the rule changes, as results show it."""

    name: str
    rewrite: Callable[[str], str]


def _outside_texts(pattern: str, replacement: str) -> Callable[[str], str]:
    """A rewrite of every match that is not within a text literal."""
    either = re.compile(f"({_TEXT})|{pattern}", re.IGNORECASE)

    def rewrite(sql: str) -> str:
        return either.sub(lambda match: match[1] or match.expand(replacement), sql)

    return rewrite


RULES = (
    Rule("no semicolon at the end", lambda sql: sql.strip().rstrip(";").rstrip()),
    Rule("names in backticks, not in double quotes", _outside_texts(r'"([^"]*)"', r"`\2`")),
)


def spark_sql(sql: str) -> tuple[str, list[str]]:
    """The text in Spark SQL, and the names of the rules that changed it."""
    used = []
    for rule in RULES:
        adapted = rule.rewrite(sql)
        if adapted != sql:
            used.append(rule.name)
        sql = adapted
    return sql, used


def without_limit(sql: str) -> str:
    """The query without its last LIMIT: rows that tie at the limit are any of them."""
    return re.sub(r"\sLIMIT\s+\d+\s*$", "", sql, flags=re.IGNORECASE)
