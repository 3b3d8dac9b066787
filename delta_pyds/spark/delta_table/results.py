"""What a command did, as the DataFrame that the reference returns; ``delta_pyds.explain`` of it says where and why."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_pyds.commands.layout.auto_compact import compact_after
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.options.auto_compact import session_rule
from delta_pyds.spark.row_changes.handle import AlreadyWrittenError, TableHandle
from delta_pyds.table.scan.read_report import remember

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AFFECTED = ("num_affected_rows",)
_OF_MERGE = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")


def once(handle: TableHandle, command: Callable[[], RowChangeResult]) -> RowChangeResult:
    """Run a command, which does nothing where the table has its application's version already.

    After it, small files are compacted where the table or the session wants that.
    """
    try:
        result = command()
        if result.version is not None:
            setting = partial(handle.spark.conf.get, default=None)
            rule = session_rule(setting, table_wants=result.auto_compact)
            if rule is not None:
                compact_after(handle.path, result.version, handle.storage_options, rule=rule)
        return result
    except AlreadyWrittenError:
        place = Place("process", "the table has the transaction that the session's settings name already")
        return RowChangeResult(None, 0, 0, 0, 0, num_files_read=0, place=place)


def affected_rows(spark: SparkSession, result: RowChangeResult) -> DataFrame:
    """Of a delete or an update: one row, one number."""
    return numbers_frame(spark, result, _AFFECTED)


def merged_rows(spark: SparkSession, result: RowChangeResult) -> DataFrame:
    """Of a merge: one row, four numbers."""
    return numbers_frame(spark, result, _OF_MERGE)


def numbers_frame(spark: SparkSession, result: object, names: tuple[str, ...]) -> DataFrame:
    """One row with these attributes of a command's result, which ``explain`` then shows."""
    numbers = [int(getattr(result, name)) for name in names]
    if is_remote(spark):
        # sent along with what asks for the row
        columns = [pa.array([number], pa.int64()) for number in numbers]
        frame = spark.createDataFrame(pa.table(columns, list(names)))
    else:
        # a row that Spark knows when it plans needs no job; the numbers may be null, as the reference says of them
        columns_sql = ", ".join(f"nullif({name}, CAST(NULL AS BIGINT)) AS {name}" for name in names)
        values = ", ".join(f"CAST({number} AS BIGINT)" for number in numbers)
        frame = spark.sql(f"SELECT {columns_sql} FROM VALUES ({values}) AS result({', '.join(names)})")
    remember(frame, result)
    return frame
