"""Names of two tables in one expression: each name is resolved to a side, by Spark's rules.

Invariant: in the bound tree each column's path begins with the name of its side, so no two columns are confused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_pyds.errors import ColumnNotFoundError, ExpressionError
from delta_pyds.expr.binder.binding import Binder
from delta_pyds.expr.binder.build import bind_column
from delta_pyds.expr.functions.session_context import SessionContext, text_argument
from delta_pyds.expr.nodes import Column, Expr
from delta_pyds.expr.parser.syntax import Apply, Name
from delta_pyds.protocol.schema import BOOLEAN, StructType


@dataclass(frozen=True)
class Side:
    """One of the tables. ``name``: the first part of its columns' paths. ``alias``: its name in texts."""

    name: str
    schema: StructType
    alias: str | None = None


class SidedBinder(Binder):
    """Binds syntax to the columns of several tables.

    As in Spark, a name is first resolved as one that begins with an alias, then as a column's name.
    """

    def __init__(self, sides: Sequence[Side], context: SessionContext) -> None:
        # the parent has no columns, so it only resolves words without parentheses, such as current_date
        super().__init__(StructType(()), context)
        self._sides = sides

    def _apply(self, syntax: Apply) -> Expr:
        # only a user's expression sees two tables: one of a table may not raise its own text
        if syntax.function == "raise_error" and len(syntax.args) == 1 and len(self._sides) > 1:
            text = text_argument(self.context, syntax.function, self.bind(syntax.args[0]))
            # it has no value: as a condition it needs no conversion from Spark's type, that of NULL
            return self.context.call(syntax.function, (text,), BOOLEAN)
        return super()._apply(syntax)

    def _name(self, syntax: Name) -> Expr:
        found = _found(syntax.path, self._sides)
        if len(found) > 1:
            raise ExpressionError(
                f"the name '{'.'.join(syntax.path)}' may be a column of either table: put the alias of one before it.",
                code="AMBIGUOUS_REFERENCE",
                name=".".join(syntax.path),
            )
        if found:
            side, path = found[0]
            column = bind_column(path, side.schema)
            return Column((side.name, *column.path), column.data_type, column.collated)
        try:
            return super()._name(syntax)
        except ColumnNotFoundError:
            shown = "; ".join(f"{s.alias or s.name}: {', '.join(s.schema.names) or 'nothing'}" for s in self._sides)
            raise ColumnNotFoundError(
                f"there is no column '{'.'.join(syntax.path)}'. The columns are {shown}.", column=".".join(syntax.path)
            ) from None


def _found(path: tuple[str, ...], sides: Sequence[Side]) -> list[tuple[Side, tuple[str, ...]]]:
    """The sides that have such a column, with the column's path there."""
    qualified = [
        (side, path[1:])
        for side in sides
        if side.alias is not None
        and len(path) > 1
        and path[0].lower() == side.alias.lower()
        and side.schema.find(path[1]) is not None
    ]
    return qualified or [(side, path) for side in sides if side.schema.find(path[0]) is not None]
