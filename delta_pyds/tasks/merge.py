"""The state of a merge that our own tasks join: bound keys, clauses and values.

Paths of columns start with ``TARGET`` or ``SOURCE``. Small, picklable, without classes of the log and Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

from delta_pyds.tasks.changed_rows import Action

if TYPE_CHECKING:
    from delta_pyds.expr.nodes import Expr

# a bound expression: of our evaluator, or of Spark
B = TypeVar("B")
ClauseKind = Literal["matched", "not_matched", "not_matched_by_source"]

TARGET: Final = "target"
SOURCE: Final = "source"
_KINDS: Final[Mapping[Action, ClauseKind]] = {
    Action.UPDATE: "matched",
    Action.DELETE: "matched",
    Action.INSERT: "not_matched",
    Action.UPDATE_NOT_MATCHED_BY_SOURCE: "not_matched_by_source",
    Action.DELETE_NOT_MATCHED_BY_SOURCE: "not_matched_by_source",
}


@dataclass(frozen=True)
class JoinKey:
    """``target = source``: each side uses only columns of its own table; both have one type. ``null_safe``: ``<=>``."""

    target: Expr
    source: Expr
    null_safe: bool = False


@dataclass(frozen=True)
class JoinCondition:
    """The condition of a merge: all keys are equal, and all other conditions are true.

    Invariant: there is at least one key. ``target``, ``source``: conditions on the rows of one side. ``both``:
    conditions on pairs of rows with equal keys. ``asks_for_time``: an expression contains the time of planning, which
    differs from Spark's.
    """

    keys: tuple[JoinKey, ...]
    target: tuple[Expr, ...] = ()
    source: tuple[Expr, ...] = ()
    both: tuple[Expr, ...] = ()
    asks_for_time: bool = False


@dataclass(frozen=True)
class Clause(Generic[B]):
    """A clause: the action on the rows of one kind that satisfy ``condition``; without a condition on all of them.

    ``values``: the values of a written row, by position in the table's schema and of the table's types; None if the
    writer makes the value (defaults and generated columns of inserted rows). Empty for a delete.
    """

    action: Action
    condition: B | None = None
    values: tuple[B | None, ...] = ()

    @property
    def kind(self) -> ClauseKind:
        return _KINDS[self.action]

    def expressions(self) -> Iterator[B]:
        if self.condition is not None:
            yield self.condition
        yield from (value for value in self.values if value is not None)


@dataclass(frozen=True)
class MergeRules:
    """The bound condition and clauses of a merge. Clauses of one kind are in the user's order.

    ``one_match``: two rows of the source that match one row of the table are an error.
    """

    on: JoinCondition
    matched: tuple[Clause[Expr], ...] = ()
    not_matched: tuple[Clause[Expr], ...] = ()
    not_matched_by_source: tuple[Clause[Expr], ...] = ()
    one_match: bool = True
