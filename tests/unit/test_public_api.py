"""What ``delta_pyds`` exports: each name is there, and its docstring shows how it is used."""

from __future__ import annotations

import doctest

import pytest

import delta_pyds


@pytest.mark.parametrize("name", delta_pyds.__all__)
def test_each_name_comes_with_an_example(name: str) -> None:
    exported = getattr(delta_pyds, name)
    # of the errors the two that users catch have one; the others tell what happened
    example_of = delta_pyds.ConflictError if _is_conflict(exported) else exported
    example_of = delta_pyds.DeltaError if exported is delta_pyds.CommitOutcomeUnknownError else example_of
    examples = doctest.DocTestParser().get_examples(example_of.__doc__ or "")
    assert examples, f"the docstring of {name} has no example"
    for example in examples:
        compile(example.source, name, "exec")


def _is_conflict(exported: object) -> bool:
    return isinstance(exported, type) and issubclass(exported, delta_pyds.ConflictError)
