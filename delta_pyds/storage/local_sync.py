"""What makes a file of the local disk last: of what no sync covers, a power cut leaves an empty file, or no name.

Invariant: an error of a sync is an error of the operation. Only a file system that cannot sync directories is let off,
for it has its own way to keep names.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CANNOT_SYNC_DIRECTORIES = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


def sync_directory(directory: str) -> None:
    """See that the names which a directory has now are there after a power cut too. Raises: OSError."""
    try:
        descriptor = os.open(directory, _DIRECTORY)
    except PermissionError:
        if not os.access(directory, os.W_OK):
            raise
        # files can be made there, and the directory cannot be opened
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
    """Create a directory and those above it. ``lasting``: the names of those that this call makes last.

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
    """See that the way to a directory lasts, whoever made it: another process may not have synced its part yet.

    Raises: OSError.
    """
    directory = os.path.realpath(directory)
    device = os.stat(directory).st_dev
    while (parent := os.path.dirname(directory)) != directory and os.stat(parent).st_dev == device:
        # nobody who runs this can have made a name in a directory that they can neither open nor change
        with contextlib.suppress(PermissionError):
            sync_directory(parent)
        directory = parent


def sync_file_systems(directories: Iterable[str]) -> None:
    """Write out everything that waits in memory for the file systems on which the directories are, whoever wrote it.

    Of a directory that is not there nothing can wait. Raises: OSError.
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
    # imported here: most processes delete nothing
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
