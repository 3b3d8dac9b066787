"""However many tasks a write has, and however their rows come, no identity value is given twice."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.data.write.derived_columns import IdentityValues, first_identity_value
from delta_pyds.tasks.write_state import IdentityColumn
from tests.support.sampling import examples

_steps = st.integers(-1000, 1000).filter(lambda n: n != 0)
_marks = st.none() | st.integers(-(10**6), 10**6)


@given(
    st.lists(st.integers(0, 5000), min_size=1, max_size=40),
    st.lists(st.integers(1, 3000), min_size=1, max_size=5),
    st.integers(-(10**6), 10**6),
    _steps,
    _marks,
)
@settings(max_examples=examples(80), deadline=None)
def test_values_are_unique_and_beyond_the_mark(
    tasks: list[int], batches: list[int], start: int, step: int, mark: int | None
) -> None:
    column = IdentityColumn(start, step, mark, False)
    seen: set[int] = set()
    total = 0
    for partition, rows in enumerate(tasks):
        values = IdentityValues("id", column, partition)
        given_out: list[int] = []
        turn = 0
        while len(given_out) < rows:
            size = min(batches[turn % len(batches)], rows - len(given_out))
            given_out += values.next(size).to_pylist()
            turn += 1
        again = IdentityValues("id", column, partition).next(rows)
        assert again.to_pylist() == given_out
        assert values.mark == (None if not rows else max(given_out, key=lambda v: v * step))
        seen.update(given_out)
        total += rows
    assert len(seen) == total
    for value in seen:
        steps, rest = divmod(value - start, step)
        assert rest == 0
        assert steps >= 0
        assert mark is None or (value - mark) * step > 0


@given(st.integers(-(10**9), 10**9), _steps, _marks)
def test_the_first_value_is_the_nearest_that_may_be_given(start: int, step: int, mark: int | None) -> None:
    first = first_identity_value(IdentityColumn(start, step, mark, False))
    before = first - step
    assert first == start or (mark is not None and (before - mark) * step <= 0)
