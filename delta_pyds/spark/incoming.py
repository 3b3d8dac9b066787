"""A user's rows, of pandas, Arrow or Spark, as a DataFrame of a session."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
from pyarrow import types as pt
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type

from delta_pyds.errors import OptionError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.settings import TIMESTAMP_TYPE

# Arrow types that Spark lacks, to the narrowest type of Spark that holds every value
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
}
_MOST_DIGITS = 38


def to_frame(rows: Any, spark: SparkSession | None) -> DataFrame:
    """A DataFrame of Spark as it is; one of pandas, an Arrow table, batch or reader, or what exports one, by ``spark``.

    ``spark``: by default the active session; a DataFrame of Spark has its own. All other rows go through the driver's
    memory, and no value of them changes: a type that Spark lacks becomes the next wider one (``uint64`` a decimal),
    nanoseconds are cut to microseconds, NaN of pandas is null.
    Raises: OptionError for anything else, for a column that has no such type, and if there is no session.
    """
    if isinstance(rows, DataFrame):
        return rows
    pandas = sys.modules.get("pandas")  # a caller with such a frame has loaded it
    is_pandas = pandas is not None and isinstance(rows, getattr(pandas, "DataFrame", ()))
    local = _of_pandas(rows) if is_pandas else _table(rows)
    if local is None:
        raise OptionError(
            f"a {type(rows).__name__} cannot be written: give a DataFrame of Spark or pandas, or an Arrow table.",
            option="df",
        )
    session = spark or _session()
    try:
        return frame_of_table(session, _with_types_of_spark(local))
    except pa.ArrowException as e:  # a time that the session's zone skips or has twice; one out of range
        raise OptionError(
            f"Spark cannot take these rows: {e}. Timestamps without a time zone are times of the session's zone. "
            "If that is the cause, give them a zone.",
            option="df",
        ) from e


def frame_of_table(session: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of a table. Spark Connect needs a schema if it has no rows: the one that Spark gives other tables."""
    if table.num_rows or not is_remote(session):
        return session.createDataFrame(table)
    without_zone = session.conf.get(TIMESTAMP_TYPE) == "TIMESTAMP_NTZ"
    return session.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=without_zone))


def _of_pandas(rows: Any) -> pa.Table:
    """A table, by Arrow alone: Spark would guess types from the values, and make others null."""
    names = [str(name) for name in rows.columns]
    rows = rows.set_axis(
        range(len(names)), axis="columns"
    )  # pandas and Arrow refuse repeated names; here the write refuses them
    columns = []
    for position, name in enumerate(names):
        try:
            columns += pa.Table.from_pandas(rows[[position]], preserve_index=False).columns
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as e:
            raise _not_writable(name, f"{rows.dtypes[position]}", e) from e
    return pa.table(columns, names=names)


def _with_types_of_spark(table: pa.Table) -> pa.Table:
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        wanted = _type_of_spark(field.type)
        try:
            columns.append(column if wanted == field.type else column.cast(wanted))
        except pa.ArrowException as e:
            raise _not_writable(field.name, str(field.type), e) from e
        _check_known_to_spark(field.name, wanted)
    fields = [field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)]
    return pa.table(columns, schema=pa.schema(fields))


def _type_of_spark(source: pa.DataType) -> pa.DataType:
    """The narrowest type of Spark that holds every value of an Arrow type, inside of others too."""
    if source in _WIDER:
        return _WIDER[source]
    if pt.is_dictionary(source):
        return _type_of_spark(source.value_type)
    if pt.is_decimal256(source):  # the cast looks whether each value fits
        return pa.decimal128(min(source.precision, _MOST_DIGITS), min(source.scale, _MOST_DIGITS))
    if pt.is_struct(source):
        return pa.struct([field.with_type(_type_of_spark(field.type)) for field in source.fields])
    if pt.is_map(source):
        return pa.map_(source.key_field.with_type(_type_of_spark(source.key_type)), _item(source.item_field))
    if pt.is_list(source) or pt.is_large_list(source) or pt.is_fixed_size_list(source):
        return pa.list_(_item(source.value_field))
    return source


def _item(field: pa.Field) -> pa.Field:
    return field.with_type(_type_of_spark(field.type))


def _check_known_to_spark(name: str, data_type: pa.DataType) -> None:
    try:
        from_arrow_type(data_type)
    except (PySparkException, ValueError) as e:
        raise _not_writable(name, str(data_type), e) from e


def _not_writable(name: str, kind: str, error: Exception) -> OptionError:
    reason = f" ({error.args[0]})" if error.args else ""
    return OptionError(
        f"the column {name!r} of type {kind} cannot be written: Spark has no type for its values{reason}. "
        "Convert it to one type that Spark has, or leave it out.",
        option="df",
        column=name,
    )


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
    try:
        return SparkSession.active()
    except Exception as e:
        raise OptionError(
            "there is no session to write an Arrow or pandas table with: give it as spark=, or start one first "
            "(SparkSession.builder.getOrCreate()).",
            option="spark",
        ) from e
