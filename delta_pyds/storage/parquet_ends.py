"""The size of the first request for a Parquet file, learnt from other files of the table: their footers are alike.

Invariant: the guess affects only the number and size of requests, never the bytes that are read.
"""

from __future__ import annotations

import threading
from typing import Any, Literal

from delta_pyds.storage.base import TAIL_BYTES, Storage

# The first guess: a typical footer's size, and its share for each leaf column.
_LEAST_BYTES = 8 * 1024
_BYTES_PER_LEAF = 512
# Room for differences between the footers of similar files: numbers have varying lengths.
_ROOM_BYTES = 128
# A longer footer is read in pieces: a damaged file may claim any length.
_MOST_BYTES = 1 << 20


class ParquetEnds:
    """Opens files of one table. Other threads wait for the first file, which shows how long footers are.

    ``reads``: what will be read of the files. ``all``: the end is never fetched in vain, and no thread waits.
    ``columns``: some columns; short files are fetched whole. ``footers``: only the footers.
    ``leaves``: the number of leaf columns of the files; 0 if unknown.

    >>> ends = ParquetEnds("columns", leaves=7)
    >>> sources = [ends.open(storage, path, size_bytes) for path, size_bytes in files]
    """

    def __init__(self, reads: Literal["all", "columns", "footers"], leaves: int = 0) -> None:
        self._waits = reads != "all"
        self._least = 0 if self._waits else TAIL_BYTES
        self._short = 0 if reads == "footers" else TAIL_BYTES
        guess = max(_LEAST_BYTES, _BYTES_PER_LEAF * leaves)
        self._guess = min(guess, TAIL_BYTES) if leaves else TAIL_BYTES
        self._longest = 0
        self._lock = threading.Lock()
        self._begun = False
        self._first_opened = threading.Event()

    def open(self, storage: Storage, path: str, size_bytes: int | None = None) -> Any:
        """See ``Storage.parquet_source``. ``size_bytes``: the expected size."""
        if storage.scheme == "file":
            return storage.parquet_source(path)
        with self._lock:
            is_first, self._begun = not self._begun, True
        if self._waits and not is_first:
            self._first_opened.wait()
        try:
            source = storage.parquet_source(path, self.tail_bytes(size_bytes), size_bytes)
            # only object stores have this attribute
            footer = getattr(source, "footer_bytes", 0)
            with self._lock:
                self._longest = max(self._longest, footer)
            return source
        finally:
            if is_first:
                self._first_opened.set()

    def tail_bytes(self, size_bytes: int | None) -> int:
        """The bytes to request from the end of a file of this size."""
        longest = self._longest
        learnt = min(longest + longest // 8 + _ROOM_BYTES, _MOST_BYTES) if longest else self._guess
        is_short = size_bytes is not None and 0 < size_bytes <= self._short
        return max(learnt, TAIL_BYTES if is_short else self._least)
