"""Each code that the package gives an error is asserted by a test: runbooks and programs look for codes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import delta_pyds

ROOT = Path(delta_pyds.__file__).parent
TESTS = Path(__file__).parents[1]
# one name, or one with a subclass: MAIN_NAME.SUB_NAME
_CODE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:\.[A-Z][A-Z0-9_]*)*")


def _texts(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def _codes_of(node: ast.AST) -> Iterator[str]:
    """The values of an argument ``code=`` and of a name like ``default_code``: codes, or the ends of codes."""
    if isinstance(node, ast.keyword) and node.arg == "code":
        yield from _texts(node.value)
    if isinstance(node, ast.Assign) and any("code" in ast.unparse(target).lower() for target in node.targets):
        yield from _texts(node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("DELTA_"):
        yield node.value


def _codes() -> set[str]:
    trees = (ast.parse(path.read_text()) for path in ROOT.rglob("*.py"))
    found = (code for tree in trees for node in ast.walk(tree) for code in _codes_of(node))
    return {code for code in found if _CODE.fullmatch(code)}


def _asserted() -> set[str]:
    files = (path for path in TESTS.rglob("*.py") if path != Path(__file__))
    texts = (text for path in files for text in _texts(ast.parse(path.read_text())))
    return {code for text in texts for code in _CODE.findall(text.replace("\\.", "."))}


@pytest.fixture(scope="module")
def asserted() -> set[str]:
    return _asserted()


@pytest.mark.parametrize("code", sorted(_codes()))
def test_a_test_asserts_the_code(code: str, asserted: set[str]) -> None:
    assert any(known.endswith(code) or known.startswith(f"{code}.") for known in asserted), (
        f"no test asserts the code {code}"
    )
