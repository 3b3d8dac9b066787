"""A listing of ``_delta_log`` with the commits that the catalog gives out in their places.

Invariants: nothing beyond the latest ratified version is in it; a version has one commit, the catalog's where the
catalog gives one out; of the checkpoints of versions that the catalog gives out those count whose own ``<v>.json`` is
in the log, up to the newest of which that file is proven to be what the catalog ratified: versions are published in
order, so each of them stands for what was ratified. A compaction that stands for a commit which the catalog gives out
is left out. What the listing does not show yet of published versions is looked up by name.

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
    """The oldest version whose commit the catalog gives out; beyond the latest one where it gives out none."""
    return table.unpublished[0].version if table.unpublished else table.latest_version + 1


class ToldListing:
    """``status_of``: a commit that the catalog gives out, under the name that it has once it is published.
    ``is_published``: whether the file of the log is that commit.

    >>> ToldListing(store, root, table, status_of, is_published).files(store.list_from(log, start_name), start_name)
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
        """``listed``: the store's files from ``start_name`` on.

        Raises: MissingLogFilesError where the latest version is nowhere: the table would be an older one.
        """
        stored, beyond = version_prefix(self._first), version_prefix(self._table.latest_version + 1)
        seen = _version_before(start_name)
        given_out: list[FileStatus] = []
        others: list[FileStatus] = []
        for status in listed:
            name = status.name
            if name >= _AFTER_ALL_VERSIONS:
                others.append(status)
                break
            if name >= beyond:
                continue
            if name >= stored:
                given_out.append(status)
                continue
            found = parse_log_name(name)
            if found is not None and found.kind in (LogFileKind.COMMIT, LogFileKind.CHECKPOINT):
                seen = max(seen, found.version)
            if not (found is not None and found.kind is LogFileKind.COMPACTION and _last(found) >= self._first):
                yield status
        yield from self._unlisted(seen, start_name)
        yield from self._given_out(given_out, start_name)
        yield from others
        yield from listed

    def _given_out(self, listed: list[FileStatus], start_name: str) -> list[FileStatus]:
        """What is of versions that the catalog gives out, in the order of names."""
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
        if newest is not None and self._is_published(self._commit(newest), in_log[newest]):
            found += [status for version, status in checkpoints if version in in_log]
        return sorted(found, key=lambda status: status.name)

    def _commit(self, version: int) -> UnpublishedCommit:
        return self._table.unpublished[version - self._first]

    def _unlisted(self, seen: int, start_name: str) -> Iterator[FileStatus]:
        """Published versions that a listing which lags behind does not show yet, after the newest that it shows."""
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
            f"The catalog says that version {version} is the latest of table {self._table.name}, but neither the "
            f"catalog nor the log has its commit. Restore {path!r}.",
            table=self._root,
            version=version,
            missing_version=version,
        )


def _version_before(start_name: str) -> int:
    """The version before those that a listing from that name shows; -1 where it shows all."""
    digits = start_name[:_VERSION_DIGITS]
    return int(digits) - 1 if len(digits) == _VERSION_DIGITS and digits.isdecimal() else -1


def _last(name: LogFileName) -> int:
    return name.version if name.end_version is None else name.end_version
