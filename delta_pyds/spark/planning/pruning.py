"""Conditions of a statement that rule files out. Spark evaluates them on the rows itself.

Invariant: they remove no row from the result of the statement. So a frame may have any other row of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from delta_pyds.expr.nodes import Expr, Predicate
from delta_pyds.protocol.schema import StructType
from delta_pyds.table.snapshot import Snapshot


class Pruning:
    """``find``: returns the conjuncts for the table's schema and the session's time zone, with their texts.

    ``snapshot``: the open table; until then None.
    """

    def __init__(self, find: Callable[[StructType, str], Iterable[tuple[str, Predicate]]]) -> None:
        self._find = find
        self._found: tuple[tuple[str, Predicate], ...] = ()
        self.snapshot: Snapshot | None = None
        self.time_zone = ""

    def predicates(self, snapshot: Snapshot, time_zone: str) -> tuple[Expr, ...]:
        """The conjuncts for an open table. ``time_zone``: the session's."""
        self.snapshot, self.time_zone = snapshot, time_zone
        self._found = tuple(self._find(snapshot.schema, time_zone))
        return tuple(predicate.expr for _, predicate in self._found)

    @property
    def text(self) -> str | None:
        """All conjuncts; None without any."""
        return conjunction(text for text, _ in self._found)

    @property
    def text_without_time_zone(self) -> str | None:
        """The conjuncts that depend on no time zone; None without any."""
        return conjunction(text for text, predicate in self._found if not predicate.uses_time_zone)


def conjunction(conjuncts: Iterable[str]) -> str | None:
    """The texts as one predicate; None without texts."""
    # a comment ends with its line, or after a backslash with the next one
    return " AND ".join(f"({text}\n\n)" for text in conjuncts) or None
