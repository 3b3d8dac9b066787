"""Conditions and values that qualify a column with the name of its table: ``orders.id``, ``sales.orders.id``.

Invariant: a frame has one alias. For a table with a name it is the last part of the name, which replaces the whole name
in all texts. A table with a user's alias has no other name, and needs nothing of this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column

from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.spark.row_changes.column_text import text_of_column
from delta_pyds.spark.table_commands.argument_checks import ExpressionOrColumn
from delta_pyds.statements.qualified_names import QualifiedTable, by_alias

Clause = MergeClause[Column | str]


def renamed(given: ExpressionOrColumn, called: QualifiedTable) -> Column | str:
    """A condition or value that Spark can read over a frame with the table's alias.

    A Column becomes a text if it qualifies a name with several parts, which Spark would not find.
    """
    text = _text(given, called)
    found = None if text is None else by_alias(text, [called])
    return given if found is None or found == text else found


def renamed_values(values: Mapping[str, ExpressionOrColumn], called: QualifiedTable) -> dict[str, Column | str]:
    """New values of columns. ``values``: column names to values; a column may be qualified with the table's name."""
    return {by_alias(column, [called], is_target=True): renamed(value, called) for column, value in values.items()}


def renamed_clauses(clauses: Sequence[Clause], called: QualifiedTable) -> tuple[Clause, ...]:
    return tuple(
        replace(
            one,
            condition=None if one.condition is None else renamed(one.condition, called),
            assignments=None if one.assignments is None else renamed_values(one.assignments, called),
        )
        for one in clauses
    )


def apart_from_source(
    called: QualifiedTable, condition: ExpressionOrColumn, clauses: Sequence[Clause]
) -> QualifiedTable:
    """The table under an alias that no source has, if a merge uses only its whole name.

    The source may have the last part of that name as its own name.
    """
    texts = [text for given in (condition, *_given(clauses)) if (text := _text(given, called)) is not None]
    if any(map(called.is_in, texts)) and not any(map(called.is_in_alone, texts)):
        return called.under_whole_name()
    return called


def _given(clauses: Iterable[Clause]) -> Iterator[ExpressionOrColumn]:
    for one in clauses:
        if one.condition is not None:
            yield one.condition
        for column, value in (one.assignments or {}).items():
            yield column
            yield value


def _text(given: ExpressionOrColumn, called: QualifiedTable) -> str | None:
    """The text of an expression that may use the table's name; None for a Column without a text, or another one."""
    if isinstance(given, str):
        return given
    shown = str(given).lower().replace("`", "")
    # Spark shortens a long text
    return text_of_column(given) if f".{called.table.lower()}." in shown or "..." in shown else None
