"""The tables of versions, on the pages that show them.

One has a row for each Spark, from a whole run of the core. The other has a row for each Python and the age of its
packages. A run replaces its own row.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.written_tables import read_rows, replace_rows
from tests.versions.core import CORE
from tests.versions.dependencies import AGES
from tests.versions.environments import CHECKOUT
from tests.versions.sparks import SPARKS

_SITE = CHECKOUT / "delta_pyds/docs/pages/works-with.md"
PAGES = (CHECKOUT / "README.md", _SITE)
BEGIN = "<!-- make test-versions writes this table -->"
DEPENDENCIES_BEGIN = "<!-- make test-versions ARGS=--dependencies writes a row of this table -->"
_SHOWN = ("pyarrow", "pandas", "pyspark")
_NAMES = {"pyspark": "PySpark"}


def write_spark_row(spark: str, passed: Mapping[str, bool], lacks: Sequence[str]) -> None:
    """Replace the row of a Spark such as ``4.1``. ``passed``: whether the tests of a subject of the core passed."""
    head = [f"| Spark | {' | '.join(CORE)} | this Spark lacks |", "|" + "---|" * (len(CORE) + 2)]
    cells = ["yes" if passed[subject] else "no" for subject in CORE]
    row = f"| {SPARKS[spark]} | {' | '.join(cells)} | {'; '.join(lacks) or 'nothing'} |"
    for page in PAGES:
        _replace_row(page, BEGIN, head, row)


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
    _replace_row(_SITE, DEPENDENCIES_BEGIN, head, row)


def _replace_row(page: Path, begin: str, head: Sequence[str], row: str) -> None:
    found = {_key(known): known for known in [*read_rows(page, begin)[len(head) :], row]}
    replace_rows(page, begin, [*head, *(found[key] for key in sorted(found))])


def _key(row: str) -> tuple[tuple[int, int], str]:
    """The major and minor version, and the next cell if it is the age of packages."""
    _, version, age, *_ = (cell.strip() for cell in row.split("|"))
    major, minor, *_ = version.split(".")
    return (int(major), int(minor)), age if age in AGES else ""
