"""The interface of a file system.

A Delta log needs ordered listings from a name, and a commit that is created
only if it does not exist. Protocol: "Delta Table Specification", "Delta Log Entries".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Literal, Protocol

import msgspec

from delta_pyds.errors import FileExistsInStorageError, FileNotFoundInStorageError, NothingWrittenError, StorageError

# The bytes that a Parquet reader first reads from the end: most footers and all short files fit.
TAIL_BYTES = 64 * 1024


class FileStatus(msgspec.Struct, frozen=True):
    """A file in a listing. ``path`` is the full path, ``modification_time_ms`` counts from the epoch.

    ``generation`` changes when the file is replaced, even by one of the same
    size and time; empty if the store has none. ``regular``: False for names that
    cannot be read as a file (a directory, a named pipe, a broken link).
    """

    path: str
    size_bytes: int
    modification_time_ms: int
    generation: str = ""
    regular: bool = True

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class DirectoryEntry(msgspec.Struct, frozen=True):
    """A direct child of a directory. ``kind``: what the name itself is; every symbolic link is ``other``."""

    name: str
    kind: Literal["file", "directory", "other"]
    size_bytes: int
    modification_time_ms: int


class Storage(Protocol):
    """One file system. Every path is full and literal: it is never decoded, globbed or made absolute here.

    A storage opens only files of its own scheme and server: a path from a log
    must not make a reader ask another server.

    Raises: FileNotFoundInStorageError, FileExistsInStorageError; StorageError
        for all other failures and for paths of another store. Each names the path.
    """

    @property
    def scheme(self) -> str:
        """``file`` for the local disk, else the scheme of its paths."""
        ...

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        """The files directly in ``directory`` whose names are >= ``start_name``, ascending by code point.

        A caller that stops early saves requests if the store pages. A disk also lists names that are not regular files:
        to skip one that is named like a commit would silently show an older table.

        Raises: FileNotFoundInStorageError if the directory does not exist, at the call, not at the first item. Object
            stores have no empty directories.
        """
        ...

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        """The direct children of a directory, in any order; for callers that walk a tree without following links.

        Raises: FileNotFoundInStorageError if the directory does not exist, at the first item at the latest.
        """
        ...

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        """Return the file's bytes from ``offset`` on, at most ``length`` of them; fewer at the end of the file."""
        ...

    def parquet_source(self, path: str, tail_bytes: int = TAIL_BYTES, size_bytes: int | None = None) -> Any:
        """Open the file for ``pyarrow.parquet``: seekable, to be closed by the caller.

        Never give ``pyarrow.parquet`` a name: it may take the name for a URI.

        Args:
            path: the file. All bytes of an object are of one generation: an overwritten one is an error.
            tail_bytes: the bytes of an object's end that come with its size, in one request.
            size_bytes: the expected size, which saves some stores a request. The object's own size decides.
        """
        ...

    def exists(self, path: str) -> bool:
        """Whether a file exists at the path."""
        ...

    def status(self, path: str) -> FileStatus: ...

    def require_put_if_absent(self, directory: str) -> None:
        """Check that ``put_if_absent`` is atomic here; called before data is written, not after.

        Raises: StorageError if that is not known.
        """
        ...

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the file atomically: exactly one of several racing callers succeeds, and no reader sees a part of it.

        Raises: FileExistsInStorageError if it exists; the existing file is untouched.
        """
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create or replace the file atomically: readers see all of the old file or all of the new one."""
        ...

    def open_output(self, path: str) -> BinaryIO:
        """Create a file to write data to, with its directories. The caller chooses a unique name.

        The file is complete after ``close`` and durable after ``make_durable``. One that is never closed is an orphan
        that nothing refers to.
        """
        ...

    def make_durable(self, outputs: Sequence[BinaryIO], *, below: str) -> None:
        """Return when the files survive a power cut: their bytes, their names, and the directories from ``below`` on.

        The directories are synced no matter which process made them. ``below`` itself must be durable already: see
        ``make_directory``. The rule for every commit: the process that wrote a file makes it durable before the commit
        that names it is proposed. An object is durable when it is closed.

        Args:
            outputs: closed files of ``open_output``.
            below: the table's root.

        Raises: StorageError with the name of a file that did not reach the disk.
        """
        ...

    def make_all_durable(self, directories: Sequence[str]) -> None:
        """Make everything durable that any process has written to the file systems of these directories.

        For callers that commit existing files, or that delete files because others exist: another engine may have
        written these.

        Raises: StorageError.
        """
        ...

    def make_directory(self, directory: str) -> None:
        """Create a durable directory and those above it, if the store has directories.

        Another process may be creating the same directories.

        Raises: NothingWrittenError.
        """
        ...

    def delete(self, path: str, *, below: str) -> None:
        """Delete a file below a directory. A missing file is not an error, because object stores do not report it.

        The rule for every deletion: ``below`` is the table's root, or the directory that the user gave. ``path`` comes
        from a listing of it, or names a file that this operation has written. It is never a path from a log: a log's
        writer must not decide which files are deleted. On a disk, no link is followed between the two.

        Raises: StorageError, and nothing is deleted, for a path that is not below, or is reached through a symbolic
            link.
        """
        ...

    def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
        """Delete files as ``delete`` does, in as few requests as the store allows.

        Returns: the errors by path, for files that were not deleted.
        """
        ...

    def delete_empty_directory(self, path: str, *, below: str) -> bool:
        """Delete a directory if it is empty; the rule of ``delete`` applies. An object store does nothing.

        Returns: whether it was deleted.
        """
        ...


def delete_each(storage: Storage, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
    """``Storage.delete_all`` with one ``delete`` for each file."""
    failed: dict[str, StorageError] = {}
    for path in paths:
        try:
            storage.delete(path, below=below)
        except StorageError as error:
            failed[path] = error
    return failed


def file_not_found(path: str) -> FileNotFoundInStorageError:
    return FileNotFoundInStorageError(f"There is no file at {path!r}.", path=path)


def directory_not_found(path: str) -> FileNotFoundInStorageError:
    return FileNotFoundInStorageError(f"There is no directory at {path!r}.", path=path)


def file_exists(path: str) -> FileExistsInStorageError:
    return FileExistsInStorageError(f"A file already exists at {path!r}; it was not changed.", path=path)


def parts_below(path: str, root: str) -> list[str]:
    """The path components from a directory down to a file that may be deleted.

    Raises: StorageError for a path that is not below, or has a segment ``.`` or ``..`` or an empty one.
    """
    prefix = root.rstrip("/") + "/"
    parts = path[len(prefix) :].split("/")
    if not path.startswith(prefix) or not {"", ".", ".."}.isdisjoint(parts):
        raise StorageError(f"{path!r} was not deleted: it is not a file below {root!r}.", path=path)
    return parts


def outside_store(path: str, store: str) -> StorageError:
    return StorageError(
        f"{path!r} was not opened: it is outside {store}, where the table is, and a table may not refer to another "
        "store. If the table was cloned from another store, copy its files.",
        path=path,
    )


def not_proven(path: str, reason: str) -> NothingWrittenError:
    return NothingWrittenError(
        f"Nothing can be committed at {path!r}: {reason}, so two writers could overwrite each other. "
        "Tables there can be read only.",
        code="DELTA_OPERATION_NOT_ALLOWED",
        path=path,
    )
