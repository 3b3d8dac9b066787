"""A storage that opens only files below certain directories.

A log may name files anywhere in the table's store, like the log of a shallow clone. A reader with more rights than the
table's writers restricts such paths by the storage option ``allowed_roots``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Protocol, TypeVar, cast, runtime_checkable

from delta_pyds.errors import OptionError, StorageError
from delta_pyds.storage.base import Storage

# a storage option, because every process that opens a storage gets those
ALLOWED_ROOTS = "allowed_roots"
_Method = TypeVar("_Method", bound=Callable[..., Any])


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


def _restricted(method: _Method) -> _Method:
    """The method of the other storage, whose first argument must be an allowed path."""

    def checked(self: RestrictedStorage, path: str, *args: Any, **given: Any) -> Any:
        self.require_allowed(path)
        return getattr(self._storage, method.__name__)(path, *args, **given)

    return cast("_Method", checked)


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

    list_from = _restricted(Storage.list_from)
    list_directory = _restricted(Storage.list_directory)
    read = _restricted(Storage.read)
    parquet_source = _restricted(Storage.parquet_source)
    exists = _restricted(Storage.exists)
    status = _restricted(Storage.status)
    require_put_if_absent = _restricted(Storage.require_put_if_absent)
    put_if_absent = _restricted(Storage.put_if_absent)
    put = _restricted(Storage.put)
    open_output = _restricted(Storage.open_output)
    make_directory = _restricted(Storage.make_directory)
    delete = _restricted(Storage.delete)
    delete_empty_directory = _restricted(Storage.delete_empty_directory)

    def make_durable(self, outputs: Sequence[BinaryIO], *, below: str) -> None:
        self.require_allowed(below)
        self._storage.make_durable(outputs, below=below)

    def make_all_durable(self, directories: Sequence[str]) -> None:
        for directory in directories:
            self.require_allowed(directory)
        self._storage.make_all_durable(directories)

    def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
        for path in paths:
            self.require_allowed(path)
        return self._storage.delete_all(paths, below=below)


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
