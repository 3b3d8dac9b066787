"""What the library asks of a file system.

Protocol: "Delta Table Specification", "Delta Log Entries": names are listed
in order from a given one, and a commit is created only where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

import msgspec

from delta_pyds.errors import FileExistsInStorageError, FileNotFoundInStorageError


class FileStatus(msgspec.Struct, frozen=True):
    """A file as a listing shows it. ``path`` is full, ``modification_time_ms`` counts from the epoch.

    ``generation`` changes when the file is replaced, even by one of the same
    size and time; empty where the store cannot tell.
    """

    path: str
    size_bytes: int
    modification_time_ms: int
    generation: str = ""

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class Storage(Protocol):
    """One file system. Every path is full and literal: nothing is decoded, globbed or made absolute here.

    Errors: FileNotFoundInStorageError, FileExistsInStorageError, and StorageError
    for whatever else fails; each names the path.
    """

    @property
    def scheme(self) -> str:
        """``file`` for the local disk, else the scheme of the paths it takes."""
        ...

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        """The files right in ``directory`` whose names are >= ``start_name``, ascending by code point.

        The caller may stop early, which saves work where the store pages.
        Raises: FileNotFoundInStorageError at the call, not at the first item,
            when there is no such directory. Object stores know no empty directories.
        """
        ...

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        """The file's bytes, or those from ``offset`` on, at most ``length`` of them; short at the end of the file."""
        ...

    def parquet_source(self, path: str) -> Any:
        """What ``pyarrow.parquet`` opens: a local path, else a seekable binary file that the caller closes."""
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

        It is whole once closed; one that was not closed is an orphan that nothing refers to.
        """
        ...

    def delete(self, path: str) -> None:
        """Remove the file; a file that is not there is no error, for object stores cannot tell."""
        ...


def file_not_found(path: str) -> FileNotFoundInStorageError:
    return FileNotFoundInStorageError(f"There is no file at {path!r}.", path=path)


def directory_not_found(path: str) -> FileNotFoundInStorageError:
    return FileNotFoundInStorageError(f"There is no directory at {path!r}.", path=path)


def file_exists(path: str) -> FileExistsInStorageError:
    return FileExistsInStorageError(f"A file exists at {path!r} already; it was not touched.", path=path)
