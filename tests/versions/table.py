"""The tables of versions, on the pages that show them.

One has a row for each Spark, from a whole run of the core. The other has a row for each Python and the age of its
packages: a run replaces its own row.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.written_tables import read_rows, replace_rows
from tests.versions.core import CORE
from tests.versions.environments import CHECKOUT
from tests.versions.sparks import SPARKS

_SITE = CHECKOUT / "delta_pyds/docs/pages/works-with.md"
PAGES = (CHECKOUT / "README.md", _SITE)
BEGIN = "<!-- make test-versions writes this table -->"
DEPENDENCIES_BEGIN = "<!-- make test-versions ARGS=--dependencies writes a row of this table -->"
_SHOWN = ("pyarrow", "pandas", "pyspark")
_NAMES = {"pyspark": "PySpark"}


def write_table(outcomes: Mapping[str, Mapping[str, bool]], lacks: Mapping[str, Sequence[str]]) -> None:
    """Replace the table of Sparks."""
    for page in PAGES:
        replace_rows(page, BEGIN, table(outcomes, lacks))


def table(outcomes: Mapping[str, Mapping[str, bool]], lacks: Mapping[str, Sequence[str]]) -> list[str]:
    """The rows of the table of Sparks."""
    rows = [f"| Spark | {' | '.join(CORE)} | this Spark lacks |", "|" + "---|" * (len(CORE) + 2)]
    for spark, passed in outcomes.items():
        cells = ["yes" if passed[subject] else "no" for subject in CORE]
        rows.append(f"| {SPARKS[spark]} | {' | '.join(cells)} | {'; '.join(lacks[spark]) or 'nothing'} |")
    return rows


def write_dependencies_row(python: Path, age: str, *, passed: bool) -> None:
    """Replace the row of this Python and the age of its packages in the table of dependencies."""
    names = " | ".join(_NAMES.get(name, name) for name in _SHOWN)
    head = [f"| Python | packages | {names} | unit tests pass |", "|" + "---|" * (len(_SHOWN) + 3)]
    code = (
        "import importlib.metadata, json, platform; "
        f"print(json.dumps([platform.python_version(), *map(importlib.metadata.version, {_SHOWN})]))"
    )
    asked = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    version, *others = json.loads(asked.stdout)
    row = f"| {version} | {age} | {' | '.join(others)} | {'yes' if passed else 'no'} |"
    found = {_key(known): known for known in [*read_rows(_SITE, DEPENDENCIES_BEGIN)[len(head) :], row]}
    replace_rows(_SITE, DEPENDENCIES_BEGIN, [*head, *(found[key] for key in sorted(found))])


def _key(row: str) -> tuple[int, str]:
    """The minor version of Python, and the age of the packages."""
    _, version, age, *_ = (cell.strip() for cell in row.split("|"))
    return int(version.split(".")[1]), age
