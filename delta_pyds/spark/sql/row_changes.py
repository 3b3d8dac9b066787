"""MERGE, UPDATE, DELETE, TRUNCATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_pyds.errors import UserError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.spark.sql.called_tables import CalledTables
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.spark.sql.default_values import default_text
from delta_pyds.statements.kinds import (
    Assignment,
    Delete,
    Merge,
    MergeClauseText,
    TableReference,
    Truncate,
    Update,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_pyds.spark.delta_table.merge_builder import DeltaMergeBuilder


def delete(context: StatementContext, statement: Delete) -> DataFrame:
    called = CalledTables(context, statement)
    with called.expressions():
        return called.table.delete(None if statement.condition is None else called.text(statement.condition))


def truncate(context: StatementContext, statement: Truncate) -> DataFrame:
    context.table(statement.target)._truncate()
    return context.nothing()


def update(context: StatementContext, statement: Update) -> DataFrame:
    called = CalledTables(context, statement)
    with called.expressions():
        values = _values(called, statement.assignments)
        if statement.condition is None:
            return called.table.update(set=values)
        return called.table.update(called.text(statement.condition), values)


def merge(context: StatementContext, statement: Merge) -> DataFrame:
    called = CalledTables(context, statement)
    assert called.source is not None
    with called.expressions():
        builder = called.table.merge(called.source, called.text(statement.condition))
        if statement.evolves:
            builder = builder.withSchemaEvolution()
        for clause in statement.clauses:
            builder = _with_clause(context, statement, called, builder, clause)
        return builder.execute()


def _with_clause(
    context: StatementContext,
    statement: Merge,
    called: CalledTables,
    builder: DeltaMergeBuilder,
    clause: MergeClauseText,
) -> DeltaMergeBuilder:
    new = clause.kind == "not_matched"
    condition = None if clause.condition is None else called.text(clause.condition, of_source=new)
    values = None
    if clause.assignments is not None:
        given = _values(called, clause.assignments, of_source=new)
        values = {
            column: _or_default(context, statement.target, called.alias, column, value)
            for column, value in given.items()
        }
    if new:
        if values is None:
            return builder.whenNotMatchedInsertAll(condition)
        if condition is None:
            return builder.whenNotMatchedInsert(values=values)
        return builder.whenNotMatchedInsert(condition, values)
    if clause.kind == "matched":
        if clause.action == "delete":
            return builder.whenMatchedDelete(condition)
        return (
            builder.whenMatchedUpdateAll(condition) if values is None else builder.whenMatchedUpdate(condition, values)
        )
    if clause.action == "delete":
        return builder.whenNotMatchedBySourceDelete(condition)
    assert values is not None
    return builder.whenNotMatchedBySourceUpdate(condition, values)


def _values(called: CalledTables, assignments: tuple[Assignment, ...], *, of_source: bool = False) -> dict[str, str]:
    """Columns to values. Raises: UserError for a column that is assigned twice under one spelling."""
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


def _or_default(context: StatementContext, target: TableReference, alias: str | None, column: str, value: str) -> str:
    """The word DEFAULT stands for the column's default, NULL where it has none, as in ``DeltaTable.update``.

    Raises: UnsupportedOperationError for a field of a struct, and for a column that the table computes; what
        ``default_text`` raises.
    """
    if value.upper() != "DEFAULT":
        return value
    names = [token.value for token in tokenize(column) if token.kind in ("word", "name")]
    if len(names) > 1 and alias is not None and names[0].lower() == alias.lower():
        names = names[1:]
    snapshot = context.snapshot(target)
    if snapshot.schema.find("default") is not None:
        return value
    return default_text(context.spark, snapshot, snapshot.schema.find(names[0]) if len(names) == 1 else None, column)
