"""Conditions and values that call a column by the name of its table: ``orders.id``, ``sales.orders.id``.

Invariant: the table answers to the last part of its name, as a frame has one alias; its whole name stands for that. An
alias of the user's is the only name of its table, and none of this is for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from delta_pyds.spark.row_changes.column_text import text_of_column
from delta_pyds.spark.row_changes.merge_clauses import MergeClause
from delta_pyds.statements.qualified_names import QualifiedTable, by_alias

if TYPE_CHECKING:
    from pyspark.sql import Column

    from delta_pyds.spark.table_commands.argument_checks import ExpressionOrColumn


def renamed(given: ExpressionOrColumn, called: QualifiedTable) -> Column | str:
    """A condition or value that Spark can read over a frame with the table's alias.

    A Column becomes a text where it calls the table by more than its last part: of several parts Spark would find none.
    """
    text = _text(given, called)
    found = None if text is None else by_alias(text, [called])
    return given if found is None or found == text else found


def renamed_values(values: Mapping[str, ExpressionOrColumn], called: QualifiedTable) -> dict[str, Column | str]:
    """What columns are set to. ``values``: by the names of columns, which may be called so, too."""
    return {by_alias(column, [called], is_target=True): renamed(value, called) for column, value in values.items()}


def renamed_clauses(clauses: Sequence[MergeClause], called: QualifiedTable) -> tuple[MergeClause, ...]:
    return tuple(
        replace(
            one,
            condition=None if one.condition is None else renamed(one.condition, called),
            assignments=None if one.assignments is None else renamed_values(one.assignments, called),
        )
        for one in clauses
    )


def apart_from_source(
    called: QualifiedTable, condition: ExpressionOrColumn, clauses: Sequence[MergeClause]
) -> QualifiedTable:
    """The table under an alias that no source has, where a merge calls it by nothing but its whole name: a source may
    have the last part of it for its own name.
    """
    texts = [text for given in (condition, *_given(clauses)) if (text := _text(given, called)) is not None]
    if any(map(called.is_in, texts)) and not any(map(called.is_in_alone, texts)):
        return called.under_whole_name()
    return called


def _given(clauses: Iterable[MergeClause]) -> Iterator[ExpressionOrColumn]:
    for one in clauses:
        if one.condition is not None:
            yield one.condition
        for column, value in (one.assignments or {}).items():
            yield column
            yield value


def _text(given: ExpressionOrColumn, called: QualifiedTable) -> str | None:
    """The text of what may call the table by its name; None for a Column that does not, or has no text."""
    if isinstance(given, str):
        return given
    shown = str(given).lower().replace("`", "")
    # Spark cuts what is long
    return text_of_column(given) if f".{called.table.lower()}." in shown or "..." in shown else None
