"""Deletion vectors as words of 64 bits, which Spark's built-in functions can read.

Invariant: bit ``i & 63`` of word ``i >> 6`` is set if and only if row ``i`` of the file is deleted. Rows after the last
word are live.

Protocol: "Deletion Vectors".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.data.read.deletion_vector import load_deletion_vector
from delta_pyds.storage.base import Storage
from delta_pyds.tasks.scan_state import ScanFile

_WORD = 64


def deleted_words(storage: Storage, table_root: str, file: ScanFile, num_rows: int) -> pa.Array:
    """The deletion vector of a file with ``num_rows`` rows, as the shortest array of int64.

    Raises: DeletionVectorError, FileNotFoundInStorageError.
    """
    assert file.deletion_vector is not None
    deleted = load_deletion_vector(storage, table_root, file.deletion_vector)
    deleted.check_within(num_rows, file.path)
    if not deleted.positions:
        return pa.array([], pa.int64())
    words = deleted.positions.max() // _WORD + 1
    # inverting makes a new array, which begins at a byte
    bits = pc.invert(deleted.live(0, words * _WORD))
    return pa.Array.from_buffers(pa.int64(), words, [None, bits.buffers()[1]])
