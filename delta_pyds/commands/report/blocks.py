"""Parts of a page: numbers for people, figures with their tables, cards.

Invariant: each function takes plain values, escapes them and returns HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from delta_pyds.html_table import Quantity, table, text
from delta_pyds.protocol.temporal import utc_text

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(value: float) -> Quantity:
    """Bytes with a unit, in three digits."""
    number, power = float(value), 0
    while abs(number) >= 1024 and power < len(_UNITS) - 1:
        number, power = number / 1024, power + 1
    unit = _UNITS[power]
    return Quantity(f"{number:.0f} {unit}" if number >= 100 or number == int(number) else f"{number:.1f} {unit}")


def count(value: float) -> str:
    """A number of things, abbreviated."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            divided = value / (limit if unit != "k" else 1e3)
            return f"{divided:.0f}{unit}" if divided >= 100 or divided == int(divided) else f"{divided:.1f}{unit}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.1f}"


def share(value: float) -> str:
    """A fraction in percent."""
    percent = 100 * value
    return f"{percent:.0f} %" if percent >= 10 or percent == int(percent) else f"{percent:.2g} %"


def moment(time_ms: int | None) -> str:
    """A time in UTC, to the second. Times outside of Python's years are given in milliseconds."""
    return "unknown" if time_ms is None else utc_text(time_ms, "seconds")


def tile(label: str, value: str, note: str = "", kind: str = "") -> str:
    small = f"<small>{text(note)}</small>" if note else ""
    return f'<div class="tile"><dt>{text(label)}</dt><dd class="{kind}">{text(value)}{small}</dd></div>'


def card(title: str, note: str, *parts: str) -> str:
    """A section of the page. ``note``: a sentence; ``parts``: HTML."""
    below = f'<p class="soft">{text(note, 1000)}</p>' if note else ""
    return f"<section><h2>{text(title)}</h2>{below}{''.join(parts)}</section>"


def grid(*parts: str) -> str:
    return f'<div class="grid">{"".join(f"<div>{part}</div>" for part in parts if part)}</div>'


def figure(title: str, picture: str, names: Sequence[str], rows: Iterable[Sequence[object]], more: str = "") -> str:
    """A picture, and the same numbers as a table below it."""
    return (
        f"<figure><figcaption>{text(title)}</figcaption>{picture}{more}"
        f"<details><summary>As a table</summary>{scrolling(title, table(names, rows, most=200))}</details></figure>"
    )


def beside(title: str, picture: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The only picture of a card, with its table on the right, or below on narrow screens."""
    drawn = f"<figure><figcaption>{text(title)}</figcaption>{picture}</figure>"
    return grid(drawn, scrolling(title, table(names, rows)))


def above(title: str, picture: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A picture above its table, which has too many columns for half of the card."""
    drawn = f"<figure><figcaption>{text(title)}</figcaption>{picture}</figure>"
    return drawn + scrolling(title, table(names, rows))


def scrolling(title: str, inner: str) -> str:
    """A part that scrolls sideways if it is wider than the screen, also by the keyboard."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{text(title)}">{inner}</div>'


def advice(title: str, headline: str, note: str) -> str:
    return (
        f'<div class="advice"><h3>{text(title)}</h3><strong>{text(headline)}</strong>'
        f'<span class="soft">{text(note, 1000)}</span></div>'
    )


def tags(values: Sequence[str], most: int = 60) -> str:
    items = "".join(f"<li>{text(value, 100)}</li>" for value in values[:most])
    if len(values) > most:
        items += f"<li>and {len(values) - most} more</li>"
    return f'<ul class="tags">{items}</ul>'
