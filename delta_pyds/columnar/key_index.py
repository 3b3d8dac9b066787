"""An index of the rows of one side of a join by their key values: the core of a hash join.

Invariant: two rows match exactly if all of their keys are equal by Spark's ``=``: NaN equals NaN, -0.0 equals 0.0, null
equals nothing. For a null-safe key (``<=>``), null also equals null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class KeyIndex:
    """The rows of one side. Index the smaller side: it is held in hash tables.

    Args:
        keys: one array per key, all of one length.
        null_safe: one flag per key.
    """

    def __init__(self, keys: Sequence[pa.Array], null_safe: Sequence[bool]) -> None:
        self._levels = [_Level(values, safe) for values, safe in zip(keys, null_safe, strict=True)]
        codes = self._levels[0].codes
        # pairs of codes are numbered again after each key, so that numbers never exceed 64 bits
        self._pairs: list[_Level] = []
        for level in self._levels[1:]:
            pair = _Level(_paired(codes, level.codes, level.count), False)
            self._pairs.append(pair)
            codes = pair.codes
        self._codes = codes
        self._rows, self._first = _rows_by_code(codes)

    def matches(self, keys: Sequence[pa.Array]) -> tuple[pa.Array, pa.Array]:
        """All pairs of rows with equal keys.

        Args:
            keys: of the other side, with the same types.
        Returns: the rows of the given keys, ascending, and the rows of this side, both int64.
        """
        codes = self._look_up(keys)
        found = pc.indices_nonzero(pc.is_valid(codes)).cast(pa.int64())
        codes = codes.drop_null()
        if self._first is None:
            return found, self._rows.take(codes)
        groups = pa.LargeListArray.from_arrays(self._first, self._rows).take(codes)
        return found.take(pc.list_parent_indices(groups)), pc.list_flatten(groups)

    def partners(self, keys: Sequence[pa.Array]) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        """Whether each row of the given keys, and each row of this side, equals any row of the other side."""
        codes = self._look_up(keys)
        return codes.is_valid(), pc.is_in(self._codes, value_set=codes.drop_null().unique().cast(self._codes.type))

    def _look_up(self, keys: Sequence[pa.Array]) -> pa.Array:
        """The number of the equal rows of this side, for each of the given rows; null without one."""
        codes = self._levels[0].look_up(keys[0])
        for level, pair, values in zip(self._levels[1:], self._pairs, keys[1:], strict=True):
            codes = pair.look_up(_paired(codes, level.look_up(values), level.count))
        return codes


class _Level:
    """The distinct values of one key, numbered from 0 in the order of their first rows; null has no number."""

    def __init__(self, values: pa.Array, null_safe: bool) -> None:
        self._null_safe = null_safe
        encoded = canonical(values).dictionary_encode("encode" if null_safe else "mask")
        self._values = encoded.dictionary
        self.codes: pa.Array = encoded.indices
        self.count = len(self._values)

    def look_up(self, values: pa.Array) -> pa.Array:
        return pc.index_in(canonical(values), value_set=self._values, skip_nulls=not self._null_safe)


def canonical(values: pa.Array) -> pa.Array:
    """The values with equal bits for equal values, because hash tables compare bits."""
    if not pa.types.is_floating(values.type):
        return values
    # -0.0 + 0.0 is 0.0
    return pc.if_else(pc.is_nan(values), pa.scalar(math.nan, values.type), pc.add(values, pa.scalar(0.0, values.type)))


def _paired(codes: pa.Array, others: pa.Array, count: int) -> pa.Array:
    """One number for each pair of numbers; the second is below ``count``. Null if either is null."""
    return pc.add(pc.multiply(codes.cast(pa.int64()), max(count, 1)), others.cast(pa.int64()))


def _rows_by_code(codes: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """The rows ordered by code, and the start of each code's rows; None if each code has one row."""
    rows = pc.indices_nonzero(pc.is_valid(codes)).cast(pa.int64())
    codes = codes.drop_null()
    counts: Any = pc.value_counts(codes)
    if len(counts) == len(codes):
        # codes are numbered in the order of their first rows, and these are all rows
        return rows, None
    ordered = rows.take(pc.sort_indices(codes))
    # value_counts returns the codes in the order of their first rows, which is ascending
    ends = pc.cumulative_sum(counts.field("counts").cast(pa.int64()))
    return ordered, pa.concat_arrays([pa.array([0], pa.int64()), ends])
