"""One row's values as text, for messages."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from delta_pyds.columnar.rows import batch_resolver
from delta_pyds.protocol.temporal import show_date, show_timestamp
from delta_pyds.redaction import shown

_MAX_LENGTH = 200


def row_values(batch: pa.RecordBatch, row: int, columns: Iterable[tuple[str, ...]]) -> str:
    """`` - column : value``, a line for each of the columns or nested fields, timestamps in UTC."""
    resolve = batch_resolver(batch.slice(row, 1))
    lines = {".".join(path): show_value(resolve(path)[0]) for path in columns}
    return "\n".join(f" - {shown(name)} : {shown(value)}" for name, value in lines.items())


def show_value(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "null"
    kind = value.type
    if pa.types.is_timestamp(kind):
        # Python's own dates end at the year 9999
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
