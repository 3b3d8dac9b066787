"""The table of versions in README and on the site: one row for each Spark, from a whole run of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.versions.core import CORE
from tests.versions.environments import CHECKOUT
from tests.versions.sparks import SPARKS

PAGES = (CHECKOUT / "README.md", CHECKOUT / "delta_pyds/docs/pages/works-with.md")
BEGIN, END = "<!-- make test-versions writes this table -->", "<!-- end of the table -->"


def write_table(outcomes: Mapping[str, Mapping[str, bool]], lacks: Mapping[str, Sequence[str]]) -> None:
    """Replace the tables between their two marks."""
    for page in PAGES:
        before, _, rest = page.read_text().partition(f"{BEGIN}\n")
        _, mark, after = rest.partition(END)
        assert mark, f"{page.name} has no line {END}"
        page.write_text(f"{before}{BEGIN}\n{table(outcomes, lacks)}{END}{after}")


def table(outcomes: Mapping[str, Mapping[str, bool]], lacks: Mapping[str, Sequence[str]]) -> str:
    """The lines of the table."""
    lines = [f"| Spark | {' | '.join(CORE)} | this Spark lacks |", "|" + "---|" * (len(CORE) + 2)]
    for spark, passed in outcomes.items():
        cells = ["yes" if passed[subject] else "no" for subject in CORE]
        lines.append(f"| {SPARKS[spark]} | {' | '.join(cells)} | {'; '.join(lacks[spark]) or 'nothing'} |")
    return "".join(f"{line}\n" for line in lines)
