"""The docstrings of public names are the reference: each parameter, the result and the errors stand in them.

A docstring has the sections ``Args:``, ``Returns:`` and ``Raises:``, each on a line of its own, as Google's style has
them; the site shows them as tables. Then come the protocol's section and an example.
"""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import pyspark.errors
import pytest

import delta_pyds
import delta_pyds.catalog
from delta_pyds.spark.delta_table.optimize_builder import DeltaOptimizeBuilder
from tests.support.reference_api import METHODS

_SECTION = re.compile(r"^(Args|Returns|Yields|Raises|Attributes):\n((?:    .*\n|\n)*)", re.MULTILINE)
# sections written within a line are not the site's
_INLINE = re.compile(r"\b(?:Args|Returns|Raises): \S")
# "name: text" with the indentation of an entry; the rest is indented further
_ENTRY = re.compile(r"^    (\*{0,2}\w+): \S", re.MULTILINE)
_ORDER = re.compile(r"^(?:(Args|Returns|Raises):|(Protocol): .|(>)>> )", re.MULTILINE)
# classes that other functions make, which their docstrings name
_MADE_BY = {
    "DeltaColumnBuilder": "DeltaTable.columnBuilder",
    "DeltaMergeBuilder": "DeltaTable.merge",
    "DeltaOptimizeBuilder": "DeltaTable.optimize",
    "DeltaTable": "DeltaTable.forPath",
    "DeltaTableBuilder": "DeltaTable.create",
    "Snapshot": "delta_pyds.load_snapshot",
    "TableChanges": "delta_pyds.scan_changes",
    "TableScan": "delta_pyds.scan",
}


def public() -> Iterator[tuple[str, Any]]:
    """Each public function and class by its dotted name, and the class that a public method returns."""
    for module in (delta_pyds, delta_pyds.catalog):
        for name in module.__all__:
            yield f"{module.__name__}.{name}", getattr(module, name)
    yield DeltaOptimizeBuilder.__name__, DeltaOptimizeBuilder


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public members of a class, also those that it has from the package's other classes."""
    for base in kind.__mro__:
        if base.__module__.startswith("delta_pyds"):
            yield from ((name, member) for name, member in vars(base).items() if not name.startswith("_"))


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, found in public():
        if inspect.isfunction(found):
            yield name, found
        if inspect.isclass(found) and not issubclass(found, Exception):
            for attribute, member in members(found):
                method = getattr(member, "__func__", member)
                if inspect.isfunction(method):
                    yield f"{name}.{attribute}", method


FUNCTIONS = dict(functions())
CLASSES = {name: found for name, found in public() if inspect.isclass(found) and not issubclass(found, Exception)}
PROPERTIES = {
    f"{name}.{attribute}": member
    for name, found in CLASSES.items()
    for attribute, member in members(found)
    if isinstance(member, (property, cached_property))
}


def sections(documented: Any) -> dict[str, str]:
    """The text of each section of a docstring."""
    return {match[1]: match[2] for match in _SECTION.finditer((inspect.getdoc(documented) or "") + "\n")}


def entries(documented: Any, section: str) -> list[str]:
    return [found.lstrip("*") for found in _ENTRY.findall(sections(documented).get(section, ""))]


def test_the_reference_is_complete() -> None:
    assert len(FUNCTIONS) > 100 and len(CLASSES) > 20 and len(PROPERTIES) > 10


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_parameter_is_described(name: str) -> None:
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    wanted = [one for one in parameters if one not in ("self", "cls")]
    described = entries(FUNCTIONS[name], "Args")
    assert described == wanted, f"{name}: Args has {described}, the signature {wanted}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_result_is_described(name: str) -> None:
    annotation = inspect.signature(FUNCTIONS[name]).return_annotation
    described = sections(FUNCTIONS[name]).keys() & {"Returns", "Yields"}
    assert bool(described) == (annotation not in (None, "None", "NoReturn")), f"{name} -> {annotation}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_names_that_can_be_imported(name: str) -> None:
    errors = entries(FUNCTIONS[name], "Raises")
    assert errors or "Raises" not in sections(FUNCTIONS[name]), f"{name}: no entry 'Error: when'"
    for error in errors:
        found = [getattr(module, error, None) for module in (delta_pyds, builtins, pyspark.errors)]
        assert any(isinstance(one, type) and issubclass(one, Exception) for one in found), f"{name}: {error}"
    assert len(errors) == len(set(errors)), name


@pytest.mark.parametrize("name", FUNCTIONS | CLASSES)
def test_sections_are_in_order_and_on_lines_of_their_own(name: str) -> None:
    doc = inspect.getdoc((FUNCTIONS | CLASSES)[name]) or ""
    order = [next(filter(None, found)) for found in _ORDER.findall(doc)]
    wanted = sorted(order, key=["Args", "Returns", "Raises", "Protocol", ">"].index)
    assert order == wanted and not _INLINE.search(doc), name
    assert doc.split("\n")[0].endswith((".", ":")), f"{name}: the first line is one sentence"


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_describes_its_fields_or_names_the_function_that_makes_it(name: str) -> None:
    kind = CLASSES[name]
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    assert entries(kind, "Attributes") == [one.name for one in fields if not one.name.startswith("_")]
    assert kind.__doc__ and _MADE_BY.get(kind.__name__, "") in kind.__doc__
    makes_itself = "__init__" in vars(kind) and not dataclasses.is_dataclass(kind) and not inspect.isabstract(kind)
    assert not makes_itself or kind.__name__ in _MADE_BY or getattr(kind, "_is_protocol", False), name


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_is_described(name: str) -> None:
    member = PROPERTIES[name]
    assert (member.func if isinstance(member, cached_property) else member).__doc__, name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_flag_is_given_by_name(name: str) -> None:
    owner, _, attribute = name.rpartition(".")
    if attribute in METHODS.get(owner.rpartition(".")[2], ()):
        return  # programs for delta-spark give it by position
    for parameter in inspect.signature(FUNCTIONS[name]).parameters.values():
        by_position = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        # the argument of a setter such as nullable(True) is its value
        assert not (by_position and parameter.annotation == "bool" and attribute != parameter.name), name
