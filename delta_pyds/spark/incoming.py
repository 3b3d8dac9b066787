"""Rows that a user has, in whatever holds them, as a DataFrame of a session."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_pyds.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def to_frame(rows: Any, spark: SparkSession | None) -> DataFrame:
    """A DataFrame of Spark as it is; one of pandas, an Arrow table, batch or reader, or what exports one, by ``spark``.

    ``spark``: by default the active session; a DataFrame of Spark has its own. All other rows go through the driver's
    memory.
    Raises: OptionError for anything else, and where there is no session.
    """
    from pyspark.sql import DataFrame as SparkDataFrame

    if isinstance(rows, SparkDataFrame):
        return rows
    pandas = sys.modules.get("pandas")  # whoever has such a frame has loaded it
    is_pandas = pandas is not None and isinstance(rows, getattr(pandas, "DataFrame", ()))
    local = rows if is_pandas else _table(rows)
    if local is None:
        raise OptionError(
            f"a {type(rows).__name__} cannot be written: give a DataFrame of Spark or pandas, or an Arrow table.",
            option="df",
        )
    return (spark or _session()).createDataFrame(local)


def _table(rows: Any) -> pa.Table | None:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows).read_all()
    return None


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except Exception as e:
        raise OptionError(
            "there is no session to write an Arrow or pandas table with: give it as spark=, or start one first "
            "(SparkSession.builder.getOrCreate()).",
            option="spark",
        ) from e
