"""The rows of a merge's source, held in memory, and their matches in the table.

Invariant: a pair of rows is found exactly if the merge's condition is true of it. Expressions are evaluated only for
rows for which Spark's join would evaluate them: a pair whose keys differ raises no error.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.evaluate import evaluate, value_of
from delta_pyds.columnar.key_index import KeyIndex
from delta_pyds.columnar.rows import Resolver, Rows, batch_resolver
from delta_pyds.expr.nodes import Expr
from delta_pyds.tasks.merge import SOURCE, TARGET, JoinCondition


class JoinedSource:
    """``rows``: all rows of the source, columns by logical name in the types that expressions are evaluated in."""

    def __init__(self, rows: pa.RecordBatch, on: JoinCondition) -> None:
        """Raises: ExpressionError for a row whose key has no value under ANSI rules."""
        self.rows = rows
        self._on = on
        columns = {SOURCE: batch_resolver(rows)}
        resolve = _sided(columns)
        kept = true_rows(on.source, resolve, rows.num_rows)
        # the numbers of the rows that can match; None if all can
        self._candidates: pa.Array | None = None
        if kept is not None:
            self._candidates = pc.indices_nonzero(kept).cast(pa.int64())
            resolve = _sided({SOURCE: taking(columns[SOURCE], self._candidates)})
        count = rows.num_rows if self._candidates is None else len(self._candidates)
        self.keys = [evaluate(key.source, resolve, count) for key in on.keys]
        self._index = KeyIndex(self.keys, [key.null_safe for key in on.keys])

    def matches(self, target: Resolver, num_rows: int) -> tuple[pa.Array, pa.Array]:
        """All matching pairs: row numbers in ``target``, ascending, and row numbers in ``rows``; both int64.

        ``target``: the columns of ``num_rows`` rows of the table, at least those of the condition.
        """
        resolve = _sided({TARGET: target})
        kept = true_rows(self._on.target, resolve, num_rows)
        among = None if kept is None else pc.indices_nonzero(kept).cast(pa.int64())
        count = num_rows if among is None else len(among)
        if among is not None:
            resolve = _sided({TARGET: taking(target, among)})
        target_rows, source_rows = self._index.matches([evaluate(key.target, resolve, count) for key in self._on.keys])
        if among is not None:
            target_rows = among.take(target_rows)
        if self._candidates is not None:
            source_rows = self._candidates.take(source_rows)
        if self._on.both:
            both = _sided({TARGET: taking(target, target_rows), SOURCE: self.columns(source_rows)})
            kept = true_rows(self._on.both, both, len(target_rows))
            if kept is not None:
                target_rows, source_rows = target_rows.filter(kept), source_rows.filter(kept)
        return target_rows, source_rows

    def columns(self, at: pa.Array) -> Resolver:
        """The columns of these rows, by their path; null where a number in ``at`` is null."""
        return taking(batch_resolver(self.rows), at)


def _sided(sides: dict[str, Resolver]) -> Resolver:
    return lambda path: sides[path[0]](path[1:])


def both_sides(target: Resolver | None, source: Resolver | None) -> Resolver:
    """The columns of the given sides; paths begin with the side."""
    sides = {TARGET: target, SOURCE: source}
    return _sided({name: side for name, side in sides.items() if side is not None})


def taking(columns: Resolver, at: pa.Array) -> Resolver:
    """The columns of some rows; each column is taken at its first use."""
    taken: dict[tuple[str, ...], pa.Array] = {}

    def resolve(path: tuple[str, ...]) -> pa.Array:
        if path not in taken:
            taken[path] = columns(path).take(at)
        return taken[path]

    return resolve


def true_rows(conditions: Sequence[Expr], columns: Resolver, count: int) -> pa.BooleanArray | None:
    """Whether all conditions are true, for each row; None if they are true for all rows.

    A condition is evaluated only for rows for which the previous ones are true.

    Raises: ExpressionError.
    """
    rows = Rows(columns, count)
    for condition in conditions:
        rows = rows.only(value_of(condition, rows))
    return rows.live
