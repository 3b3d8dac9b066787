"""The exports of ``delta_pyds``: each name is there, and its docstring shows how it is used."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import inspect
import re
import urllib.error
from pathlib import Path

import pyspark.errors
import pytest

import delta_pyds
from delta_pyds import errors

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "delta_pyds").rglob("*.md"), *(ROOT / "delta_pyds").rglob("*.py")]
# a file
NO_NAMES = {"delta_pyds.zip"}


@pytest.mark.parametrize("name", delta_pyds.__all__)
def test_each_name_comes_with_an_example(name: str) -> None:
    exported = getattr(delta_pyds, name)
    # errors are caught as the roots' examples show
    example_of = delta_pyds.DeltaError if _is(delta_pyds.DeltaError, exported) else exported
    example_of = delta_pyds.ConflictError if _is(delta_pyds.ConflictError, exported) else example_of
    examples = doctest.DocTestParser().get_examples(example_of.__doc__ or "")
    assert examples, f"the docstring of {name} has no example"
    for example in examples:
        compile(example.source, name, "exec")


def _is(kind: type, exported: object) -> bool:
    return isinstance(exported, type) and issubclass(exported, kind)


def test_every_error_is_exported() -> None:
    tree = {name for name, value in vars(errors).items() if _is(delta_pyds.DeltaError, value)}
    assert tree <= set(delta_pyds.__all__)


@pytest.mark.parametrize("name", delta_pyds.__all__)
def test_what_a_docstring_says_is_raised_is_exported(name: str) -> None:
    exported = getattr(delta_pyds, name)
    members = vars(exported).values() if isinstance(exported, type) else ()
    for documented in (exported, *members):
        doc = inspect.getdoc(documented) or ""
        for error in set(re.findall(r"\b[A-Z]\w+(?:Error|Exception)\b", doc)):
            assert any(hasattr(place, error) for place in (delta_pyds, builtins, pyspark.errors, urllib.error)), error


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_of_the_package_that_texts_give_are_there(page: Path) -> None:
    text = page.read_text()
    if page.suffix == ".py":
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        trees = [node for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
        text = "\n".join(ast.get_docstring(tree) or "" for tree in trees)
    for name in sorted(set(re.findall(r"(?<![\w./-])delta_pyds(?:\.[A-Za-z_]\w*)+(?![\w/])", text))):
        assert name in NO_NAMES or _resolves(name), name
    for module, names in re.findall(r"from (delta_pyds[\w.]*) import ((?:\w+(?:, )?)+)", text):
        for name in names.split(", "):
            assert _resolves(f"{module}.{name}"), f"{module}.{name}"


def _resolves(name: str) -> bool:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False
