"""Results as text for people, or as JSON for scripts.

Invariants: with ``--json`` each line of the standard output is one JSON value, and nothing else is printed there.
Decimals are texts, binary values are in base 64, and numbers that JSON lacks (NaN, infinities) are null. No character
that controls a terminal is printed: JSON and CSV have an escape instead.
"""

from __future__ import annotations

import csv
import decimal
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from delta_pyds.redaction import shown

_WIDEST = 60
# Control characters except tab and line end; characters that change the direction of text or end a line.
_OBEYED = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"


def json_line(value: Any) -> None:
    """One value on one line."""
    sys.stdout.write(_json(value) + "\n")


def text_line(text: str) -> None:
    """Print a sentence or a path; a path of a store may hold any character."""
    sys.stdout.write(shown(text) + "\n")


def json_rows(batches: Iterable[pa.RecordBatch]) -> None:
    """One object for each row. A map is an object if its keys are texts, otherwise a list of pairs."""
    for batch in batches:
        for row in _rows(batch):
            json_line(row)


def csv_rows(names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> None:
    """A line of names, and one for each row; null is empty, nested values are JSON."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(escaped, names))
    for batch in batches:
        columns = [_values(column) for column in batch.columns]
        writer.writerows([escaped(_cell(value)) for value in row] for row in zip(*columns, strict=True))


def columns_of_text(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows in columns under their names; long values are truncated."""
    texts = [[_cut(_cell(value)) for value in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(names, *texts, strict=True)]
    for line in [list(names), *texts]:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n")


def pairs_of_text(pairs: Iterable[tuple[str, Any]]) -> None:
    """Names and their values, one pair per line."""
    pairs = list(pairs)
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        sys.stdout.write(f"{name.ljust(width)}  {shown(_cell(value))}".rstrip() + "\n")


def escaped(text: str) -> str:
    """The text with terminal control characters as backslash escapes. Line ends and tabs stay."""
    return re.sub(_OBEYED, lambda match: _escape(match, "\\x{:02x}"), text)


def _escape(match: re.Match[str], short: str) -> str:
    code = ord(match[0])
    return (short if code < 256 else "\\u{:04x}").format(code)


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as Python values, maps as dicts."""
    return [row for batch in table.to_batches() for row in _rows(batch)]


def _rows(batch: pa.RecordBatch) -> Iterable[dict[str, Any]]:
    """Rows for JSON: a map with keys of text is an object, another one a list of pairs."""
    names = batch.schema.names
    columns = [_values(column) for column in batch.columns]
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _values(column: pa.Array) -> list[Any]:
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):
        # Arrow can write days after the year 9999, which Python does not have
        values = column.cast(pa.string()).to_pylist()
    convert = _conversion(column.type)
    return values if convert is None else [convert(value) for value in values]


def _conversion(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """A function that converts the maps in a value; None for a type without maps."""
    if pa.types.is_map(kind):
        inner = _conversion(kind.item_type) or _same
        pairs = dict if pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type) else list
        return lambda value: None if value is None else pairs((key, inner(item)) for key, item in value)
    if pa.types.is_struct(kind):
        of_fields = {f.name: found for f in kind if (found := _conversion(f.type)) is not None}
        if not of_fields:
            return None
        return lambda value: None if value is None else {n: of_fields.get(n, _same)(v) for n, v in value.items()}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        of_items = _conversion(kind.value_type)
        return None if of_items is None else lambda value: None if value is None else [of_items(v) for v in value]
    return None


def _same(value: Any) -> Any:
    return value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float | decimal.Decimal):
        return str(value)
    text = _json(value)
    return text if isinstance(value, Mapping | list | tuple) else text.strip('"')


def _json(value: Any) -> str:
    # such characters occur only within JSON strings, where the escape means the same
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return re.sub(_OBEYED, lambda match: _escape(match, "\\u{:04x}"), text)


def _cut(text: str) -> str:
    text = shown(text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
