"""Connections to one SQLite file, in a process that has threads and may fork.

Invariants:

- No connection is open while the process forks. SQLite records its locks in the process's memory; a child that inherits
  these records would not take its own locks.
- A connection is used by one thread at a time, and belongs to the file that has the name now.
- A file on another machine's disk is refused: each machine would have its own write-ahead log.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from urllib.parse import quote

from delta_pyds.backoff import pause_s
from delta_pyds.errors import CatalogError
from delta_pyds.storage.local_sync import make_directory

# attempts to create the file while other processes do so
_CREATIONS = 10
# Idle connections to all files of this process.
_MOST_IDLE = 16
_MOUNTS = "/proc/self/mountinfo"
_REMOTE = frozenset(
    (
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs",
        "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
    )
)  # fmt: skip
# the root disk of a sandbox or a small virtual machine may have these kinds, and is local nevertheless
_OF_SANDBOXES = frozenset(("9p", "virtiofs"))
# the local ones among file systems that a program serves
_LOCAL_FUSE = frozenset(("fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.lxcfs"))

_Identity = tuple[int, int]
_guard = threading.Condition()
# the number of running operations by thread
_running: dict[int, int] = {}
# idle connections by path and lock timeout, each with the identity of the opened file
_idle: dict[tuple[str, float], list[tuple[_Identity, sqlite3.Connection]]] = {}
_forked_amid = False


class SqliteFile:
    """``path``: absolute. ``wait_s``: the longest wait for locks of other processes."""

    def __init__(self, file: str, wait_s: float) -> None:
        # in a URI, two leading slashes would name a host
        self.path = "/" + os.path.abspath(file).lstrip("/") if os.sep == "/" else os.path.abspath(file)
        self.wait_s = wait_s

    @contextlib.contextmanager
    def connection(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection for one operation. A fork in another thread waits until it is over.

        Raises: errors of SQLite and the file system; CatalogError for a file on a network disk.
        """
        with _operation():
            identity, connection = self._taken()
            healthy = False
            try:
                yield connection
                healthy = True
            finally:
                if healthy or not connection.in_transaction:
                    self._put_back(identity, connection)
                else:
                    connection.close()

    def create(self, schema: Sequence[str]) -> None:
        """Create the file with these tables. Readers do not call it, so that a wrong path creates nothing."""
        make_directory(os.path.dirname(self.path), lasting=True)
        with _operation():
            for attempt in range(1, _CREATIONS + 1):
                connection = self._open("rwc")
                try:
                    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                    if mode != "wal":
                        raise CatalogError(_not_local(self.path, "that cannot share memory"))
                    for statement in schema:
                        connection.execute(statement)
                    return
                except sqlite3.OperationalError:
                    # SQLite does not wait if two processes change the mode at once
                    if attempt == _CREATIONS:
                        raise
                    time.sleep(pause_s(attempt, first_s=0.02, longest_s=1.0))
                finally:
                    connection.close()

    def _taken(self) -> tuple[_Identity, sqlite3.Connection]:
        """An idle connection or a new one. Connections to a file that was moved or replaced are dropped."""
        identity = _identity(self.path)
        while True:
            with _guard:
                idle = _idle.get((self.path, self.wait_s))
                found = idle.pop() if idle else None
            if found is None:
                connection = self._open("rw")
                return _identity(self.path), connection
            if found[0] == identity:
                return found
            found[1].close()

    def _put_back(self, identity: _Identity, connection: sqlite3.Connection) -> None:
        with _guard:
            full = sum(map(len, _idle.values())) >= _MOST_IDLE
            if not full:
                _idle.setdefault((self.path, self.wait_s), []).append((identity, connection))
        if full:
            connection.close()
            _close_idle()

    def _open(self, mode: str) -> sqlite3.Connection:
        kind = remote_disk(os.path.dirname(self.path))
        if kind is not None:
            raise CatalogError(_not_local(self.path, f"of the kind {kind}"))
        return sqlite3.connect(
            f"file:{quote(self.path)}?mode={mode}",
            uri=True,
            timeout=self.wait_s,
            isolation_level=None,
            check_same_thread=False,
        )


def remote_disk(directory: str, mounts: str = _MOUNTS) -> str | None:
    """The kind of the file system if several machines may have mounted it; None if not, or if that is unknown."""
    try:
        lines = Path(mounts).read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None  # not Linux: unknown
    path = os.path.realpath(directory).rstrip("/") + "/"
    longest, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = re.sub(r"\\(\d{3})", lambda escaped: chr(int(escaped[1], 8)), fields[4]).rstrip("/") + "/"
        # of two mounts at one point the later one is visible
        if path.startswith(point) and len(point) >= longest:
            longest, kind = len(point), after.split()[0]
    if longest == 1 and kind in _OF_SANDBOXES:
        return None
    remote = kind in _REMOTE or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE)
    return kind if remote else None


def _not_local(path: str, what: str) -> str:
    return (
        f"The catalog {path} is on a disk {what}: locks between two machines do not work there, so both could commit "
        "the same version. Put it on a disk of this machine; tables may be elsewhere (?root=...)."
    )


def _identity(path: str) -> _Identity:
    found = os.stat(path)
    return found.st_dev, found.st_ino


# --- forks


@contextlib.contextmanager
def _operation() -> Generator[None, None, None]:
    thread = threading.get_ident()
    with _guard:
        if _forked_amid:
            raise CatalogError(
                "This process was forked during an operation of a catalog in SQLite, so the state of its locks is "
                "unknown. Start it with multiprocessing's 'spawn', or fork outside of signal handlers."
            )
        _running[thread] = _running.get(thread, 0) + 1
    try:
        yield
    finally:
        with _guard:
            left = _running.pop(thread, 1) - 1
            if left:
                _running[thread] = left
            _guard.notify_all()


def _close_idle() -> None:
    with _guard:
        for waiting in _idle.values():
            for _, connection in waiting:
                connection.close()
        _idle.clear()


def _before_fork() -> None:
    _guard.acquire()
    me = threading.get_ident()
    while any(thread != me for thread in _running):
        _guard.wait()
    _close_idle()


def _after_fork_in_parent() -> None:
    _guard.release()


def _after_fork_in_child() -> None:
    global _guard, _forked_amid
    # threads that do not exist in this process may hold the old lock
    _guard = threading.Condition()
    # if a signal handler forked, or interrupted the wait for other threads, connections are still open
    _forked_amid = _forked_amid or bool(_running) or bool(_idle)
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
