"""Exact sums of integers from a log, which may have any values.

Invariant: the sum is exact. Arrow's own sum wraps around at 2**63, so three files of 2**62 bytes would have a
negative sum.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_LIMIT = 1 << 63
_HALF = 32


def exact_sum(values: pa.Array | pa.ChunkedArray) -> int:
    """The sum of 64-bit integers; nulls are ignored."""
    ends = pc.min_max(values)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is None:
        return 0
    if max(-low, high) * len(values) < _LIMIT:
        return int(pc.sum(values).as_py())
    lower = pc.bit_wise_and(values, pa.scalar((1 << _HALF) - 1, values.type))
    return (int(pc.sum(pc.shift_right(values, _HALF)).as_py()) << _HALF) + int(pc.sum(lower).as_py())
