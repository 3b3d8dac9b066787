"""The header of every run of the tests, and the cases that it leaves to other commits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.sampling import exhaustive, part_of, seed


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "one_case_in(number): of the cases of this test a run takes one in so many, chosen by the commit; "
        "a case that is named by itself, and EXHAUSTIVE=1, are always taken.",
    )
    config.addinivalue_line(
        "markers",
        "one_test_in(number): the same for the tests of a module, of which each needs seconds of Spark; "
        "a module that is named by itself is taken whole.",
    )
    config.addinivalue_line(
        "markers",
        "one_program_in(number): the same for all tests that start programs with Spark, whatever their modules.",
    )


def pytest_report_header() -> str:
    part = "everything" if exhaustive() else f"a sample of the exhaustive tests, SAMPLE_SEED={seed()}"
    return f"delta_pyds: {part}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = _left_out(items, "one_case_in", _test, lambda item: item.nodeid)
    if any("[" in argument for argument in config.args):
        left_out = set()
    if not any(".py" in argument for argument in config.args):
        left_out |= _left_out(items, "one_test_in", _module, _test)
        left_out |= _left_out(items, "one_program_in", lambda _: "all", _test)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _left_out(
    items: list[pytest.Item], marker: str, group: Callable[[pytest.Item], str], member: Callable[[pytest.Item], str]
) -> set[pytest.Item]:
    """Of each group that has the marker, the items of the members that this run does not take."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker(marker) is not None:
            groups.setdefault(group(item), []).append(item)
    left = set()
    for of_group in groups.values():
        (one_in,) = next(of_group[0].iter_markers(marker)).args
        taken = set(part_of(dict.fromkeys(map(member, of_group)), one_in))
        left.update(item for item in of_group if member(item) not in taken)
    return left


def _test(item: pytest.Item) -> str:
    """The test whose case this is."""
    return item.nodeid.partition("[")[0]


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]
