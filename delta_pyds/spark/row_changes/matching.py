"""The rows of a table that have the keys of other rows: those that ``REPLACE USING`` replaces.

Invariant: keys are compared by ``=``, so a null matches nothing, as in the reference. Keys skip files if they are few
or have an order.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.mend import CommandOnRows
from delta_pyds.commands.row_changes.plan import RowChangePlan
from delta_pyds.errors import ColumnNotFoundError, UnsupportedOperationError
from delta_pyds.expr.nodes import Literal, literal_to_sql
from delta_pyds.expr.types import is_integral
from delta_pyds.protocol.char_types import is_padded
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import (
    COLLATIONS,
    DATE,
    STRING,
    VARIANT,
    VOID,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.spark.row_changes.apply import apply_rows
from delta_pyds.spark.row_changes.file_rows import file_rows
from delta_pyds.spark.row_changes.found_rows import FoundRows, find_and_mark
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.merge_source import MergeSource
from delta_pyds.spark.row_changes.repeatable import errors_of_mends
from delta_pyds.spark.row_changes.session_settings import SessionSettings
from delta_pyds.spark.row_changes.stored_values import stored
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import ACTION_COLUMN, FILE_COLUMN, POSITION_COLUMN, Action, ChangeState
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.write_state import TaskOutput

# the most values of one key that a predicate lists
_MOST_NAMED = 500


def key_columns(names: Sequence[str], table: StructType, rows: StructType, *, root: str) -> tuple[StructField, ...]:
    """The columns of the table that are compared, each once.

    Raises: ColumnNotFoundError (UNRESOLVED_INSERT_REPLACE_USING_COLUMN) for a column that the table or the rows
        lack; UnsupportedOperationError for one whose values cannot be compared here.
    """
    found: dict[str, StructField] = {}
    for name in names:
        field = _field(name, table, f"the table {root}")
        _field(name, rows, "the rows to write")
        plain = isinstance(field.data_type, (PrimitiveType, DecimalType)) and field.data_type not in (VARIANT, VOID)
        if not plain or is_padded(field) or COLLATIONS in field.metadata:
            raise UnsupportedOperationError(
                f"REPLACE USING cannot compare the column '{field.name}' of the table {root}: its type (nested, char, "
                "variant, or with a collation) is not supported there. Use replaceWhere, or "
                "MERGE.",
                table=root,
                column=field.name,
            )
        found[field.name] = field
    return tuple(found.values())


def find_matching(
    target: TableHandle, snapshot: Snapshot, keys: Sequence[StructField], source: MergeSource, state: ChangeState
) -> tuple[FoundRows, list[TaskOutput]]:
    """The rows that have the keys of a row of ``source``, marked as deleted by tasks that write no file."""
    names, predicate = [field.name for field in keys], key_predicate(keys, source)
    return find_and_mark(target, snapshot, predicate, _matching(keys, source), columns=names, state=state)


def matching_on_rows(
    target: TableHandle,
    found: FoundRows,
    keys: Sequence[StructField],
    source: MergeSource,
    settings: SessionSettings,
) -> CommandOnRows:
    """The same query on given rows of files, for a write that lost a race. ``settings``: before ``found``."""
    scan = found.table.scan

    def run_on(now: RowChangePlan, files: Sequence[TableFile]) -> list[TaskOutput]:
        rows = file_rows(target.spark, now, files, columns=scan.state.output)
        with errors_of_mends(settings):
            return apply_rows(_matching(keys, source)(rows), now.state)

    return CommandOnRows(run_on, scan, Action.DELETE, confirm=settings.require_same)


def _matching(keys: Sequence[StructField], source: MergeSource) -> Callable[[DataFrame], DataFrame]:
    """Chooses the rows of the table that have the keys of a row of ``source``."""
    wanted = source.frame.select(*(_stored_key(source, field).alias(f"_key_{i}") for i, field in enumerate(keys)))
    for i in range(len(keys)):  # dropna() would also drop NaN
        wanted = wanted.filter(F.col(f"_key_{i}").isNotNull())
    wanted = wanted.distinct()

    def deleted(rows: DataFrame) -> DataFrame:
        here = rows.select(
            FILE_COLUMN,
            POSITION_COLUMN,
            F.lit(int(Action.DELETE)).cast("tinyint").alias(ACTION_COLUMN),
            *(F.col(quote_name(field.name)).alias(f"_own_{i}") for i, field in enumerate(keys)),
        )
        same = [F.col(f"_own_{i}") == F.col(f"_key_{i}") for i in range(len(keys))]
        return here.join(wanted, same, "left_semi").select(FILE_COLUMN, POSITION_COLUMN, ACTION_COLUMN)

    return deleted


def _stored_key(source: MergeSource, field: StructField) -> Column:
    """The key as the table will store it: the writing tasks refuse values that do not fit."""
    given = next(f for f in source.original.schema.fields if f.name.lower() == field.name.lower())
    return stored(F.col(quote_name(given.name)), given.dataType, field)


def key_predicate(keys: Sequence[StructField], source: MergeSource) -> str | None:
    """A predicate of all rows that have the key of a row of a small source; None for a large one."""
    if source.rows is None:
        return None
    given = from_spark(source.original.schema)
    parts = []
    for field in keys:
        position = next(i for i, name in enumerate(given.names) if name.lower() == field.name.lower())
        if given.fields[position].data_type == field.data_type:
            part = _values_predicate(field, source.rows.column(position))
            if part is not None:
                parts.append(part)
    return " AND ".join(parts) or None


def _values_predicate(field: StructField, values: pa.ChunkedArray) -> str | None:
    if not (is_integral(field.data_type) or field.data_type in (STRING, DATE)):
        return None
    given = pc.unique(values.drop_null())
    if not len(given):
        return "false"
    if field.data_type == DATE:
        given = given.cast(pa.int32())
    texts = [literal_to_sql(Literal(value, field.data_type)) for value in given.to_pylist()]
    if len(texts) <= _MOST_NAMED:
        return f"{quote_name(field.name)} IN ({', '.join(texts)})"
    if field.data_type == STRING:
        return None
    ends = pc.min_max(given)
    low, high = (literal_to_sql(Literal(ends[end].as_py(), field.data_type)) for end in ("min", "max"))
    return f"{quote_name(field.name)} BETWEEN {low} AND {high}"


def _field(name: str, schema: StructType, where: str) -> StructField:
    found = schema.find(name)
    if found is None:
        close = difflib.get_close_matches(name, schema.names, n=5, cutoff=0.0)
        raise ColumnNotFoundError(
            f"the column '{name}' of REPLACE USING is not in {where}. Did you mean one of {', '.join(close)}?",
            code="UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
            column=name,
        )
    return found
