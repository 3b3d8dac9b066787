"""A new file of the local disk, whose bytes go to the disk while more of them are being made."""

from __future__ import annotations

import functools
import io
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from delta_pyds.storage.local_sync import make_directory, sync_directory

# So much may wait in memory for the disk: the last part is what the end of a task waits for.
_STEP_BYTES = 8 << 20
# File systems write the syncs of several files together.
_THREADS = 8
# Files that are closed and not yet on the disk: each holds a descriptor, of which a process has 1,024 at times.
_MOST_WAITING = 64


class _Syncs:
    """The threads of one process that sync its files."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="deltapy-sync")
        self.room = threading.BoundedSemaphore(_MOST_WAITING)


@functools.lru_cache(maxsize=1)
def _syncs_of(process_id: int) -> _Syncs:  # noqa: ARG001 - threads do not survive a fork
    return _Syncs()


class LocalOutput(io.RawIOBase):
    """Invariants: once ``close`` has returned, other processes see the whole file; once ``wait`` has, its bytes are on
    the disk. The descriptor that wrote the file syncs it: another one may not be told that writing failed.
    """

    def __init__(self, path: str) -> None:
        """``path``: plain. Its directory is made where it is not there. Raises: OSError."""
        super().__init__()
        self.path = path
        self._file = _created(path)
        self._unsynced = 0
        self._under_way: Future[None] | None = None
        self._end: Future[None] | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Raises: OSError."""
        if self.closed:
            raise ValueError("the file is closed")
        count = self._file.write(data)
        self._unsynced += count
        if self._unsynced >= _STEP_BYTES and (self._under_way is None or self._under_way.done()):
            if self._under_way is not None:
                self._under_way.result()
            self._unsynced = 0
            self._under_way = _syncs_of(os.getpid()).pool.submit(os.fdatasync, self._file.fileno())
        return count

    def close(self) -> None:
        """Hand the rest to the system, and let the sync begin. Raises: OSError."""
        if self.closed:
            return
        super().close()
        try:
            self._file.flush()
        except BaseException:
            self._let_go()
            raise
        syncs = _syncs_of(os.getpid())
        syncs.room.acquire()
        try:
            self._end = syncs.pool.submit(self._sync, syncs.room)
        except BaseException:
            syncs.room.release()
            self._let_go()
            raise

    def wait(self) -> None:
        """Return when the bytes of the closed file are on the disk. Raises: OSError if they did not get there."""
        if self._end is None:
            raise ValueError(f"{self.path!r} was not closed, or let go of")
        self._end.result()

    def discard(self) -> None:
        """Close the file, which counts for nothing. Never raises."""
        if not self.closed:
            super().close()
            self._let_go()

    def __del__(self) -> None:
        # nobody closed it, so nobody asked for the file
        if hasattr(self, "_end"):
            self.discard()

    def _sync(self, room: threading.BoundedSemaphore) -> None:
        try:
            try:
                if self._under_way is not None:
                    self._under_way.result()
                os.fsync(self._file.fileno())
            finally:
                self._file.close()
        finally:
            room.release()

    def _let_go(self) -> None:
        if self._under_way is not None:
            # its descriptor must not become another file's meanwhile
            self._under_way.exception()
        try:
            self._file.close()
        except OSError:
            # what it could not write belongs to no file
            self._file.raw.close()


def begin_sync_of_names(outputs: Sequence[LocalOutput], below: str) -> list[Future[None]]:
    """See that the names of the files last, and of the directories from ``below`` to them: another task may have made
    those, and not have synced them yet. The results raise OSError. File systems write this together with the files.
    """
    directories: dict[str, None] = {}
    for output in outputs:
        directory = os.path.dirname(output.path)
        while directory not in directories and f"{directory}/".startswith(below.rstrip("/") + "/"):
            directories[directory] = None
            directory = os.path.dirname(directory)
    return [_syncs_of(os.getpid()).pool.submit(sync_directory, directory) for directory in directories]


def _created(path: str) -> io.BufferedWriter:
    try:
        make_directory(os.path.dirname(path), lasting=False)
        return open(path, "xb")
    except FileNotFoundError:
        # a vacuum has just removed the directory, which was empty
        make_directory(os.path.dirname(path), lasting=False)
        return open(path, "xb")
