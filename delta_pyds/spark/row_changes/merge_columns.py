"""The clauses of a resolved merge as Columns of Spark, for all columns of the table as the merge leaves it.

Invariant: conditions and values see both tables where rows match, the source alone where they are inserted, the target
alone where no row of the source matches. Nothing has been read when this fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - the same

from delta_pyds.commands.row_changes.resolve import columns_in_messages
from delta_pyds.commands.row_changes.resolved import Assignment, MadeColumns, ResolvedClause, ResolvedCommand
from delta_pyds.errors import UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.row_changes.assignment import Assigned, StoreAssignment
from delta_pyds.spark.row_changes.binding import BoundExpression, bind
from delta_pyds.spark.row_changes.resolution import Given
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.merge import Clause, ClauseKind

_NONE = StructType(())


@dataclass(frozen=True)
class MergeColumns:
    """``on``: the search condition. ``old``: by position in the schema after the merge, the values before it."""

    on: BoundExpression
    clauses: tuple[Clause[Column], ...]
    old: tuple[Column, ...]

    def of_kind(self, kind: ClauseKind) -> tuple[Clause[Column], ...]:
        return tuple(clause for clause in self.clauses if clause.kind == kind)


def merge_columns(
    command: ResolvedCommand[Given], target: DataFrame, source: DataFrame, storing: StoreAssignment
) -> MergeColumns:
    """``target``: a frame with the columns of the table as it is, whose rows do not matter. ``source``: the user's.

    Raises: UserError with the reference's codes for invalid names and types; errors of Spark for expressions.
    """
    return _Resolution(command, target, source, storing).merge()


class _Resolution:
    def __init__(
        self, command: ResolvedCommand[Given], target: DataFrame, source: DataFrame, storing: StoreAssignment
    ) -> None:
        self._command = command
        self._table = command.snapshot.table_root
        self._target, self._source = target, source
        self._storing = replace(storing, fill=command.evolves)
        self._made = MadeColumns.of(command.after.configuration)
        self._types = to_spark(command.schema).fields
        both = target.crossJoin(source)
        before, alias, names = command.snapshot.schema, command.target_alias, source.columns
        # by kind of clause: the frame whose names its expressions may use, and those names
        self._scopes: dict[ClauseKind, tuple[DataFrame, list[str]]] = {
            "matched": (both, columns_in_messages(before, alias, names)),
            "not_matched": (source, columns_in_messages(_NONE, alias, names)),
            "not_matched_by_source": (target, columns_in_messages(before, alias, ())),
        }

    def merge(self) -> MergeColumns:
        assert self._command.condition is not None
        [on] = self._bound("matched", [self._command.condition], "the search condition")
        on = self._boolean(on, "the search condition of MERGE")
        self._old = tuple(self._before(i) for i in range(len(self._types)))
        return MergeColumns(on, tuple(self._clause(clause) for clause in self._command.clauses), self._old)

    def _bound(self, kind: ClauseKind, expressions: Sequence[Given], what: str) -> list[BoundExpression]:
        frame, names = self._scopes[kind]
        return bind(frame, expressions, what=what, table=self._table, given=names)

    def _clause(self, clause: ResolvedClause[Given]) -> Clause[Column]:
        bound = self._bound(clause.kind, list(clause.expressions()), clause.title)
        condition = None
        if clause.condition is not None:
            condition = self._boolean(bound.pop(0), f"the condition of the {clause.title}").column
        if clause.deletes:
            return Clause(clause.action, condition)
        values = self._assigned(clause, bound) if clause.star is None else self._starred(clause, clause.star)
        return Clause(clause.action, condition, values)

    # --- the old values of a row

    def _before(self, position: int) -> Column:
        """The old value of a column, in its type after the merge."""
        after = self._types[position]
        had = self._command.snapshot.schema.find(after.name)
        if had is None:
            return F.lit(None).cast(after.dataType)
        before = to_spark(StructType((had,))).fields[0].dataType
        widening = StoreAssignment(self._storing.ansi, fill=True, table=self._table)
        return widening.assign(self._target[quote_name(after.name)], before, after.dataType, after.name)

    # --- its new values

    def _starred(self, clause: ResolvedClause[Given], star: Sequence[str | None]) -> tuple[Column | None, ...]:
        types = {field.name: field.dataType for field in self._source.schema.fields}
        values: list[Column | None] = []
        for position, (wanted, name) in enumerate(zip(self._types, star, strict=True)):
            if name is None:
                values.append(self._unassigned(clause, position))
                continue
            old = self._old[position] if self._command.evolves and clause.updates else None
            column = self._source[quote_name(name)]
            values.append(self._storing.assign(column, types[name], wanted.dataType, wanted.name, old))
        return tuple(values)

    def _assigned(self, clause: ResolvedClause[Given], bound: Sequence[BoundExpression]) -> tuple[Column | None, ...]:
        columns: dict[str, Assigned] = {}
        for one, value in zip(clause.assignments, bound, strict=True):
            self._assign(columns, one, value)
        return tuple(
            columns[wanted.name].of(self._old[position], wanted.dataType)
            if wanted.name in columns
            else self._unassigned(clause, position)
            for position, wanted in enumerate(self._types)
        )

    def _assign(self, columns: dict[str, Assigned], one: Assignment[Given], value: BoundExpression) -> None:
        wanted = next(field.dataType for field in self._types if field.name == one.path[0])
        for name in one.path[1:]:
            assert isinstance(wanted, T.StructType)
            wanted = wanted[name].dataType
        stored = self._storing.assign(value.column, value.data_type, wanted, ".".join(one.path))
        Assigned(stored).put(columns, one.path)

    def _unassigned(self, clause: ResolvedClause[Given], position: int) -> Column | None:
        """The value of a column that the clause does not assign; None if the writer of the row computes it."""
        wanted = self._types[position]
        if clause.action != Action.INSERT:
            return None if wanted.name in self._made.generated else self._old[position]
        made = wanted.name in self._made.all
        return None if made else F.lit(None).cast(wanted.dataType)

    def _boolean(self, bound: BoundExpression, what: str) -> BoundExpression:
        if isinstance(bound.data_type, T.NullType):
            return replace(bound, column=bound.column.cast("boolean"), data_type=T.BooleanType())
        if not isinstance(bound.data_type, T.BooleanType):
            raise UserError(
                f"{what} into {self._table} is of type {bound.data_type.simpleString().upper()}, not BOOLEAN.",
                code="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
                table=self._table,
            )
        return bound
