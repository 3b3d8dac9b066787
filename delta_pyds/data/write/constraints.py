"""The rules that every row of a table keeps: NOT NULL, CHECK constraints, invariants, generated columns.

Invariant: a batch that passes may be written; one that does not stops the
write. Works on any batch in the table's shape, whatever made it.

Protocol: "Column Invariants", "CHECK Constraints", "Generated Columns".
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.rows import batch_resolver
from delta_pyds.data.write.derived_columns import evaluate_named, of_type
from delta_pyds.data.write.not_null import NotNull
from delta_pyds.data.write.row_values import row_values
from delta_pyds.data.write.task_session import TaskSession, meaning
from delta_pyds.errors import ConstraintViolationError
from delta_pyds.expr.nodes import Expr, references
from delta_pyds.redaction import shown
from delta_pyds.tasks.write_state import Check, ColumnSource, WriteState

_WORDS = {"check": "the CHECK constraint", "invariant": "the invariant of column", "replace_where": "replaceWhere"}


class Constraints:
    """All that rows of ``state``'s table have to keep, as the session understands it.

    Raises: ExpressionError for an expression that has no meaning in the session.
    """

    def __init__(self, state: WriteState, session: TaskSession) -> None:
        table = state.table_root
        self._not_null = NotNull(state.schema, table)
        self._checks = [_RowCheck(check, session, table) for check in state.checks]
        self._generated = [
            _GeneratedCheck(source, session, table)
            for source in state.columns
            if source.source == "generated" and source.input is not None
        ]

    def check(self, batch: pa.RecordBatch) -> None:
        """Check the rows of a batch that has the table's logical columns.

        Generated columns are compared with their expression where
        ``WriteState.columns`` says that the rows brought them.

        Raises: ConstraintViolationError naming the rule and the first row that breaks it:
            DELTA_NOT_NULL_CONSTRAINT_VIOLATED, DELTA_VIOLATE_CONSTRAINT_WITH_VALUES,
            DELTA_REPLACE_WHERE_MISMATCH. ExpressionError when a rule cannot be computed for a row.
        """
        self._not_null.check(batch)
        if batch.num_rows:
            for generated in self._generated:
                generated.check(batch)
            for check in self._checks:
                check.check(batch)


class _RowCheck:
    def __init__(self, check: Check, session: TaskSession, table: str) -> None:
        self._check = check
        self._table = table
        self._named = f"{_name(check)} of table {table}"
        self._tree = meaning(check.expression, session, self._named)

    def check(self, batch: pa.RecordBatch) -> None:
        passed = evaluate_named(self._tree, self._check.expression, batch, batch.num_rows, self._named)
        at = first_failure(passed)
        if at is None:
            return
        raise broken(self._check, self._table, batch, at, columns_of(self._tree))


class _GeneratedCheck:
    """``column <=> expression`` of a generated column that the rows brought."""

    def __init__(self, source: ColumnSource, session: TaskSession, table: str) -> None:
        assert source.expression is not None
        self._field = source.field
        self._expression = source.expression
        self._table = table
        self._what = f"the generated column '{source.field.name}' of table {table}"
        self._tree = meaning(source.expression, session, self._what)

    def check(self, batch: pa.RecordBatch) -> None:
        name = self._field.name
        given = batch_resolver(batch)((name,))
        values = evaluate_named(self._tree, self._expression, batch, batch.num_rows, self._what)
        at = first_failure(same_values(given, of_type(values, self._field, self._expression)))
        if at is not None:
            found = row_values(batch, at, [(name,), *columns_of(self._tree)])
            rule = f"Generated Column ({shown(name)} <=> {shown(self._expression.sql)})"
            raise violation(self._table, f"CHECK constraint {rule}", found, name)


def broken(
    check: Check, table: str, batch: pa.RecordBatch, at: int, columns: Iterable[tuple[str, ...]]
) -> ConstraintViolationError:
    """The error for the row ``at`` of a batch, which breaks the rule. ``columns``: those to show of it."""
    sql, values = shown(check.expression.sql), row_values(batch, at, columns)
    if check.kind == "replace_where":
        return ConstraintViolationError(
            f"a row to be written to {table} is not among those that replaceWhere replaces, {sql}:\n{values}"
            "\nWrite only rows for which it is true, or change it.",
            code="DELTA_REPLACE_WHERE_MISMATCH",
            multiline=True,
            table=table,
            predicate=sql,
            values=values,
        )
    return violation(table, f"{_name(check)[4:]} ({sql})", values, check.name)


def _name(check: Check) -> str:
    return _WORDS[check.kind] + ("" if check.kind == "replace_where" else f" '{check.name}'")


def violation(table: str, rule: str, values: str, name: str) -> ConstraintViolationError:
    return ConstraintViolationError(
        f"{rule} of table {table} violated by row with values:\n{values}",
        code="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        multiline=True,
        table=table,
        constraint=name,
        values=values,
    )


def columns_of(tree: Expr) -> list[tuple[str, ...]]:
    return sorted(references(tree))


def first_failure(passed: pa.Array) -> int | None:
    """The first row for which a condition is not true: false and null both fail."""
    if passed.null_count:
        passed = passed.fill_null(False)
    elif pc.all(passed).as_py() is not False:
        return None
    at: int = pc.index(passed, False).as_py()
    return None if at < 0 else at


def same_values(left: pa.Array, right: pa.Array) -> pa.Array:
    """``left <=> right`` of one type: null equals null, NaN equals NaN. The result has no nulls."""
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    if not equal.null_count:
        return equal
    return pc.if_else(equal.is_valid(), equal, pc.and_(left.is_null(), right.is_null()))
