"""Short forms for the tests of the parser."""

from __future__ import annotations

from typing import Any, TypeVar

from delta_pyds.statements.kinds import SqlText
from delta_pyds.statements.parse import parse_statement

T = TypeVar("T")
PATH = "delta.`/data/t`"


def parsed(text: str, kind: type[T], args: Any = None) -> T:
    """The statement, which is of this kind; each piece of it stands in the text where it says."""
    found = parse_statement(text, args).statement
    assert isinstance(found, kind), found
    if args is None:
        _check_places(text, found)
    return found


def _check_places(text: str, value: Any) -> None:
    if isinstance(value, SqlText):
        assert text[value.position : value.position + len(value.text)] == value.text, value
    elif isinstance(value, tuple):
        for one in value:
            _check_places(text, one)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            _check_places(text, getattr(value, name))
