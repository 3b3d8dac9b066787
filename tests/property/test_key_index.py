"""Rows that meet by their keys, against every pair compared in Python."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.columnar.key_index import KeyIndex
from tests.support.sampling import examples

_VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-2, 2) | st.just(1 << 62)),
    (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.nan, math.inf])),
    (pa.float32(), st.sampled_from([0.0, -0.0, math.nan])),
    (pa.string(), st.sampled_from(["", "a", "A", "é"])),
    (pa.binary(), st.sampled_from([b"", b"a"])),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", tz="UTC"), st.sampled_from([0, 1])),
    (pa.decimal128(5, 2), st.decimals(-1, 1, places=2)),
]


def _equal(left: Any, right: Any, null_safe: bool) -> bool:
    if left is None or right is None:
        return null_safe and left is None and right is None
    if isinstance(left, float) and math.isnan(left) and math.isnan(right):
        return True
    return bool(left == right)


@st.composite
def _sides(draw: st.DrawFn) -> tuple[list[pa.Array], list[pa.Array], list[bool]]:
    kinds = draw(st.lists(st.sampled_from(_VALUES), min_size=1, max_size=3))
    counts = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    sides = [
        [pa.array(draw(st.lists(st.none() | values, min_size=n, max_size=n)), kind) for kind, values in kinds]
        for n in counts
    ]
    # slices: rows of an array may begin anywhere in its buffers
    cut = draw(st.integers(0, 3))
    null_safe = draw(st.lists(st.booleans(), min_size=len(kinds), max_size=len(kinds)))
    return [a.slice(cut) for a in sides[0]], sides[1], null_safe


@given(_sides())
@settings(max_examples=examples(300), deadline=None)
def test_rows_meet_if_all_their_keys_are_equal(sides: tuple[list[pa.Array], list[pa.Array], list[bool]]) -> None:
    own, others, null_safe = sides
    own_rows = list(zip(*(a.to_pylist() for a in own), strict=True))
    other_rows = list(zip(*(a.to_pylist() for a in others), strict=True))
    expected = [
        (i, j)
        for i, other in enumerate(other_rows)
        for j, mine in enumerate(own_rows)
        if all(_equal(a, b, safe) for a, b, safe in zip(mine, other, null_safe, strict=True))
    ]

    found = KeyIndex(own, null_safe).matches(others)

    assert list(zip(*(a.to_pylist() for a in found), strict=True)) == expected


def test_many_rows_on_one_key_are_all_found() -> None:
    index = KeyIndex([pa.array([7] * 1000), pa.array(["a", "b"] * 500)], [False, False])

    mine, theirs = index.matches([pa.array([7, 8, 7]), pa.array(["b", "b", "a"])])

    assert mine.to_pylist() == [0] * 500 + [2] * 500
    assert theirs.to_pylist() == [*range(1, 1000, 2), *range(0, 1000, 2)]
