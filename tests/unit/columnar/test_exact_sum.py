"""Sums that Arrow's own kernel would wrap."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from delta_pyds.columnar.exact_sum import exact_sum

_MOST = 2**63 - 1


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None],
        [1, None, 2],
        [-5, 3],
        [2**62] * 3,
        [_MOST] * 4 + [None],
        [-(2**63)] * 3,
        [-(2**63), _MOST],
        [random.Random(n).randint(-(2**63), _MOST) for n in range(100)],
    ],
)
def test_a_sum_is_exact(values: list[int | None]) -> None:
    expected = sum(value or 0 for value in values)
    column = pa.array(values, pa.int64())
    assert exact_sum(column) == expected
    assert exact_sum(pa.chunked_array([column, column])) == 2 * expected
