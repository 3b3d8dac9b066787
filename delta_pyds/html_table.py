"""Small HTML tables for notebooks and reports.

Invariant: all input is untrusted. The output is escaped, without credentials and bidirectional control characters, and
of limited length and number of rows. It has no style: a notebook has its own.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from delta_pyds.redaction import shown

MOST_CHARACTERS = 300
MOST_ROWS = 50
_CLASS = ' class="n"'


class Quantity(str):
    """A number with its unit; its cell is right-aligned, as for numbers."""


def text(value: object, limit: int = MOST_CHARACTERS) -> str:
    """A value as the content of an element or a quoted attribute. None is empty; integers have thousands separators.

    >>> text("<b>")
    '&lt;b&gt;'
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}" if value.bit_length() < limit else f"a number of {value.bit_length()} bits"
    return html.escape(shown(str(value), limit=limit))


def table(
    names: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = "", most: int = MOST_ROWS, more: int = 0
) -> str:
    """A table with a header. Cells with numbers have the class ``n``.

    Args:
        names: the names of the columns.
        rows: the rows; further ones are counted in a last row.
        caption: a caption above the table.
        most: the number of rows to show.
        more: the number of rows that the caller has already omitted.

    >>> table(["file", "bytes"], [["a.parquet", 7]], caption="two columns")
    """
    given = iter(rows)
    taken = list(islice(given, most))
    lines = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in taken]
    left = sum(1 for _ in given) + more
    right = [any(len(row) > n and _is_number(row[n]) for row in taken) for n in range(len(names))]
    head = "".join(
        f'<th scope="col"{_CLASS if number else ""}>{text(name)}</th>'
        for name, number in zip(names, right, strict=True)
    )
    above = f"<caption>{text(caption)}</caption>" if caption else ""
    if left:
        lines.append(f'<tr><td colspan="{len(names)}">and {text(left)} more</td></tr>')
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def pairs(values: Iterable[tuple[str, object]], *, caption: str = "") -> str:
    """A table with one row for each name and its value."""
    above = f"<caption>{text(caption)}</caption>" if caption else ""
    rows = "".join(
        f'<tr><th scope="row">{text(name)}</th>{_cell(value)}</tr>' for name, value in islice(values, MOST_ROWS)
    )
    return f"<table>{above}<tbody>{rows}</tbody></table>"


class ShownAsTable:
    """A dataclass that a notebook shows as a table of its fields, with its text as the caption.

    Fields without ``repr`` are not shown.
    """

    def _repr_html_(self) -> str:
        fields = dataclasses.fields(cast(Any, self))
        values = [(_words(field.name), _value(getattr(self, field.name))) for field in fields if field.repr]
        return pairs(values, caption=str(self))


def _words(name: str) -> str:
    return name.removeprefix("num_").replace("_", " ")


def _value(value: object) -> object:
    """The value of a cell; dataclasses, mappings and sequences as one line of text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ", ".join(str(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {item}" for key, item in islice(value.items(), MOST_ROWS) if item is not None)
    if isinstance(value, list | tuple):
        return "; ".join(str(item) for item in value[:MOST_ROWS])
    return value


def _cell(value: object) -> str:
    return f"<td{_CLASS if _is_number(value) else ''}>{text(value)}</td>"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Quantity) and not isinstance(value, bool)
