"""Limits the size of bound expressions relative to their text."""

from __future__ import annotations

from collections.abc import Iterable

from delta_pyds.expr.parser.syntax import Apply, CaseOf, CastTo, Constant, Name, Syntax
from delta_pyds.expr.parser.token_reader import TokenReader

_PLAIN = (Name, Constant)
# operators and functions that name an argument more often than the text does
_REPEATING = {"BETWEEN": 1, "IN": 1, "<=>": 2, "IS": 2, "nullif": 1, "nullifzero": 1, "equal_null": 1}


def require_moderate_size(syntax: Syntax, grammar: TokenReader) -> None:
    """Refuse what grows with each level it is nested in: ``nullif(nullif(...))`` stands twice for each ``nullif``."""
    left = 4 * len(grammar.tokens) + 10_000
    pending: list[Syntax] = [syntax]
    while pending and left > 0:
        node = pending.pop()
        left -= 1
        inner: Iterable[Syntax] = ()
        if isinstance(node, Apply):
            inner = node.args
            if node.function in _REPEATING:
                pending.extend(arg for arg in node.args[:2] * _REPEATING[node.function] if not isinstance(arg, _PLAIN))
        elif isinstance(node, CastTo):
            inner = (node.child,)
        elif isinstance(node, CaseOf):
            inner = [part for branch in node.branches for part in branch]
            pending.extend(part for part in (node.otherwise,) if part is not None)
        pending.extend(part for part in inner if not isinstance(part, _PLAIN))
    if left <= 0:
        grammar.index = 0
        grammar.refuse("nesting of CASE, BETWEEN, IS, <=> or NULLIF that repeats what is inside too often")
