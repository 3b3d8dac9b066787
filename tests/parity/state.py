"""The items of the reference, and what becomes of each here: lines of ``items/*.txt``, one for one or more names.

Invariant: an item has a state and a place where it is tested, or a note that says why it needs none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
ITEMS = Path(__file__).with_name("items")
MATRIX = TESTS / "interop/MATRIX.md"
# in the order of the page
KINDS = {
    "features": "Table features",
    "properties": "Table properties",
    "options": "Options",
    "settings": "Settings of the session",
    "statements": "Statements",
    "api": "Classes and methods",
    "releases": "Notes of the releases 3.0 to 4.4.1",
    "errors": "Error classes that are not raised here",
}
# in the order of the page: what a user could miss comes first
STATES = {
    "missing": "missing",
    "refused": "refused by name",
    "reads": "read, not written",
    "no effect": "accepted without effect, as this page says",
    "other code": "refused under another code",
    "works": "works",
    "jvm": "part of the JVM or of another program: no counterpart",
}
# a line of these files may have several names
_SEVERAL = ("api", "errors")
# what "tested beside the reference" begins with if it is a row of the matrix
_ROW = "matrix: "


@dataclass(frozen=True)
class Item:
    """One name. ``here`` and ``beside`` are ids of tests below ``tests``; ``beside`` may be a row of the matrix."""

    kind: str
    name: str
    since: str
    state: str
    here: str
    beside: str
    note: str

    @property
    def row(self) -> str | None:
        """The row of the matrix that compares it with the reference."""
        return self.beside.removeprefix(_ROW) if self.beside.startswith(_ROW) else None


def read_items(folder: Path = ITEMS) -> list[Item]:
    """All items, by kind, in the order of their files.

    Raises: ValueError for a line without six parts.
    """
    return [item for kind in KINDS for item in _of_kind(kind, folder / f"{kind}.txt")]


def names(kind: str) -> set[str]:
    """The names of the items of a kind."""
    return {item.name for item in read_items() if item.kind == kind}


def faults(item: Item) -> Iterator[str]:
    """What an item lacks."""
    if item.state not in STATES:
        yield f"{item.name} has no state: {item.state!r}"
    if item.state in ("works", "reads") and item.here == "-":
        yield f"{item.name} is called '{item.state}' without a test"
    if item.state in ("missing", "no effect", "other code", "jvm") and not item.note:
        yield f"{item.name} is called '{item.state}' without a reason"
    for test in (item.here, "-" if item.row else item.beside):
        if test != "-" and not _exists(test):
            yield f"{item.name} names a test that does not exist: {test}"
    if item.row is not None and f"\n| {item.row} |" not in _text(MATRIX):
        yield f"{item.name} names a row that the matrix does not have: {item.row}"


def _of_kind(kind: str, file: Path) -> Iterator[Item]:
    for line in file.read_text().splitlines():
        if line and not line.startswith("#"):
            parts = [part.strip() for part in re.split(r" \|(?: |$)", line)]
            if len(parts) != 6:
                raise ValueError(f"{file.name} has a line of {len(parts)} parts: {line}")
            listed, *rest = parts
            for name in listed.split(", ") if kind in _SEVERAL else [listed]:
                yield Item(kind, name, *rest)


def _exists(test: str) -> bool:
    file, _, function = test.partition("::")
    return f"\ndef {function}(" in _text(TESTS / file)


@cache
def _text(file: Path) -> str:
    return file.read_text() if file.is_file() else ""
