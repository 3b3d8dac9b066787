"""The columns that rowPosition and rowIds add after the table's columns."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType, StructField, StructType

from delta_pyds.errors import UserError
from delta_pyds.protocol.schema import StructType as Columns
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.planning.types import from_spark
from delta_pyds.tasks.scan_state import (
    FILE_PATH_COLUMN,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    ROW_POSITION_COLUMN,
)


def extra_fields(options: ReadOptions) -> list[StructField]:
    """The columns that rowPosition and rowIds add, always last."""
    fields = []
    if options.row_position:
        fields += [
            StructField(FILE_PATH_COLUMN, StringType(), False),
            StructField(ROW_POSITION_COLUMN, LongType(), False),
        ]
    if options.row_ids:
        fields += [
            StructField(ROW_ID_COLUMN, LongType(), False),
            StructField(ROW_COMMIT_VERSION_COLUMN, LongType(), False),
        ]
    return fields


def user_columns(schema: StructType, options: ReadOptions) -> Columns:
    """The table's part of the user's schema, which must end with the columns of rowPosition and rowIds."""
    extra = extra_fields(options)
    if not extra:
        return from_spark(schema)
    names = [(f.name, f.dataType) for f in extra]
    if [(f.name, f.dataType) for f in schema.fields[-len(extra) :]] != names:
        raise UserError(
            "a schema was given with rowPosition or rowIds, so it must end with their columns: "
            f"{', '.join(n for n, _ in names)}.",
            code="DELTA_READ_SCHEMA_CONFLICT",
        )
    return from_spark(StructType(schema.fields[: -len(extra)]))
