"""The batches that a scan returns: their schema, and the columns that are not in files.

Invariant: every batch of a scan has exactly the scan's schema.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.cast import ColumnLocation
from delta_pyds.columnar.schema import arrow_field, arrow_type
from delta_pyds.data.columns import Constant
from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.partition_values import invalid_in_file, parse_partition_value
from delta_pyds.protocol.schema import StructField
from delta_pyds.tasks.scan_state import (
    FILE_PATH_COLUMN,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    ROW_POSITION_COLUMN,
    ScanFile,
    ScanState,
)


def output_schema(state: ScanState) -> pa.Schema:
    """The schema of every batch of the scan.

    The columns of ``state.output``, then the additional columns that the scan asks for: ``_file_path`` and
    ``_row_position``, ``_row_id`` and ``_row_commit_version``. The additional columns are not nullable.
    """
    fields = [arrow_field(f) for f in state.output.fields]
    if state.row_position:
        fields.append(pa.field(FILE_PATH_COLUMN, pa.string(), nullable=False))
        fields.append(pa.field(ROW_POSITION_COLUMN, pa.int64(), nullable=False))
    if state.row_ids is not None:
        fields.append(pa.field(ROW_ID_COLUMN, pa.int64(), nullable=False))
        fields.append(pa.field(ROW_COMMIT_VERSION_COLUMN, pa.int64(), nullable=False))
    return pa.schema(fields)


def partition_column(state: ScanState, file: ScanFile, field: StructField) -> Constant:
    """The column of a partition value: from the log, never from the file.

    Raises: ProtocolError if the log's string is not a value of the type, or is null in a NOT NULL column.
    """
    text = file.partition_values[state.partition_columns.index(field.physical_name)]
    try:
        value = parse_partition_value(text, field.data_type, state.time_zone)
    except ProtocolError as e:
        raise invalid_in_file(e, state.table_root, file.path, field.name) from None
    if value is None and not field.nullable:
        raise ColumnLocation(file.path, field.name).null_found()
    return Constant(pa.scalar(value, arrow_type(field.data_type)))


# made with nulls: an array from a list would import pandas
_NO_NUMBERS = pa.nulls(0, pa.int64())


class RowNumbers:
    """Row positions as arrays: one range from 0, shifted for every batch. Threads may share it."""

    def __init__(self) -> None:
        self._ramp = _NO_NUMBERS

    def between(self, start: int, length: int) -> pa.Array:
        # read once, because another thread may replace it
        ramp = self._ramp
        if len(ramp) < length:
            ramp = self._ramp = pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), length)), 1)
        return pc.add(ramp.slice(0, length), start)


def stored_or_default(
    stored: pa.Array | None, default: pa.Array | pa.Scalar | None, length: int, column: str, file: str
) -> pa.Array:
    """The stored value of each row, or the default if it is null.

    Raises: ProtocolError if a row has neither.
    Protocol: "Reader Requirements for Row Tracking".
    """
    if stored is not None and not stored.null_count:
        return stored
    if default is None:
        raise ProtocolError(
            f"the data file '{file}' has rows without a {column}: it has no materialized value for them, and the log "
            "has no base for the file. The table was not completely backfilled when row tracking was enabled.",
            code="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
            file=file,
        )
    if stored is None:
        return pa.repeat(default, length) if isinstance(default, pa.Scalar) else default
    return pc.coalesce(stored, default)
