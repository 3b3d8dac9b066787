from __future__ import annotations

import pyarrow as pa
import pytest

from delta_pyds.table.stream.budget import Budget


def sizes(*values: int) -> pa.Int64Array:
    return pa.array(values, pa.int64())


@pytest.mark.parametrize(
    ("max_files", "max_bytes", "taken"),
    [
        (None, None, 4),
        (3, None, 3),
        (9, None, 4),
        (None, 1, 1),
        (None, 10, 1),
        (None, 11, 2),
        (None, 20, 2),
        (None, 21, 3),
        (None, 99, 4),
        (2, 21, 2),
        (3, 20, 2),
    ],
)
def test_files_are_taken_until_a_limit_is_reached(max_files: int | None, max_bytes: int | None, taken: int) -> None:
    budget = Budget(max_files, max_bytes)
    assert budget.take(sizes(10, 10, 10, 10)) == taken
    reached = taken == max_files or (max_bytes is not None and taken * 10 >= max_bytes)
    assert budget.full is reached
    assert budget.take(sizes(1)) == (0 if reached else 1)


@pytest.mark.parametrize(("max_files", "max_bytes"), [(4, None), (None, 25), (4, 25)])
def test_a_whole_commit_that_fits_exactly_is_taken(max_files: int | None, max_bytes: int | None) -> None:
    budget = Budget(max_files, max_bytes)
    assert budget.take_whole(sizes(5, 5))
    assert not budget.full
    assert budget.take_whole(sizes(10, 5))
    assert budget.full
    assert not budget.take_whole(sizes(1))
    # a commit without files takes no room
    assert budget.take_whole(sizes())


@pytest.mark.parametrize(("max_files", "max_bytes"), [(3, None), (None, 24)])
def test_a_whole_commit_that_is_one_too_many_waits(max_files: int | None, max_bytes: int | None) -> None:
    budget = Budget(max_files, max_bytes)
    assert budget.take_whole(sizes(5, 5))
    assert not budget.take_whole(sizes(10, 5))
    # it has taken nothing
    assert budget.take_whole(sizes(4))


def test_the_first_commit_is_taken_whatever_its_size() -> None:
    budget = Budget(1, 1)
    assert budget.take_whole(sizes())
    assert budget.take_whole(sizes(10, 10))
    assert budget.full
    assert not budget.take_whole(sizes(1))
