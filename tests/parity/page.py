"""The page of the site that shows each item: what is missing stands first, then each kind."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.parity.state import KINDS, STATES, TESTS, Item, read_items

PAGE = Path(__file__).with_name("PARITY.md")
_HEAD = """# Item by item beside delta-spark

What delta-spark 4.4.1 has, and what becomes of it here: table features, properties, options, settings, statements,
methods and the notes of its releases since 3.0. `make parity` writes this page from `items/*.txt`, and nothing is
typed by hand. A test fails if an item has no state, or if the reference has a name that is not listed.

*Tested here* is a test of this project. *Beside the reference* is a test that runs both engines, or a row of
[the matrix](../interop/MATRIX.md). An empty cell has no such test.
"""
_ORDER = list(STATES)
_KINDS_OF_MISSING = {
    "statements": "statement",
    "options": "option",
    "properties": "property",
    "features": "feature",
    "api": "method",
    "settings": "setting",
    "releases": "release",
}
# the note of a refusal that the reference makes, too
_TOO = "As by the reference."


def page(items: list[Item]) -> str:
    """The text of the page."""
    parts = [_HEAD, _counts(items), "## What is missing\n", _missing(items)]
    for kind, title in KINDS.items():
        parts += [f"## {title}\n", _of_kind([item for item in items if item.kind == kind])]
    return "\n".join(parts)


def main() -> None:
    PAGE.write_text(page(read_items()))


def _counts(items: list[Item]) -> str:
    kinds = [kind for kind in KINDS if kind != "errors"]
    counted = Counter((item.kind, item.state) for item in items)
    rows = [["state", *(KINDS[kind].split(" of the ")[0].lower() for kind in kinds)]]
    for state, meaning in STATES.items():
        found = [counted[kind, state] for kind in kinds]
        if any(found):
            rows.append([f"**{state}**: {meaning}" if meaning != state else f"**{state}**", *map(str, found)])
    return _table(rows)


def _missing(items: list[Item]) -> str:
    rows = [["what", "kind", "since", "why, and what to use instead"]]
    for state in ("missing", "reads", "refused"):
        for kind, singular in _KINDS_OF_MISSING.items():
            listed = [item for item in items if (item.kind, item.state) == (kind, state) and item.note != _TOO]
            rows += [[_name(one), singular, _said(one.since), f"{_state(one)}{one.note}"] for one in listed]
    return _table(rows)


def _state(item: Item) -> str:
    return "" if item.state == "missing" else f"{STATES[item.state].capitalize()}. "


def _of_kind(items: list[Item]) -> str:
    if items and items[0].kind == "errors":
        return _errors(items)
    rows = [["name", "since", "state", "tested here", "beside the reference", "note"]]
    for item in sorted(items, key=lambda item: _ORDER.index(item.state)):
        rows.append([_name(item), _said(item.since), item.state, _test(item.here), _beside(item), item.note])
    return _table(rows)


def _errors(items: Iterable[Item]) -> str:
    groups: dict[tuple[str, str], list[str]] = {}
    for item in items:
        groups.setdefault((item.state, item.note), []).append(item.name)
    lines = []
    for (state, note), names in groups.items():
        lines += [f"**{STATES[state].capitalize()}.** {note}", "", ", ".join(f"`{name}`" for name in names), ""]
    return "\n".join(lines)


def _name(item: Item) -> str:
    """The name as code, unless it is a sentence."""
    if item.kind == "releases" or (item.kind == "api" and " " in item.name):
        return item.name
    return f"`` {item.name} ``" if "`" in item.name else f"`{item.name}`"


def _said(text: str) -> str:
    return "" if text == "-" else text


def _test(test: str) -> str:
    """A link to the file of a test, under its name."""
    if test == "-":
        return ""
    file = TESTS / test.partition("::")[0]
    return f"[{file.stem.removeprefix('test_')}]({os.path.relpath(file, PAGE.parent)})"


def _beside(item: Item) -> str:
    return f"row *{item.row}*" if item.row else _test(item.beside)


def _table(rows: list[list[str]]) -> str:
    return "\n".join(_lines(rows)) + "\n"


def _lines(rows: list[list[str]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield f"| {' | '.join(row)} |"
        if number == 0:
            yield "|" + "---|" * len(row)


if __name__ == "__main__":
    main()
