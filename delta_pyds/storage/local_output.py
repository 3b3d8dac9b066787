"""A new file of the local disk, synced while it is being written."""

from __future__ import annotations

import functools
import io
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from delta_pyds.storage.local_sync import make_directory, sync_directory

# Bytes between two syncs: the end of a task waits for the last of them.
_STEP_BYTES = 8 << 20
# File systems combine concurrent syncs of several files.
_THREADS = 8
# Closed files that are not yet on the disk: each holds a descriptor, and a process may have only 1,024.
_MOST_WAITING = 64


class _Syncs:
    """The threads of a process that sync its files."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="deltapy-sync")
        self.slots = threading.BoundedSemaphore(_MOST_WAITING)


@functools.lru_cache(maxsize=1)
def _syncs_of(process_id: int) -> _Syncs:  # noqa: ARG001 - threads do not survive a fork
    return _Syncs()


class LocalOutput(io.RawIOBase):
    """A file to write to. Invariants: after ``close`` other processes see the whole file; after ``wait`` its bytes are
    on the disk. The descriptor that wrote the file syncs it: another one might not report a write error.
    """

    def __init__(self, path: str) -> None:
        """``path``: an absolute path without a scheme. A missing directory is created. Raises: OSError."""
        super().__init__()
        self.path = path
        self._file = _create(path)
        self._unsynced = 0
        self._pending_sync: Future[None] | None = None
        self._final_sync: Future[None] | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Raises: OSError."""
        if self.closed:
            raise ValueError("the file is closed")
        count = self._file.write(data)
        self._unsynced += count
        if self._unsynced >= _STEP_BYTES and (self._pending_sync is None or self._pending_sync.done()):
            if self._pending_sync is not None:
                self._pending_sync.result()
            self._unsynced = 0
            self._pending_sync = _syncs_of(os.getpid()).pool.submit(os.fdatasync, self._file.fileno())
        return count

    def close(self) -> None:
        """Flush the file and start its sync. Raises: OSError."""
        if self.closed:
            return
        super().close()
        try:
            self._file.flush()
        except BaseException:
            self._abandon()
            raise
        syncs = _syncs_of(os.getpid())
        syncs.slots.acquire()
        try:
            self._final_sync = syncs.pool.submit(self._sync, syncs.slots)
        except BaseException:
            syncs.slots.release()
            self._abandon()
            raise

    def wait(self) -> None:
        """Return when the bytes of the closed file are on the disk. Raises: OSError if they did not reach it."""
        if self._final_sync is None:
            raise ValueError(f"{self.path!r} was not closed, or it was discarded")
        self._final_sync.result()

    def discard(self) -> None:
        """Close the file without a sync; its content is not used. Never raises."""
        if not self.closed:
            super().close()
            self._abandon()

    def __del__(self) -> None:
        # it was not closed, so it is not wanted
        if hasattr(self, "_final_sync"):
            self.discard()

    def _sync(self, slots: threading.BoundedSemaphore) -> None:
        try:
            try:
                if self._pending_sync is not None:
                    self._pending_sync.result()
                os.fsync(self._file.fileno())
            finally:
                self._file.close()
        finally:
            slots.release()

    def _abandon(self) -> None:
        if self._pending_sync is not None:
            # wait: the descriptor must not be reused for another file meanwhile
            self._pending_sync.exception()
        try:
            self._file.close()
        except OSError:
            # discard the unwritten bytes
            self._file.raw.close()


def begin_sync_of_names(outputs: Sequence[LocalOutput], below: str) -> list[Future[None]]:
    """Start syncs of the names of the files, and of the directories from ``below`` to them.

    Another task may have made those directories and not synced them yet. File systems combine these syncs with those of
    the files. The results raise OSError.
    """
    directories: dict[str, None] = {}
    for output in outputs:
        directory = os.path.dirname(output.path)
        while directory not in directories and f"{directory}/".startswith(below.rstrip("/") + "/"):
            directories[directory] = None
            directory = os.path.dirname(directory)
    return [_syncs_of(os.getpid()).pool.submit(sync_directory, directory) for directory in directories]


def _create(path: str) -> io.BufferedWriter:
    try:
        make_directory(os.path.dirname(path), lasting=False)
        return open(path, "xb")
    except FileNotFoundError:
        # a vacuum has just deleted the empty directory
        make_directory(os.path.dirname(path), lasting=False)
        return open(path, "xb")
