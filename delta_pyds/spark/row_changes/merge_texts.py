"""A merge as SQL texts for our own evaluator, where they are certain to mean what they mean to Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_pyds.commands.row_changes.merge import MergeRequest
from delta_pyds.commands.row_changes.merge_binding import MergeClauseText
from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.row_changes.expressions import names_any, padded_columns, plain_text
from delta_pyds.spark.row_changes.merge_clauses import MergeClause
from delta_pyds.spark.row_changes.stand_in import alias_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def merge_request(
    spark: SparkSession,
    source: DataFrame,
    condition: Column | str,
    clauses: Sequence[MergeClause],
    *,
    target: StructType,
    target_alias: str | None,
    parameters: Mapping[str, Any],
) -> MergeRequest | None:
    """The merge as texts; None where one of its expressions has none that is certain.

    ``target``: the schema of the table.
    """
    on = plain_text(spark, condition)
    texts = [_clause_text(spark, clause) for clause in clauses]
    known = [text for text in texts if text is not None]
    if on is None or len(known) < len(texts):
        return None
    padded = padded_columns(target) | frozenset(
        field.name.lower() for field in source.schema.fields if CHAR_VARCHAR_TYPE in field.metadata
    )
    if padded and any(names_any(text, padded) for text in (on, *_texts(known))):
        return None
    return MergeRequest(on, known, target_alias, alias_of(source), parameters)


def _texts(clauses: Sequence[MergeClauseText]) -> Iterator[str]:
    for clause in clauses:
        if clause.condition is not None:
            yield clause.condition
        yield from (clause.assignments or {}).values()


def _clause_text(spark: SparkSession, clause: MergeClause) -> MergeClauseText | None:
    condition = None
    if clause.condition is not None:
        condition = plain_text(spark, clause.condition)
        if condition is None:
            return None
    if clause.assignments is None:
        return MergeClauseText(clause.kind, clause.action, condition)
    values = {name: plain_text(spark, value) for name, value in clause.assignments.items()}
    known = {name: text for name, text in values.items() if text is not None}
    return MergeClauseText(clause.kind, clause.action, condition, known) if len(known) == len(values) else None
