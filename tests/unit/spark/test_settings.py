"""Each key of a setting, and the quoting of names, is written in one place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import delta_pyds
from delta_pyds.spark import settings

PACKAGE = Path(delta_pyds.__file__).parent
KEY = re.compile(r"spark\.(?:sql|databricks|default|jars|job)\.[\w.]+")


def keys() -> Iterator[tuple[str, str]]:
    """Each text of the package that is a key, with its file."""
    for path in PACKAGE.rglob("*.py"):
        if path != Path(settings.__file__):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and KEY.fullmatch(node.value):
                    yield str(path.relative_to(PACKAGE)), node.value


def test_keys_are_in_one_module() -> None:
    assert list(keys()) == []


def test_no_two_names_have_one_key() -> None:
    values = [value for name, value in vars(settings).items() if name.isupper()]
    assert values
    assert len(set(values)) == len(values)
