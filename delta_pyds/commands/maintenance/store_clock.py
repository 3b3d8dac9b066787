"""Comparison of a store's clock with this machine's: the store dates files, and a vacuum computes their age.

If the age is too high, a vacuum might delete files that a writer has not committed yet.
"""

from __future__ import annotations

import contextlib
import time
import uuid

from delta_pyds.errors import StorageError, UserError
from delta_pyds.protocol.paths import join, log_directory
from delta_pyds.storage.base import Storage

_HOUR_MS = 3_600_000
# less than any retention that protects writers
_HARMLESS_SKEW_MS = _HOUR_MS


def check_store_clock(storage: Storage, table_root: str, cutoff_ms: int) -> None:
    """Compare the clocks, by a temporary file in the store, before files older than ``cutoff_ms`` are deleted.

    Raises: UserError if this machine's clock is more than an hour ahead; StorageError.
    """
    now_ms = int(time.time() * 1000)
    if storage.scheme == "file" or cutoff_ms >= now_ms - _HARMLESS_SKEW_MS:
        return  # there is only one clock, or files of any age may be deleted
    path = join(log_directory(table_root), f".{uuid.uuid4().hex}.tmp")  # the log's clean-up deletes these names
    storage.put(path, b"")
    try:
        ahead_ms = now_ms - storage.status(path).modification_time_ms
    finally:
        with contextlib.suppress(StorageError):
            storage.delete(path, below=table_root)
    if ahead_ms > _HARMLESS_SKEW_MS:
        raise UserError(
            f"nothing of table {table_root} was deleted: the clock of this machine is {ahead_ms / _HOUR_MS:.1f} hours "
            "ahead of the store's, so files of active writers would look old. Correct this machine's clock.",
            table=table_root,
        )
