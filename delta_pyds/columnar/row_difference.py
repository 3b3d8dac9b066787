"""The difference of two multisets of rows: the rows of each side that no equal row of the other side cancels.

Invariant: two rows are equal exactly if all their values have the same bits, but for nulls and NaN: null equals null,
and every NaN equals every other. -0.0 differs from 0.0. A row cancels one equal row at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.roaring import bitmap_of, live_mask
from delta_pyds.columnar.row_origins import row_numbers

_SAMPLE_ROWS = 1_024
# a side with so many times fewer rows decides which rows of the other are looked at
_FEWER = 8
_CODE_BYTES = 8


def differing_rows(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> tuple[pa.Array, pa.Array]:
    """The rows of each side that the other side does not cancel.

    Args:
        left, right: the columns of the two sides, with the same types; at least one.
    Returns: the numbers of the rows, ascending, int64, for each side.
    """
    ours, theirs = _unaligned(left, right)
    if ours is None or theirs is None:
        return _differing(left, right)
    gone, new = _differing([column.take(ours) for column in left], [column.take(theirs) for column in right])
    return ours.take(gone), theirs.take(new)


def _unaligned(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> tuple[pa.Array | None, pa.Array | None]:
    """The rows of each side that differ from the row of the same number: a rewritten file mostly keeps their order.

    Equal rows may cancel in any pairs, and comparing is much cheaper than numbering distinct values. None if few rows
    of a sample are equal.
    """
    count = min(len(left[0]), len(right[0]))
    if not count:
        return None, None
    sample = pc.multiply(row_numbers(0, min(count, _SAMPLE_ROWS)), max(1, count // _SAMPLE_ROWS))
    found = _equal_rows([column.take(sample) for column in left], [column.take(sample) for column in right])
    if 2 * found.true_count < len(sample):
        return None, None
    equal = _equal_rows([column.slice(0, count) for column in left], [column.slice(0, count) for column in right])
    differing = pc.indices_nonzero(pc.invert(equal)).cast(pa.int64())
    ours, theirs = (pa.concat_arrays([differing, row_numbers(count, len(side[0]) - count)]) for side in (left, right))
    return ours, theirs


def _equal_rows(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> pa.BooleanArray:
    """Whether each row equals the row of the same number on the other side."""
    equal = pa.repeat(True, len(left[0]))
    for ours, theirs in zip(left, right, strict=True):
        equal = pc.and_(equal, _equal(ours, theirs))
    return equal


def _differing(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> tuple[pa.Array, pa.Array]:
    columns = sorted(zip(left, right, strict=True), key=_distinct_in_sample, reverse=True)
    return _differing_of_few(columns) or _differing_columns(columns)


def _differing_of_few(columns: Sequence[tuple[pa.Array, pa.Array]]) -> tuple[pa.Array, pa.Array] | None:
    """The same, if one side has much fewer rows: most rows of the other have a value that is not among theirs."""
    few, many = sorted((0, 1), key=lambda side: len(columns[0][side]))
    count = len(columns[0][many])
    if count <= _SAMPLE_ROWS or _FEWER * len(columns[0][few]) > count:
        return None
    values = _bits(pa.concat_arrays([columns[0][few], columns[0][many]]))
    start = len(columns[0][few])
    kept = pc.indices_nonzero(pc.is_in(values.slice(start), value_set=values.slice(0, start))).cast(pa.int64())
    chosen = [(pair[few], pair[many].take(kept)) for pair in columns]
    ours, theirs = _differing_columns([pair if few == 0 else pair[::-1] for pair in chosen])
    rows_of_few, rows_of_many = (ours, theirs) if few == 0 else (theirs, ours)
    cancelled = kept.filter(live_mask(bitmap_of(rows_of_many), 0, len(kept)))
    rows = rows_of_few, _without(cancelled, count)
    return rows if few == 0 else rows[::-1]


def _differing_columns(columns: Sequence[tuple[pa.Array, pa.Array]]) -> tuple[pa.Array, pa.Array]:
    """``columns``: left and right, those with the most distinct values first."""
    count = len(columns[0][0])
    codes: pa.Array | None = None
    for number, (ours, theirs) in enumerate(columns):
        column = _codes(_bits(pa.concat_arrays([ours, theirs])))
        codes = column if codes is None else _combined(codes, column)
        pairs = _pairs(codes, count)
        if pairs is not None:
            return _differing_pairs(codes, count, pairs, columns[number + 1 :])
    assert codes is not None
    return _uncancelled(codes.slice(0, count), codes.slice(count))


def _bits(values: pa.Array) -> pa.Array:
    """The values in a form whose equality is that of this module: nested values as codes."""
    kind = values.type
    if pt.is_floating(kind):
        return float_bits(values)
    if pt.is_dictionary(kind):
        return _bits(values.dictionary_decode())
    if pt.is_null(kind):
        return values.is_valid()
    if pt.is_struct(kind):
        codes = _codes(values.is_valid())
        for number in range(kind.num_fields):
            codes = _combined(codes, _codes(_bits(pc.struct_field(values, [number]))))
        return codes
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_map(kind):
        return _code_texts(values)
    return values


def float_bits(values: pa.Array) -> pa.Array:
    """The bits of floating-point numbers as integers, with one form of NaN."""
    kind = values.type
    same = pc.if_else(pc.is_nan(values), pa.scalar(math.nan, kind), values)
    return same.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width])


def entries_of(maps: pa.Array) -> pa.Array:
    """Maps as lists of their entries, in the order in which they are stored."""
    kind = maps.type
    return maps.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))


def _code_texts(values: pa.Array) -> pa.Array:
    """Each list as the bytes of the codes of its items; null stays null."""
    if pt.is_map(values.type):
        values = entries_of(values)
    lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
    items = _codes(_bits(pc.list_flatten(values))).cast(pa.int64())
    ends = pc.multiply(pc.cumulative_sum(lengths), _CODE_BYTES)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    texts = pa.Array.from_buffers(pa.large_binary(), len(values), [None, offsets.buffers()[1], _data(items)])
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.large_binary()))


def _data(codes: pa.Array) -> pa.Buffer:
    data = codes.buffers()[1]
    return data.slice(_CODE_BYTES * codes.offset, _CODE_BYTES * len(codes))


def _distinct_in_sample(column: tuple[pa.Array, pa.Array]) -> int:
    sample = _bits(pa.concat_arrays([side.slice(0, _SAMPLE_ROWS) for side in column]))
    return len(sample.dictionary_encode("encode").dictionary)


def _codes(column: pa.Array) -> pa.Array:
    """The number of each value among the distinct values, in the order of their first rows; null is a value."""
    return column.dictionary_encode("encode").indices


def _combined(codes: pa.Array, others: pa.Array) -> pa.Array:
    """The number of each pair of codes. Arrow's codes have 32 bits, so a pair fits into 64."""
    count = int(pc.max(others).as_py() or 0) + 1 if len(others) else 1
    return _codes(pc.add(pc.multiply(codes.cast(pa.int64()), count), others.cast(pa.int64())))


def _pairs(codes: pa.Array, count: int) -> tuple[pa.Array, pa.Array] | None:
    """The rows of equal codes, left and right; None if a code has several rows of one side."""
    left, right = codes.slice(0, count), codes.slice(count)
    # codes are numbered by their first rows: if they are distinct, those of the left side are its row numbers
    if count and pc.max(left).as_py() != count - 1:
        return None
    common = pc.less(right, count)
    rows = right.filter(common)
    if len(pc.unique(rows)) != len(rows):
        return None
    return rows.cast(pa.int64()), pc.indices_nonzero(common).cast(pa.int64())


def _differing_pairs(
    codes: pa.Array, count: int, pairs: tuple[pa.Array, pa.Array], rest: Sequence[tuple[pa.Array, pa.Array]]
) -> tuple[pa.Array, pa.Array]:
    """Compare the other columns of pairs whose codes no other row has: much cheaper than codes of all columns."""
    left, right = pairs
    for ours, theirs in rest:
        equal = _equal(ours.take(left), theirs.take(right))
        if equal.false_count:
            left, right = left.filter(equal), right.filter(equal)
    return _without(left, count), _without(right, len(codes) - count)


def _equal(left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    if pt.is_nested(left.type):
        codes = _codes(_bits(pa.concat_arrays([left, right])))
        return pc.equal(codes.slice(0, len(left)), codes.slice(len(left)))
    left, right = _bits(left), _bits(right)
    equal = pc.equal(left, right)
    return pc.coalesce(equal, pc.and_(left.is_null(), right.is_null())) if equal.null_count else equal


def _without(rows: pa.Array, count: int) -> pa.Array:
    """The numbers below ``count`` that are not among ``rows``."""
    return pc.indices_nonzero(live_mask(bitmap_of(rows), 0, count)).cast(pa.int64())


def _uncancelled(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The rows of each side whose rank among its equals is not below the number of equals on the other side."""
    return _rows_without_partner(left, right), _rows_without_partner(right, left)


def _rows_without_partner(codes: pa.Array, others: pa.Array) -> pa.Array:
    counts: Any = pc.value_counts(others)
    found = pc.index_in(codes, value_set=counts.field("values"))
    on_other_side = pc.fill_null(counts.field("counts").take(found), 0)
    order = pc.array_sort_indices(codes)
    rank = _ranks(codes.take(order))
    beyond = pc.greater_equal(rank, on_other_side.take(order))
    return pc.array_take(order, pc.indices_nonzero(beyond)).cast(pa.int64()).sort()


def _ranks(ordered: pa.Array) -> pa.Array:
    """The rank of each value among its equals, from 0; equal values are neighbours."""
    counts: Any = pc.value_counts(ordered)
    starts = pc.subtract(pc.cumulative_sum(counts.field("counts")), counts.field("counts"))
    group = pc.index_in(ordered, value_set=counts.field("values"))
    return pc.subtract(row_numbers(0, len(ordered)), starts.take(group))
