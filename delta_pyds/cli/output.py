"""Results as text for people, or as JSON for scripts.

Invariant: each line of ``--json`` is one JSON value, and nothing else goes to the standard output with it. Decimals are
texts, binary values are in base 64, and numbers that JSON lacks (NaN, infinities) are null.
"""

from __future__ import annotations

import csv
import decimal
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from delta_pyds.redaction import shown

_WIDEST = 60


def json_line(value: Any) -> None:
    """One value on one line."""
    sys.stdout.write(_json(value) + "\n")


def text_line(text: str) -> None:
    """A sentence, or a path out of a store, which may hold anything."""
    sys.stdout.write(shown(text) + "\n")


def json_rows(batches: Iterable[pa.RecordBatch]) -> None:
    """One object for each row. A map is an object where its keys are texts, else a list of pairs."""
    for batch in batches:
        for row in _rows(batch):
            json_line(row)


def csv_rows(names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> None:
    """A line of names, and one for each row; null is empty, nested values are JSON."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    for batch in batches:
        columns = [batch.column(i).to_pylist() for i in range(batch.num_columns)]
        writer.writerows([_cell(value) for value in row] for row in zip(*columns, strict=True))


def columns_of_text(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows under their names, in columns; long values are cut."""
    texts = [[_cut(_cell(value)) for value in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(names, *texts, strict=True)]
    for line in [list(names), *texts]:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n")


def pairs_of_text(pairs: Iterable[tuple[str, Any]]) -> None:
    """Names and their values, a line each."""
    pairs = list(pairs)
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        sys.stdout.write(f"{name.ljust(width)}  {shown(_cell(value))}".rstrip() + "\n")


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as Python values, maps as dicts."""
    return [row for batch in table.to_batches() for row in _rows(batch)]


def _rows(batch: pa.RecordBatch) -> Iterable[dict[str, Any]]:
    maps = [field.name for field in batch.schema if pa.types.is_map(field.type)]
    for row in batch.to_pylist():
        for name in maps:
            row[name] = _map(row[name])
        yield row


def _map(pairs: Any) -> Any:
    if pairs is None or any(not isinstance(key, str) for key, _ in pairs):
        return pairs
    return dict(pairs)


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
    return msgspec.json.encode(value, enc_hook=str).decode()


def _cut(text: str) -> str:
    text = shown(text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
