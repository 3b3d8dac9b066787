"""Normalizes the path of a table that a user gives.

Invariant: a path means the same to every call that takes one. ``pathlib.Path``
and text are alike, ``~`` is the user's home, and a relative path is below the
working directory of the process that the user's code runs in.
"""

from __future__ import annotations

import os

from delta_pyds.errors import OptionError
from delta_pyds.storage.resolve import normalize_table_root, scheme_of

PathLike = str | os.PathLike[str]


def absolute_table_path(path: PathLike, *, remote: bool = False) -> str:
    """The one absolute spelling of a path that a user gave (see ``normalize_table_root``).

    ``remote``: the path is for a Spark Connect server. Which directory ``t`` or
    ``~/t`` is there, nobody here knows, so both are refused.

    Raises: OptionError for what is neither text nor ``os.PathLike``, for the home of a user that
        does not exist, and with ``remote`` for a path that is not absolute; StorageError for an empty path.
    """
    text = _text_of(path)
    if scheme_of(text) != "file":
        return normalize_table_root(text)
    plain = _with_home(text)
    absolute = normalize_table_root(plain)
    if remote and (plain != text or normalize_table_root(plain, "/1") != normalize_table_root(plain, "/2")):
        raise OptionError(
            f"the path '{text}' is not absolute, and through Spark Connect it is the server that opens it, which has "
            f"a working directory and a home of its own. Give the whole path; here it would be '{absolute}'.",
            option="path",
        )
    return absolute


def _text_of(path: PathLike) -> str:
    found = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(found, str):
        raise OptionError(
            f"the path of the table is given as {type(path).__name__}, but must be text or a pathlib.Path.",
            option="path",
        )
    return found


def _with_home(text: str) -> str:
    """``~`` and ``~name`` in front are replaced by that home, as every shell does."""
    if not text.startswith("~"):
        return text
    expanded = os.path.expanduser(text)
    if expanded == text:
        name = text.split("/", 1)[0]
        raise OptionError(
            f"the path '{text}' begins with {name}, but there is no such home directory. Give the whole path; for a "
            f"directory that is called so, write './{text}'.",
            option="path",
        )
    return expanded
