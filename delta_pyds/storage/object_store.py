"""Stores of objects: listings by pages from a name on, and one request for what one request can tell.

S3, Azure and Google differ in how a request is made and in what an error says; the rest is here.
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

# Answers after which the same request may be understood.
_PASSING = (408, 429, 500, 502, 503, 504)


class Found(NamedTuple):
    """An object or a directory. ``key``: its whole name in the bucket, with no slash at the end.

    A directory with a ``generation`` is an object that stands for one, and what lies in it shows it too.
    """

    key: str
    size_bytes: int = 0
    modification_time_ms: int = 0
    generation: str = ""
    is_directory: bool = False


class End(NamedTuple):
    """The last bytes of an object. ``generation``: of which its other bytes are to be; empty where it is not known."""

    size_bytes: int
    tail: bytes
    generation: str


class Page(NamedTuple):
    """``more``: what the next page is asked for with; None after the last."""

    found: Sequence[Found]
    more: Any = None


def byte_range(offset: int | None, length: int | None) -> str | None:
    """The value of the header ``Range``; None for the whole file."""
    start = offset or 0
    if length is None:
        return f"bytes={start}-" if start else None
    return f"bytes={start}-{start + length - 1}"


def size_of(content_range: str) -> int:
    """The whole file's size, by the header ``Content-Range`` of an answer: ``bytes 0-9/100``."""
    return int(content_range.rpartition("/")[2])


def _overwritten(path: str) -> StorageError:
    return StorageError(
        f"{path!r} was overwritten while it was read, so its bytes would be of two files. Read again; if that fails, "
        "too, something writes to the file again and again, and files of a table are written once.",
        path=path,
    )


def _is_below(path: str, root: str) -> bool:
    try:
        return bool(parts_below(path, root))
    except StorageError:
        return False


class ObjectStorage(ConditionalPutStorage):
    """A store by requests. A subclass makes each of them, and raises whatever its package raises."""

    @abstractmethod
    def _place(self, path: str) -> tuple[str, str]:
        """Bucket and key. Raises: StorageError for a path of another store."""

    @abstractmethod
    def _page(self, bucket: str, prefix: str, start: str, *, more: Any = None, limit: int | None = None) -> Page:
        """What lies right below a prefix, which ends in a slash; names before ``start`` may be there too."""

    @abstractmethod
    def _examined(self, bucket: str, key: str) -> Found:
        """One object. Raises: what has the status 404, or FileNotFoundError."""

    @abstractmethod
    def _end(self, bucket: str, key: str, tail_bytes: int, size_bytes: int | None) -> End:
        """The size of an object, and its last bytes, at most so many. ``size_bytes``: a promise.

        Raises: as ``_examined``.
        """

    @abstractmethod
    def _content(self, bucket: str, key: str, offset: int, length: int | None, generation: str) -> bytes:
        """The bytes of an object from a place on, on the condition that it is this generation, if one is given.

        Raises: as ``_examined``; what has the status 416 where it ends before, and 404 or 412 for another generation.
        """

    _removes_many = True

    @abstractmethod
    def _remove_many(self, bucket: str, keys: Sequence[str]) -> Collection[str]:
        """One request for at most 100 objects. Returns: those that it says are gone. Raises: as any."""

    @abstractmethod
    def _remove(self, bucket: str, key: str) -> None:
        """Raises: as ``_examined``, where nothing is there; it need not."""

    def _lists_in_order(self, bucket: str) -> bool:  # noqa: ARG002 - most do, whatever the bucket
        """Whether pages are ascending, and begin where they are asked to."""
        return True

    @abstractmethod
    def endpoint(self) -> str:
        """The URL of the server that is asked; what is below its host does not count."""

    def _bucket(self, own_path: str) -> str:
        return self._place(own_path)[0]

    def _key(self, path: str) -> str:
        return "/".join(self._place(path))

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
            page = self._asked(directory, bucket, prefix, "")
            if not page.found and page.more is None:
                raise directory_not_found(directory)
            files = list(self._files(directory, bucket, prefix, start_name, page))
            return iter(sorted(files, key=lambda file: file.path))
        first = self._asked(directory, bucket, prefix, start_name)
        if not first.found and first.more is None:
            anything = self._asked(directory, bucket, prefix, "", limit=1)
            if not anything.found and anything.more is None:
                raise directory_not_found(directory)
        return self._files(directory, bucket, prefix, start_name, first)

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        bucket, prefix = self._prefix(directory)
        page = self._asked(directory, bucket, prefix, "")
        if not page.found and page.more is None:
            raise directory_not_found(directory)
        for found in self._all(directory, bucket, prefix, "", page):
            name = found.key[len(prefix) :]
            if name and "/" not in name and not (found.is_directory and found.generation):
                kind: Any = "directory" if found.is_directory else "file"
                yield DirectoryEntry(name, kind, found.size_bytes, found.modification_time_ms)

    def status(self, path: str) -> FileStatus:
        with self._translated("examined", path):
            found = self._examined(*self._place(path))
        if found.is_directory:
            raise file_not_found(path)
        return FileStatus(path, found.size_bytes, found.modification_time_ms, found.generation)

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        return self._read(path, offset or 0, length)

    def _read(self, path: str, offset: int, length: int | None, generation: str = "") -> bytes:
        bucket, key = self._place(path)
        if length is not None and length <= 0:
            return b""
        with self._translated("read", path):
            try:
                return self._content(bucket, key, offset, length, generation)
            except Exception as error:
                status = self._http_status(error)
                if status == 416:
                    return b""  # the range begins at the end of the file, or after it
                if generation and status in (404, 412):
                    # each is what some store says of another generation, and some of no object
                    self._examined(bucket, key)
                    raise _overwritten(path) from shown_cause(error, self._secrets)
                raise

    def parquet_source(self, path: str, tail_bytes: int = TAIL_BYTES, size_bytes: int | None = None) -> ObjectFile:
        with self._translated("opened", path):
            size, tail, generation = self._end(*self._place(path), tail_bytes, size_bytes)
        # it compares by bytes, which a weak one never equals
        generation = "" if generation.startswith("W/") else generation
        return ObjectFile(size, tail, lambda offset, length: self._read(path, offset, length, generation), path)

    def open_output(self, path: str) -> BinaryIO:
        self._place(path)
        return cast(BinaryIO, ObjectOutput(lambda data: self.put(path, data), lambda: self._upload(path)))

    def _upload(self, path: str) -> Upload:
        """Begin an object in parts."""
        return FileUpload(super().open_output(path))

    def delete(self, path: str, *, below: str) -> None:
        parts_below(path, below)
        with contextlib.suppress(FileNotFoundInStorageError), self._translated("deleted", path):
            self._remove(*self._place(path))

    def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
        left = list(paths)
        if len(paths) > 1 and self._removes_many and all(_is_below(path, below) for path in paths):
            places = [self._place(path) for path in paths]
            try:
                # all are below one directory, and so in one bucket
                gone = self._remove_many(places[0][0], [key for _, key in places])
                left = [path for path, (_, key) in zip(paths, places, strict=True) if key not in gone]
                self._removes_many = bool(gone)
            except Exception as error:
                # some that speak like S3 know no such request; and one at a time says what is wrong with which
                status = self._http_status(error)
                self._removes_many = status is None or status in _PASSING
        return delete_each(self, left, below=below)

    def _prefix(self, directory: str) -> tuple[str, str]:
        bucket, key = self._place(directory)
        return bucket, key.rstrip("/") + "/" if key else ""

    def _files(self, directory: str, bucket: str, prefix: str, start_name: str, page: Page) -> Iterator[FileStatus]:
        base = directory.rstrip("/") + "/"
        for found in self._all(directory, bucket, prefix, start_name, page):
            name = found.key[len(prefix) :]
            if name and name >= start_name and not found.is_directory:
                yield FileStatus(base + name, found.size_bytes, found.modification_time_ms, found.generation)

    def _all(self, directory: str, bucket: str, prefix: str, start: str, page: Page) -> Iterator[Found]:
        while True:
            yield from page.found
            if page.more is None:
                return
            page = self._asked(directory, bucket, prefix, start, more=page.more)

    def _asked(self, directory: str, bucket: str, prefix: str, start: str, **request: Any) -> Page:
        with self._translated("listed", directory, directory=True):
            return self._page(bucket, prefix, start, **request)
