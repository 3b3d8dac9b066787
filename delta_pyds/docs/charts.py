"""The page "Speed": charts as SVG, made of ``tests/bench/RESULTS.json`` when the site is built.

Invariants: every figure of the page is in the file; the rows where delta_pyds is slower come first. A chart has no size
of its own. Places across are per cents, so that text keeps its size in a narrow window. Colours are the site's.
"""

from __future__ import annotations

import html
import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
REFERENCE = "format delta"
READ = "delta_pyds.read"
# so many signs of a label fit beside a figure in a narrow window
_LABEL = 34
_LINE = 15
_BAR = 9
# per cent of the width: where bars with a short label beside them begin, and how wide they may be
_BESIDE = 16
_WIDE = 66
_QUERIES = ("TPC-H", "TPC-DS")
_LIFE = "life of a table"
_GROWTH = "growth over sessions"


def speed_page(file: Path) -> str:
    """The page in Markdown."""
    content = json.loads(file.read_text())
    rows = [row for part in content["works"].values() for row in part["rows"] if row["ratio"]]
    lines = [
        "# Speed",
        "",
        "Each figure is a ratio: the median of delta_pyds over the median of another engine, in one run, side by side.",
        "Below 1, delta_pyds is faster or smaller. The darker line in a chart is 1.",
        "Each grid line doubles or halves the ratio.",
        "[All results](../../../tests/bench/RESULTS.md) have seconds, floors and every version.",
        "",
        "## Where delta_pyds is slower",
        "",
        *_slower(rows),
    ]
    for suite in _QUERIES:
        lines += _suite(suite, rows)
    lines += _life(rows)
    others = [row for row in rows if row["theirs"] == REFERENCE and not _has_own_chart(row)]
    if others:
        lines += ["## Other work beside the reference", "", _bars(others, _named), ""]
    return "\n".join([*lines, *_runs(content)])


def _runs(content: Mapping[str, Any]) -> list[str]:
    """When each work ran, under which load, and with which versions."""
    lines = ["## Runs", "", "| work | run | load of the machine | versions |", "|---|---|---|---|"]
    for work, part in content["works"].items():
        about = part.get("about", content["about"])
        versions = ", ".join(
            f"{name} {about[name]}" for name in ("delta-pyds", "pyspark", "delta-spark") if name in about
        )
        lines.append(f"| {work} | {part['run']} | {part.get('load') or 'not noted'} | {versions} |")
    return [*lines, ""]


def _slower(rows: Sequence[Row]) -> list[str]:
    beside = [row for row in rows if row["theirs"] == REFERENCE and row["ratio"] > 1 and row["work"] != _GROWTH]
    if not beside:
        lines = ["No row is slower or larger than the reference.", ""]
    else:
        beside.sort(key=lambda row: -row["ratio"])
        lines = ["Slower or larger than the reference:", "", _bars(beside, _named), ""]
    if means := _means_over_engines(rows):
        lines += ["Compared with engines without a JVM, on the queries that both ran:", ""]
        lines += [_bars(means, lambda row: row["what"]), ""]
    return lines


def _means_over_engines(rows: Sequence[Row]) -> list[Row]:
    """The geometric mean of the queries of a suite, over each other engine."""
    means: list[Row] = []
    for suite in _QUERIES:
        for engine in ("deltalake", "Sail"):
            ratios = [r["ratio"] for r in rows if (r["work"], r["ours"], r["theirs"]) == (suite, READ, engine)]
            if ratios:
                what = f"{suite}, {len(ratios)} queries, {READ} over {engine}"
                means.append({"what": what, "ratio": math.exp(sum(map(math.log, ratios)) / len(ratios))})
    return means


def _suite(suite: str, rows: Sequence[Row]) -> list[str]:
    of_suite = [row for row in rows if row["work"].startswith(f"{suite}") and row["theirs"] == REFERENCE]
    whole = [row for row in of_suite if row["work"] != suite]
    if not of_suite:
        return []
    lines = [f"## {suite}", ""]
    if whole:
        lines += [_bars(whole, lambda row: f"{row['work']}, {row['ours']} ({row['what']})"), ""]
    for side in dict.fromkeys(row["ours"] for row in of_suite if row["work"] == suite):
        queries = [row for row in of_suite if (row["work"], row["ours"]) == (suite, side)]
        queries.sort(key=lambda row: -row["ratio"])
        lines += [f"Each query, `{side}` over the reference:", "", _bars(queries, _number, beside=True), ""]
    return lines


def _life(rows: Sequence[Row]) -> list[str]:
    of_life = [row for row in rows if row["work"] == _LIFE]
    if not of_life:
        return []
    lines = [
        "## The life of a table", "",
        "Each session loads, merges, deletes, queries, travels in time and optimizes. The table grows.", "",
    ]  # fmt: skip
    for step in dict.fromkeys(row["what"].partition(", ")[2] for row in of_life):
        sessions = [row for row in of_life if row["what"].partition(", ")[2] == step]
        lines += [f"{step[0].upper()}{step[1:]}:", "", _pairs(sessions), ""]
    growth = [row for row in rows if row["work"] == _GROWTH]
    if growth:
        lines += ["| the last session over the second | delta_pyds | reference |", "|---|---|---|"]
        lines += [f"| {row['what']} | {row['ours_median']:.2f} | {row['theirs_median']:.2f} |" for row in growth]
        lines.append("")
    return lines


def _has_own_chart(row: Row) -> bool:
    return str(row["work"]).startswith((*_QUERIES, _LIFE, _GROWTH))


def _named(row: Row) -> str:
    return f"{row['what'] if row['work'] in row['what'] else row['work'] + ': ' + row['what']} ({row['ours']})"


def _number(row: Row) -> str:
    found = re.search(r"\d+", str(row["what"]))
    return found[0] if found else ""


# --- SVG


def _bars(rows: Sequence[Row], label: Any, *, beside: bool = False) -> str:
    """A bar for each ratio, from the line of 1 to the left or right. ``beside``: short labels stand beside the bars."""
    logs = [math.log2(row["ratio"]) for row in rows]
    low, high = min([-1, *(math.floor(x) for x in logs)]), max([1, *(math.ceil(x) for x in logs)])
    left, width = (_BESIDE, _WIDE) if beside else (0, 100)

    def place(log: float) -> float:
        return left + width * (log - low) / (high - low)

    marks, y = [], 4
    for row, log in zip(rows, logs, strict=True):
        figure = f"{row['ratio']:.2f}"
        lines = [label(row)] if beside else textwrap.wrap(label(row), _LABEL)
        for number, text in enumerate(lines):
            marks.append(_text(text, "0", y + 11 + number * _LINE))
        marks.append(_text(figure, "100%", y + 11, "figure"))
        y += 0 if beside else len(lines) * _LINE
        top = y + 3
        kind = "slower" if log > 0 else "faster"
        begin, end = sorted((place(0), place(log)))
        marks.append(
            f'<rect class="{kind}" x="{begin:.2f}%" y="{top}" width="{max(end - begin, 0.3):.2f}%" height="{_BAR}">'
            f"<title>{html.escape(label(row))}: {figure}</title></rect>"
        )
        y += _LINE if beside else _BAR + 8
    grid = []
    for power in range(low, high + 1):
        kind, x = "grid" if power else "one", f"{place(power):.2f}%"
        grid.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="0" y2="{y}"/>')
    return _svg([*grid, *marks], y)


def _pairs(rows: Iterable[Row]) -> str:
    """Two bars for each row: ours and theirs, in seconds from zero."""
    rows = list(rows)
    most = max(max(row["ours_median"], row["theirs_median"]) for row in rows)
    marks, y = [], 4
    for row in rows:
        marks.append(_text(str(row["what"]).partition(",")[0], "0", y + 11))
        y += _LINE
        for side, kind in (("ours", "faster"), ("theirs", "theirs")):
            seconds = row[f"{side}_median"]
            name = "delta_pyds" if side == "ours" else "reference"
            marks.append(
                f'<rect class="{kind}" x="0" y="{y}" width="{max(60 * seconds / most, 0.3):.2f}%" height="{_BAR}"/>'
            )
            marks.append(_text(f"{name} {seconds:.2f} s", "100%", y + 9, "figure"))
            y += _BAR + 3
        y += 5
    return _svg(marks, y)


def _text(text: str, x: str, y: float, kind: str = "") -> str:
    return f'<text{f" class={chr(34)}{kind}{chr(34)}" if kind else ""} x="{x}" y="{y}">{html.escape(text)}</text>'


def _svg(marks: Sequence[str], height: float) -> str:
    # a figure is a block of HTML to Markdown, which ends at an empty line
    body = "\n".join(marks)
    return f'<figure class="chart">\n<svg width="100%" height="{height}" role="img">\n{body}\n</svg>\n</figure>'
