"""The origin of each row of a file that a command wrote: a row of the table, or a row of a merge's source.

A command that lost a race finds by it the rows that it wrote for rows that the winner changed.

An origin is one int64. ``(file << 40) | position`` is a row of the table, where ``file`` is an index of the task.
``-1 - row`` is a row of the source. ``UNKNOWN`` is a row without a recorded origin.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

UNKNOWN: Final = -(1 << 63)
_POSITION_BITS: Final = 40
_CODEC: Final = "zstd"
# of packed numbers: how many, the smallest and the largest
_HEAD: Final = struct.Struct("<qqq")


def of_table_rows(files: pa.Array, positions: pa.Array) -> pa.Array:
    """The origins of rows of the table. ``files``: indices of the task's files."""
    return pc.bit_wise_or(pc.shift_left(files.cast(pa.int64()), _POSITION_BITS), positions)


def of_whole_file(file: int, count: int) -> pa.Array:
    """The origins of rows of one file whose positions do not matter: they are only taken back together."""
    return pa.repeat(pa.scalar(file << _POSITION_BITS, pa.int64()), count)


def of_source_rows(rows: pa.Array) -> pa.Array:
    """The origins of rows of a source, by their numbers."""
    return pc.subtract(-1, rows.cast(pa.int64()))


def row_numbers(start: int, count: int) -> pa.Array:
    """The numbers of consecutive rows."""
    return pc.add(pc.indices_nonzero(pa.repeat(True, count)).cast(pa.int64()), start)


def pack(values: pa.Array) -> bytes:
    """Numbers without nulls, in order, compressed: origins of rows of one file mostly follow each other."""
    if not len(values):
        return b""
    bounds = pc.min_max(values).as_py()
    head = _HEAD.pack(len(values), bounds["min"], bounds["max"])
    if bounds["min"] == bounds["max"]:
        return head
    # differences wrap around, and so do their sums
    steps = pa.concat_arrays([values.slice(0, 1), pc.pairwise_diff(values).slice(1)]).cast(pa.int64())
    data = pa.compress(steps.buffers()[1].slice(8 * steps.offset, 8 * len(steps)), _CODEC, asbytes=True)
    return head + bytes(data)


def join_packed(parts: Sequence[bytes]) -> bytes:
    """The packed numbers of consecutive parts. Parts of one number are not unpacked."""
    some = [part for part in parts if part]
    if len(some) < 2:
        return some[0] if some else b""
    counts, lowest, highest = zip(*(_HEAD.unpack_from(part) for part in some), strict=True)
    if min(lowest) == max(highest):
        return _HEAD.pack(sum(counts), lowest[0], lowest[0])
    return pack(pa.concat_arrays([unpack(part) for part in some]))


def unpack(packed: bytes) -> pa.Array:
    """The numbers that ``pack`` compressed."""
    if not packed:
        return pa.array([], pa.int64())
    count, lowest, highest = _HEAD.unpack_from(packed)
    if lowest == highest:
        return pa.repeat(pa.scalar(lowest, pa.int64()), count)
    data = pa.decompress(packed[_HEAD.size :], 8 * count, _CODEC)
    return pc.cumulative_sum(pa.Array.from_buffers(pa.int64(), count, [None, data]))


def may_come_from(packed: bytes, files: Iterable[int], *, source: bool) -> bool:
    """Whether a written file may have rows of one of these files of the task, or of the source. Nothing is unpacked."""
    if not packed:
        return False
    _, lowest, highest = _HEAD.unpack_from(packed)
    first, last = max(0, lowest >> _POSITION_BITS), highest >> _POSITION_BITS
    return (source and lowest < 0) or any(first <= file <= last for file in files)


def table_rows(origins: pa.Array, file: int) -> tuple[pa.Array, pa.Array]:
    """The rows of a written file that come from one file of the task: their numbers, and their positions there."""
    low, high = file << _POSITION_BITS, (file + 1) << _POSITION_BITS
    wanted = pc.and_(pc.greater_equal(origins, low), pc.less(origins, high))
    numbers = pc.indices_nonzero(wanted).cast(pa.int64())
    return numbers, pc.subtract(origins.filter(wanted), low)


def rows_of_files(origins: pa.Array, files: Iterable[int]) -> pa.Array:
    """The numbers of the rows of a written file that come from any of these files of the task."""
    found = pc.is_in(pc.shift_right(origins, _POSITION_BITS), value_set=pa.array(files, pa.int64()))
    return pc.indices_nonzero(found).cast(pa.int64())


def source_rows(origins: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The rows of a written file that come from the source: their numbers, and the numbers of the source's rows."""
    wanted = pc.and_(pc.less(origins, 0), pc.greater(origins, UNKNOWN))
    numbers = pc.indices_nonzero(wanted).cast(pa.int64())
    return numbers, pc.subtract(-1, origins.filter(wanted))
