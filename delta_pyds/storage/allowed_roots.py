"""A storage that opens only files below certain directories.

A log may name files anywhere in the table's store, like the log of a shallow clone. A reader with more rights than the
table's writers restricts such paths by the storage option ``allowed_roots``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Protocol, runtime_checkable

from delta_pyds.errors import OptionError, StorageError
from delta_pyds.storage.base import TAIL_BYTES, DirectoryEntry, FileStatus, Storage

# a storage option, because every process that opens a storage gets those
ALLOWED_ROOTS = "allowed_roots"


def allowed_roots_of(options: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The directories that the storage options allow besides the table's own; None without a restriction.

    Raises: OptionError for a value that is not a list of texts.
    """
    given = options.get(ALLOWED_ROOTS)
    if given is None:
        return None
    roots = [given] if isinstance(given, str) else given
    if not isinstance(roots, list | tuple) or not all(isinstance(root, str) and root for root in roots):
        raise OptionError(
            f"the storage option {ALLOWED_ROOTS} must be a list of directories, such as "
            '["/data/shared", "s3://bucket/shared"]; an empty list allows only files of the table.',
            option=ALLOWED_ROOTS,
        )
    return tuple(roots)


class RestrictedStorage:
    """Another storage, restricted to paths below ``roots``, which are absolute and canonical.

    Only names are checked: a symbolic link below a root is followed, because creating it takes write access there.
    """

    def __init__(self, storage: Storage, roots: tuple[str, ...], normalize: Callable[[str], str]) -> None:
        self._storage = storage
        self._normalize = normalize
        self._prefixes = tuple(dict.fromkeys(root.rstrip("/") + "/" for root in roots))

    @property
    def scheme(self) -> str:
        return self._storage.scheme

    def require_allowed(self, path: str) -> None:
        """Raises: StorageError for a path that is not below one of the roots."""
        if path.startswith(self._prefixes[0]) and "/." not in path:
            return  # a shortcut for most files of the table
        if not f"{self._normalize(path)}/".startswith(self._prefixes):
            raise StorageError(
                f"{path!r} was not opened: it is not below the table or a directory that {ALLOWED_ROOTS} allows "
                f"({', '.join(self._prefixes[1:]) or 'none'}). If you trust the table, add the file's "
                f"directory to {ALLOWED_ROOTS}.",
                path=path,
            )

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        self.require_allowed(directory)
        return self._storage.list_from(directory, start_name)

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        self.require_allowed(directory)
        return self._storage.list_directory(directory)

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        self.require_allowed(path)
        return self._storage.read(path, offset, length)

    def parquet_source(self, path: str, tail_bytes: int = TAIL_BYTES, size_bytes: int | None = None) -> Any:
        self.require_allowed(path)
        return self._storage.parquet_source(path, tail_bytes, size_bytes)

    def exists(self, path: str) -> bool:
        self.require_allowed(path)
        return self._storage.exists(path)

    def status(self, path: str) -> FileStatus:
        self.require_allowed(path)
        return self._storage.status(path)

    def require_put_if_absent(self, directory: str) -> None:
        self.require_allowed(directory)
        self._storage.require_put_if_absent(directory)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.require_allowed(path)
        self._storage.put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        self.require_allowed(path)
        self._storage.put(path, data)

    def open_output(self, path: str) -> BinaryIO:
        self.require_allowed(path)
        return self._storage.open_output(path)

    def make_durable(self, outputs: Sequence[BinaryIO], *, below: str) -> None:
        self.require_allowed(below)
        self._storage.make_durable(outputs, below=below)

    def make_all_durable(self, directories: Sequence[str]) -> None:
        for directory in directories:
            self.require_allowed(directory)
        self._storage.make_all_durable(directories)

    def make_directory(self, directory: str) -> None:
        self.require_allowed(directory)
        self._storage.make_directory(directory)

    def delete(self, path: str, *, below: str) -> None:
        self.require_allowed(path)
        self._storage.delete(path, below=below)

    def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
        for path in paths:
            self.require_allowed(path)
        return self._storage.delete_all(paths, below=below)

    def delete_empty_directory(self, path: str, *, below: str) -> bool:
        self.require_allowed(path)
        return self._storage.delete_empty_directory(path, below=below)


@runtime_checkable
class Restricted(Protocol):
    """A storage that opens only some paths, or wraps one that does."""

    def require_allowed(self, path: str) -> None: ...


def require_all_allowed(storage: Storage, paths: Iterable[str]) -> None:
    """Check paths that a caller opens without the storage.

    Raises: StorageError for a path that the storage would not open.
    """
    if isinstance(storage, Restricted):
        for path in paths:
            storage.require_allowed(path)
