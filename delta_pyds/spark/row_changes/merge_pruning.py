"""Conditions that let a merge skip target files before it reads any, from the keys of its source.

Invariant: a row that matches a row of the source is never skipped. If the condition has no equality between columns, or
our own evaluator does not support it, nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.columnar.evaluate import evaluate
from delta_pyds.columnar.rows import batch_resolver
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.commands.row_changes.merge_binding import bind_join_condition
from delta_pyds.commands.row_changes.merge_pruning import key_conditions, own_conditions
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import ResolvedCommand
from delta_pyds.data.row_changes.join import both_sides
from delta_pyds.errors import DeltaError
from delta_pyds.expr.nodes import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Expr,
    In,
    IsNull,
    Literal,
    Or,
    literal_to_sql,
    references,
    type_of,
)
from delta_pyds.expr.types import is_integral, is_total_cast
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.job_description import described
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.spark.row_changes.expressions import padded_columns
from delta_pyds.spark.row_changes.merge_query import TARGET_ALIAS
from delta_pyds.spark.row_changes.merge_source import MergeSource
from delta_pyds.tasks.merge import TARGET, JoinCondition, JoinKey

logger = safe_logger(__name__)


@dataclass(frozen=True)
class Pruning:
    """Conditions that every target row with a matching source row satisfies, for skipping files.

    ``own``: parts of the merge's condition on the target's columns alone. ``keys``: conditions of the source's keys.
    ``rows``: those of both that have a SQL text. They also skip parts of files. ``own_rows``: the same of ``own``.
    """

    own: tuple[Expr, ...] = ()
    keys: tuple[Expr, ...] = ()
    rows: str | None = None
    own_rows: str | None = None

    @property
    def files(self) -> tuple[Expr, ...]:
        return (*self.own, *self.keys)

    def without_keys(self) -> Pruning:
        return Pruning(self.own, (), self.own_rows, self.own_rows)


def pruning(command: ResolvedCommand[Any], text: str | None, source: MergeSource, options: CommandOptions) -> Pruning:
    """The conditions for skipping files, from the merge's condition and the keys of its source.

    ``text``: the merge's condition as Spark resolved it, with qualified names. It is used if the command has no bound
    condition.
    """
    target = command.snapshot.schema
    try:
        on = _bound(command, text, source, options)
        if on is None:
            return Pruning()
        on = _unpadded(on, target)
        keys = _values(on, source) if source.rows is not None else _ends(on, source)
    except (DeltaError, pa.ArrowException) as e:
        logger.debug("Nothing prunes the target of the merge: %s", e)
        return Pruning()
    own = own_conditions(on)
    files: list[Expr] = []
    few: list[Expr] = []
    for key, values in zip(on.keys, keys, strict=True):
        if values is None:
            continue
        between = _between(key, values)
        if between is not None:
            few.append(between)
        if source.rows is not None:
            files += key_conditions(JoinCondition((key,)), [values])
        elif between is not None:
            files.append(between)
    return Pruning(own, tuple(files), _texts((*own, *few)), _texts(own))


def _bound(
    command: ResolvedCommand[Any], text: str | None, source: MergeSource, options: CommandOptions
) -> JoinCondition | None:
    if command.rules is not None and not command.rules.on.asks_for_time:
        return command.rules.on
    if text is None:
        return None
    # Spark's text uses this alias for a table without an alias
    named = replace(command, target_alias=command.target_alias or TARGET_ALIAS)
    return bind_join_condition(named, text, from_spark(source.original.schema), options)


def _unpadded(on: JoinCondition, target: StructType) -> JoinCondition:
    """The condition without columns of type ``char``: Spark pads them, and statistics may have them unpadded."""
    padded = padded_columns(target)

    def is_bare(expr: Expr) -> bool:
        return not any(path[0] == TARGET and path[1].lower() in padded for path in references(expr))

    keys = tuple(key for key in on.keys if is_bare(key.target))
    return replace(on, keys=keys, target=tuple(part for part in on.target if is_bare(part)))


def _values(on: JoinCondition, source: MergeSource) -> list[pa.Array | None]:
    """For each key, the values of all rows."""
    assert source.rows is not None
    schema = from_spark(source.original.schema)
    arrays = [
        column.combine_chunks().cast(arrow_type(field.data_type))
        for field, column in zip(schema, source.rows.columns[: len(schema.fields)], strict=True)
    ]
    rows = pa.RecordBatch.from_arrays(arrays, names=list(schema.names))
    resolve = both_sides(None, batch_resolver(rows))
    return [evaluate(key.source, resolve, rows.num_rows) if _column_of(key.source) else None for key in on.keys]


def _ends(on: JoinCondition, source: MergeSource) -> list[pa.Array | None]:
    """For each key that is a column, the least and the greatest value, by a query of Spark."""
    found_columns = ((i, _column_of(key.source)) for i, key in enumerate(on.keys) if not key.null_safe)
    plain = {i: column for i, column in found_columns if column is not None}
    if not plain:
        return [None for _ in on.keys]
    asked = []
    for i, column in plain.items():
        value = source.original[quote_name(*column.path[1:])]
        asked += [F.min(value).alias(f"l{i}"), F.max(value).alias(f"g{i}")]
    with described(source.frame.sparkSession, "keys of the source of a merge"):
        found = source.frame.agg(*asked).toArrow()
    ends: list[pa.Array | None] = []
    for i in range(len(on.keys)):
        if i not in plain:
            ends.append(None)
            continue
        both = pa.chunked_array([*found.column(f"l{i}").chunks, *found.column(f"g{i}").chunks]).combine_chunks()
        ends.append(both.cast(arrow_type(type_of(on.keys[i].source))))
    return ends


def _column_of(source: Expr) -> Column | None:
    """The source column that is the key, unchanged or cast to a wider integer.

    None for the result of a function: a user may have replaced it.
    """
    if isinstance(source, Column):
        return source
    inner = source.child if isinstance(source, Cast) else None
    if isinstance(source, Call) and source.function == "cast":
        inner = source.args[0]
    if inner is None or not is_integral(type_of(inner)) or not is_integral(type_of(source)):
        return None
    # without ANSI mode, a cast to a narrower number may give any other number
    return _column_of(inner) if is_total_cast(type_of(inner), type_of(source)) else None


def _between(key: JoinKey, values: pa.Array) -> Expr | None:
    """The range of the target's column that can match the values."""
    if key.null_safe or not _is_ordered(values.type):
        return None
    found = pc.min_max(values)
    ends = pa.array([found["min"], found["max"]], values.type)
    for condition in key_conditions(JoinCondition((key,)), [ends]):
        # a bound outside the column's type is missing: then the other value is not a bound of the range
        if (
            isinstance(condition, In)
            and isinstance(condition.child, Column)
            and len(condition.values) == len(ends.unique())
        ):
            column, data_type = condition.child, condition.child.data_type
            low, high = Literal(condition.values[0], data_type), Literal(condition.values[-1], data_type)
            return And((Comparison(">=", column, low), Comparison("<=", column, high)))
    return None


def _is_ordered(data_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(data_type)
        or types.is_string(data_type)
        or types.is_date(data_type)
        or types.is_timestamp(data_type)
        or types.is_decimal(data_type)
    )


def _texts(parts: Iterable[Expr]) -> str | None:
    """The conditions that have a text, joined by AND; None without any."""
    texts = [text for part in parts if (text := _text(part)) is not None]
    return " AND ".join(f"({text})" for text in texts) or None


def _text(expr: Expr) -> str | None:
    """The condition as SQL with exactly this meaning; None if a part has no such text."""
    if isinstance(expr, Column):
        return quote_name(*expr.path)
    if isinstance(expr, Literal):
        return None if isinstance(expr.value, (bytes, float)) else literal_to_sql(expr)
    if isinstance(expr, IsNull):
        child = _text(expr.child)
        return None if child is None else f"({child}) IS NULL"
    if isinstance(expr, Comparison):
        sides = _text(expr.left), _text(expr.right)
        return None if None in sides else f"{sides[0]} {expr.op} {sides[1]}"
    if isinstance(expr, (And, Or)):
        parts = [_text(child) for child in expr.children]
        word = " AND " if isinstance(expr, And) else " OR "
        return None if None in parts else word.join(f"({part})" for part in parts)
    return None
