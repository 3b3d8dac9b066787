"""Pictures in SVG: bars, a curve, stacked bars.

Invariants: a picture has at most ``MOST_BINS`` bins and ``MOST_SERIES`` series, which alone decide the number of
elements. Texts are escaped. Colours are classes, which the page defines. Each picture and each part has a title.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Sequence

from delta_pyds.html_table import text
from delta_pyds.redaction import shown

MOST_BINS = 200
MOST_SERIES = 7
_WIDTH = 440
_HEIGHT = 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 8, 10, 26
_LABELS = 7

Format = Callable[[float], str]
_numbers = itertools.count(1)


def upright(title: str, labels: Sequence[str], values: Sequence[int], notes: Sequence[str], form: Format) -> str:
    """A histogram. ``notes``: the title of each bar. ``form``: formats the numbers at the axis."""
    return stacked(title, labels, [("", values)], form, notes=notes)


def stacked(
    title: str,
    labels: Sequence[str],
    series: Sequence[tuple[str, Sequence[int]]],
    form: Format,
    *,
    notes: Sequence[str] = (),
) -> str:
    """Stacked upright bars."""
    labels, series = labels[:MOST_BINS], series[:MOST_SERIES]
    totals = [sum(values[n] for _, values in series) for n in range(len(labels))]
    highest, ticks = _scale(max(totals, default=0))
    step = (_WIDTH - _LEFT - _RIGHT) / max(1, len(labels))
    gap = min(6.0, step * 0.25)
    parts = [_axis(ticks, highest, form)]
    for n, label in enumerate(labels):
        x, base = _LEFT + n * step + gap / 2, float(_HEIGHT - _BOTTOM)
        for number, (name, values) in enumerate(series):
            height = (_HEIGHT - _TOP - _BOTTOM) * values[n] / highest
            if values[n] <= 0:
                continue
            height = max(height, 1.0)
            base -= height
            note = notes[n] if notes else f"{name}: {form(values[n])}"
            kind = f"c{number}" if name else "bar"
            parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{base:.1f}" width="{step - gap:.1f}" height="{height:.1f}" '
                f'rx="2"><title>{text(f"{label}: {note}")}</title></rect>'
            )
    parts += _below(labels, step)
    return _picture(title, _HEIGHT, parts)


def lying(title: str, rows: Sequence[tuple[str, float, str]], kind: str = "bar") -> str:
    """Bars from left to right, each under its label. ``rows``: label, value, and the value as text."""
    rows = rows[:MOST_BINS]
    highest = max((value for _, value, _ in rows), default=0) or 1
    parts, line = [], 34
    for n, (label, value, note) in enumerate(rows):
        y = n * line
        width = max(1.0, _WIDTH * value / highest) if value > 0 else 0
        parts.append(
            f'<g><title>{text(f"{label}: {note}")}</title><text class="label" x="0" y="{y + 12}">{_short(label, 46)}'
            f'</text><text class="value" x="{_WIDTH}" y="{y + 12}" text-anchor="end">{text(note, 40)}</text>'
            f'<rect class="track" x="0" y="{y + 18}" width="{_WIDTH}" height="8" rx="4"/>'
            f'<rect class="{kind}" x="0" y="{y + 18}" width="{width:.1f}" height="8" rx="4"/></g>'
        )
    return _picture(title, max(1, len(rows)) * line, parts)


def curve(title: str, ends: tuple[str, str], values: Sequence[float], form: Format, thousand: int = 1000) -> str:
    """A step curve with points at equal distances. ``ends``: the labels of the first and the last point."""
    values = _thinned(values)
    highest, ticks = _scale(max(values, default=0), thousand)
    step = (_WIDTH - _LEFT - _RIGHT) / max(1, len(values))
    floor = _HEIGHT - _BOTTOM
    points = []
    for n, value in enumerate(values):
        y = floor - (floor - _TOP) * value / highest
        points += [f"{_LEFT + n * step:.1f},{y:.1f}", f"{_LEFT + (n + 1) * step:.1f},{y:.1f}"]
    right = _WIDTH - _RIGHT
    parts = [_axis(ticks, highest, form)]
    if points:
        parts.append(f'<polygon class="area" points="{_LEFT},{floor} {" ".join(points)} {right},{floor}"/>')
        parts.append(f'<polyline class="curve" points="{" ".join(points)}"/>')
    parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 8}">{text(ends[0], 30)}</text>')
    if len(values) > 1:
        parts.append(f'<text x="{right}" y="{_HEIGHT - 8}" text-anchor="end">{text(ends[1], 30)}</text>')
    return _picture(title, _HEIGHT, parts)


def legend(names: Sequence[str]) -> str:
    """The colours of stacked bars."""
    items = (
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="c{n}" width="10" height="10" rx="2"/></svg>'
        f"{text(name, 60)}</li>"
        for n, name in enumerate(names[:MOST_SERIES])
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _picture(title: str, height: int, parts: Sequence[str]) -> str:
    name = f"picture-{next(_numbers)}"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="{name}">'
        f'<title id="{name}">{text(title)}</title>{"".join(parts)}</svg>'
    )


def _axis(ticks: Sequence[float], highest: float, form: Format) -> str:
    parts = []
    for tick in ticks:
        y = _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * tick / highest
        kind = "gridline" if tick else "axis"
        parts.append(
            f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text(form(tick))}</text>'
        )
    return "".join(parts)


def _below(labels: Sequence[str], step: float) -> list[str]:
    """The labels below the bars, as many as fit."""
    longest = max((min(len(label), 20) for label in labels), default=1)
    each = max(1, math.ceil(len(labels) / _LABELS), math.ceil(longest * 5.6 / step) if step else 1)
    return [
        f'<text x="{_LEFT + (n + 0.5) * step:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{_short(label, 20)}</text>'
        for n, label in enumerate(labels)
        if n % each == 0
    ]


def _scale(highest: float, thousand: int = 1000) -> tuple[float, list[float]]:
    """The top of an axis, at least 1, and round numbers up to it. ``thousand``: 1024 for bytes."""
    highest = max(1.0, float(highest))
    unit = float(thousand) ** math.floor(math.log(highest, thousand)) if thousand != 1000 else 1.0
    raw = highest / unit / 4
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw)
    step = max(1.0, step * unit)
    count = math.ceil(highest / step)
    return step * count, [step * n for n in range(count + 1)]


def _thinned(values: Sequence[float]) -> list[float]:
    """At most ``MOST_BINS`` of the values: the first, the last and some between."""
    number = len(values)
    if number <= MOST_BINS:
        return list(values)
    return [values[round(n * (number - 1) / (MOST_BINS - 1))] for n in range(MOST_BINS)]


def _short(label: str, most: int) -> str:
    # secrets are removed before the text is cut: half a URL is not recognized as one
    label = shown(label)
    return html.escape(label if len(label) <= most else label[: most - 1] + "…")
