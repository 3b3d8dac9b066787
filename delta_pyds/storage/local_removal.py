"""Removes files and directories of the local disk, and follows no symbolic link on the way to them."""

from __future__ import annotations

import os
import stat as stat_module
from collections.abc import Callable, Sequence

from delta_pyds.errors import StorageError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def remove_below(root: str, parts: Sequence[str], remove: Callable[..., None]) -> bool:
    """Remove what the names lead to from ``root``; only the root itself may lie behind a link.

    ``remove``: ``os.unlink`` or ``os.rmdir``. Returns: whether a directory was there to remove it from.
    Raises: StorageError where a name on the way is a symbolic link; what ``remove`` raises.
    """
    directory = os.open(root, _DIRECTORY)
    try:
        for i, name in enumerate(parts[:-1]):
            try:
                inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            except NotADirectoryError:
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if not stat_module.S_ISLNK(found.st_mode):
                    return False  # where there is no directory there is no file
                raise StorageError(
                    f"'{'/'.join(parts)}' below '{root}' was not deleted: '{'/'.join(parts[: i + 1])}' is a symbolic "
                    "link, and what lies behind one may belong to somebody else.",
                    path=f"{root}/{'/'.join(parts)}",
                ) from None
            os.close(directory)
            directory = inner
        remove(parts[-1], dir_fd=directory)
    finally:
        os.close(directory)
    return True
