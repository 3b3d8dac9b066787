"""Buckets of rows by their values: rows with equal values are in the same bucket.

Equality is that of ``columnar.row_difference``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.row_difference import entries_of, float_bits

_SHIFT = 32
# an odd number whose bits are mixed; a product wraps around
_FACTOR = 0x1E3779B97F4A7C15
_WORD = 8
# so many words of a text count, which differ in most texts
_MOST_WORDS = 32


def bucket_numbers(columns: Sequence[pa.Array], buckets: int) -> pa.Array:
    """The bucket of each row, int64, below ``buckets``, which is a power of two.

    Args:
        columns: at least one.
    """
    total = pa.repeat(pa.scalar(0, pa.int64()), len(columns[0]))
    for column in columns:
        for words in _words(column):
            total = _mixed(pc.add(total, words))
    return pc.bit_wise_and(_mixed(total), buckets - 1)


def _mixed(words: pa.Array) -> pa.Array:
    """Each bit of the result depends on higher and on lower bits: a product carries upwards, the shift downwards."""
    product = pc.multiply(pc.bit_wise_xor(words, pc.shift_right(words, _SHIFT)), _FACTOR)
    return pc.bit_wise_xor(product, pc.shift_right(product, _SHIFT))


def _words(column: pa.Array) -> list[pa.Array]:
    """Numbers that are equal for equal values; values that differ may have equal ones."""
    kind = column.type
    if pt.is_dictionary(kind):
        return _words(column.dictionary_decode())
    if pt.is_struct(kind):
        return [words for i in range(kind.num_fields) for words in _words(pc.struct_field(column, [i]))]
    if pt.is_map(kind):
        return _words_of_lists(entries_of(column))
    if pt.is_list(kind) or pt.is_large_list(kind):
        return _words_of_lists(column)
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_string(kind) or pt.is_large_string(kind):
        return _words_of_texts(column)
    if pt.is_decimal(kind):
        return _words(column.cast(pa.float64()))
    if pt.is_floating(kind):
        return [_filled(float_bits(column))]
    if pt.is_boolean(kind) or pt.is_integer(kind):
        return [_filled(column)]
    if pt.is_temporal(kind):
        return [_filled(column.view(pa.int32() if kind.bit_width == 32 else pa.int64()))]
    return []


def _filled(numbers: pa.Array) -> pa.Array:
    return pc.fill_null(numbers.cast(pa.int64()), -1)


def _words_of_lists(column: pa.Array) -> list[pa.Array]:
    """The length of each list, and the sum of its items' words."""
    lengths = pc.list_value_length(column)
    total = pa.repeat(pa.scalar(0, pa.int64()), int(pc.sum(lengths).as_py() or 0))
    for words in _words(pc.list_flatten(column)):
        total = _mixed(pc.add(total, words))
    return [_filled(lengths), _sums(_mixed(total), pc.fill_null(lengths, 0).cast(pa.int64()))]


def _words_of_texts(column: pa.Array) -> list[pa.Array]:
    """The length, the first words and the last one."""
    texts = pc.fill_null(column.cast(pa.large_binary()), b"")
    lengths = pc.binary_length(texts).cast(pa.int64())
    total = pa.repeat(pa.scalar(0, pa.int64()), len(texts))
    longest = int(pc.max(lengths).as_py() or 0)
    for start in range(0, min(longest, _WORD * _MOST_WORDS), _WORD):
        words = _mixed(pc.add(_word(texts, start, start + _WORD), start))
        # the sum of a shorter text must not depend on the longest text of the batch
        total = pc.add(total, pc.if_else(pc.greater(lengths, start), words, 0))
    return [lengths, total, _word(texts, -_WORD, None)]


def _sums(words: pa.Array, lengths: pa.Array) -> pa.Array:
    """The wrapping sum of the words of each list."""
    zero = pa.array([0], pa.int64())
    sums = pa.concat_arrays([zero, pc.cumulative_sum(words)])
    ends = pc.cumulative_sum(lengths)
    return pc.subtract(sums.take(ends), sums.take(pc.subtract(ends, lengths)))


def _word(texts: pa.Array, start: int, stop: int | None) -> pa.Array:
    padded = pc.binary_join_element_wise(
        pc.binary_slice(texts, start, stop),
        pa.scalar(bytes(_WORD), pa.large_binary()),
        pa.scalar(b"", pa.large_binary()),
    )
    words = pc.binary_slice(padded, 0, _WORD)
    data = words.buffers()[2]
    return pa.Array.from_buffers(pa.int64(), len(texts), [None, data])
