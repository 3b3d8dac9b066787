"""A listing of ``_delta_log`` that contains the unpublished commits, which the catalog returns.

Invariants:

- It has no file of a version after the latest ratified one.
- A version has one commit: the catalog's, if the catalog returns one.
- A checkpoint of an unpublished version counts only if its own ``<v>.json`` is in the log. The newest of these files
  must be the commit that the catalog ratified. Versions are published in order, so the others are ratified too.
- A compaction that covers an unpublished commit is left out.
- Published versions that the listing does not show yet are looked up by name.

Protocol: "Reading Catalog-managed Tables", "Maintenance Operations on Catalog-managed Tables".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from delta_pyds.catalog.interface import ManagedTable, UnpublishedCommit
from delta_pyds.errors import FileNotFoundInStorageError, MissingLogFilesError
from delta_pyds.protocol.paths import LogFileKind, LogFileName, commit_path, parse_log_name, version_prefix
from delta_pyds.storage.base import FileStatus, Storage

# ":" follows "9": names that begin with a version sort before it
_AFTER_ALL_VERSIONS = ":"
_VERSION_DIGITS = 20


def first_stored(table: ManagedTable) -> int:
    """The oldest version whose commit the catalog returns; if it returns none, the version after the latest."""
    return table.unpublished[0].version if table.unpublished else table.latest_version + 1


class RatifiedListing:
    """``status_of``: returns the status of an unpublished commit, under its published name. ``is_published``: tells
    whether the file of the log is that commit.

    >>> RatifiedListing(store, root, table, status_of, is_published).files(store.list_from(log, start_name), start_name)
    """

    def __init__(
        self,
        store: Storage,
        table_root: str,
        table: ManagedTable,
        status_of: Callable[[UnpublishedCommit], FileStatus],
        is_published: Callable[[UnpublishedCommit, FileStatus], bool],
    ) -> None:
        self._store, self._root, self._table = store, table_root, table
        self._status_of, self._is_published = status_of, is_published
        self._first = first_stored(table)

    def files(self, listed: Iterator[FileStatus], start_name: str) -> Iterator[FileStatus]:
        """The files of the log. ``listed``: the store's files from ``start_name`` on.

        Raises: MissingLogFilesError if the latest version is missing: otherwise an older version would be read.
        """
        stored, beyond = version_prefix(self._first), version_prefix(self._table.latest_version + 1)
        seen = _version_before(start_name)
        unpublished: list[FileStatus] = []
        others: list[FileStatus] = []
        for status in listed:
            name = status.name
            if name >= _AFTER_ALL_VERSIONS:
                others.append(status)
                break
            if name >= beyond:
                continue
            if name >= stored:
                unpublished.append(status)
                continue
            found = parse_log_name(name)
            if found is not None and found.kind in (LogFileKind.COMMIT, LogFileKind.CHECKPOINT):
                seen = max(seen, found.version)
            if not (found is not None and found.kind is LogFileKind.COMPACTION and _last(found) >= self._first):
                yield status
        yield from self._unlisted(seen, start_name)
        yield from self._of_unpublished(unpublished, start_name)
        yield from others
        yield from listed

    def _of_unpublished(self, listed: list[FileStatus], start_name: str) -> list[FileStatus]:
        """The files of versions whose commits the catalog returns, in the order of names."""
        commits = {commit.version: self._status_of(commit) for commit in self._table.unpublished}
        in_log: dict[int, FileStatus] = {}
        checkpoints: list[tuple[int, FileStatus]] = []
        found = [status for status in commits.values() if status.name >= start_name]
        for status in listed:
            name = parse_log_name(status.name)
            if name is None or name.kind is LogFileKind.CHECKSUM:
                found.append(status)
            elif name.kind is LogFileKind.COMMIT and status.regular:
                in_log[name.version] = status
            elif name.kind is LogFileKind.CHECKPOINT:
                checkpoints.append((name.version, status))
        newest = max((version for version, _ in checkpoints if version in in_log), default=None)
        if newest is not None and self._is_published(self._table.unpublished[newest - self._first], in_log[newest]):
            found += [status for version, status in checkpoints if version in in_log]
        return sorted(found, key=lambda status: status.name)

    def _unlisted(self, seen: int, start_name: str) -> Iterator[FileStatus]:
        """The published versions after ``seen``, which a stale listing does not show yet."""
        last = self._first - 1
        for version in range(seen + 1, last + 1):
            status = self._by_name(version)
            if status is None:
                break
            yield status
        else:
            return
        if last == self._table.latest_version and last >= 0 and start_name <= f"{version_prefix(last)}.json":
            latest = self._by_name(last)
            if latest is None:
                raise self._missing(last)
            yield latest

    def _by_name(self, version: int) -> FileStatus | None:
        try:
            return self._store.status(commit_path(self._root, version))
        except FileNotFoundInStorageError:
            return None

    def _missing(self, version: int) -> MissingLogFilesError:
        path = commit_path(self._root, version)
        return MissingLogFilesError(
            f"The latest version of table {self._table.name} is {version} according to its catalog, but neither the "
            f"catalog nor the log has its commit. Restore {path!r}.",
            table=self._root,
            version=version,
            missing_version=version,
        )


def _version_before(start_name: str) -> int:
    """The version before the first one in a listing from that name; -1 if the listing has all versions."""
    digits = start_name[:_VERSION_DIGITS]
    return int(digits) - 1 if len(digits) == _VERSION_DIGITS and digits.isdecimal() else -1


def _last(name: LogFileName) -> int:
    return name.version if name.end_version is None else name.end_version
