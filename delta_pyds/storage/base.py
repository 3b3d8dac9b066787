"""What the library asks of a file system.

Protocol: "Delta Table Specification", "Delta Log Entries": names are listed
in order from a given one, and a commit is created only where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Literal, Protocol

import msgspec

from delta_pyds.errors import FileExistsInStorageError, FileNotFoundInStorageError, NothingWrittenError, StorageError

# Readers of Parquet begin with so much of the end, which holds most footers, and short files whole.
TAIL_BYTES = 64 * 1024


class FileStatus(msgspec.Struct, frozen=True):
    """A file as a listing shows it. ``path`` is full, ``modification_time_ms`` counts from the epoch.

    ``generation`` changes when the file is replaced, even by one of the same
    size and time; empty where the store cannot tell. ``regular``: false for what has a name and is no file of bytes
    (a directory, a named pipe, a link to nowhere): nobody can read it.
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
    """A name right in a directory. ``kind``: of the name itself; a symbolic link is ``other``, wherever it leads."""

    name: str
    kind: Literal["file", "directory", "other"]
    size_bytes: int
    modification_time_ms: int


class Storage(Protocol):
    """One file system. Every path is full and literal: nothing is decoded, globbed or made absolute here.

    It opens files of its own scheme and place only: a path may come out of a
    log, and must not make a reader ask another server.

    Errors: FileNotFoundInStorageError, FileExistsInStorageError, and StorageError
    for whatever else fails, a path of another store too; each names the path.
    """

    @property
    def scheme(self) -> str:
        """``file`` for the local disk, else the scheme of the paths it takes."""
        ...

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        """The files right in ``directory`` whose names are >= ``start_name``, ascending by code point.

        The caller may stop early, which saves work where the store pages. A disk shows names that are no regular files
        too: to pass over one in the place of a commit would show an older table in silence.
        Raises: FileNotFoundInStorageError at the call, not at the first item,
            when there is no such directory. Object stores know no empty directories.
        """
        ...

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        """What is right in a directory, in no order: for who walks a tree, and must not leave it through a link.

        Raises: FileNotFoundInStorageError when there is no such directory, at the first item at the latest.
        """
        ...

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        """The file's bytes, or those from ``offset`` on, at most ``length`` of them; short at the end of the file."""
        ...

    def parquet_source(self, path: str, tail_bytes: int = TAIL_BYTES, size_bytes: int | None = None) -> Any:
        """The file for ``pyarrow.parquet``: open, seekable, to be closed by the caller. Never a name, which it would
        take for a URI where it can.

        Where bytes come by requests, ``tail_bytes`` of the end come with the size, and all bytes are of one object:
        reading what has been overwritten meanwhile is an error. ``size_bytes``: a promise, which spares some stores a
        look. What the object has is what counts.
        """
        ...

    def exists(self, path: str) -> bool:
        """True if there is a file at the path."""
        ...

    def status(self, path: str) -> FileStatus: ...

    def require_put_if_absent(self, directory: str) -> None:
        """Ask before a write begins, and not when its data has been written: is put_if_absent kept here?

        Raises: StorageError if it is not known to be.
        """
        ...

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the file whole, or fail: of any number of racing callers one succeeds, and no reader sees a part.

        Raises: FileExistsInStorageError, and then the existing file is untouched.
        """
        ...

    def put(self, path: str, data: bytes) -> None:
        """Create the file or replace it; readers see the old one or the new one, whole."""
        ...

    def open_output(self, path: str) -> BinaryIO:
        """A new file to write data to, directories included, where no file is: the caller chose a unique name.

        It is whole once closed, and lasts once ``make_durable`` has returned; one that was not closed is an orphan that
        nothing refers to.
        """
        ...

    def make_durable(self, outputs: Sequence[BinaryIO], *, below: str) -> None:
        """Return when no power cut takes what was written any more: bytes and names, and the directories that lead to
        them from ``below``, whoever made those. ``below`` itself has to last: see ``make_directory``.

        The rule for all that commits: what a commit names has been made durable, by the process that wrote it, before
        the commit is proposed. ``outputs``: what ``open_output`` gave, closed. An object lasts once it is closed.
        Raises: StorageError naming a file that did not get to the disk.
        """
        ...

    def make_all_durable(self, directories: Sequence[str]) -> None:
        """The same for all that anybody has written to the file systems of these directories: for who deletes files
        because of others that another engine may have written, or names files that were there before.

        Raises: StorageError.
        """
        ...

    def make_directory(self, directory: str) -> None:
        """Make a directory that lasts, and those above it, where the store has any; whoever is making them, too.

        Raises: NothingWrittenError.
        """
        ...

    def delete(self, path: str, *, below: str) -> None:
        """Remove a file below a directory; a file that is not there is no error, for object stores cannot tell.

        The rule for all that deletes: ``below`` is the table's root (or the
        directory that the user gave), and ``path`` is what a listing of it found,
        or the name of a file that this very operation has made up and written.
        It is never a path that was read from a log: whoever writes logs must
        not choose what goes. On a disk, no link is followed between the two.
        Raises: StorageError, and nothing is deleted, for a path that is not below, or beyond a symbolic link.
        """
        ...

    def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
        """Remove files as ``delete`` does, in as few requests as the store can.

        Returns: why some were not, by path.
        """
        ...

    def delete_empty_directory(self, path: str, *, below: str) -> bool:
        """Remove a directory that holds nothing; whether it was. The rules of ``delete`` hold.

        An object store has no directories: there it does nothing.
        """
        ...


def delete_each(storage: Storage, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
    """``Storage.delete_all`` of a store that removes one file at a time."""
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
    return FileExistsInStorageError(f"A file exists at {path!r} already; it was not touched.", path=path)


def parts_below(path: str, root: str) -> list[str]:
    """The path components from a directory down to a file that may be deleted.

    Raises: StorageError for a path that is not below, or not plainly so.
    """
    prefix = root.rstrip("/") + "/"
    parts = path[len(prefix) :].split("/")
    if not path.startswith(prefix) or not {"", ".", ".."}.isdisjoint(parts):
        raise StorageError(f"{path!r} was not deleted: it is not a file below {root!r}.", path=path)
    return parts


def of_another_store(path: str, store: str) -> StorageError:
    return StorageError(
        f"{path!r} was not opened: it does not lie in {store}, where the table is, and a table leads to no other "
        "store. If it was cloned from another one, copy its files.",
        path=path,
    )


def not_proven(path: str, reason: str) -> NothingWrittenError:
    return NothingWrittenError(
        f"Nothing can be committed at {path!r}: {reason}, so two writers could overwrite each other. "
        "Tables there can be read only.",
        code="DELTA_OPERATION_NOT_ALLOWED",
        path=path,
    )
