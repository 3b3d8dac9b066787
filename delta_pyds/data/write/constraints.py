"""The conditions on rows of a table: NOT NULL, CHECK constraints, invariants, generated columns.

Invariant: a batch that passes may be written; one that fails stops the write. Works on any batch with the table's
columns.
Protocol: "Column Invariants", "CHECK Constraints", "Generated Columns".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.rows import batch_resolver
from delta_pyds.data.write.derived_columns import evaluate_named, of_type
from delta_pyds.data.write.task_session import TaskSession, meaning
from delta_pyds.errors import ConstraintViolationError, DeltaError
from delta_pyds.expr.nodes import Expr, references
from delta_pyds.protocol.schema import VOID, ArrayType, DataType, MapType, StructField, StructType
from delta_pyds.protocol.temporal import show_date, show_timestamp
from delta_pyds.redaction import shown
from delta_pyds.tasks.changed_rows import CHECK_PREFIX
from delta_pyds.tasks.write_state import Check, ColumnSource, SessionExpression, SparkExpression, WriteState

_Inspect = Callable[[pa.Array], None]

_MAX_LENGTH = 200
_WORDS = {
    "check": "the CHECK constraint",
    "invariant": "the invariant of column",
    "replace_where": "replaceWhere",
    "generated": "the generated column",
}


class Constraints:
    """All conditions on rows of ``state``'s table, bound for the session.

    Raises: ExpressionError for an expression that cannot be evaluated in the session.
    """

    def __init__(self, state: WriteState, session: TaskSession) -> None:
        table = state.table_root
        self._not_null = _NotNull(state.schema, table)
        generated = [
            _RowCheck(
                Check("generated", source.field.name, source.expression), source.expression, session, table, source
            )
            for source in state.columns
            if source.source == "generated" and source.input is not None and source.expression is not None
        ]
        self._checks: list[_RowCheck | _SparkCheck] = [
            *generated,
            *(
                _SparkCheck(check, f"{CHECK_PREFIX}{i}", table)
                if isinstance(check.expression, SparkExpression)
                else _RowCheck(check, check.expression, session, table)
                for i, check in enumerate(state.checks)
            ),
        ]

    def check(self, batch: pa.RecordBatch, incoming: pa.RecordBatch | None = None) -> None:
        """Check the rows of a batch with the table's logical columns.

        Incoming values of generated columns, as marked in ``WriteState.columns``, are compared with their expressions.

        Args:
            incoming: the same rows as they came, with the columns that a Spark session has added, if ``batch`` lacks
                these.
        Raises:
            ConstraintViolationError: names the condition and the first row that violates it:
                DELTA_NOT_NULL_CONSTRAINT_VIOLATED, DELTA_VIOLATE_CONSTRAINT_WITH_VALUES, DELTA_REPLACE_WHERE_MISMATCH.
            ExpressionError: a condition cannot be computed for a row.
            DeltaError: the rows lack a column that Spark should have computed.
        """
        self._not_null.check(batch)
        if batch.num_rows:
            for check in self._checks:
                check.check(batch, batch if incoming is None else incoming)


class _RowCheck:
    """``generated``: the column whose incoming values are compared with the expression, by ``<=>``."""

    def __init__(
        self,
        check: Check,
        expression: SessionExpression,
        session: TaskSession,
        table: str,
        generated: ColumnSource | None = None,
    ) -> None:
        self._check = check
        self._expression = expression
        self._table = table
        self._generated = generated
        self._named = f"{_name(check)} of table {table}"
        self._tree = meaning(expression, session, self._named)

    def check(self, batch: pa.RecordBatch, _: pa.RecordBatch) -> None:
        passed = evaluate_named(self._tree, self._expression, batch, batch.num_rows, self._named)
        columns = columns_of(self._tree)
        if self._generated is not None:
            field = self._generated.field
            passed = same_values(batch_resolver(batch)((field.name,)), of_type(passed, field, self._expression))
            columns = [(field.name,), *columns]
        at = first_failure(passed)
        if at is not None:
            raise broken(self._check, self._table, batch, at, columns)


class _SparkCheck:
    """A condition that a Spark session has evaluated: a column of the rows says whether they pass."""

    def __init__(self, check: Check, column: str, table: str) -> None:
        self._check = check
        self._column = column
        self._table = table

    def check(self, batch: pa.RecordBatch, incoming: pa.RecordBatch) -> None:
        # an incoming column may have the same name; computed columns come last
        positions = incoming.schema.get_all_field_indices(self._column)
        if not positions:
            raise DeltaError(
                f"the rows for {self._table} lack the column that Spark computes for {_name(self._check)}: nothing can "
                "be written."
            )
        at = first_failure(incoming.column(max(positions)))
        if at is not None:
            raise broken(self._check, self._table, batch, at, shown_columns(self._check))


def broken(
    check: Check, table: str, batch: pa.RecordBatch, at: int, columns: Iterable[tuple[str, ...]]
) -> ConstraintViolationError:
    """The error for a row that violates the condition. ``at``: its number. ``columns``: the ones to show."""
    sql, values = shown(check.expression.sql), _row_values(batch, at, columns)
    if check.kind == "replace_where":
        return ConstraintViolationError(
            f"a row to be written to {table} does not satisfy replaceWhere, {sql}:\n{values}"
            "\nWrite only rows for which it is true, or change it.",
            code="DELTA_REPLACE_WHERE_MISMATCH",
            multiline=True,
            table=table,
            predicate=sql,
            values=values,
        )
    if check.kind == "generated":
        rule = f"CHECK constraint Generated Column ({shown(check.name)} <=> {sql})"
    else:
        rule = f"{_name(check)[4:]} ({sql})"
    return violation(table, rule, values, check.name)


def shown_columns(check: Check) -> list[tuple[str, ...]]:
    """The columns to show in the error, for a condition that a Spark session has evaluated."""
    if isinstance(check.expression, SessionExpression):
        return columns_of(check.expression.ansi)
    own = [check.name] if check.kind == "generated" else []
    return [(name,) for name in dict.fromkeys([*own, *check.expression.columns])]


def _name(check: Check) -> str:
    return _WORDS[check.kind] + ("" if check.kind == "replace_where" else f" '{check.name}'")


def violation(table: str, rule: str, values: str, name: str) -> ConstraintViolationError:
    return ConstraintViolationError(
        f"{rule} of table {table} violated by row with values:\n{values}",
        code="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        multiline=True,
        table=table,
        constraint=name,
        values=values,
    )


def columns_of(tree: Expr) -> list[tuple[str, ...]]:
    return sorted(references(tree))


def first_failure(passed: pa.Array) -> int | None:
    """The first row for which a condition is not true: false and null both fail."""
    if passed.null_count:
        passed = passed.fill_null(False)
    elif pc.all(passed).as_py() is not False:
        return None
    at: int = pc.index(passed, False).as_py()
    return None if at < 0 else at


def same_values(left: pa.Array, right: pa.Array) -> pa.Array:
    """``left <=> right`` of one type: null equals null, NaN equals NaN. The result has no nulls."""
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    if not equal.null_count:
        return equal
    return pc.if_else(equal.is_valid(), equal, pc.and_(left.is_null(), right.is_null()))


# --- a row in a message


def _row_values(batch: pa.RecordBatch, row: int, columns: Iterable[tuple[str, ...]]) -> str:
    """The values of a row for a message: a line `` - column : value`` for each column or field; timestamps in UTC."""
    resolve = batch_resolver(batch.slice(row, 1))
    lines = {".".join(path): _show_value(resolve(path)[0]) for path in columns}
    return "\n".join(f" - {shown(name)} : {shown(value)}" for name, value in lines.items())


def _show_value(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "null"
    kind = value.type
    if pa.types.is_timestamp(kind):
        # Python's datetime ends at the year 9999
        return show_timestamp(value.value) + ("Z" if kind.tz else "")
    if pa.types.is_date32(kind):
        return show_date(value.value)
    if pa.types.is_boolean(kind):
        return "true" if value.as_py() else "false"
    if pa.types.is_binary(kind):
        text = f"X'{value.as_buffer().to_pybytes().hex().upper()}'"
    elif pa.types.is_string(kind):
        text = value.as_buffer().to_pybytes().decode("utf-8", "replace")
    else:
        text = str(value.as_py()) if not pa.types.is_nested(kind) else str(value)
    return text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH] + f"... ({len(text)} characters)"


class _NotNull:
    """NOT NULL of columns, of fields in structs, and of elements and values. Columns without it cost nothing.

    A field inside a null struct, list or map is not a value of the row, and is not checked.
    """

    def __init__(self, schema: StructType, table: str) -> None:
        self._table = table
        found = ((f.name, self._inspect_field(f, f.name)) for f in schema)
        self._columns = [(name, inspect) for name, inspect in found if inspect is not None]

    def check(self, batch: pa.RecordBatch) -> None:
        """Raises: ConstraintViolationError (DELTA_NOT_NULL_CONSTRAINT_VIOLATED) naming the column."""
        for name, inspect in self._columns:
            inspect(batch.column(name))

    def _inspect_field(self, field: StructField, column: str) -> _Inspect | None:
        return self._inspect(field.data_type, field.nullable or field.data_type == VOID, column)

    def _inspect(self, data_type: DataType, nullable: bool, column: str) -> _Inspect | None:
        below = self._below(data_type, column)
        if nullable:
            return below

        def inspect(array: pa.Array) -> None:
            if array.null_count:
                raise ConstraintViolationError(
                    f"the column '{column}' of table {self._table} is NOT NULL, but a row to be written has a null "
                    "in it.",
                    code="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
                    table=self._table,
                    column=column,
                )
            if below is not None:
                below(array)

        return inspect

    def _below(self, data_type: DataType, column: str) -> _Inspect | None:
        if isinstance(data_type, StructType):
            fields = [(f.name, self._inspect_field(f, f"{column}.{f.name}")) for f in data_type]
            wanted = [(name, inspect) for name, inspect in fields if inspect is not None]
            return (lambda array: _fields(array, wanted)) if wanted else None
        if isinstance(data_type, ArrayType):
            nullable = data_type.contains_null or data_type.element_type == VOID
            element = self._inspect(data_type.element_type, nullable, f"{column}.element")
            return None if element is None else lambda array: element(array.flatten())
        if isinstance(data_type, MapType):
            nullable = data_type.value_contains_null or data_type.value_type == VOID
            key = self._inspect(data_type.key_type, True, f"{column}.key")
            value = self._inspect(data_type.value_type, nullable, f"{column}.value")
            return None if key is None and value is None else lambda array: _entries(array, key, value)
        return None


def _fields(array: pa.Array, wanted: list[tuple[str, _Inspect]]) -> None:
    if array.null_count:
        # values inside a null struct do not count
        array = array.drop_null()
    for name, inspect in wanted:
        inspect(array.field(name))


def _entries(array: pa.Array, key: _Inspect | None, value: _Inspect | None) -> None:
    if array.null_count:
        array = array.drop_null()
    if not len(array):
        return
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    if key is not None:
        key(array.keys.slice(start, end - start))
    if value is not None:
        value(array.items.slice(start, end - start))
