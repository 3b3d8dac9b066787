"""Any file system that fsspec supports, for reading.

fsspec and its packages are imported when a path first needs them.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, cast

from delta_pyds.errors import FileNotFoundInStorageError, StorageError
from delta_pyds.redaction import secrets_of
from delta_pyds.storage.base import (
    TAIL_BYTES,
    DirectoryEntry,
    FileStatus,
    delete_each,
    directory_not_found,
    file_not_found,
    not_proven,
    outside_store,
    parts_below,
)
from delta_pyds.storage.failures import describe, shown_cause, translated

# scheme of a path -> fsspec's name for it
_PROTOCOLS = {
    "s3": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfs",
    "az": "abfs",
    "wasb": "abfs",
    "wasbs": "abfs",
    "memory": "memory",
}
# as in the packages of the other stores
_CONNECT_S, _SILENCE_S = 30, 60
_EXTRAS = {"s3": "s3", "gs": "gcs", "abfs": "azure"}
# options that adlfs prefers to a SAS, even if they come from the environment
_PREFERRED_TO_SAS = ("connection_string", "account_key", "credential")
# values of the option "token" that make gcsfs look for a token elsewhere
_TOKEN_METHODS = ("google_default", "cache", "cloud", "anon", "browser", "token", "")
KNOWN_SCHEMES = ("file", *_PROTOCOLS)
_URL = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):/+(?P<rest>.*)", re.DOTALL)
# protocols whose paths name a bucket, not a server
_SINGLE_SERVER_PROTOCOLS = ("s3", "gs", "memory", "file")


def protocol_of(scheme: str) -> str:
    return "s3" if scheme in ("s3a", "s3n") else _PROTOCOLS.get(scheme, scheme)


def _server_of(path: str) -> str:
    """The server that a path names: the account in Azure's paths, else the host; empty if the path names neither."""
    match = _URL.fullmatch(path)
    scheme = match["scheme"].lower() if match else "file"
    protocol = protocol_of(scheme)
    if match is None or protocol in _SINGLE_SERVER_PROTOCOLS:
        return ""
    authority = match["rest"].split("/", 1)[0].lower()
    if protocol != "abfs":
        return authority
    # container@account.dfs.core.windows.net; a container alone is in the account of the options
    _, at, host = authority.rpartition("@")
    return host.split(".", 1)[0] if at else ""


def open_filesystem(scheme: str, root: str, options: Mapping[str, Any]) -> Any:
    """Open the fsspec file system for a scheme.

    Args:
        scheme: the scheme of ``root``.
        root: the path to open; it may name the account (``abfss://container@account...``).
        options: arguments of the file system's class. They may hold secrets.

    Raises: StorageError for an unknown scheme, a package that is not installed, or options that the package refuses.
    """
    fsspec = importlib.import_module("fsspec")
    protocol = _PROTOCOLS.get(scheme, scheme)
    try:
        filesystem_class = fsspec.get_filesystem_class(protocol)
    except ValueError:
        raise StorageError(
            f"The scheme {scheme!r} of {root!r} is unknown. Supported are: {', '.join(KNOWN_SCHEMES)}, "
            "and all others of fsspec.",
            path=root,
            scheme=scheme,
        ) from None
    except ImportError as error:
        extra = _EXTRAS.get(protocol)
        remedy = f"pip install 'delta-pyds[{extra}]'" if extra else str(error)
        raise StorageError(
            f"{root!r} cannot be opened, because the package for {scheme}:// is not installed. Run: {remedy}",
            path=root,
            scheme=scheme,
        ) from error
    defaults: dict[str, Any] = {}
    if protocol == "gs":
        # gcsfs would wait forever for a silent server
        timeout = importlib.import_module("aiohttp").ClientTimeout
        defaults["requests_timeout"] = timeout(total=None, sock_connect=_CONNECT_S, sock_read=_SILENCE_S)
    if protocol == "gs" and (options.get("endpoint_url") or os.environ.get("STORAGE_EMULATOR_HOST")):
        # newer versions' default class asks Google for the kind of the bucket, for a minute if it is unreachable
        filesystem_class = importlib.import_module("gcsfs.core").GCSFileSystem
    try:
        # resolve_storage caches storages; fsspec would keep each forever
        given = {"skip_instance_cache": True, **defaults, **filesystem_class._get_kwargs_from_urls(root), **options}
        if protocol == "gs" and _is_raw_token(given.get("token")):
            given["token"] = importlib.import_module("google.oauth2.credentials").Credentials(given["token"])
        filesystem = filesystem_class(**given)
        if protocol == "abfs" and options.get("sas_token") and not any(options.get(name) for name in _PREFERRED_TO_SAS):
            # the SAS was given for this table: it must win over credentials of the environment
            filesystem.connection_string = filesystem.account_key = filesystem.credential = None
            filesystem.do_connect()
        return filesystem
    except Exception as error:  # the packages' errors have no common base
        secrets = secrets_of(options)
        raise StorageError(
            f"{root!r} could not be opened with the options {sorted(options)}: {describe(error, secrets)}.", path=root
        ) from shown_cause(error, secrets)


def _is_raw_token(token: Any) -> bool:
    """Whether the option is the token itself. gcsfs would send it to Google in a URL to check it."""
    return isinstance(token, str) and token not in _TOKEN_METHODS and not os.path.exists(token)


class FsspecStorage:
    """Any fsspec file system, for reading tables.

    It refuses to commit: fsspec's exclusive create checks first and writes
    afterwards, so two writers can both succeed.
    """

    def __init__(self, filesystem: Any, scheme: str, *, root: str = "", secrets: tuple[str, ...] = ()) -> None:
        """``root``: the path that the file system was opened for. ``secrets``: texts that no error may show."""
        self._filesystem = filesystem
        self._scheme = scheme
        self._host = _server_of(root)
        self._secrets = secrets

    @property
    def scheme(self) -> str:
        return self._scheme

    def _canonical(self, path: str) -> str:
        """The path with this file system's scheme.

        Raises: StorageError for a path of another scheme, account or host: this file system would open another file.
        """
        match = _URL.fullmatch(path)
        if match is None:
            if self._scheme == "file":
                return path
            raise outside_store(path, f"{self._scheme}://")
        scheme = match["scheme"].lower()
        if protocol_of(scheme) != protocol_of(self._scheme):
            raise outside_store(path, f"{self._scheme}://")
        host = _server_of(path)
        if host and host not in (self._host, self._account()):
            raise outside_store(path, f"{self._scheme}:// of {self._host or self._account()}")
        return f"{self._scheme}://{match['rest']}"

    def _account(self) -> str:
        return str(getattr(self._filesystem, "account_name", None) or "").lower()

    def _key(self, path: str) -> str:
        return str(self._filesystem._strip_protocol(self._canonical(path)))

    def _translated(
        self, verb: str, path: str, *, directory: bool = False, keep: type[BaseException] | tuple[()] = ()
    ) -> AbstractContextManager[None]:
        return translated(verb, path, self._secrets, directory=directory, keep=keep)

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        key = self._key(directory)
        with self._translated("listed", directory, directory=True):
            # a cached listing would hide new commits
            self._filesystem.invalidate_cache(key)
            entries = self._filesystem.ls(key, detail=True)
        prefix = key.rstrip("/") + "/"
        if len(entries) == 1 and str(entries[0]["name"]).rstrip("/") == key.rstrip("/"):
            raise directory_not_found(directory)  # ls of a file gives the file
        base = directory.rstrip("/") + "/"
        found = []
        for entry in entries:
            name = str(entry["name"])
            name = name[len(prefix) :] if name.startswith(prefix) else name.rsplit("/", 1)[-1]
            if entry.get("type") == "file" and name and name >= start_name:
                found.append((name, entry))
        found.sort(key=lambda pair: pair[0])
        return (self._status(base + name, entry) for name, entry in found)

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        key = self._key(directory)
        with self._translated("listed", directory, directory=True):
            self._filesystem.invalidate_cache(key)
            entries = self._filesystem.ls(key, detail=True)
            # do not cache a million entries
            self._filesystem.invalidate_cache(key)
        prefix = key.rstrip("/") + "/"
        for entry in entries:
            path = str(entry["name"]).rstrip("/")
            kind = entry.get("type")
            name = path[len(prefix) :]
            if path.startswith(prefix) and name and "/" not in name:
                if kind == "directory" and not entry.get("islink"):
                    yield DirectoryEntry(name, "directory", 0, 0)
                elif kind == "file" and not entry.get("islink"):
                    yield DirectoryEntry(name, "file", int(entry.get("size") or 0), modification_time_ms(entry))

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        start = offset or 0
        with self._translated("read", path):
            if length is not None and length <= 0:
                return b""
            end = None if length is None else start + length
            whole = start == 0 and end is None
            data = self._filesystem.cat_file(self._key(path), **({} if whole else {"start": start, "end": end}))
            return bytes(data)

    def parquet_source(self, path: str, tail_bytes: int = TAIL_BYTES, size_bytes: int | None = None) -> Any:  # noqa: ARG002 - it reads exact ranges
        with self._translated("opened", path):
            # pyarrow asks for exact ranges: a read-ahead cache would fetch megabytes more
            return self._filesystem.open(self._key(path), "rb", cache_type="none")

    def exists(self, path: str) -> bool:
        try:
            self.status(path)
        except FileNotFoundInStorageError:
            return False
        return True

    def status(self, path: str) -> FileStatus:
        with self._translated("examined", path):
            key = self._key(path)
            self._filesystem.invalidate_cache(key)
            entry = self._filesystem.info(key)
        if entry.get("type") != "file":
            raise file_not_found(path)
        return self._status(path, entry)

    def require_put_if_absent(self, directory: str) -> None:
        raise not_proven(directory, f"no atomic create has been proven for {self._scheme}://")

    def put_if_absent(self, path: str, data: bytes) -> None:  # noqa: ARG002 - always refused
        self.require_put_if_absent(path)

    def put(self, path: str, data: bytes) -> None:
        with self._translated("written", path):
            self._filesystem.pipe_file(self._key(path), data)

    def open_output(self, path: str) -> BinaryIO:
        with self._translated("created", path):
            return cast(BinaryIO, self._filesystem.open(self._key(path), "wb"))

    def make_durable(self, outputs: Sequence[BinaryIO], *, below: str) -> None:
        """Do nothing: a closed object is durable."""

    def make_all_durable(self, directories: Sequence[str]) -> None:
        """Do nothing: objects are durable."""

    def make_directory(self, directory: str) -> None:
        """Do nothing: an object store has no directories."""

    def delete(self, path: str, *, below: str) -> None:
        parts_below(path, below)
        with contextlib.suppress(FileNotFoundError), self._translated("deleted", path, keep=FileNotFoundError):
            self._filesystem.rm_file(self._key(path))

    def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
        return delete_each(self, paths, below=below)

    def delete_empty_directory(self, path: str, *, below: str) -> bool:
        parts_below(path, below)
        return False

    def _status(self, path: str, entry: Mapping[str, Any]) -> FileStatus:
        return FileStatus(path, int(entry.get("size") or 0), modification_time_ms(entry), generation_of(entry))


def generation_of(entry: Mapping[str, Any]) -> str:
    return str(next((entry[k] for k in ("ETag", "etag", "generation", "ino") if entry.get(k)), ""))


def modification_time_ms(entry: Mapping[str, Any]) -> int:
    """The modification time of an entry in milliseconds; 0 if unknown. Packages differ in the field's name and type."""
    for field in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        value = entry.get(field)
        if value is None:
            continue
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        if isinstance(value, datetime.datetime):
            if value.tzinfo is None:
                value = value.replace(tzinfo=datetime.timezone.utc)
            return (value - _EPOCH) // datetime.timedelta(milliseconds=1)
        return int(value * 1000)
    return 0


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
