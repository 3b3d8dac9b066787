"""Conversion of new values to checked rows of the table, for commands that write rows.

Protocol: "Column Invariants", "CHECK Constraints", "Generated Columns", "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from delta_pyds.data.write.constraints import broken, first_failure, shown_columns
from delta_pyds.data.write.ingest import Ingest
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import DeltaError
from delta_pyds.tasks.changed_rows import CHECK_PREFIX, NEW_PREFIX
from delta_pyds.tasks.write_state import WriteState


class NewRows:
    """The updated or the inserted rows of one task. They have the columns ``NEW_PREFIX`` and ``CHECK_PREFIX``.

    Invariant: the rows satisfy every rule of the table, including those that Spark has evaluated.
    Raises: DeltaError for a missing column; as ``Ingest``.
    """

    def __init__(self, state: WriteState, session: TaskSession, incoming: pa.Schema) -> None:
        self._state = state
        present = set(incoming.names)
        self._columns: list[str] = []
        sources = []
        for i, source in enumerate(state.columns):
            if source.input is None:
                sources.append(source)
                continue
            column = f"{NEW_PREFIX}{i}"
            if column not in present:
                raise DeltaError(
                    f"internal error: changed rows lack the new values of the column '{source.field.name}'."
                )
            sources.append(replace(source, input=len(self._columns)))
            self._columns.append(column)
        self._names = [source.field.name for source in sources if source.input is not None]
        checks = [(f"{CHECK_PREFIX}{i}", check) for i, check in enumerate(state.checks)]
        self._checked = [(column, check) for column, check in checks if column in present]
        ours = tuple(check for column, check in checks if column not in present)
        self._ingest = Ingest(replace(state, columns=tuple(sources), checks=ours), session)

    @property
    def identity_marks(self) -> Mapping[str, int]:
        """For each identity column, the furthest value assigned so far."""
        return self._ingest.identity_marks

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows in the table's logical columns. Raises: ConstraintViolationError, ExpressionError."""
        given = pa.RecordBatch.from_arrays([batch.column(name) for name in self._columns], names=self._names)
        rows = self._ingest.apply(given if self._names else batch)
        for column, check in self._checked:
            at = first_failure(batch.column(column))
            if at is not None:
                raise broken(check, self._state.table_root, rows, at, shown_columns(check))
        return rows
