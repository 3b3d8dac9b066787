"""Canonical paths of tables from the paths that users give.

Invariant: a path means the same in every call. ``pathlib.Path`` and text are
equivalent, ``~`` is the user's home, and a relative path is below the working
directory of the user's process.
"""

from __future__ import annotations

import os

from delta_pyds.errors import OptionError
from delta_pyds.storage.resolve import normalize_table_root, scheme_of

PathLike = str | os.PathLike[str]


def absolute_table_path(path: PathLike, *, remote: bool = False) -> str:
    """The canonical absolute path of a table (see ``normalize_table_root``).

    Args:
        path: the path that a user gave.
        remote: the path is for a Spark Connect server. ``t`` and ``~/t`` are refused: this process cannot know the
            server's directories.

    Raises: OptionError for a value that is neither text nor ``os.PathLike``, for an unknown user's home, and with
        ``remote`` for a path that is not absolute; StorageError for an empty path.
    """
    text = _text_of(path)
    if scheme_of(text) != "file":
        return normalize_table_root(text)
    plain = _with_home(text)
    absolute = normalize_table_root(plain)
    if remote and (plain != text or normalize_table_root(plain, "/1") != normalize_table_root(plain, "/2")):
        raise OptionError(
            f"the path '{text}' is not absolute. With Spark Connect the server opens it, and has its own working "
            f"directory and home. Give the full path; on this machine it would be '{absolute}'.",
            option="path",
        )
    return absolute


def without_links(root: str) -> str:
    """The same table without symbolic links of this process's disk. ``root``: as ``absolute_table_path`` returns it."""
    return os.path.realpath(root) if root.startswith("/") else root


def _text_of(path: PathLike) -> str:
    found = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(found, str):
        raise OptionError(
            f"the path of the table is of type {type(path).__name__}, but must be text or a pathlib.Path.",
            option="path",
        )
    return found


def _with_home(text: str) -> str:
    """The text with a leading ``~`` or ``~name`` replaced by that home, as in a shell."""
    if not text.startswith("~"):
        return text
    expanded = os.path.expanduser(text)
    if expanded == text:
        name = text.split("/", 1)[0]
        raise OptionError(
            f"the path '{text}' begins with {name}, but that home directory does not exist. Give the full path; for a "
            f"directory with this name write './{text}'.",
            option="path",
        )
    return expanded
