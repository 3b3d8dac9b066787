"""Places on a curve: unique, and for a Hilbert curve from neighbour to neighbour."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from delta_pyds.data.layout.cluster import Ranges, cut_points
from delta_pyds.data.layout.curve import bits_per_column, curve_positions


def cells(columns: int, side: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(side), repeat=columns))


def walk(curve: str, columns: int, side: int) -> list[tuple[int, ...]]:
    """The cells of a cube in the order of the curve."""
    points = cells(columns, side)
    found = curve_positions(curve, [pa.array(axis, pa.int64()) for axis in zip(*points, strict=True)])  # type: ignore[arg-type]
    assert len(set(found.to_pylist())) == len(points)
    return [point for _, point in sorted(zip(found.to_pylist(), points, strict=True))]


@pytest.mark.parametrize(("columns", "side"), [(2, 16), (3, 8), (4, 4)])
def test_a_hilbert_curve_goes_from_neighbour_to_neighbour(columns: int, side: int) -> None:
    path = walk("hilbert", columns, side)
    for a, b in itertools.pairwise(path):
        assert sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 1


def test_a_z_order_takes_bits_in_turn() -> None:
    assert walk("zorder", 2, 4)[:8] == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]


def test_one_column_is_its_own_curve() -> None:
    numbers = pa.array([3, 0, 2], pa.int64())
    for curve in ("zorder", "hilbert"):
        assert curve_positions(curve, [numbers]).to_pylist() == [3, 0, 2]  # type: ignore[arg-type]


def test_places_fit_into_a_word_however_many_columns() -> None:
    for columns in (1, 4, 7, 40, 70):
        most = (1 << bits_per_column(columns)) - 1
        for curve in ("zorder", "hilbert"):
            [place] = curve_positions(curve, [pa.array([most], pa.int64())] * columns).to_pylist()  # type: ignore[arg-type]
            assert 0 < place < 1 << 63


VALUES = {
    "numbers": pa.array([5, None, 1, 9, 1, 7, None, 3], pa.int64()),
    "texts": pa.array(["e", None, "a", "z", "a", "q", None, "c"]),
    "floats": pa.array([0.5, None, -1.0, float("nan"), -1.0, 7.0, None, 0.25]),
    "times": pa.array([5, None, 1, 9, 1, 7, None, 3], pa.timestamp("us", "UTC")),
    "decimals": pa.array([5, None, 1, 9, 1, 7, None, 3], pa.int64()).cast(pa.decimal128(20, 0)),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=list(VALUES))
def test_a_greater_value_has_no_lower_number_and_null_the_lowest(values: pa.Array) -> None:
    ranges = Ranges(values, 4)
    numbers = ranges.numbers(values).to_pylist()

    assert {n for n, v in zip(numbers, values.to_pylist(), strict=True) if v is None} == {0}
    order = values.drop_null().take(pa.compute.sort_indices(values.drop_null()))
    sorted_numbers = ranges.numbers(order).to_pylist()
    assert sorted_numbers == sorted(sorted_numbers)
    assert len(set(numbers)) > 2
    assert max(numbers) < 4


def test_ranges_have_about_as_many_rows_each() -> None:
    values = pa.array([n * n for n in range(10_000)], pa.int64())
    counts = Ranges(values, 11).numbers(values).value_counts().to_pylist()
    assert len(counts) == 10
    assert all(900 <= c["counts"] <= 1100 for c in counts)


def test_a_column_without_values_is_one_range() -> None:
    nulls = pa.nulls(3, pa.string())
    assert Ranges(nulls, 8).numbers(nulls).to_pylist() == [0, 0, 0]
    assert Ranges(nulls, 8).numbers(pa.array(["a"])).to_pylist() == [1]


def test_cuts_make_pieces_of_about_as_many_rows() -> None:
    places_ = pa.array(range(100), pa.uint64())
    assert cut_points(places_, 4).to_pylist() == [25, 50, 75]
    assert cut_points(pa.array([7] * 10, pa.uint64()), 4).to_pylist() == [7]
    assert cut_points(places_, 1).to_pylist() == []
