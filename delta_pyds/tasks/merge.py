"""What the tasks of a merge are told that join in this process: keys, clauses, values, all bound.

Small, picklable, free of the log's classes and of Arrow. Columns of both tables are named by paths that begin with
``TARGET`` or ``SOURCE``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from delta_pyds.tasks.changed_rows import Action

if TYPE_CHECKING:
    from delta_pyds.expr.nodes import Expr

TARGET: Final = "target"
SOURCE: Final = "source"


@dataclass(frozen=True)
class JoinKey:
    """``target = source``: each side of columns of its own table, both of one type. ``null_safe``: ``<=>``."""

    target: Expr
    source: Expr
    null_safe: bool = False


@dataclass(frozen=True)
class JoinCondition:
    """The condition of a merge: all keys are equal and all else is true.

    Invariant: there is at least one key. ``target`` and ``source``: what each row of one side must keep for itself;
    ``both``: what a pair of rows must keep whose keys are equal.
    """

    keys: tuple[JoinKey, ...]
    target: tuple[Expr, ...] = ()
    source: tuple[Expr, ...] = ()
    both: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Clause:
    """What becomes of the rows of one kind that satisfy ``condition``; None takes all of them.

    ``action``: tells the kind too. ``values``: by position in the table's schema, of the table's types, what a written
    row gets; None where the writer makes the value (defaults and generated columns of inserted rows).
    """

    action: Action
    condition: Expr | None = None
    values: tuple[Expr | None, ...] = ()

    def expressions(self) -> Iterator[Expr]:
        if self.condition is not None:
            yield self.condition
        yield from (value for value in self.values if value is not None)


@dataclass(frozen=True)
class MergeRules:
    """A merge, bound. Clauses of one kind are in the user's order.

    ``one_match``: two rows of the source on one row of the table are an error.
    """

    on: JoinCondition
    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    not_matched_by_source: tuple[Clause, ...] = ()
    one_match: bool = True
