"""Columns that the incoming rows lack: defaults, generated columns, identity values.

Invariant: a task that runs twice over the same rows computes the same values. No two tasks of one write assign the same
identity value.
Protocol: "Default Columns", "Generated Columns", "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.evaluate import evaluate
from delta_pyds.columnar.rows import Resolver
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.columns import Constant
from delta_pyds.data.write.store_assignment import fits
from delta_pyds.data.write.task_session import TaskSession, meaning
from delta_pyds.errors import ColumnNotFoundError, DeltaError, ExpressionError
from delta_pyds.expr.nodes import Expr
from delta_pyds.protocol.schema import StructField, display
from delta_pyds.tasks.write_state import ColumnSource, IdentityColumn, SessionExpression

IDENTITY_BLOCK = 1024
_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1

Compute = Callable[[Resolver, int], pa.Array]


def default_column(source: ColumnSource, session: TaskSession, table: str) -> Constant:
    """The column's default, computed once for the task."""
    compute = computed_column(source, session, table, "the default of column")

    def refuse_column(path: tuple[str, ...]) -> pa.Array:
        raise ColumnNotFoundError(f"defaults are constants and cannot use '{path[0]}'.", column=".".join(path))

    return Constant(compute(refuse_column, 1)[0])


def computed_column(
    source: ColumnSource, session: TaskSession, table: str, owner: str = "the generated column"
) -> Compute:
    """A function that computes the column's values from the table's other columns and the number of rows.

    ``owner``: the column's role, for messages.
    Raises: ExpressionError if the expression cannot be evaluated in the session. The function raises the errors of the
        expression (overflow, a failed cast), with the column's name.
    """
    expression, field = source.expression, source.field
    if expression is None:
        raise ValueError(f"the column {field.name} has source {source.source} and no expression")
    name = f"{owner} '{field.name}' of table {table}"
    tree = meaning(expression, session, name)

    def compute(columns: Resolver, num_rows: int) -> pa.Array:
        return of_type(evaluate_named(tree, expression, columns, num_rows, name), field, expression)

    return compute


def evaluate_named(
    tree: Expr, expression: SessionExpression, columns: Resolver | pa.RecordBatch, num_rows: int, owner: str
) -> pa.Array:
    """Evaluate an expression; its errors name the column or constraint."""
    try:
        return evaluate(tree, columns, num_rows)
    except DeltaError as e:
        raise ExpressionError(
            f"{owner}, {expression.sql}, cannot be computed for a row: {e.message}", code=e.code, **e.parameters
        ) from None
    except pa.ArrowInvalid as e:
        raise ExpressionError(f"{owner}, {expression.sql}, cannot be computed for a row: {e}") from e


def of_type(values: pa.Array, field: StructField, expression: SessionExpression) -> pa.Array:
    """The values, checked to have the column's type. Nulls without a type get it. Raises: ExpressionError."""
    wanted = arrow_type(field.data_type)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), wanted)
    if not fits(values.type, wanted):
        raise ExpressionError(
            f"the expression of column '{field.name}', {expression.sql}, gives {values.type}, but the column has type "
            f"{display(field.data_type).upper()}.",
            code="DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
            column=field.name,
        )
    return values


def szudzik_pair(x: int, y: int) -> int:
    """A distinct number for each pair of non-negative numbers; small pairs get small numbers."""
    return x * x + x + y if x >= y else y * y + x


class IdentityValues:
    """Numbers the rows of one task.

    Row k of task p gets, with b = k // 1024, the number ``szudzik_pair(p, b) * 1024 + k % 1024``. Its value is this
    number of steps after the first new value. So tasks never assign the same value, although no task knows the others,
    or how many there are. A single small task leaves no gaps. ``mark``: the furthest value; None at first.
    """

    def __init__(self, column: str, identity: IdentityColumn, partition_id: int, table: str = "") -> None:
        self._column = column
        self._table = table
        self._step = identity.step
        self._partition = partition_id
        self._rows = 0
        self._base = first_identity_value(identity)
        self._ramp: pa.Array | None = None
        self.mark: int | None = None

    def next(self, num_rows: int) -> pa.Array:
        """Values for the next ``num_rows`` rows.

        Raises: ExpressionError (ARITHMETIC_OVERFLOW) beyond 64 bits.
        """
        parts = []
        while num_rows:
            block, offset = divmod(self._rows, IDENTITY_BLOCK)
            length = min(num_rows, IDENTITY_BLOCK - offset)
            parts.append(self._range(szudzik_pair(self._partition, block) * IDENTITY_BLOCK + offset, length))
            self._rows += length
            num_rows -= length
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts) if parts else pa.array([], pa.int64())

    def _range(self, index: int, length: int) -> pa.Array:
        first, last = self._base + index * self._step, self._base + (index + length - 1) * self._step
        if not (_LONG_MIN <= first <= _LONG_MAX and _LONG_MIN <= last <= _LONG_MAX):
            raise ExpressionError(
                f"the identity column '{self._column}' of table {self._table} has no values left: {last} is beyond "
                "BIGINT.",
                code="ARITHMETIC_OVERFLOW",
                table=self._table,
                column=self._column,
            )
        furthest = last if self.mark is None else (max if self._step > 0 else min)(self.mark, last)
        self.mark = furthest
        if self._ramp is None:
            # overflows for huge steps, and is correct again after adding the start, because both ends fit
            self._ramp = pc.multiply(pa.array(range(IDENTITY_BLOCK), pa.int64()), pa.scalar(self._step, pa.int64()))
        return pc.add(self._ramp.slice(0, length), pa.scalar(first, pa.int64()))


def first_identity_value(identity: IdentityColumn) -> int:
    """The first value of ``start + k * step`` beyond the high-water mark.

    The mark itself need not have that form: other writers store values that users gave.
    """
    if identity.high_water_mark is None:
        return identity.start
    steps = (identity.high_water_mark - identity.start) // identity.step + 1
    return identity.start + max(0, steps) * identity.step
