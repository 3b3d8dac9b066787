"""Values that a Spark session computes for written rows: defaults, generated columns, and the checks of rules.

Invariants: a table's expressions see its own columns, as they will be stored, and nothing else of the frame. Each
expression was tried before any row is read (``table_expression``). No row is added, dropped or moved. If a plan needs
no expression of Spark, the frame is returned unchanged.

For a write (``plan_ingest(..., spark=True)``; ``state.needs_spark`` says whether there is anything to do):

    frame = complete_frame(frame, state)            # the incoming columns, then computed ones, then CHECK_PREFIX
    outputs = SparkRunner(spark).write(frame, state)

For a command that changes rows. Its frame has NEW_PREFIX+i for every column of the table that some row brings, in the
table's types, beside the other columns of ``tasks.changed_rows``. ``write`` was planned with ``spark=True``. Its
incoming columns are those that *every* written row brings:

    completed = complete_changes(frame, write, written=F.col(ACTION_COLUMN).isin(1, 3, 4))
    state = ChangeState(write=completed.write, insert_columns=completed.insert_columns, ...)
    apply_rows(completed.frame, state, spark)

``given``, by position in the schema: for a column that only some rows bring, the condition for these
rows. Such a column was not an incoming one when ``write`` was planned. Other rows get the default, the generated value,
null, or (only inserted rows) an identity value. A generated value that rows bring is compared with the expression.

``written``: the rows that are written. Nothing is computed for other rows, so they raise no error.

Protocol: "CHECK Constraints", "Column Invariants", "Generated Columns", "Default Columns".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.spark.row_changes.computed_rows import Brought, ComputedRows
from delta_pyds.tasks.changed_rows import NEW_PREFIX
from delta_pyds.tasks.write_state import Check, ColumnSource, WriteState


@dataclass(frozen=True)
class CompletedChanges:
    """``frame``: has all columns that its tasks need. ``write``, ``insert_columns``: for ``ChangeState``."""

    frame: DataFrame
    write: WriteState
    insert_columns: tuple[ColumnSource, ...] | None


def complete_frame(frame: DataFrame, state: WriteState) -> DataFrame:
    """The rows of a write with the values that Spark computes for them, in the columns that ``state`` expects.

    Raises: ExpressionError, ColumnNotFoundError for a refused expression (see ``table_expression``).
    """
    if not state.needs_spark:
        return frame
    fields = frame.schema.fields
    brought = {
        i: Brought(source.input, fields[source.input].dataType)
        for i, source in enumerate(state.columns)
        if source.input is not None and source.computed is None
    }
    made = [i for i, source in enumerate(state.columns) if source.computed is not None]
    rows = ComputedRows(frame, state, brought)
    values = rows.with_columns(made, state.checks)
    return values.toDF(*frame.columns, *(state.columns[i].field.name for i in made), *rows.names_of(state.checks))


def complete_changes(
    frame: DataFrame, write: WriteState, *, written: Column, given: Mapping[int, Column] | None = None
) -> CompletedChanges:
    """The changed rows with all columns that their tasks need: see the module.

    Raises: ExpressionError, ColumnNotFoundError for an expression that is refused (see ``table_expression``).
    """
    sometimes = dict(given or {})
    if not (sometimes or write.needs_spark):
        return CompletedChanges(frame, write, None)
    names, fields = frame.columns, frame.schema.fields
    # the conditions name columns of this frame that the table's expressions do not see
    conditions = [written, *sometimes.values()]
    extended = frame.select("*", *(c.alias(f"_deltapy_condition_{n}") for n, c in enumerate(conditions)))
    when = {i: len(names) + 1 + n for n, i in enumerate(sometimes)}
    brought, made = {}, []
    for i, source in enumerate(write.columns):
        if i in sometimes or (source.input is not None and source.computed is None):
            position = names.index(f"{NEW_PREFIX}{i}")
            brought[i] = Brought(position, fields[position].dataType, when.get(i))
        if source.computed is not None or (i in sometimes and source.source != "identity"):
            made.append(i)
    checks = (*write.checks, *_of_given(write, sometimes))
    rows = ComputedRows(extended, write, brought, written=len(names))
    completed = rows.with_columns(made, checks)
    new_names = [f"{NEW_PREFIX}{i}" for i in made]
    # drop the conditions, and the columns that computed values replace
    taken = [n for n, name in enumerate(names) if name not in new_names]
    taken += range(len(extended.columns), len(completed.columns))
    numbered = completed.toDF(*(f"c{n}" for n in range(len(completed.columns))))
    final = [*(name for name in names if name not in new_names), *new_names, *rows.names_of(checks)]
    return CompletedChanges(
        numbered.select(*(F.col(f"c{n}").alias(name) for n, name in zip(taken, final, strict=True))),
        replace(write, columns=_as_brought(write, sometimes, inserted=False), checks=checks),
        _as_brought(write, sometimes, inserted=True) if sometimes else None,
    )


def _of_given(write: WriteState, sometimes: Mapping[int, Column]) -> list[Check]:
    """Rules of generated columns that only some rows bring and only Spark can compute."""
    return [
        Check("generated", source.field.name, source.computed)
        for i, source in enumerate(write.columns)
        if i in sometimes and source.source == "generated" and source.computed is not None
    ]


def _as_brought(write: WriteState, sometimes: Mapping[int, Column], *, inserted: bool) -> tuple[ColumnSource, ...]:
    """Column sources of the tasks: columns of some rows, completed by the session, now come with all rows.

    Identity values are an exception: tasks number them, for inserted rows only.
    """
    columns = []
    for i, source in enumerate(write.columns):
        if i in sometimes and source.source == "generated":
            source = replace(source, input=i, computed=None)
        elif i in sometimes and not (source.source == "identity" and inserted):
            source = ColumnSource(source.field, "input", i, identity=source.identity)
        columns.append(source)
    return tuple(columns)
