"""The clauses of a merge, applied to matched or unmatched rows: the rows of each clause, and their new values.

Invariant: of the clauses for a row's kind, the first one whose condition is true changes the row. Conditions and values
are evaluated only for rows that reach them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.evaluate import evaluate
from delta_pyds.columnar.rows import Resolver
from delta_pyds.data.row_changes.join import taking, true_rows
from delta_pyds.expr.nodes import Expr
from delta_pyds.tasks.merge import Clause


@dataclass(frozen=True)
class ClauseRows:
    """The rows that a clause changes. ``rows``: their numbers, int64, ascending. ``values``: see ``Clause.values``."""

    clause: Clause[Expr]
    rows: pa.Array
    values: tuple[pa.Array | None, ...]


def take_clauses(clauses: Sequence[Clause[Expr]], columns: Resolver, rows: pa.Array) -> Iterator[ClauseRows]:
    """Yield the rows that each clause changes. ``clauses``: all of one kind. ``rows``: row numbers in ``columns``.

    Raises: ExpressionError for a row without a value under ANSI rules.
    """
    for clause in clauses:
        if not len(rows):
            return
        taken = rows
        if clause.condition is None:
            rows = rows.slice(0, 0)
        else:
            mask = true_rows([clause.condition], taking(columns, rows), len(rows))
            if mask is not None:
                taken, rows = rows.filter(mask), rows.filter(pc.invert(mask))
            else:
                rows = rows.slice(0, 0)
        if len(taken):
            resolve = taking(columns, taken)
            values = [None if value is None else evaluate(value, resolve, len(taken)) for value in clause.values]
            yield ClauseRows(clause, taken, tuple(values))
