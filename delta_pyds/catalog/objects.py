"""Catalogs that users pass as objects: options carry a generated name for each.

Invariants: the name reveals nothing about the object. In the process that passed the object, the name means that
object. In another process of the same user and machine, such as Spark's planners, it means a copy that ``__reduce__``
makes; its state is in a file that only this user can read and write. An object without ``__reduce__`` exists only in
its own process, and using its name elsewhere is an error.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import re
import shutil
import stat
import tempfile
import threading
import uuid
from collections.abc import Callable

from delta_pyds.catalog.interface import Catalog
from delta_pyds.errors import OptionError

_PREFIX = "object-"
_DIRECTORY = "delta_pyds-catalogs-"
_NAME = re.compile(r"object-([a-z0-9_]{8})-([0-9a-f]{32})")

_lock = threading.Lock()
_given: dict[str, Catalog] = {}
# this process's directory: the id of the process that created it, and the suffix of its name
_own: tuple[int, str] | None = None


def name_of(catalog: Catalog, dumps: Callable[[Catalog], bytes] | None = None) -> str:
    """The name for options. ``dumps``: pickles the object for other processes; its errors are ignored.

    The object is kept as long as the process lives: a plan that uses it may run at any time.
    """
    with _lock:
        suffix = _directory()
        name = next((name for name, known in _given.items() if known is catalog), None)
        if name is None:
            name = f"{_PREFIX}{suffix}-{uuid.uuid4().hex}"
            _given[name] = catalog
        if dumps is not None and not os.path.exists(_file(name)):
            # an object that cannot be copied raises any error here
            with contextlib.suppress(Exception):
                _write_private(_file(name), dumps(catalog))
        return name


def is_object(name: str) -> bool:
    """Whether the name has the form that ``name_of`` returns."""
    return _NAME.fullmatch(name) is not None


def object_named(name: str) -> Catalog:
    """The catalog of the name. Raises: OptionError if it does not exist in this process and cannot be recreated."""
    found = _given.get(name)
    if found is not None:
        return found
    data = _read_private(_file(name))
    if data is None:
        raise OptionError(
            "the catalog was given as an object, which only the process that made it can use. It is now needed in "
            "another process, such as Spark's planners of reads and writes. Define __reduce__ in its class, if it can "
            "be recreated on this machine; or give it a name: DELTA_PYDS_CATALOG_<NAME>_FACTORY="
            "package.module:function in the environment of all processes, and catalog='<name>'.",
            option="catalog",
        )
    try:
        made = pickle.loads(data)
    except Exception as error:
        raise OptionError(
            "the catalog was given as an object and could not be recreated in this process: "
            f"{type(error).__name__}: {error}.",
            option="catalog",
        ) from error
    if not isinstance(made, Catalog):
        raise OptionError(
            f"the catalog was given as an object, but its __reduce__ made a {type(made).__name__}, not a "
            "delta_pyds.catalog.Catalog.",
            option="catalog",
        )
    return made


# --- files that only this user can have written


def _directory() -> str:
    """The random suffix of this process's directory, which is created on the first call and removed at exit."""
    global _own
    if _own is None or _own[0] != os.getpid():
        made = tempfile.mkdtemp(prefix=_DIRECTORY)
        _own = os.getpid(), made.rpartition("-")[2]
        atexit.register(_remove, os.getpid(), made)
    return _own[1]


def _remove(process: int, directory: str) -> None:
    # the directory of a forked process belongs to its parent
    if process == os.getpid():
        shutil.rmtree(directory, ignore_errors=True)


def _file(name: str) -> str:
    match = _NAME.fullmatch(name)
    assert match is not None
    return os.path.join(tempfile.gettempdir(), f"{_DIRECTORY}{match[1]}", match[2])


def _write_private(path: str, data: bytes) -> None:
    partial = f"{path}.partial"
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    os.replace(partial, path)


def _read_private(path: str) -> bytes | None:
    """The content of the file if this user, and no other, wrote it; else None."""
    try:
        if not _is_ours(os.lstat(os.path.dirname(path)), stat.S_ISDIR):
            return None
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            return file.read() if _is_ours(os.fstat(file.fileno()), stat.S_ISREG) else None
    except OSError:
        return None


def _is_ours(found: os.stat_result, kind: Callable[[int], bool]) -> bool:
    return kind(found.st_mode) and (
        not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
    )
