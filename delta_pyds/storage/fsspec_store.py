"""Object stores and everything else that fsspec knows.

fsspec and its packages are imported when a path first needs them.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import random
import re
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, cast

from delta_pyds.errors import DeltaError, FileExistsInStorageError, NothingWrittenError, StorageError
from delta_pyds.redaction import secrets_of
from delta_pyds.storage.base import (
    FileStatus,
    directory_not_found,
    file_exists,
    file_not_found,
    of_another_store,
    parts_below,
)
from delta_pyds.storage.failures import say, shown_cause, translated

# scheme of a path -> the name that fsspec knows it by
_PROTOCOLS = {
    "s3": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfs",
    "az": "abfs",
    "memory": "memory",
}
_EXTRAS = {"s3": "s3", "gs": "gcs", "abfs": "azure"}
KNOWN_SCHEMES = ("file", *_PROTOCOLS)
_URL = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):/+(?P<rest>.*)", re.DOTALL)
# where the name behind the scheme is a bucket of the one store
_OF_BUCKETS = ("s3", "gs", "memory", "file")


def _protocol_of(scheme: str) -> str:
    return "s3" if scheme in ("s3a", "s3n") else _PROTOCOLS.get(scheme, scheme)


def _host_of(path: str) -> str:
    """What decides which server a path is on: the account in Azure's paths, else the host; empty where neither does."""
    match = _URL.fullmatch(path)
    scheme = match["scheme"].lower() if match else "file"
    protocol = _protocol_of(scheme)
    if match is None or protocol in _OF_BUCKETS:
        return ""
    authority = match["rest"].split("/", 1)[0].lower()
    if protocol != "abfs":
        return authority
    # container@account.dfs.core.windows.net; a container alone is one of the account at hand
    _, at, host = authority.rpartition("@")
    return host.split(".", 1)[0] if at else ""


def open_fsspec(scheme: str, root: str, options: Mapping[str, Any]) -> FsspecStorage:
    """The storage of a scheme; see open_filesystem."""
    filesystem = open_filesystem(scheme, root, options)
    kind = S3Storage if _PROTOCOLS.get(scheme) == "s3" else FsspecStorage
    return kind(filesystem, scheme, root=root, secrets=secrets_of(options))


def open_filesystem(scheme: str, root: str, options: Mapping[str, Any]) -> Any:
    """The fsspec file system for a scheme; ``root`` may say the account (``abfss://container@account...``).

    Raises: StorageError for a scheme that nobody knows, a package that is not
        installed, or options that the package refuses.
    """
    fsspec = importlib.import_module("fsspec")
    protocol = _PROTOCOLS.get(scheme, scheme)
    try:
        filesystem_class = fsspec.get_filesystem_class(protocol)
    except ValueError:
        raise StorageError(
            f"The scheme {scheme!r} of {root!r} is not known. Known are: {', '.join(KNOWN_SCHEMES)}, "
            "and every other one that fsspec has.",
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
    try:
        return filesystem_class(**{**filesystem_class._get_kwargs_from_urls(root), **options})
    except Exception as error:  # each package has errors of its own
        secrets = secrets_of(options)
        raise StorageError(
            f"{root!r} could not be opened with the options {sorted(options)}: {say(error, secrets)}.", path=root
        ) from shown_cause(error, secrets)


class FsspecStorage:
    """Any fsspec file system; for tables, for reading.

    It refuses to commit: fsspec's exclusive create looks first and writes
    then, which two writers can both survive, so nothing here is a proven
    put-if-absent.
    """

    def __init__(self, filesystem: Any, scheme: str, *, root: str = "", secrets: tuple[str, ...] = ()) -> None:
        """``root``: a path of the place that the file system was opened for. ``secrets``: not to be told."""
        self._filesystem = filesystem
        self._scheme = scheme
        self._host = _host_of(root)
        self._secrets = secrets

    @property
    def scheme(self) -> str:
        return self._scheme

    def _own(self, path: str) -> str:
        """The path as this file system spells it.

        Raises: StorageError for a path of another scheme or of another account or host: this file system would open
            another file in its place.
        """
        match = _URL.fullmatch(path)
        if match is None:
            if self._scheme == "file":
                return path
            raise of_another_store(path, f"{self._scheme}://")
        scheme = match["scheme"].lower()
        if _protocol_of(scheme) != _protocol_of(self._scheme):
            raise of_another_store(path, f"{self._scheme}://")
        host = _host_of(path)
        if host and host not in (self._host, self._account()):
            raise of_another_store(path, f"{self._scheme}:// of {self._host or self._account()}")
        return f"{self._scheme}://{match['rest']}"

    def _account(self) -> str:
        return str(getattr(self._filesystem, "account_name", None) or "").lower()

    def _key(self, path: str) -> str:
        return str(self._filesystem._strip_protocol(self._own(path)))

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

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        start = offset or 0
        with self._translated("read", path):
            if length is not None and length <= 0:
                return b""
            end = None if length is None else start + length
            whole = start == 0 and end is None
            data = self._filesystem.cat_file(self._key(path), **({} if whole else {"start": start, "end": end}))
            return bytes(data)

    def parquet_source(self, path: str) -> Any:
        with self._translated("opened", path):
            # pyarrow asks for exact ranges: a read-ahead cache would fetch megabytes beside them
            return self._filesystem.open(self._key(path), "rb", cache_type="none")

    def exists(self, path: str) -> bool:
        try:
            self.status(path)
        except DeltaError as error:
            if error.code == "DELTA_FILE_NOT_FOUND_DETAILED":
                return False
            raise
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
        raise _not_proven(directory, f"no atomic create has been proven for {self._scheme}://")

    def put_if_absent(self, path: str, data: bytes) -> None:  # noqa: ARG002 - refused, whatever it is
        self.require_put_if_absent(path)

    def put(self, path: str, data: bytes) -> None:
        with self._translated("written", path):
            self._filesystem.pipe_file(self._key(path), data)

    def open_output(self, path: str) -> BinaryIO:
        with self._translated("created", path):
            return cast(BinaryIO, self._filesystem.open(self._key(path), "wb"))

    def delete(self, path: str, *, below: str) -> None:
        parts_below(path, below)
        with contextlib.suppress(FileNotFoundError), self._translated("deleted", path, keep=FileNotFoundError):
            self._filesystem.rm_file(self._key(path))

    def _status(self, path: str, entry: Mapping[str, Any]) -> FileStatus:
        return FileStatus(path, int(entry.get("size") or 0), _modification_time_ms(entry), _generation(entry))


def _generation(entry: Mapping[str, Any]) -> str:
    return str(next((entry[k] for k in ("ETag", "etag", "generation", "ino") if entry.get(k)), ""))


def _not_proven(path: str, reason: str) -> NothingWrittenError:
    return NothingWrittenError(
        f"Nothing can be committed at {path!r}: {reason}, so two writers could overwrite each other. "
        "Tables there can be read only.",
        code="DELTA_OPERATION_NOT_ALLOWED",
        path=path,
    )


# Two conditional puts of one key at a time: S3 asks to try again.
_CONFLICT_ATTEMPTS = 6
# Answers of a server that says that it did nothing and would not do it later either.
_REFUSALS = range(400, 500)
_NOT_REFUSALS = (408, 409, 429)


class S3Storage(FsspecStorage):
    """S3 by s3fs: lists from a name on instead of the whole directory, and creates by a conditional put.

    Not every store that speaks S3 heeds the condition, and old clients drop it
    without a word. So a bucket must prove it, once, before the first create.
    """

    def __init__(self, filesystem: Any, scheme: str, *, root: str = "", secrets: tuple[str, ...] = ()) -> None:
        super().__init__(filesystem, scheme, root=root, secrets=secrets)
        self._proven: set[str] = set()
        self._proving = threading.Lock()

    def require_put_if_absent(self, directory: str) -> None:
        bucket, _, _ = self._filesystem.split_path(self._own(directory))
        with self._proving:
            if bucket not in self._proven:
                self._prove(directory)
                self._proven.add(bucket)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.require_put_if_absent(path.rpartition("/")[0])
        self._create(path, data)

    def _prove(self, directory: str) -> None:
        """Create a file twice.

        Raises: NothingWrittenError if the second time succeeds too.
        """
        # hidden and without a version, so that no reader takes it for a file of the table or its log
        probe = f"{directory.rstrip('/')}/.{uuid.uuid4().hex}.tmp"
        try:
            self._create(probe, b"1")
            try:
                self._create(probe, b"2")
            except FileExistsInStorageError:
                return
            raise _not_proven(directory, "the store, or the installed version of botocore, ignores If-None-Match")
        finally:
            with contextlib.suppress(StorageError):
                self.delete(probe, below=directory)

    def _create(self, path: str, data: bytes) -> None:
        bucket, key, _ = self._filesystem.split_path(self._own(path))
        for attempt in range(_CONFLICT_ATTEMPTS):
            try:
                self._filesystem.call_s3(
                    "put_object", Bucket=bucket, Key=key, Body=data, IfNoneMatch="*", **self._filesystem.req_kw
                )
            except Exception as error:  # botocore's, Python's and aiohttp's errors have no common base
                status = _http_status(error)
                if status == 409 and attempt < _CONFLICT_ATTEMPTS - 1:
                    time.sleep(0.05 * 2**attempt * (0.5 + random.random()))
                    continue
                if status == 412:
                    raise file_exists(path) from shown_cause(error, self._secrets)
                refused = status in _REFUSALS and status not in _NOT_REFUSALS
                kind = NothingWrittenError if refused else StorageError
                raise kind(f"{path!r} could not be created: {say(error, self._secrets)}.", path=path) from shown_cause(
                    error, self._secrets
                )
            else:
                self._filesystem.invalidate_cache(self._key(path))
                return

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        bucket, key, _ = self._filesystem.split_path(self._own(directory))
        if not key or bucket.endswith("--x-s3"):
            return super().list_from(directory, start_name)  # directory buckets list in no order
        prefix = key.rstrip("/") + "/"
        # StartAfter leaves its own name out: start a little before it
        first = self._page(directory, bucket, prefix, StartAfter=prefix + start_name[:-1])
        nothing = not first.get("Contents") and not first.get("CommonPrefixes")
        if nothing and not self._page(directory, bucket, prefix, MaxKeys=1).get("KeyCount"):
            raise directory_not_found(directory)
        return self._pages(directory, bucket, prefix, start_name, first)

    def _pages(
        self, directory: str, bucket: str, prefix: str, start_name: str, page: Mapping[str, Any]
    ) -> Iterator[FileStatus]:
        base = directory.rstrip("/") + "/"
        while True:
            for entry in page.get("Contents", ()):
                name = str(entry["Key"])[len(prefix) :]
                if name and name >= start_name:
                    yield FileStatus(base + name, int(entry["Size"]), _modification_time_ms(entry), _generation(entry))
            if not page.get("IsTruncated"):
                return
            page = self._page(directory, bucket, prefix, ContinuationToken=page["NextContinuationToken"])

    def _page(self, directory: str, bucket: str, prefix: str, **request: Any) -> Mapping[str, Any]:
        with self._translated("listed", directory, directory=True):
            page: Mapping[str, Any] = self._filesystem.call_s3(
                "list_objects_v2",
                Bucket=bucket,
                Prefix=prefix,
                Delimiter="/",
                **self._filesystem.req_kw,
                **request,
            )
        return page


def _http_status(error: BaseException | None) -> int | None:
    """The status that botocore keeps in an error, or in its cause where s3fs translated it."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping):
            return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
        error = error.__cause__
    return None


def _modification_time_ms(entry: Mapping[str, Any]) -> int:
    """Backends agree neither on the field's name nor on its type."""
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
