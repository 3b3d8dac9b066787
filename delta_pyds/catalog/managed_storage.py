"""The files of a catalog-managed table, with ``_delta_log`` according to the catalog.

Invariants: a version has one commit. If the catalog stores it, that commit is used; a log file of the same name is
ignored. A checkpoint is used only if the log contains its version as ratified (see ``ratified_listing``).
Nothing after the latest ratified version is listed or read. The catalog is asked before the log is listed: the listing
then has the commits that the catalog no longer stores. A commit cannot be put here, only proposed to the catalog.
All readers of the log through this storage therefore follow the catalog without special rules for such tables:
segments, history, time travel, change feeds, streams, clean-up.

Protocol: "Reading Catalog-managed Tables", "Reader Requirements for Catalog-managed tables".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar, cast

from delta_pyds.catalog.answers import reserved_credentials
from delta_pyds.catalog.commit_comparison import Comparison, compare_commits
from delta_pyds.catalog.interface import (
    Catalog,
    ManagedTable,
    StorageCredentials,
    TableReservation,
    UnpublishedCommit,
)
from delta_pyds.catalog.managed import ManagedStorage
from delta_pyds.catalog.ratified_listing import RatifiedListing, first_stored
from delta_pyds.catalog.staging import clean_staged, staged_path
from delta_pyds.catalog.table_state import ask, check_same, newer_of
from delta_pyds.errors import (
    CorruptLogError,
    FileNotFoundInStorageError,
    NothingWrittenError,
    TableNotFoundError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.log.listing import LogFile
from delta_pyds.protocol.paths import (
    LogFileKind,
    commit_path,
    log_directory,
    parse_log_name,
)
from delta_pyds.storage.allowed_roots import require_all_allowed
from delta_pyds.storage.base import FileStatus, Storage, directory_not_found, file_not_found

_RENEWED_BEFORE_MS = 120_000
_Method = TypeVar("_Method", bound=Callable[..., Any])


def _passed_on(method: _Method) -> _Method:
    """The same method of the store."""

    def passed(self: CatalogStorage, *args: Any, **given: Any) -> Any:
        return getattr(self.store, method.__name__)(*args, **given)

    return cast("_Method", passed)


class CatalogStorage(ManagedStorage):
    """A storage for one table. ``reservation``: for a table that is being created and is not visible yet.

    ``open_store``: opens the table's file system with credentials from the catalog. ``connect``: returns a client of
    the same catalog after a fork; by default the forked process uses the same client.
    """

    def __init__(
        self,
        catalog: Catalog,
        table_name: str,
        table_root: str,
        open_store: Callable[[StorageCredentials | None], Storage],
        *,
        table_id: str | None = None,
        reservation: TableReservation | None = None,
        connect: Callable[[], Catalog] | None = None,
    ) -> None:
        self._catalog, self._connect, self._process = catalog, connect, os.getpid()
        self.table_name = table_name
        self.table_root = table_root
        self.table_id = table_id
        self.reservation = reservation
        self._open_store = open_store
        self._log = log_directory(table_root)
        self._credentials = None if reservation is None else reservation.credentials
        self._asked_for_reserved = False
        self._store: Storage | None = None
        self._opened_in = 0
        self._seen: ManagedTable | None = None
        self._forbids: frozenset[str] | None = None
        self._sizes: dict[str, int] = {}
        self._compared: tuple[tuple[object, ...], bool] | None = None
        # a reference to the client, so that no other object gets its id
        self._first, self._key = catalog, (id(catalog), table_name, table_root)

    def __repr__(self) -> str:
        return f"CatalogStorage({self.table_name!r} at {self.table_root!r})"

    def __eq__(self, other: object) -> bool:
        """Equal storages have the same files, so data cached for one is valid for the other."""
        return isinstance(other, CatalogStorage) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A storage with a catalog's connection cannot be pickled.")

    # --- the catalog

    @property
    def catalog(self) -> Catalog:
        if self._process != os.getpid() and self._connect is not None:
            self._catalog, self._process = self._connect(), os.getpid()
        return self._catalog

    def latest(self) -> ManagedTable | None:
        """Return the latest state from the catalog; None for a table that is being created.

        Raises: TableNotFoundError; CatalogError; UserError if the name now belongs to another table.
        """
        try:
            found = ask(self.catalog, self.table_name)
        except TableNotFoundError:
            if self.reservation is None:
                raise
            return None
        if self.reservation is not None and found.table_id != self.reservation.table_id:
            raise UserError(
                f"the table {self.table_name} has been created by another writer, at {found.location}. Nothing was "
                "written to it: run the operation again to use that table.",
                code="TABLE_OR_VIEW_ALREADY_EXISTS",
                table=self.table_name,
            )
        check_same(found, self.table_root, self.table_id)
        self.table_id = found.table_id
        self._use(found.credentials)
        self._forbids = found.forbids
        return self.remember(found)

    def remember(self, table: ManagedTable) -> ManagedTable:
        """Remember a state of the table that the catalog returned. Answers to proposals may contain only versions."""
        self._seen = newer_of(self._seen, table)
        if table.credentials is not None:
            self._use(table.credentials)
        return self._seen

    def _use(self, credentials: StorageCredentials | None) -> None:
        if credentials != self._credentials:
            self._credentials, self._store = credentials, None

    @property
    def wanted_properties(self) -> Mapping[str, str]:
        return {} if self.reservation is None else self.reservation.properties

    @property
    def wanted_features(self) -> tuple[str, ...]:
        return () if self.reservation is None else self.reservation.features

    def check_allowed(self, operation: str) -> None:
        if self.forbids(operation):
            raise UnsupportedOperationError(
                f"{operation} on table {self.table_name} is refused: only its catalog may do that. "
                "Nothing was changed; ask the administrator of the catalog.",
                code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
                table=self.table_name,
                operation=operation,
            )

    def forbids(self, operation: str) -> bool:
        if self._forbids is None:
            self.latest()
        return self._forbids is not None and operation in self._forbids

    def stores_up_to(self, version: int) -> bool:
        table = self.latest()
        return table is not None and first_stored(table) <= version

    @property
    def store(self) -> Storage:
        """The file system that stores the table, with the log files that exist there."""
        self._renew_credentials()
        if self._store is None or self._opened_in != os.getpid():
            # connections belong to the process that opened them
            self._store, self._opened_in = self._open_store(self._credentials), os.getpid()
        return self._store

    def _renew_credentials(self) -> None:
        """Ask the catalog if it was never asked, or if the credentials are about to expire."""
        expires_at_ms = None if self._credentials is None else self._credentials.expires_at_ms
        expiring = expires_at_ms is not None and expires_at_ms - _RENEWED_BEFORE_MS < time.time() * 1000
        if self.reservation is not None and self._seen is None:
            if expiring or not (self._credentials or self._asked_for_reserved):
                self._asked_for_reserved = True
                self._use(reserved_credentials(self.catalog, self.reservation.table_id))
        elif self._seen is None or expiring:
            self.latest()

    @property
    def credential_options(self) -> Mapping[str, Any]:
        self._renew_credentials()
        return {} if self._credentials is None else self._credentials.storage_options

    def clean_staged(self, version: int, *, now_ms: int) -> None:
        table = self.latest()
        names = () if table is None else (commit.file_name for commit in table.unpublished)
        needed = frozenset(name for name in names if name is not None)
        clean_staged(self.store, self.table_root, version, needed=needed, now_ms=now_ms)

    def read_unpublished(self, commit: UnpublishedCommit) -> bytes:
        """The bytes of a commit that the catalog stores. Raises: FileNotFoundInStorageError if its file is gone."""
        if commit.content is not None:
            return commit.content
        assert commit.file_name is not None
        path = staged_path(self.table_root, commit.file_name)
        data = self.store.read(path)
        _require_whole(path, commit, len(data))
        return data

    # --- the log according to the catalog

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        if directory.rstrip("/") != self._log:
            return self.store.list_from(directory, start_name)
        table = self.latest()
        if table is None:
            raise directory_not_found(directory)
        ratified = RatifiedListing(self.store, self.table_root, table, self._status, self.is_published)
        return ratified.files(self.store.list_from(directory, start_name), start_name)

    def is_published(self, commit: UnpublishedCommit, status: FileStatus | LogFile) -> bool:
        """Whether the log file is the commit that the catalog returns. Both are read and compared once."""
        key = commit, status.size_bytes, status.modification_time_ms, status.generation
        if self._compared is None or self._compared[0] != key:
            self._compared = key, self._compare(commit, status.path)
        return self._compared[1]

    def _compare(self, commit: UnpublishedCommit, path: str) -> bool:
        try:
            published = self.store.read(path)
        except FileNotFoundInStorageError:
            return False
        try:
            return compare_commits(published, self.read_unpublished(commit)) is Comparison.SAME
        except FileNotFoundInStorageError:
            # the commit was published, and its staged file was cleaned up
            return commit.size_bytes in (None, len(published))
        except CorruptLogError:
            return False

    def _status(self, commit: UnpublishedCommit) -> FileStatus:
        """The commit's status under its published name. The origin is its generation: a ratified commit is final."""
        path = commit_path(self.table_root, commit.version)
        if commit.content is not None:
            return FileStatus(path, len(commit.content), commit.timestamp_ms, f"inline-{commit.timestamp_ms}")
        size_bytes = self._size_of(commit) if commit.size_bytes is None else commit.size_bytes
        return FileStatus(path, size_bytes, commit.modification_time_ms, f"staged-{commit.file_name}")

    def _size_of(self, commit: UnpublishedCommit) -> int:
        """The size of a staged file that the catalog's answer lacks; looked up once."""
        name = commit.file_name or ""
        if name not in self._sizes:
            known = {one.file_name for one in self._seen.unpublished} if self._seen is not None else set()
            self._sizes = {other: size for other, size in self._sizes.items() if other in known}
            try:
                status = self.store.status(staged_path(self.table_root, name))
            except FileNotFoundInStorageError:
                # the commit was published after the catalog's answer, and its staged file was cleaned up
                status = self.store.status(commit_path(self.table_root, commit.version))
            self._sizes[name] = status.size_bytes
        return self._sizes[name]

    def _unpublished(self, path: str) -> UnpublishedCommit | None:
        """The catalog's commit for a path of the log; None for a file that is in the log itself.

        Raises: FileNotFoundInStorageError for a commit beyond the latest version.
        """
        version = self._version(path)
        if version is None:
            return None
        table = self._seen
        if table is None or version > table.latest_version:
            table = self.latest()
        if table is None or version > table.latest_version:
            raise file_not_found(path)
        index = version - table.latest_version + len(table.unpublished) - 1
        return table.unpublished[index] if index >= 0 else None

    def _version(self, path: str) -> int | None:
        directory, _, name = path.rpartition("/")
        if directory != self._log:
            return None
        found = parse_log_name(name)
        return found.version if found is not None and found.kind is LogFileKind.COMMIT else None

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        commit = self._unpublished(path)
        if commit is None:
            return self.store.read(path, offset, length)
        if commit.content is not None:
            start = offset or 0
            return commit.content[start : None if length is None else start + length]
        assert commit.file_name is not None
        start = offset or 0
        staged = staged_path(self.table_root, commit.file_name)
        try:
            data = self.store.read(staged, offset, length)
        except FileNotFoundInStorageError:
            # the commit was published after the catalog's answer, and its staged file was cleaned up
            _require_whole(path, commit, self.store.status(path).size_bytes)
            return self.store.read(path, offset, length)
        if commit.size_bytes is not None:
            left = max(commit.size_bytes - start, 0)
            wanted = left if length is None else min(length, left)
            if len(data) != wanted:
                found = start + len(data) if len(data) < wanted else self.store.status(staged).size_bytes
                _require_whole(staged, commit, found)
        return data

    def exists(self, path: str) -> bool:
        try:
            return self._unpublished(path) is not None or self.store.exists(path)
        except FileNotFoundInStorageError:
            return False

    def status(self, path: str) -> FileStatus:
        commit = self._unpublished(path)
        return self.store.status(path) if commit is None else self._status(commit)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._check_no_commit(path)
        self.store.put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._check_no_commit(path)
        self.store.put(path, data)

    def _check_no_commit(self, path: str) -> None:
        if self._version(path) is not None:
            raise NothingWrittenError(
                f"{path!r} was not written: commits of the table {self.table_name} go through its catalog.", path=path
            )

    # --- passed on to the store

    @property
    def scheme(self) -> str:
        return self.store.scheme

    def require_allowed(self, path: str) -> None:
        """Refuse a path that the store would not open; see ``allowed_roots``."""
        require_all_allowed(self.store, (path,))

    list_directory = _passed_on(Storage.list_directory)
    parquet_source = _passed_on(Storage.parquet_source)
    require_put_if_absent = _passed_on(Storage.require_put_if_absent)
    open_output = _passed_on(Storage.open_output)
    make_durable = _passed_on(Storage.make_durable)
    make_all_durable = _passed_on(Storage.make_all_durable)
    make_directory = _passed_on(Storage.make_directory)
    delete = _passed_on(Storage.delete)
    delete_all = _passed_on(Storage.delete_all)
    delete_empty_directory = _passed_on(Storage.delete_empty_directory)


def _require_whole(path: str, commit: UnpublishedCommit, size_bytes: int) -> None:
    if commit.size_bytes not in (None, size_bytes):
        raise CorruptLogError(
            f"the file {path!r} is not the commit of version {commit.version} that the catalog ratified: the file has "
            f"{size_bytes} bytes, and that commit has {commit.size_bytes}. The file was truncated, or another writer "
            "replaced it. Restore it.",
            code="DELTA_CORRUPT_LOG_FILE",
            path=path,
            version=commit.version,
        )
