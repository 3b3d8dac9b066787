"""Range numbers to positions on a curve: rows that are near in all columns are near on the curve.

    positions = curve_positions("hilbert", [numbers_of_a, numbers_of_b])  # uint64, ascending along the curve

Invariant: positions differ if any number differs, and depend only on the numbers. A Z-order takes bits from each
column in turn, the highest first; a Hilbert curve moves only from a cell to a neighboring cell (Hamilton and
Rau-Chaplin, "Compact Hilbert indices", without the compaction).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.tasks.layout import Curve

# 1024 ranges of a column; the reference uses 1000 by default
_MOST_BITS = 10
_WORD_BITS = 63
# a table of another engine may have more clustering columns than ours or the reference's: a cube has 2^n cells
_MOST_HILBERT_COLUMNS = 6


def bits_per_column(columns: int) -> int:
    """The number of bits used of each column's number, so that a position fits into a word."""
    return max(1, min(_MOST_BITS, _WORD_BITS // columns))


def curve_positions(curve: Curve, numbers: Sequence[pa.Array]) -> pa.Array:
    """The position of each row.

    With one column, positions are its numbers. With many columns a Z-order is always used. Columns beyond the bits of a
    word are ignored.

    Args:
        numbers: range numbers by column, below ``2 ** bits_per_column``, without nulls.
    Returns: uint64, ascending along the curve.
    """
    numbers = list(numbers)[:_WORD_BITS]
    bits = bits_per_column(len(numbers))
    if len(numbers) == 1:
        return numbers[0].cast(pa.uint64())
    if curve == "hilbert" and len(numbers) <= _MOST_HILBERT_COLUMNS:
        return _hilbert(numbers, bits)
    return _zorder(numbers, bits)


def _zorder(numbers: Sequence[pa.Array], bits: int) -> pa.Array:
    columns = len(numbers)
    position = None
    for column, array in enumerate(numbers):
        spread = pa.array([_spread(n, bits, columns, columns - 1 - column) for n in range(1 << bits)], pa.uint64())
        part = spread.take(array)
        position = part if position is None else pc.bit_wise_or(position, part)
    return position


def _spread(number: int, bits: int, columns: int, lowest: int) -> int:
    """The bits of a number, spread out: bit ``i`` goes to ``i * columns + lowest``."""
    return sum((number >> i & 1) << (i * columns + lowest) for i in range(bits))


def _hilbert(numbers: Sequence[pa.Array], bits: int) -> pa.Array:
    """From the highest bits down: the cell among the 2^n of a cube, and the orientation of the curve inside it."""
    columns = len(numbers)
    cells, states = _hilbert_table(columns)
    position = pa.nulls(len(numbers[0]), pa.uint64()).fill_null(0)
    state = pa.nulls(len(numbers[0]), pa.uint64()).fill_null(0)
    for level in reversed(range(bits)):
        corner = None
        for column, array in enumerate(numbers):
            bit = pc.bit_wise_and(pc.shift_right(array.cast(pa.uint64()), _word(level)), _word(1))
            bit = pc.shift_left(bit, _word(column))
            corner = bit if corner is None else pc.bit_wise_or(corner, bit)
        at = pc.bit_wise_or(pc.shift_left(state, _word(columns)), corner)
        position = pc.bit_wise_or(pc.shift_left(position, _word(columns)), cells.take(at))
        state = states.take(at)
    return position


def _word(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint64())


@lru_cache(maxsize=8)
def _hilbert_table(columns: int) -> tuple[pa.Array, pa.Array]:
    """By state and corner: the index of the cell along the curve in its cube, and the state inside the cell.

    A state is the corner where the curve enters its cube and the axis along which it leaves it.
    """
    known: dict[tuple[int, int], int] = {(0, 0): 0}
    order = [(0, 0)]
    cells: list[int] = []
    states: list[int] = []
    for entry, direction in order:
        for corner in range(1 << columns):
            cell = _gray_inverse(_rotated(corner ^ entry, direction + 1, columns))
            inside = entry ^ _rotated(_entry(cell), columns - direction - 1, columns)
            state = (inside, (direction + _axis(cell, columns) + 1) % columns)
            if state not in known:
                known[state] = len(order)
                order.append(state)
            cells.append(cell)
            states.append(known[state])
    return pa.array(cells, pa.uint64()), pa.array(states, pa.uint64())


def _rotated(value: int, by: int, bits: int) -> int:
    """The bits rotated to the right."""
    by %= bits
    return (value >> by | value << (bits - by)) & ((1 << bits) - 1)


def _gray_inverse(value: int) -> int:
    found = 0
    while value:
        found ^= value
        value >>= 1
    return found


def _entry(cell: int) -> int:
    """The corner at which the curve enters a cell of the first cube."""
    even = 2 * ((cell - 1) // 2)
    return 0 if cell == 0 else even ^ even >> 1  # Gray code


def _axis(cell: int, columns: int) -> int:
    """The axis along which the curve runs inside a cell."""
    if cell == 0:
        return 0
    count = cell if cell % 2 else cell - 1
    return _trailing_ones(count) % columns


def _trailing_ones(value: int) -> int:
    count = 0
    while value & 1:
        value >>= 1
        count += 1
    return count
