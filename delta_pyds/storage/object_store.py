"""Object stores: paged listings from a name, and as few requests as possible.

S3, Azure and Google differ in how they make a request and report an error; everything else is here.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, cast

from delta_pyds.errors import DeltaError, FileNotFoundInStorageError, StorageError
from delta_pyds.storage.base import (
    TAIL_BYTES,
    DirectoryEntry,
    FileStatus,
    delete_each,
    directory_not_found,
    file_not_found,
    parts_below,
)
from delta_pyds.storage.conditional_put import ConditionalPutStorage
from delta_pyds.storage.failures import shown_cause
from delta_pyds.storage.object_file import ObjectFile
from delta_pyds.storage.object_output import FileUpload, ObjectOutput, Upload

# Statuses after which a repeated batch deletion may succeed.
_RETRIABLE = (408, 429, 500, 502, 503, 504)


class ObjectInfo(NamedTuple):
    """An object or a directory. ``key``: its full name in the bucket, without a trailing slash.

    A directory with a ``generation`` is a marker object; the directory itself is listed through its content.
    """

    key: str
    size_bytes: int = 0
    modification_time_ms: int = 0
    generation: str = ""
    is_directory: bool = False


class ObjectTail(NamedTuple):
    """The size and last bytes of an object. ``generation``: required of all later reads; empty if unknown."""

    size_bytes: int
    tail: bytes
    generation: str


class Page(NamedTuple):
    """One page of a listing. ``more``: the token for the next page; None after the last."""

    entries: Sequence[ObjectInfo]
    more: Any = None


def byte_range(offset: int | None, length: int | None) -> str | None:
    """The value of the header ``Range``; None for the whole object."""
    start = offset or 0
    if length is None:
        return f"bytes={start}-" if start else None
    return f"bytes={start}-{start + length - 1}"


def size_of(content_range: str) -> int:
    """The object's size from the header ``Content-Range`` of an answer: ``bytes 0-9/100``."""
    return int(content_range.rpartition("/")[2])


def _overwritten(path: str) -> StorageError:
    return StorageError(
        f"{path!r} was overwritten while it was read, so its bytes would be a mix of two files. Read again. If that "
        "fails too, a program keeps overwriting the file, although files of a table are written only once.",
        path=path,
    )


def _is_below(path: str, root: str) -> bool:
    try:
        return bool(parts_below(path, root))
    except StorageError:
        return False


class ObjectStorage(ConditionalPutStorage):
    """An object store. A subclass makes the requests, and raises the errors of its package."""

    @abstractmethod
    def _bucket_and_key(self, path: str) -> tuple[str, str]:
        """The bucket and key of a path. Raises: StorageError for a path of another store."""

    @abstractmethod
    def _page(self, bucket: str, prefix: str, start: str, *, more: Any = None, limit: int | None = None) -> Page:
        """One page of the direct children of a prefix, which ends in a slash.

        It may contain names before ``start``.
        """

    @abstractmethod
    def _head(self, bucket: str, key: str) -> ObjectInfo:
        """The attributes of an object. Raises: an error with status 404, or FileNotFoundError."""

    @abstractmethod
    def _fetch_tail(self, bucket: str, key: str, tail_bytes: int, size_bytes: int | None) -> ObjectTail:
        """The size of an object and at most ``tail_bytes`` of its end. ``size_bytes``: the expected size.

        Raises: as ``_head``.
        """

    @abstractmethod
    def _fetch(self, bucket: str, key: str, offset: int, length: int | None, generation: str) -> bytes:
        """The bytes of an object from ``offset`` on; of this generation only, if one is given.

        Raises: as ``_head``; an error with status 416 for an offset after the end, 404 or 412 for another generation.
        """

    _batch_deletes = True

    @abstractmethod
    def _delete_batch(self, bucket: str, keys: Sequence[str]) -> Collection[str]:
        """Delete at most 100 objects in one request. Returns: the keys that no longer exist."""

    @abstractmethod
    def _delete_object(self, bucket: str, key: str) -> None:
        """Delete an object. For a missing one it may raise as ``_head`` does."""

    def _lists_in_order(self, bucket: str) -> bool:  # noqa: ARG002 - depends on the bucket in some stores only
        """Whether listings are ascending and honour the start name."""
        return True

    @abstractmethod
    def endpoint(self) -> str:
        """The URL of the server; only its scheme, host and port are relevant."""

    def _bucket(self, canonical_path: str) -> str:
        return self._bucket_and_key(canonical_path)[0]

    def _key(self, path: str) -> str:
        return "/".join(self._bucket_and_key(path))

    @contextlib.contextmanager
    def _translated(
        self, verb: str, path: str, *, directory: bool = False, keep: type[BaseException] | tuple[()] = ()
    ) -> Iterator[None]:
        with super()._translated(verb, path, directory=directory, keep=keep):
            try:
                yield
            except (DeltaError, FileNotFoundError):
                raise
            except Exception as error:
                if self._http_status(error) == 404:
                    raise FileNotFoundError(path) from error
                raise

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        bucket, prefix = self._prefix(directory)
        if not self._lists_in_order(bucket):
            page = self._first_page(directory, bucket, prefix)
            files = list(self._files(directory, bucket, prefix, start_name, page))
            return iter(sorted(files, key=lambda file: file.path))
        first = self._request_page(directory, bucket, prefix, start_name)
        if not first.entries and first.more is None:
            self._first_page(directory, bucket, prefix, limit=1)
        return self._files(directory, bucket, prefix, start_name, first)

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        bucket, prefix = self._prefix(directory)
        page = self._first_page(directory, bucket, prefix)
        for found in self._all(directory, bucket, prefix, "", page):
            name = found.key[len(prefix) :]
            if name and "/" not in name and not (found.is_directory and found.generation):
                kind: Any = "directory" if found.is_directory else "file"
                yield DirectoryEntry(name, kind, found.size_bytes, found.modification_time_ms)

    def status(self, path: str) -> FileStatus:
        with self._translated("examined", path):
            found = self._head(*self._bucket_and_key(path))
        if found.is_directory:
            raise file_not_found(path)
        return FileStatus(path, found.size_bytes, found.modification_time_ms, found.generation)

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        return self._read(path, offset or 0, length)

    def _read(self, path: str, offset: int, length: int | None, generation: str = "") -> bytes:
        bucket, key = self._bucket_and_key(path)
        if length is not None and length <= 0:
            return b""
        with self._translated("read", path):
            try:
                return self._fetch(bucket, key, offset, length, generation)
            except Exception as error:
                status = self._http_status(error)
                if status == 416:
                    return b""  # the range begins at or after the end of the object
                if generation and status in (404, 412):
                    # stores use either status for another generation, and some for a missing object
                    self._head(bucket, key)
                    raise _overwritten(path) from shown_cause(error, self._secrets)
                raise

    def parquet_source(self, path: str, tail_bytes: int = TAIL_BYTES, size_bytes: int | None = None) -> ObjectFile:
        with self._translated("opened", path):
            size, tail, generation = self._fetch_tail(*self._bucket_and_key(path), tail_bytes, size_bytes)
        # a condition on a weak ETag never holds
        generation = "" if generation.startswith("W/") else generation
        return ObjectFile(size, tail, lambda offset, length: self._read(path, offset, length, generation), path)

    def open_output(self, path: str) -> BinaryIO:
        self._bucket_and_key(path)
        return cast(BinaryIO, ObjectOutput(lambda data: self.put(path, data), lambda: self._upload(path)))

    def _upload(self, path: str) -> Upload:
        """Start an upload in parts."""
        return FileUpload(super().open_output(path))

    def delete(self, path: str, *, below: str) -> None:
        parts_below(path, below)
        with contextlib.suppress(FileNotFoundInStorageError), self._translated("deleted", path):
            self._delete_object(*self._bucket_and_key(path))

    def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
        left = list(paths)
        if len(paths) > 1 and self._batch_deletes and all(_is_below(path, below) for path in paths):
            locations = [self._bucket_and_key(path) for path in paths]
            try:
                # all paths are below one directory, so in one bucket
                gone = self._delete_batch(locations[0][0], [key for _, key in locations])
                left = [path for path, (_, key) in zip(paths, locations, strict=True) if key not in gone]
                self._batch_deletes = bool(gone)
            except Exception as error:
                # some S3-compatible stores lack batches; single requests give each path its own error
                status = self._http_status(error)
                self._batch_deletes = status is None or status in _RETRIABLE
        return delete_each(self, left, below=below)

    def _prefix(self, directory: str) -> tuple[str, str]:
        bucket, key = self._bucket_and_key(directory)
        return bucket, key.rstrip("/") + "/" if key else ""

    def _files(self, directory: str, bucket: str, prefix: str, start_name: str, page: Page) -> Iterator[FileStatus]:
        base = directory.rstrip("/") + "/"
        for found in self._all(directory, bucket, prefix, start_name, page):
            name = found.key[len(prefix) :]
            if name and name >= start_name and not found.is_directory:
                yield FileStatus(base + name, found.size_bytes, found.modification_time_ms, found.generation)

    def _all(self, directory: str, bucket: str, prefix: str, start: str, page: Page) -> Iterator[ObjectInfo]:
        while True:
            yield from page.entries
            if page.more is None:
                return
            page = self._request_page(directory, bucket, prefix, start, more=page.more)

    def _first_page(self, directory: str, bucket: str, prefix: str, **request: Any) -> Page:
        """Raises: FileNotFoundInStorageError if the directory has no entry."""
        page = self._request_page(directory, bucket, prefix, "", **request)
        if not page.entries and page.more is None:
            raise directory_not_found(directory)
        return page

    def _request_page(self, directory: str, bucket: str, prefix: str, start: str, **request: Any) -> Page:
        with self._translated("listed", directory, directory=True):
            return self._page(bucket, prefix, start, **request)
