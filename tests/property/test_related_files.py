"""Files that can share a row are compared in one group, and no group is larger than that needs."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.data.read.related_files import ValueRange, _overlapping
from tests.support.sampling import examples

Values = list[int | None]
_FILES = st.lists(st.lists(st.none() | st.integers(0, 30), min_size=1, max_size=3), min_size=1, max_size=8)


def _range_of(values: Values) -> ValueRange:
    some = [value for value in values if value is not None]
    return ValueRange(min(some, default=None), max(some, default=None), None in values)


def _meet(one: ValueRange, other: ValueRange) -> bool:
    known = one.low is not None and other.low is not None
    return (known and one.low <= other.high and other.low <= one.high) or (one.has_nulls and other.has_nulls)


@settings(max_examples=examples(300), deadline=None)
@given(_FILES)
def test_groups_are_the_connected_files(files: list[Values]) -> None:
    ranges = [_range_of(values) for values in files]
    # the same by definition: join groups until none meet
    wanted = [{at} for at in range(len(files))]
    joined = True
    while joined:
        joined = False
        for one, other in itertools.combinations(wanted, 2):
            if any(_meet(ranges[a], ranges[b]) for a in one for b in other):
                wanted.remove(other)
                one |= other
                joined = True
                break
    found = _overlapping(ranges)
    assert sorted(map(sorted, found)) == sorted(map(sorted, wanted))
    assert sorted(itertools.chain(*found)) == list(range(len(files)))
