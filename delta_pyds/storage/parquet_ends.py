"""How much of the end of each Parquet file is asked for: files of one table are alike, and so are their footers.

Invariant: a guess decides what is asked for at once, and never what is read: of too little the rest is asked for, of
too much bytes came in vain.
"""

from __future__ import annotations

import threading
from typing import Any, Literal

from delta_pyds.storage.base import TAIL_BYTES, Storage

# A first guess: what most writers say of a file, and of each of its leaf columns.
_LEAST_BYTES = 8 * 1024
_BYTES_PER_LEAF = 512
# What files that are alike may have more: other numbers of other lengths.
_ROOM_BYTES = 128
# A longer footer is read in pieces: a file may say anything of it.
_MOST_BYTES = 1 << 20


class ParquetEnds:
    """Opens files of one table. The first tells how long footers are; who comes meanwhile waits for it. For threads.

    ``reads``: what else of the files will be read: ``all`` of them, so that no byte of the end comes in vain, and
    nobody waits; some ``columns``, so that short files come whole; nothing but ``footers``.
    ``leaves``: how many leaf columns the files have, if that is known.

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
        self._told = threading.Event()

    def open(self, storage: Storage, path: str, size_bytes: int | None = None) -> Any:
        """See ``Storage.parquet_source``. ``size_bytes``: as somebody promised."""
        if storage.scheme == "file":
            return storage.parquet_source(path)
        with self._lock:
            is_first, self._begun = not self._begun, True
        if self._waits and not is_first:
            self._told.wait()
        try:
            source = storage.parquet_source(path, self.tail_bytes(size_bytes), size_bytes)
            # a file system that is no object store reads what it is asked for
            footer = getattr(source, "footer_bytes", 0)
            with self._lock:
                self._longest = max(self._longest, footer)
            return source
        finally:
            if is_first:
                self._told.set()

    def tail_bytes(self, size_bytes: int | None) -> int:
        """What to ask for of a file of this size."""
        longest = self._longest
        learnt = min(longest + longest // 8 + _ROOM_BYTES, _MOST_BYTES) if longest else self._guess
        is_short = size_bytes is not None and 0 < size_bytes <= self._short
        return max(learnt, TAIL_BYTES if is_short else self._least)
