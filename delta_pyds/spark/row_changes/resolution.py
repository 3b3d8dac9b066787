"""A user's command resolved against the table: names for both engines, and texts for our evaluator.

Invariant: our evaluator gets an expression only as a text that is session-independent (see ``expressions``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame

from delta_pyds.commands.row_changes.merge_binding import bind_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolve import resolve_delete, resolve_merge, resolve_update
from delta_pyds.commands.row_changes.resolved import MergeClause, ResolvedCommand
from delta_pyds.errors import ColumnNotFoundError, ExpressionError, UserError
from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.spark.row_changes.column_default import column_default
from delta_pyds.spark.row_changes.expressions import (
    independent_text,
    names_any,
    padded_columns,
    plain_text,
    shown_text,
)
from delta_pyds.spark.row_changes.frame_identity import alias_of
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.merge import ClauseKind

Given = Column | str

P = TypeVar("P")

# the reference's names in ``operationParameters``
_PREDICATES: tuple[tuple[ClauseKind, str], ...] = (
    ("matched", "matchedPredicates"),
    ("not_matched", "notMatchedPredicates"),
    ("not_matched_by_source", "notMatchedBySourcePredicates"),
)


class SparkOnlyError(Exception):
    """An expression has no session-independent text."""

    def __init__(self, expression: Given) -> None:
        super().__init__(str(expression))
        self.expression = expression


def resolved_delete(target: TableHandle, snapshot: Snapshot, condition: Given | None) -> ResolvedCommand[Given]:
    """The delete. Raises: as ``resolve_delete``."""
    return resolve_delete(snapshot, condition, alias=target.alias, shown=shown_text)


def resolved_update(
    target: TableHandle, snapshot: Snapshot, condition: Given | None, assignments: Mapping[str, Given]
) -> ResolvedCommand[Given]:
    """The update, with defaults in place of the word DEFAULT.

    Raises: as ``resolve_update``; ExpressionError for a refused default (see ``table_expression``).
    """
    command = resolve_update(snapshot, condition, assignments, alias=target.alias, shown=shown_text)
    [clause] = command.clauses
    defaults = [replace(one, value=_or_default(target, snapshot, one.value, one.path[0])) for one in clause.assignments]
    return replace(command, clauses=(replace(clause, assignments=tuple(defaults)),))


def _or_default(target: TableHandle, snapshot: Snapshot, value: Given, column: str) -> Given:
    """The value, or the column's default for the word DEFAULT; null for a column without a default."""
    if not isinstance(value, str) or value.strip().upper() != "DEFAULT" or snapshot.schema.find("default"):
        return value
    field = snapshot.schema.find(column)
    return "NULL" if field is None else column_default(target.spark, snapshot.configuration, field) or "NULL"


def resolved_merge(
    target: TableHandle,
    snapshot: Snapshot,
    source: DataFrame,
    condition: Given,
    clauses: Sequence[MergeClause[Given]],
    options: CommandOptions,
    *,
    schema_evolution: bool,
) -> ResolvedCommand[Given]:
    """The merge, with ``rules`` if our evaluator supports all its expressions, else with ``refusal``.

    Raises: as ``resolve_merge``.
    """
    columns, unsupported = None, ""
    try:
        columns = from_spark(source.schema)
    except UserError as e:
        if schema_evolution:
            raise
        unsupported = e.message
    command = resolve_merge(
        snapshot,
        condition,
        clauses,
        source=source.columns,
        target_alias=target.alias,
        source_alias=alias_of(source),
        evolved_by=columns if schema_evolution else None,
        parameters=_parameters(condition, clauses),
    )
    command = replace(command, source=columns)
    if target.engine == "spark":
        return replace(command, refusal="the user chose engine 'spark'")
    if schema_evolution:
        return replace(command, refusal="the schema may evolve.")
    try:
        texts = _texts_of(command, lambda expression: plain_text(target.spark, expression))
    except SparkOnlyError:
        return replace(command, refusal="only Spark can interpret an expression.")
    if _names_padded(texts, source):
        return replace(command, refusal="an expression names a column of type char, which Spark pads.")
    if columns is not None:
        try:
            return replace(command, rules=bind_merge(texts, columns, options))
        except UserError as e:
            # Spark evaluates it, or reports the error
            unsupported = e.message
    return replace(command, refusal=f"our evaluator does not support an expression: {unsupported}")


def own_plan(
    target: TableHandle, command: ResolvedCommand[Given], plan: Callable[[ResolvedCommand[str]], P]
) -> tuple[P | None, str]:
    """The plan of our own evaluator for a delete or an update, or the reason why Spark runs it."""
    schema = command.snapshot.schema
    try:
        texts = _texts_of(command, lambda given: independent_text(target.spark, given, schema, target.alias))
    except SparkOnlyError as e:
        return None, f"only Spark can interpret {shown_text(e.expression)}."
    try:
        return plan(texts), ""
    except (ExpressionError, ColumnNotFoundError) as e:
        return None, f"our evaluator does not support an expression: {e.message}"


def _texts_of(command: ResolvedCommand[Given], text_of: Callable[[Given], str | None]) -> ResolvedCommand[str]:
    """The command with the text of each expression. Raises: SparkOnlyError if an expression has no text."""

    def text(expression: Given) -> str:
        found = text_of(expression)
        if found is None:
            raise SparkOnlyError(expression)
        return found

    return command.with_expressions(text)


def _names_padded(command: ResolvedCommand[str], source: DataFrame) -> bool:
    """Whether an expression names a column of type ``char`` of either table."""
    padded = padded_columns(command.snapshot.schema) | frozenset(
        field.name.lower() for field in source.schema.fields if CHAR_VARCHAR_TYPE in field.metadata
    )
    return bool(padded) and any(names_any(text, padded) for text in command.expressions())


def _parameters(condition: Given, clauses: Sequence[MergeClause[Given]]) -> dict[str, Any]:
    """``operationParameters``, as the reference names them."""
    parameters: dict[str, Any] = {"predicate": [shown_text(condition)]}
    for kind, name in _PREDICATES:
        of_kind = []
        for clause in clauses:
            if clause.kind == kind:
                predicate = {} if clause.condition is None else {"predicate": shown_text(clause.condition)}
                of_kind.append({**predicate, "actionType": clause.action})
        parameters[name] = of_kind
    return parameters
