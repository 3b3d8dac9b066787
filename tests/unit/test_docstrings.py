"""The docstrings of public names are the reference: each parameter, the result and the errors stand in them.

A docstring has the sections ``Args:``, ``Returns:`` and ``Raises:``, each on a line of its own, as Google's style has
them; the site shows them as tables.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import delta_pyds
import delta_pyds.catalog

_SECTION = re.compile(r"^(Args|Returns|Yields|Raises|Attributes|Example|Examples|Note):\n", re.MULTILINE)
# "name: text" with the indentation of an entry; what goes on is indented further
_ENTRY = re.compile(r"^    (\*{0,2}[\w.]+): ", re.MULTILINE)


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Each public function, and each public method that the package itself defines, by its dotted name."""
    for module in (delta_pyds, delta_pyds.catalog):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isfunction(found):
                yield f"{module.__name__}.{name}", found
            if not inspect.isclass(found) or issubclass(found, Exception):
                continue
            for attribute, member in vars(found).items():
                method = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
                if inspect.isfunction(method) and (attribute == "__init__" or not attribute.startswith("_")):
                    if attribute == "__init__" and dataclasses.is_dataclass(found):
                        continue
                    yield f"{module.__name__}.{name}.{attribute}", method


PUBLIC = dict(public())


def sections(documented: Any) -> dict[str, str]:
    """The text of each section of a docstring, without its indentation."""
    doc = inspect.getdoc(documented) or ""
    found = list(_SECTION.finditer(doc))
    ends = [match.start() for match in found[1:]] + [len(doc)]
    return {match[1]: doc[match.end() : end] for match, end in zip(found, ends, strict=True)}


def documentation(name: str) -> dict[str, str]:
    """The sections of a public name; a constructor's stand in the docstring of its class."""
    owner, _, attribute = name.rpartition(".")
    if attribute != "__init__":
        return sections(PUBLIC[name])
    module, _, class_name = owner.rpartition(".")
    return sections(getattr(importlib.import_module(module), class_name))


@pytest.mark.parametrize("name", PUBLIC)
def test_each_parameter_is_described(name: str) -> None:
    parameters = inspect.signature(PUBLIC[name]).parameters
    wanted = [one for one in parameters if one not in ("self", "cls")]
    described = [found.lstrip("*") for found in _ENTRY.findall(documentation(name).get("Args", ""))]
    assert described == wanted, f"{name}: Args has {described}, the signature {wanted}"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_result_is_described(name: str) -> None:
    if name.endswith(".__init__"):
        return
    annotation = inspect.signature(PUBLIC[name]).return_annotation
    described = documentation(name).keys() & {"Returns", "Yields"}
    assert bool(described) == (annotation not in (None, "None", "NoReturn")), f"{name} -> {annotation}"


@pytest.mark.parametrize("name", PUBLIC)
def test_errors_are_names_that_can_be_imported(name: str) -> None:
    raised = documentation(name).get("Raises", "")
    if not raised:
        return
    entries = _ENTRY.findall(raised)
    assert entries, f"{name}: Raises has no entry of the form 'Error: when'."
