"""Syncs of the local disk. Without them a power cut may leave an empty file, or lose its name.

Invariant: an error of a sync is an error of the operation. The exception is a file system that cannot sync directories,
which makes names durable in its own way.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CANNOT_SYNC_DIRECTORIES = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def sync_directory(directory: str) -> None:
    """Make the names in a directory durable. Raises: OSError."""
    try:
        descriptor = os.open(directory, _DIRECTORY)
    except PermissionError:
        if not os.access(directory, os.W_OK):
            raise
        # the directory can be written to but not opened
        os.sync()
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC_DIRECTORIES:
            raise OSError(error.errno, error.strerror, directory) from error
    finally:
        os.close(descriptor)


def make_directory(directory: str, *, lasting: bool) -> None:
    """Create a directory and those above it. ``lasting``: also make the names of the new ones durable.

    Raises: OSError.
    """
    missing: list[str] = []
    while not _is_there(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for one in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(one)
        if lasting:
            sync_directory(os.path.dirname(one))


def sync_directories_above(directory: str) -> None:
    """Make all names on the path to a directory durable: another process may have created some and not synced them.

    Raises: OSError.
    """
    directory = os.path.realpath(directory)
    device = os.stat(directory).st_dev
    while (parent := os.path.dirname(directory)) != directory and os.stat(parent).st_dev == device:
        # this user cannot have created names in a directory that they may neither open nor change
        with contextlib.suppress(PermissionError):
            sync_directory(parent)
        directory = parent


def sync_file_systems(directories: Iterable[str]) -> None:
    """Sync the file systems of the directories, including what other processes have written.

    A missing directory is skipped. Raises: OSError.
    """
    done: set[int] = set()
    for directory in directories:
        try:
            device = os.stat(directory).st_dev
        except (FileNotFoundError, NotADirectoryError):
            continue
        if device not in done:
            _sync_file_system(directory)
            done.add(device)


def _sync_file_system(directory: str) -> None:
    # imported here: most processes do not need it
    import ctypes

    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    try:
        descriptor = os.open(directory, _DIRECTORY)
    except PermissionError:
        syncfs = None
    if syncfs is None:
        os.sync()
        return
    try:
        if syncfs(descriptor) == 0:
            return
        number = ctypes.get_errno()
    finally:
        os.close(descriptor)
    if number == errno.ENOSYS:
        os.sync()
        return
    raise OSError(number, os.strerror(number), directory)


def _is_there(directory: str) -> bool:
    try:
        os.stat(directory)
    except FileNotFoundError:
        return False
    return True
