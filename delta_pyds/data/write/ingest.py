"""Turns incoming rows into rows of the table.

Invariant: the returned batch has exactly the table's logical columns, in the table's order and types, and satisfies
every constraint of the table. Conversions are planned once per task; a column with the right type is not copied.

The order is the reference's: incoming, default and identity columns first, then generated ones (which never depend on
each other). Then empty strings in partition columns become null, and then rows are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.cast import MaybeConvert
from delta_pyds.columnar.rows import struct_field
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.columns import Constant, null_column, record_batch
from delta_pyds.data.write.constraints import Constraints
from delta_pyds.data.write.derived_columns import Compute, IdentityValues, computed_column, default_column
from delta_pyds.data.write.store_assignment import plan_assignment
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.data.write.text_lengths import plan_text_lengths
from delta_pyds.errors import ColumnNotFoundError, UserError
from delta_pyds.protocol.schema import BINARY, STRING
from delta_pyds.tasks.write_state import ColumnSource, WriteState

Step = Callable[[pa.RecordBatch], pa.Array]


class Ingest:
    """The incoming rows of one task, batch by batch, in order."""

    def __init__(self, state: WriteState, session: TaskSession) -> None:
        """Raises: ExpressionError if an expression of the table cannot be evaluated in the session."""
        self._state = state
        self._constraints = Constraints(state, session)
        self._positions = {source.field.name: i for i, source in enumerate(state.columns)}
        self._constants: dict[int, Constant] = {}
        self._computed: dict[int, Compute] = {}
        self._identities: dict[int, IdentityValues] = {}
        for i, source in enumerate(state.columns):
            if source.input is not None:
                continue
            if source.source == "default":
                self._constants[i] = default_column(source, session, state.table_root)
            elif source.source == "generated":
                self._computed[i] = computed_column(source, session, state.table_root)
            elif source.source == "identity":
                assert source.identity is not None
                self._identities[i] = IdentityValues(
                    source.field.name, source.identity, session.partition_id, state.table_root
                )
            else:
                self._constants[i] = null_column(arrow_type(source.field.data_type))
        self._partition_texts = [
            i
            for i, source in enumerate(state.columns)
            if source.field.name in state.partition_columns and source.field.data_type in (STRING, BINARY)
        ]
        self._incoming: pa.Schema | None = None
        self._steps: list[tuple[int, Step]] = []
        self._lengths: dict[int, MaybeConvert] = {}
        self._schema = pa.schema([])

    @property
    def identity_marks(self) -> Mapping[str, int]:
        """For each identity column, the furthest value assigned so far."""
        columns = self._state.columns
        return {columns[i].field.name: v.mark for i, v in self._identities.items() if v.mark is not None}

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as rows of the table, with types of ``columnar.schema.arrow_schema`` up to nullability.

        Raises:
            UserError: a column does not fit the table (DELTA_FAILED_TO_MERGE_FIELDS, DELTA_DUPLICATE_COLUMNS_FOUND).
            ConstraintViolationError, ExpressionError: a value or row is refused.
        """
        if self._incoming is None or not batch.schema.equals(self._incoming):
            self._plan(batch.schema)
            self._incoming = batch.schema
        arrays: list[pa.Array] = [None] * len(self._state.columns)
        for i, step in self._steps:
            arrays[i] = step(batch)

        def resolve(path: tuple[str, ...]) -> pa.Array:
            array = arrays[self._positions[path[0]]]
            if array is None:
                raise ColumnNotFoundError(
                    f"the generated column '{path[0]}' cannot be used by another generated column.", column=path[0]
                )
            return struct_field(array, path[1:])

        computed = {i: self._limited(i, compute(resolve, batch.num_rows)) for i, compute in self._computed.items()}
        for i, array in computed.items():
            arrays[i] = array
        for i in self._partition_texts:
            arrays[i] = _without_empty(arrays[i])
        result = record_batch(arrays, self._schema, batch.num_rows)
        self._constraints.check(result, batch)
        return result

    def _plan(self, incoming: pa.Schema) -> None:
        columns = self._state.columns
        types: list[pa.DataType] = []
        names = incoming.names
        self._steps = []
        self._lengths = {}
        for i, source in enumerate(columns):
            if source.input is None:
                data_type, step = arrow_type(source.field.data_type), self._step_for(i)
            else:
                data_type, step = _incoming_column(source, source.input, incoming, names, self._state.table_root)
            types.append(data_type)
            self._lengths[i] = plan_text_lengths(source.field, data_type, self._state.table_root)
            if step is not None:
                self._steps.append((i, self._with_lengths(i, step)))
        self._schema = pa.schema([pa.field(s.field.name, t) for s, t in zip(columns, types, strict=True)])

    def _step_for(self, i: int) -> Step | None:
        """The step for a column that the rows lack; None for a column computed from others."""
        if i in self._constants:
            constant = self._constants[i]
            return lambda batch: constant.array(batch.num_rows)
        if i in self._identities:
            values = self._identities[i]
            return lambda batch: values.next(batch.num_rows)
        return None

    def _with_lengths(self, i: int, step: Step) -> Step:
        return step if self._lengths[i] is None else lambda batch: self._limited(i, step(batch))

    def _limited(self, i: int, array: pa.Array) -> pa.Array:
        limit = self._lengths[i]
        return array if limit is None else limit(array)


def _incoming_column(
    source: ColumnSource, position: int, incoming: pa.Schema, names: Sequence[str], table: str
) -> tuple[pa.DataType, Step]:
    """``names``: the incoming columns' names; passed because Arrow builds the list on every access."""
    name = source.field.name
    if position >= len(names) or names[position].lower() != name.lower():
        raise UserError(
            f"the column '{name}' of table {table} should be column {position + 1} of the incoming rows, but their "
            f"columns are {', '.join(names) or 'none'}: the rows do not have the schema that Spark announced.",
            code="DELTA_FAILED_TO_MERGE_FIELDS",
            column=name,
        )
    assignment = plan_assignment(incoming.field(position).type, source.field.data_type, name, table)
    convert = assignment.convert
    if convert is None:
        return assignment.data_type, lambda batch: batch.column(position)
    return assignment.data_type, lambda batch: convert(batch.column(position))


def _without_empty(texts: pa.Array) -> pa.Array:
    """Null for empty strings and bytes, because the log does not distinguish them in partition values."""
    empty = pc.equal(pc.binary_length(texts), 0)
    if not pc.any(empty).as_py():
        return texts
    return pc.if_else(empty, pa.scalar(None, texts.type), texts)
