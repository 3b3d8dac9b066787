"""What every run of the tests says of itself, and which cases it leaves to other commits."""

from __future__ import annotations

import pytest

from tests.support.sampling import exhaustive, part_of, seed


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "one_case_in(number): of the cases of this test a run takes one in so many, chosen by the commit; "
        "a case that is named by itself, and EXHAUSTIVE=1, are always taken.",
    )


def pytest_report_header() -> str:
    part = "everything" if exhaustive() else f"a sample of the exhaustive tests, SAMPLE_SEED={seed()}"
    return f"delta_pyds: {part}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any("[" in argument for argument in config.args)
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("one_case_in") is not None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = set()
    for of_one_test in {} if named else cases.values():
        (one_in,) = next(of_one_test[0].iter_markers("one_case_in")).args
        taken = set(part_of([item.nodeid for item in of_one_test], one_in))
        left_out.update(item for item in of_one_test if item.nodeid not in taken)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
