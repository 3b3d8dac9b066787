"""MERGE, UPDATE, DELETE."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.errors import UserError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.sql.called_tables import CalledTables
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.spark.sql.default_values import default_text
from delta_pyds.spark.table_commands import rows
from delta_pyds.statements import kinds


def delete(context: StatementContext, statement: kinds.Delete) -> DataFrame:
    called = CalledTables(context, statement)
    with called.expressions():
        return rows.delete(called.table, None if statement.condition is None else called.text(statement.condition))


def update(context: StatementContext, statement: kinds.Update) -> DataFrame:
    called = CalledTables(context, statement)
    with called.expressions():
        values = _values(called, statement.assignments)
        condition = None if statement.condition is None else called.text(statement.condition)
        return rows.update(called.table, condition, values)


def merge(context: StatementContext, statement: kinds.Merge) -> DataFrame:
    called = CalledTables(context, statement)
    assert called.source is not None
    with called.expressions():
        condition = called.text(statement.condition)
        clauses = [_clause(context, called, clause) for clause in statement.clauses]
        return rows.merge(called.table, called.source, condition, clauses, evolves=statement.evolves)


def _clause(
    context: StatementContext, called: CalledTables, clause: kinds.MergeClauseText
) -> MergeClause[Column | str]:
    of_source = clause.kind == "not_matched"
    condition = None if clause.condition is None else called.text(clause.condition, of_source=of_source)
    if clause.assignments is None:
        return MergeClause(clause.kind, clause.action, condition)
    given = _values(called, clause.assignments, of_source=of_source)
    values = {column: _or_default(context, called.table, column, value) for column, value in given.items()}
    return MergeClause(clause.kind, clause.action, condition, values)


def _values(
    called: CalledTables, assignments: tuple[kinds.Assignment, ...], *, of_source: bool = False
) -> dict[str, str]:
    """Columns to values. Raises: UserError for a column that is assigned twice in one spelling."""
    found: dict[str, str] = {}
    for one in assignments:
        column = called.column(one.column)
        if column in found:
            raise UserError(
                f"the column {one.column!r:.200} is set twice in one clause.",
                code="DELTA_DUPLICATE_COLUMNS_ON_INSERT" if of_source else "DELTA_CONFLICT_SET_COLUMN",
                column=one.column,
            )
        found[column] = called.text(one.value, of_source=of_source)
    return found


def _or_default(context: StatementContext, target: TableHandle, column: str, value: str) -> str:
    """The value; for the word DEFAULT the column's default, or NULL without a default, as in ``DeltaTable.update``.

    Raises: UnsupportedOperationError for a field of a struct, and for a column that the table computes; as
        ``default_text``.
    """
    if value.upper() != "DEFAULT":
        return value
    names = [token.value for token in tokenize(column) if token.is_name]
    if len(names) > 1 and target.alias is not None and names[0].lower() == target.alias.lower():
        names = names[1:]
    snapshot = target.open()
    if snapshot.schema.find("default") is not None:
        return value
    return default_text(context.spark, snapshot, snapshot.schema.find(names[0]) if len(names) == 1 else None, column)
