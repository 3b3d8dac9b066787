"""Every refusal of the package, with its code: ``python -m tests.parity.refusals [WORD ...]``.

A refusal is an error of a class whose name says that something is not supported. With the reference's JAR in
``.interop``, a code that the reference lacks is marked by ``*``. Words select by place, code and message.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
KINDS = ("UnsupportedFeatureError", "UnsupportedOperationError")


class Refusal(NamedTuple):
    """One place of the package that refuses. Names in braces stand for values of the message."""

    code: str
    place: str
    message: str


def refusals() -> list[Refusal]:
    """All refusals, by code and place."""
    return sorted(found for path in (ROOT / "delta_pyds").rglob("*.py") for found in _of_file(path))


def codes_of_reference(folder: Path = ROOT / ".interop/jars") -> set[str]:
    """The error classes of the reference, and of these the conditions below them; nothing without its JAR."""
    jar = next(folder.glob("delta-spark_*.jar"), None)
    if jar is None:
        return set()
    classes = json.loads(ZipFile(jar).read("error/delta-error-classes.json"))
    return set(classes) | {f"{name}.{below}" for name, one in classes.items() for below in one.get("subClass", ())}


def main(*words: str) -> None:
    theirs = codes_of_reference()
    for one in refusals():
        line = f"{one.code}{'*' if theirs and one.code not in theirs else ''} {one.place} {one.message}"
        if all(word.lower() in line.lower() for word in words):
            print(line)


def _of_file(path: Path) -> Iterator[Refusal]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and (kind := hooks._called(node.func)) in KINDS:
            message = " ".join(hooks._template(node.args[0]).split()) if node.args else ""
            for code in hooks._codes(node) or [hooks.default_code(kind)]:
                yield Refusal(code, f"{path.relative_to(ROOT)}:{node.lineno}", message or ast.unparse(node.args[0]))


def _hooks() -> ModuleType:
    """The module of the site that knows how errors are written in the code: MkDocs runs it as a file."""
    spec = importlib.util.spec_from_file_location("hooks_of_docs", ROOT / "delta_pyds/docs/hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


hooks = _hooks()

if __name__ == "__main__":
    main(*sys.argv[1:])
