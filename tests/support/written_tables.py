"""Tables on pages that a run of tests writes: each between a mark that names the run, and ``END``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

END = "<!-- end of the table -->"


def read_rows(page: Path, begin: str) -> list[str]:
    """The rows between the mark ``begin`` and the end of its table."""
    _, rows, _ = _parts(page, begin)
    return rows.splitlines()


def replace_rows(page: Path, begin: str, rows: Sequence[str]) -> None:
    """Write these rows in place of those between the mark ``begin`` and the end of its table."""
    before, _, after = _parts(page, begin)
    page.write_text(before + "".join(f"{row}\n" for row in rows) + after)


def _parts(page: Path, begin: str) -> tuple[str, str, str]:
    before, found, rest = page.read_text().partition(f"{begin}\n")
    rows, mark, after = rest.partition(END)
    assert found and mark, f"{page.name} has no lines {begin} and {END}"
    return before + found, rows, mark + after
