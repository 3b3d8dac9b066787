"""MERGE, UPDATE, DELETE, TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from delta_pyds.errors import UserError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.spark.sql.default_values import default_text
from delta_pyds.statements.kinds import (
    Assignment,
    Delete,
    Merge,
    MergeClauseText,
    SqlText,
    Truncate,
    Update,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_pyds.spark.delta_table.merge_builder import DeltaMergeBuilder

TextOf = Callable[[SqlText], str]


def delete(context: StatementContext, statement: Delete) -> DataFrame:
    table = context.table(statement.target)
    if statement.alias is not None:
        table = table.alias(statement.alias)
    with context.expressions() as text_of:
        return table.delete(None if statement.condition is None else text_of(statement.condition))


def truncate(context: StatementContext, statement: Truncate) -> DataFrame:
    context.table(statement.target).delete()
    return context.nothing()


def update(context: StatementContext, statement: Update) -> DataFrame:
    table = context.table(statement.target)
    if statement.alias is not None:
        table = table.alias(statement.alias)
    with context.expressions() as text_of:
        values = _values(statement.assignments, text_of)
        if statement.condition is None:
            return table.update(set=values)
        return table.update(text_of(statement.condition), values)


def merge(context: StatementContext, statement: Merge) -> DataFrame:
    table = context.table(statement.target)
    if statement.alias is not None:
        table = table.alias(statement.alias)
    source = context.source(statement.source)
    if statement.source_alias is not None:
        source = source.alias(statement.source_alias)
    with context.expressions() as text_of:
        builder = table.merge(source, text_of(statement.condition))
        if statement.evolves:
            builder = builder.withSchemaEvolution()
        for clause in statement.clauses:
            builder = _with_clause(context, statement, builder, clause, text_of)
        return builder.execute()


def _with_clause(
    context: StatementContext, statement: Merge, builder: DeltaMergeBuilder, clause: MergeClauseText, text_of: TextOf
) -> DeltaMergeBuilder:
    condition = None if clause.condition is None else text_of(clause.condition)
    values = None
    if clause.assignments is not None:
        given = _values(clause.assignments, text_of)
        values = {column: _or_default(context, statement, column, value) for column, value in given.items()}
    if clause.kind == "not_matched":
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


def _values(assignments: tuple[Assignment, ...], text_of: TextOf) -> dict[str, str]:
    """Columns to values. Raises: UserError for a column that is assigned twice under one spelling."""
    found: dict[str, str] = {}
    for one in assignments:
        if one.column in found:
            raise UserError(
                f"the column {one.column!r:.200} is set twice in one clause.",
                code="DELTA_CONFLICT_SET_COLUMN",
                column=one.column,
            )
        found[one.column] = text_of(one.value)
    return found


def _or_default(context: StatementContext, statement: Merge, column: str, value: str) -> str:
    """The word DEFAULT stands for the column's default, NULL where it has none, as in ``DeltaTable.update``.

    Raises: UnsupportedOperationError for a field of a struct, and for a column that the table computes.
    """
    if value.upper() != "DEFAULT":
        return value
    names = [token.value for token in tokenize(column) if token.kind in ("word", "name")]
    if len(names) > 1 and statement.alias is not None and names[0].lower() == statement.alias.lower():
        names = names[1:]
    snapshot = context.snapshot(statement.target)
    if snapshot.schema.find("default") is not None:
        return value
    return default_text(snapshot, snapshot.schema.find(names[0]) if len(names) == 1 else None, column)
