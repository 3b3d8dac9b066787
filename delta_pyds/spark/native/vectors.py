"""The deletion vectors of a group of files as one array, and the filter that finds a row's bit in it.

Spark has no cheap name of a row's file. So a file is found by its size, of which a few bits choose a slot of the array.
The array has three ranges: for each slot the size of its file (-1 without a file); for each slot the first word and the
number of words; the words of the files.

Only built-in functions read it. The conditions are texts, because each function of a Column is a call to Spark's
driver. No setting changes their meaning.

Invariant: a row of an unknown file or position is an error. A row after the last word of its file is live.

Protocol: "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.data.read.deletion_vector import load_deletion_vector
from delta_pyds.spark.native.eligibility import RESERVED_PREFIX
from delta_pyds.spark.native.files import NativeFiles
from delta_pyds.storage.base import Storage
from delta_pyds.table.scan.scan import Scan
from delta_pyds.tasks.scan_state import ScanFile

# Spark's Parquet reader fills a column of this name and the type long with the row's position, for _metadata.row_index.
# Reading it by this name costs a third less, because no struct is made for every row.
ROW = "_tmp_metadata_row_index"
VECTOR = f"{RESERVED_PREFIX}deleted"
FILE_SIZE = "_metadata.file_size"
HAS_POSITION = f"{ROW} IS NOT NULL"
# The slots take at most 1 MB of the array.
_MAX_SLOT_BITS = 16
_LOADERS = 8
# The fields are not null, so Spark looks for no null in a row's word.
_WORDS = pa.list_(pa.field("element", pa.int64(), nullable=False))


@dataclass(frozen=True)
class Slots:
    """A file of ``size`` bytes has the slot ``size >> shift & (count - 1)``. ``count`` is a power of two."""

    shift: int
    count: int

    def of(self, size: int) -> int:
        """The slot of a file of this size."""
        return size >> self.shift & self.count - 1


def slots_of(sizes: Sequence[int]) -> Slots | None:
    """The fewest slots of which each file has its own; None if sizes are equal, unknown, or too many."""
    if min(sizes) <= 0 or len(set(sizes)) < len(sizes):
        return None
    for bits in range((len(sizes) - 1).bit_length(), _MAX_SLOT_BITS + 1):
        for shift in range(max(sizes).bit_length()):
            slots = Slots(shift, 1 << bits)
            if _all_differ(slots, sizes):
                return slots
    return None


def _all_differ(slots: Slots, sizes: Sequence[int]) -> bool:
    taken: set[int] = set()
    for size in sizes:
        slot = slots.of(size)
        if slot in taken:
            return False
        taken.add(slot)
    return True


def words_of(scan: Scan, files: NativeFiles, chosen: Sequence[int]) -> list[pa.Array]:
    """The deletion vector of each file as words. Raises: DeletionVectorError, FileNotFoundInStorageError."""
    storage, table = scan.snapshot.storage, scan.snapshot.table_root
    found = NativeFiles(files.rows_at(chosen), files.table_root).files
    counts = [files.num_records[n] for n in chosen]
    with ThreadPoolExecutor(min(_LOADERS, len(counts))) as pool:
        return list(pool.map(lambda file, count: _words(storage, table, file, count), found, counts))


def _words(storage: Storage, table_root: str, file: ScanFile, num_rows: int) -> pa.Array:
    """The deletion vector of a file with ``num_rows`` rows, as the shortest array of int64.

    Bit ``i & 63`` of word ``i >> 6`` is set if and only if row ``i`` is deleted. Rows after the last word are live.
    """
    assert file.deletion_vector is not None
    deleted = load_deletion_vector(storage, table_root, file.deletion_vector)
    deleted.check_within(num_rows, file.path)
    if not deleted.positions:
        return pa.array([], pa.int64())
    count = deleted.positions.max() // 64 + 1
    # inverting makes a new array, which begins at a byte
    bits = pc.invert(deleted.live(0, 64 * count))
    return pa.Array.from_buffers(pa.int64(), count, [None, bits.buffers()[1]])


def as_lists(words: Sequence[pa.Array]) -> pa.Array:
    """The words as one list for each array."""
    offsets = pa.array([0, *accumulate(map(len, words))], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.concat_arrays(words), type=_WORDS)


def vector_table(words: pa.Array) -> pa.Table:
    """A table whose column ``VECTOR`` has one list for each row."""
    return pa.table([words], schema=pa.schema([pa.field(VECTOR, words.type, nullable=False)]))


def in_one_array(slots: Slots, sizes: Sequence[int], words: Sequence[pa.Array]) -> pa.Array:
    """The array of the module's docstring for files of these sizes and words."""
    head = [-1] * slots.count + [0] * slots.count
    first = len(head)
    for size, own in zip(sizes, words, strict=True):
        slot = slots.of(size)
        head[slot] = size
        head[slots.count + slot] = first << 32 | len(own)
        first += len(own)
    return pa.concat_arrays([pa.array(head, pa.int64()), *words])


def is_live(words: str) -> str:
    """The condition of a live row: ``words`` is the array of its file's words.

    An error if Spark gives no position of the row: otherwise deleted rows would appear again.
    """
    return f"CASE WHEN {HAS_POSITION} THEN {_is_clear(f'get({words}, {_WORD})')} ELSE {_NO_POSITION} END"


def is_live_by_size(slots: Slots) -> str:
    """The condition of a live row, by the array of ``in_one_array`` in the column ``VECTOR``."""
    slot = f"CAST(shiftright({FILE_SIZE}, {slots.shift}) & {slots.count - 1} AS INT)"
    location = f"get({VECTOR}, {slot} | {slots.count})"
    # the array has fewer than 2^31 words
    first, count = f"CAST(shiftright({location}, 32) AS INT)", f"CAST({location} & 2147483647 AS INT)"
    word = f"get({VECTOR}, CASE WHEN {_WORD} < {count} THEN {first} + {_WORD} END)"
    unknown = unknown_file(f"concat('of ', CAST({FILE_SIZE} AS STRING), ' bytes')")
    return (
        f"CASE WHEN get({VECTOR}, {slot}) = {FILE_SIZE} AND {HAS_POSITION} THEN {_is_clear(word)} "
        f"WHEN {HAS_POSITION} THEN {unknown} ELSE {_NO_POSITION} END"
    )


def unknown_file(name: str) -> str:
    """The error for a row of an unknown file. Without it a file with another name in Spark would show deleted rows."""
    return f"CAST(raise_error(concat('deltapy does not know the data file ', {name})) AS BOOLEAN)"


_WORD = f"CAST(shiftright({ROW}, 6) AS INT)"
_NO_POSITION = "CAST(raise_error('Spark gave no position of a row, which deletion vectors need') AS BOOLEAN)"


def _is_clear(word: str) -> str:
    return f"coalesce(getbit({word}, CAST({ROW} & 63 AS INT)), 0) = 0"
