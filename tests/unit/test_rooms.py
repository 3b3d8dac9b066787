"""The packages' docstrings list their modules, so that nobody has to guess where a subject lives."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import delta_pyds

ROOT = Path(delta_pyds.__file__).parent
PACKAGES = sorted(path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("*/__init__.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_its_modules(package: str) -> None:
    """Each once, with its subject, and all of them exist."""
    folder = ROOT / package
    inside = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/*.py")}
    inside -= {"docs"} if folder == ROOT else set()
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""

    listed = re.findall(r"^- ``(\w+)``: \S", docstring, flags=re.MULTILINE)

    assert sorted(listed) == sorted(inside - {"__init__"})


def test_a_module_belongs_to_a_package() -> None:
    """No import contract sees a folder without ``__init__.py``.

    Two are exceptions: Spark's own way in, and the hooks of the site, which no wheel has.
    """
    folders = {path.parent for path in ROOT.rglob("*.py")}

    outside = {f.relative_to(ROOT).as_posix() for f in folders if not (f / "__init__.py").exists()}
    assert outside == {"spark/discovery", "docs"}


def test_each_module_says_what_it_is_for() -> None:
    without = [p for p in ROOT.rglob("*.py") if not ast.get_docstring(ast.parse(p.read_text()))]

    assert [path.relative_to(ROOT).as_posix() for path in without] == []
