"""A file system in memory that can fail on demand."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from delta_pyds.errors import StorageError
from delta_pyds.storage.base import (
    DirectoryEntry,
    FileStatus,
    delete_each,
    directory_not_found,
    file_exists,
    file_not_found,
    parts_below,
)


class MemoryStorage:
    """Files in a dictionary, safe for threads, gone with the object.

    Tests inject faults and races by three hooks. ``on_call(operation, path)``
    runs before every operation (named as the methods) and may raise or wait.
    ``after_call`` runs when a changing operation has had its effect: raising
    there is an answer that got lost. ``listed(directory, names)`` gets the
    ascending names of a listing and returns those to show: a stale listing
    hides the newest. ``clock`` gives the modification time of new files in ms.
    """

    def __init__(
        self,
        *,
        on_call: Callable[[str, str], None] | None = None,
        after_call: Callable[[str, str], None] | None = None,
        listed: Callable[[str, list[str]], list[str]] | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self.on_call = on_call
        self.after_call = after_call
        self.listed = listed
        self._clock = clock or (lambda: int(time.time() * 1000))
        self._files: dict[str, tuple[bytes, int]] = {}
        self._lock = threading.Lock()

    @property
    def scheme(self) -> str:
        return "memory"

    def _called(self, operation: str, path: str) -> None:
        if self.on_call is not None:
            self.on_call(operation, path)

    def _done(self, operation: str, path: str) -> None:
        if self.after_call is not None:
            self.after_call(operation, path)

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        self._called("list_from", directory)
        prefix = directory.rstrip("/") + "/"
        with self._lock:
            below = {path: value for path, value in self._files.items() if path.startswith(prefix)}
        if not below:
            raise directory_not_found(directory)
        names = sorted(path[len(prefix) :] for path in below if "/" not in path[len(prefix) :])
        if self.listed is not None:
            names = self.listed(directory, names)
        return (
            FileStatus(prefix + name, len(below[prefix + name][0]), below[prefix + name][1])
            for name in names
            if name >= start_name
        )

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        self._called("list_directory", directory)
        prefix = directory.rstrip("/") + "/"
        with self._lock:
            below = {path[len(prefix) :]: value for path, value in self._files.items() if path.startswith(prefix)}
        if not below:
            raise directory_not_found(directory)
        for name in dict.fromkeys(path.split("/", 1)[0] for path in below if "/" in path):
            yield DirectoryEntry(name, "directory", 0, 0)
        for name, (data, time_ms) in below.items():
            if "/" not in name:
                yield DirectoryEntry(name, "file", len(data), time_ms)

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        self._called("read", path)
        data = self._entry(path)[0]
        start = offset or 0
        return data[start:] if length is None else data[start : start + length]

    def parquet_source(self, path: str, tail_bytes: int = 0, size_bytes: int | None = None) -> io.BytesIO:  # noqa: ARG002 - all of it is here
        return io.BytesIO(self.read(path))

    def exists(self, path: str) -> bool:
        self._called("exists", path)
        with self._lock:
            return path in self._files

    def status(self, path: str) -> FileStatus:
        self._called("status", path)
        data, modification_time_ms = self._entry(path)
        return FileStatus(path, len(data), modification_time_ms)

    def require_put_if_absent(self, directory: str) -> None:
        self._called("require_put_if_absent", directory)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._called("put_if_absent", path)
        with self._lock:
            if path in self._files:
                raise file_exists(path)
            self._files[path] = (bytes(data), self._clock())
        self._done("put_if_absent", path)

    def put(self, path: str, data: bytes, modification_time_ms: int | None = None) -> None:
        """As the protocol says; ``modification_time_ms`` is for tests that arrange a table."""
        self._called("put", path)
        with self._lock:
            self._files[path] = (bytes(data), self._clock() if modification_time_ms is None else modification_time_ms)
        self._done("put", path)

    def open_output(self, path: str) -> BinaryIO:
        self._called("open_output", path)
        return _Output(self, path)

    def make_durable(self, outputs: Sequence[BinaryIO], *, below: str) -> None:  # noqa: ARG002 - all of them do
        self._called("make_durable", below)

    def make_all_durable(self, directories: Sequence[str]) -> None:
        """All of it is there already."""

    def make_directory(self, directory: str) -> None:
        """Memory has no directories."""

    def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
        return delete_each(self, paths, below=below)

    def delete(self, path: str, *, below: str | None = None) -> None:
        """``below``: tests that arrange a table leave it out."""
        if below is not None:
            parts_below(path, below)
        self._called("delete", path)
        with self._lock:
            self._files.pop(path, None)
        self._done("delete", path)

    def delete_empty_directory(self, path: str, *, below: str) -> bool:
        parts_below(path, below)
        return False

    def _entry(self, path: str) -> tuple[bytes, int]:
        with self._lock:
            entry = self._files.get(path)
        if entry is None:
            raise file_not_found(path)
        return entry


class _Output(io.BytesIO):
    """Becomes a file of the storage when it is closed."""

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        super().__init__()
        self._storage, self._path = storage, path

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._storage.put(self._path, data)
