"""Resolves a path to its storage."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from typing import Any

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.errors import OptionError, StorageError
from delta_pyds.redaction import secrets_of, without_credentials
from delta_pyds.storage.allowed_roots import ALLOWED_ROOTS, RestrictedStorage, allowed_roots_of
from delta_pyds.storage.base import Storage
from delta_pyds.storage.local import LocalStorage, local_path

# as in protocol/paths: a scheme must be followed by a slash
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):/")
# options with this prefix name a table in its catalog; they are not for the file system
CATALOG_OPTIONS = "deltapy."
_ALIASES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}

# each has clients and connections, and a catalog's hourly credentials make a new one every hour
_MOST_OPEN = 64
_cache: BoundedCache[tuple[Any, ...], Storage] = BoundedCache(_MOST_OPEN)
_cache_lock = threading.Lock()


def normalize_table_root(path: str, base_directory: str | None = None) -> str:
    """The canonical absolute path of a table, without a trailing slash.

    ``/a/b``, ``file:/a/b`` and ``file:///a/b/`` give ``/a/b``; ``s3a://`` and
    ``s3n://`` give ``s3://``. Percent signs are literal, and ``.`` and ``..``
    are resolved by name, both as in Hadoop's ``Path``.

    Args:
        path: the path.
        base_directory: a relative path is below it; by default the working directory.

    Raises: StorageError for an empty path, a ``file:`` path on another host, and a URL with credentials.
    """
    if not path or not path.strip():
        raise StorageError("The table's path is empty. Give the path of the table's directory.", path=path)
    root = _canonical_path(path, base_directory)
    # checked on the canonical path: missing or extra slashes must not hide credentials
    harmless = root if root.startswith("/") else without_credentials(root)
    if harmless != root:
        raise StorageError(
            f"the path '{harmless}' contains credentials or a user name, but plans, logs and errors show paths. Give "
            "them as storage options, such as key and secret for s3.",
            path=harmless,
        )
    return root


def hadoop_path(path: str) -> str:
    """A resolved path as Hadoop spells it: with the scheme of Hadoop's connector. It is literal, like ``path``."""
    scheme = scheme_of(path)
    if scheme == "file":
        return "file:" + normalize_table_root(path)
    return path.replace("s3://", "s3a://", 1) if scheme == "s3" else path


def _canonical_path(path: str, base_directory: str | None = None) -> str:
    match = _SCHEME.match(path)
    if match is None or match[1].lower() == "file":
        plain = local_path(path)
        root = os.path.normpath(os.path.join(base_directory or os.getcwd(), plain))
        return "/" + root.lstrip("/")  # normpath keeps a leading "//"
    scheme = match[1].lower()
    rest = path[match.end() - 1 :].lstrip("/").rstrip("/")
    return f"{_ALIASES.get(scheme, scheme)}://{rest}"


def scheme_of(path: str) -> str:
    """The canonical scheme of a full path; ``file`` for a path without a scheme."""
    match = _SCHEME.match(path)
    scheme = match[1].lower() if match else "file"
    return _ALIASES.get(scheme, scheme)


def authority_of(url: str) -> str:
    """The bucket, container or host of a URL."""
    return url.partition("://")[2].partition("/")[0]


def has_scheme(path: str | os.PathLike[str]) -> bool:
    """Whether a user's path has a scheme; a ``pathlib.Path`` never does."""
    return isinstance(path, str) and _SCHEME.match(path) is not None


def resolve_storage(uri: str, options: Mapping[str, Any] | None = None) -> Storage:
    """The storage for a full path. A process has one object for each scheme, account and options.

    Args:
        uri: the full path.
        options: keyword arguments of the fsspec file system, in their exact case; the local disk ignores them. The
            option ``allowed_roots`` is ours: only files below ``uri`` and below these directories are opened.

    Raises: StorageError for an unknown scheme or a package that is not installed; OptionError for invalid roots.
    """
    scheme = scheme_of(uri)
    given = {name: value for name, value in (options or {}).items() if not name.startswith(CATALOG_OPTIONS)}
    roots = allowed_roots_of(given)
    if roots is not None:
        return _restricted(uri, roots, {name: value for name, value in given.items() if name != ALLOWED_ROOTS})
    if scheme == "file":
        key: tuple[Any, ...] = (os.getpid(), scheme)
    else:
        # abfss://container@account/...: the authority names the account, which determines the client
        authority = uri.split("://", 1)[-1].split("/", 1)[0]
        # a forked process must not use its parent's connections
        key = (os.getpid(), scheme, authority, tuple(sorted((name, repr(value)) for name, value in given.items())))
    with _cache_lock:
        storage = _cache.get(key)
        if storage is None:
            storage = open_storage(scheme, uri, given)
            _cache.put(key, storage)
        return storage


def _restricted(uri: str, roots: tuple[str, ...], options: Mapping[str, Any]) -> Storage:
    relative = [root for root in roots if not root.startswith("/") and _SCHEME.match(root) is None]
    if relative:
        raise OptionError(
            f"the storage option {ALLOWED_ROOTS} has {relative[0]!r}, which is not an absolute path. The processes "
            "that read the table have different working directories: give the full path.",
            option=ALLOWED_ROOTS,
        )
    inner = resolve_storage(uri, options)
    allowed = tuple(normalize_table_root(root) for root in (uri, *roots))
    with _cache_lock:
        # equal storages must be one object: caches use it as a key
        key = (id(inner), allowed)
        storage = _cache.get(key)
        if storage is None:
            storage = RestrictedStorage(inner, allowed, _canonical_path)
            _cache.put(key, storage)
        return storage


def open_storage(scheme: str, uri: str, options: Mapping[str, Any]) -> Storage:
    """Open a new storage for a full path with a canonical scheme; ``resolve_storage`` shares storages."""
    if scheme == "file":
        return LocalStorage()
    from delta_pyds.storage.fsspec_store import FsspecStorage, open_filesystem, protocol_of

    kind: type[FsspecStorage] = FsspecStorage
    if protocol_of(scheme) == "s3":
        from delta_pyds.storage.s3 import S3Storage

        kind = S3Storage
    elif protocol_of(scheme) == "gs":
        from delta_pyds.storage.google import GoogleStorage

        kind = GoogleStorage
    elif protocol_of(scheme) == "abfs":
        from delta_pyds.storage.azure import AzureStorage

        kind = AzureStorage
    return kind(open_filesystem(scheme, uri, options), scheme, root=uri, secrets=secrets_of(options))
