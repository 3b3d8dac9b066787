"""Rows that were compared in memory, as rows of the scan: their files are not decoded a second time.

Invariant: the rows are those that ``data.read.reader`` would return for the same rows of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.cast import ColumnLocation
from delta_pyds.columnar.evaluate import matches
from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.data.columns import record_batch
from delta_pyds.data.read.batch_size import MAX_BATCH_BYTES
from delta_pyds.data.read.file_plan import predicate_fields
from delta_pyds.data.read.output import output_schema, partition_column
from delta_pyds.protocol.schema import StructField, StructType, nullable_throughout
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, ScanFile, ScanState


def with_change_type(state: ScanState, file: ScanFile, change_type: str) -> ScanFile:
    """The file with a change type among its partition values."""
    values = tuple(
        change_type if name == CHANGE_TYPE_COLUMN else value
        for name, value in zip(state.partition_columns, file.partition_values, strict=True)
    )
    return replace(file, partition_values=values)


@dataclass(frozen=True)
class ComparedRows:
    """The conversion of rows of ``state.compared_columns`` into rows of the scan.

    ``outputs``, ``inputs``: the number of each column in the compared rows; None for a partition value.
    ``fields``: of ``inputs``.
    """

    state: ScanState
    schema: pa.Schema
    outputs: Sequence[int | None]
    inputs: Sequence[int | None]
    fields: tuple[StructField, ...]

    @classmethod
    def of(cls, state: ScanState, first: int) -> ComparedRows | None:
        """``first``: the number of the first column. None if the scan returns only parts of a column."""
        fields = predicate_fields(state)
        outputs = _numbers(state, state.output.fields, first, checks_nulls=True)
        inputs = _numbers(state, fields, first, checks_nulls=False)
        if outputs is None or inputs is None:
            return None
        return cls(state, output_schema(state), outputs, inputs, fields)

    def rows_of_scan(self, file: ScanFile, rows: pa.RecordBatch, files: Sequence[ScanFile]) -> Iterator[pa.RecordBatch]:
        """Yield batches of the scan.

        Args:
            file: with the partition values of all rows.
            files: of the rows, whose last column has the number of their file.
        Raises: as ``data.read.reader.read``.
        """
        predicate = self.state.predicate
        if predicate is not None:
            arrays = [self._column(file, rows, at, f) for at, f in zip(self.inputs, self.fields, strict=True)]
            inputs = record_batch(arrays, arrow_schema(StructType(self.fields)), rows.num_rows)
            rows = rows.filter(matches(predicate, inputs, rows.num_rows))
        if not rows.num_rows:
            return
        columns = []
        for at, field in zip(self.outputs, self.state.output.fields, strict=True):
            column = self._column(file, rows, at, field)
            if column.null_count and not field.nullable:
                null = rows.column(rows.num_columns - 1)[pc.index(column.is_null(), True).as_py()]
                raise ColumnLocation(files[null.as_py()].path, field.name).null_found()
            columns.append(column)
        batch = record_batch(columns, self.schema, rows.num_rows)
        step = min(self.state.batch_rows, max(1, rows.num_rows * MAX_BATCH_BYTES // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)

    def _column(self, file: ScanFile, rows: pa.RecordBatch, at: int | None, field: StructField) -> pa.Array:
        if at is None:
            return partition_column(self.state, file, field).array(rows.num_rows)
        return rows.column(at)


def _numbers(
    state: ScanState, fields: Sequence[StructField], first: int, *, checks_nulls: bool
) -> list[int | None] | None:
    """The numbers of the columns among those that were compared; None if one of them is not there as a whole."""
    assert state.compared_columns is not None
    known = {f.physical_name: (i, f.data_type) for i, f in enumerate(state.compared_columns.fields, first)}
    found: list[int | None] = []
    for field in fields:
        if field.physical_name in state.partition_columns:
            found.append(None)
            continue
        number, compared = known.get(field.physical_name, (0, None))
        whole = compared is not None and nullable_throughout(field.data_type) == nullable_throughout(compared)
        # only the reader checks nulls inside a column
        if not whole or (checks_nulls and field.data_type != nullable_throughout(field.data_type)):
            return None
        found.append(number)
    return found
