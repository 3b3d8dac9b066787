"""The clock of a store beside the one of this machine: a store dates files, and a vacuum asks how old they are.

A file that seems old too early may be one of a writer at work.
"""

from __future__ import annotations

import contextlib
import time
import uuid

from delta_pyds.errors import StorageError, UserError
from delta_pyds.protocol.paths import join, log_directory
from delta_pyds.storage.base import Storage

_HOUR_MS = 3_600_000
# less than any retention that guards writers
_HARMLESS_SKEW_MS = _HOUR_MS


def check_store_clock(storage: Storage, table_root: str, cutoff_ms: int) -> None:
    """Ask a store for its time, by a file that is put and deleted, before files older than ``cutoff_ms`` go.

    Raises: UserError where this machine's clock is hours ahead; StorageError.
    """
    now_ms = int(time.time() * 1000)
    if storage.scheme == "file" or cutoff_ms >= now_ms - _HARMLESS_SKEW_MS:
        return  # one clock, or all that is there is to go
    path = join(log_directory(table_root), f".{uuid.uuid4().hex}.tmp")  # the log's clean-up knows such names
    storage.put(path, b"")
    try:
        ahead_ms = now_ms - storage.status(path).modification_time_ms
    finally:
        with contextlib.suppress(StorageError):
            storage.delete(path, below=table_root)
    if ahead_ms > _HARMLESS_SKEW_MS:
        raise UserError(
            f"nothing of table {table_root} was deleted: the clock of this machine is {ahead_ms / _HOUR_MS:.1f} hours "
            "ahead of the store's, so files of writers at work would seem old. Set this machine's clock.",
            table=table_root,
        )
