"""Values of a column to numbers of ranges that have about as many rows each, from a sample.

Invariant: a greater value never has a lower number; nulls come first. What cannot be ordered is one range.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


class Ranges:
    """The ranges of one column. ``sample``: some of its values; ``most``: how many ranges there may be."""

    def __init__(self, sample: pa.Array, most: int) -> None:
        values = sample.drop_null()
        values = values.take(pc.sort_indices(values))
        bounds: list[int] = []
        for number in range(1, most - 1):
            at = number * len(values) // (most - 1)
            if at and (not bounds or bounds[-1] != at) and at < len(values):
                bounds.append(at)
        # the first value of each range but the first; what repeats would be a range without rows
        self._bounds = values.take(pa.array(bounds, pa.int64())).unique() if bounds else values.slice(0, 0)

    def numbers(self, values: pa.Array) -> pa.Array:
        """The number of the range of each value, from 0 for nulls on."""
        count = len(self._bounds)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        # bounds come first among their equals, because the order is stable: a bound is the first value of its range
        both = pa.concat_arrays([self._bounds.cast(values.type), values])
        order = pc.sort_indices(both)
        is_bound = pc.less(order, pa.scalar(count, pa.uint64()))
        number = pc.add(pc.cumulative_sum(is_bound.cast(pa.int64())), 1)
        back = pc.sort_indices(order).slice(count)
        return pc.if_else(values.is_valid(), number.take(back), pa.scalar(0, pa.int64()))


def cut_points(places: pa.Array, pieces: int) -> pa.Array:
    """Places that cut a sample of them into at most so many pieces of about as many rows each."""
    places = places.take(pc.sort_indices(places))
    at = sorted({number * len(places) // pieces for number in range(1, pieces)} - {0})
    return places.take(pa.array([n for n in at if n < len(places)], pa.int64())).unique()
