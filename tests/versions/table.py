"""README's table of versions: one row for each Spark, from a whole run of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.versions.core import CORE
from tests.versions.sparks import CHECKOUT, SPARKS

README = CHECKOUT / "README.md"
BEGIN, END = "<!-- make test-versions writes this table -->", "<!-- end of the table -->"


def write_table(outcomes: Mapping[str, Mapping[str, bool]], lacks: Mapping[str, Sequence[str]]) -> None:
    """Replace the table between its two marks."""
    text = README.read_text()
    before, _, rest = text.partition(f"{BEGIN}\n")
    _, mark, after = rest.partition(END)
    assert mark, f"README.md has no line {END}"
    README.write_text(f"{before}{BEGIN}\n{table(outcomes, lacks)}{END}{after}")


def table(outcomes: Mapping[str, Mapping[str, bool]], lacks: Mapping[str, Sequence[str]]) -> str:
    """The lines of the table."""
    lines = [f"| Spark | {' | '.join(CORE)} | this Spark lacks |", "|" + "---|" * (len(CORE) + 2)]
    for spark, passed in outcomes.items():
        cells = ["yes" if passed[subject] else "no" for subject in CORE]
        lines.append(f"| {SPARKS[spark]} | {' | '.join(cells)} | {'; '.join(lacks[spark]) or 'nothing'} |")
    return "".join(f"{line}\n" for line in lines)
