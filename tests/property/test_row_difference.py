"""Rows of two sides cancel each other as multisets, and equal rows are in one bucket."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.columnar import row_difference
from delta_pyds.columnar.row_buckets import bucket_numbers
from delta_pyds.columnar.row_difference import differing_rows
from delta_pyds.data.read.held_rows import HeldRows
from tests.support.sampling import examples

_PAIR = pa.struct([("a", pa.int32()), ("b", pa.float64())])
_INTEGERS = st.none() | st.integers(0, 2)
_FLOATS = st.none() | st.sampled_from([0.0, -0.0, math.nan, 1.5])
_PAIRS = st.none() | st.builds(lambda a, b: {"a": a, "b": b}, _INTEGERS, _FLOATS)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): _INTEGERS,
    pa.int8(): _INTEGERS,
    pa.float32(): _FLOATS,
    pa.float64(): _FLOATS,
    pa.bool_(): st.none() | st.booleans(),
    pa.string(): st.none() | st.sampled_from(["", "a", "aa", "a" * 20, "a" * 19 + "b"]),
    pa.binary(): st.none() | st.sampled_from([b"", b"\0", b"\0\0"]),
    pa.date32(): _INTEGERS,
    pa.timestamp("us", "UTC"): _INTEGERS,
    pa.decimal128(20, 2): st.none() | st.decimals(0, 1, places=2).map(lambda d: round(d, 1)),
    pa.null(): st.none(),
    _PAIR: _PAIRS,
    pa.list_(pa.int64()): st.none() | st.lists(_INTEGERS, max_size=2),
    pa.list_(_PAIR): st.none() | st.lists(_PAIRS, max_size=2),
    pa.map_(pa.string(), _PAIR): st.none()
    | st.lists(st.tuples(st.sampled_from("xy"), _PAIRS), max_size=2, unique_by=lambda entry: entry[0]),
}
Row = tuple[Any, ...]


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[pa.DataType], list[Row], list[Row]]:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    row = st.tuples(*(VALUES[t] for t in types))
    left, right = draw(st.lists(row, max_size=8)), draw(st.lists(row, max_size=8))
    moved = draw(st.lists(st.sampled_from(left), max_size=6)) if left else []
    return types, left, draw(st.permutations(right + moved))


def columns(rows: list[Row], types: list[pa.DataType]) -> list[pa.Array]:
    # a slice of a longer array, as a batch may be
    return [pa.array([None, *(row[i] for row in rows)], t).slice(1) for i, t in enumerate(types)]


@pytest.mark.parametrize("sample", [1, row_difference._SAMPLE_ROWS])
@settings(max_examples=examples(200), deadline=None)
@given(drawn=sides(), repeats=st.sampled_from([1, 1, 20]), aligned=st.booleans())
def test_what_remains_is_the_difference_of_multisets(
    sample: int, drawn: tuple[list[pa.DataType], list[Row], list[Row]], repeats: int, aligned: bool
) -> None:
    """``repeats``: one side has many more rows. ``aligned``: most rows have the numbers of their equals."""
    types, left, right = drawn
    right = [*left, *right] if aligned else right * repeats
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_difference, "_SAMPLE_ROWS", sample)
        gone, new = differing_rows(columns(left, types), columns(right, types))
        back = differing_rows(columns(right, types), columns(left, types))
    assert [len(rows) for rows in back] == [len(new), len(gone)]
    assert gone.to_pylist() == sorted(set(gone.to_pylist())) and new.to_pylist() == sorted(set(new.to_pylist()))
    before, after = Counter(map(repr, left)), Counter(map(repr, right))
    assert Counter(repr(left[i]) for i in gone.to_pylist()) == before - after
    assert Counter(repr(right[i]) for i in new.to_pylist()) == after - before


@settings(max_examples=examples(100), deadline=None)
@given(sides())
def test_equal_rows_are_in_one_bucket(drawn: tuple[list[pa.DataType], list[Row], list[Row]]) -> None:
    types, left, right = drawn
    found: dict[str, int] = {}
    for rows in (left, right):
        for row, bucket in zip(rows, bucket_numbers(columns(rows, types), 16).to_pylist(), strict=True):
            assert 0 <= bucket < 16 and found.setdefault(repr(row), bucket) == bucket


_COUNT = 64 * 256
SPREAD: dict[str, pa.Array] = {
    "numbers": pa.array(range(_COUNT)),
    "ends of texts": pa.array([f"https://example.com/{i:08}" for i in range(_COUNT)]),
    "middles of texts": pa.array([f'{{"event":{i:09d},"kind":"click"}}' for i in range(_COUNT)]),
    "doubles": pa.array([float(i) for i in range(_COUNT)]),
    "lists": pa.array([[float(i), 2.0, 3.0] for i in range(_COUNT)]),
    "lists in structs": pa.array([{"a": [i]} for i in range(_COUNT)]),
    "decimals": pa.array(range(_COUNT)).cast(pa.decimal128(22, 2)),
}


@pytest.mark.parametrize("kind", SPREAD)
def test_buckets_have_about_one_size(kind: str) -> None:
    sizes = Counter(bucket_numbers([SPREAD[kind]], 64).to_pylist())
    assert len(sizes) == 64 and max(sizes.values()) < 3 * 256


def test_more_text_than_32_bit_offsets_is_held() -> None:
    text = "x" * (1 << 20)
    rows = HeldRows(pa.schema([("s", pa.string()), ("position", pa.int64())]), 1)
    for _ in range(2):
        column = pa.DictionaryArray.from_arrays(pa.array([0] * 1_100, pa.int32()), pa.array([text]))
        rows.add(pa.record_batch([column.dictionary_decode(), pa.array(range(1_100))], ["s", "position"]))
    assert rows.whole().num_rows == 2_200
