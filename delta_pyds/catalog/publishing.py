"""Ratified commits are written to the log, in order, by put-if-absent.

Invariants: version ``v`` is published after ``v - 1``. Only the ratified commit is published, with the bytes of its
writer or the catalog. An existing file stays unchanged. Only durable files of the log are reported as published. Any
number of publishers may work on the same versions.

Protocol: "Publishing Commits".
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from delta_pyds.catalog.commit_comparison import Comparison, compare_commits
from delta_pyds.catalog.interface import ManagedTable, UnpublishedCommit
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.errors import DeltaError, FileExistsInStorageError, FileNotFoundInStorageError
from delta_pyds.log.listing import LogFile, by_version, list_log
from delta_pyds.log.segment import complete_checkpoints
from delta_pyds.protocol.paths import commit_path, log_directory
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage
from delta_pyds.storage.local import local_path
from delta_pyds.storage.local_sync import sync_directory

_logger = safe_logger(__name__)

# the longest compaction to search for, in versions
_LONGEST_COMPACTION = 1_000
_MOVE = (
    "which no catalog has ratified: move it away, together with every checkpoint, compaction and checksum of that "
    "version and of later ones"
)


@dataclass(frozen=True)
class Published:
    """The result of publishing.

    ``version``: the newest that is certainly published, or -1. ``obstacle``: why it is not the latest. ``contested``:
    the version for which the log has the commit of another transaction, if that is the obstacle.
    """

    version: int
    obstacle: str = ""
    contested: int | None = None


def publish(storage: CatalogStorage, table: ManagedTable, known: Mapping[int, bytes] | None = None) -> Published:
    """Publish the commits that the catalog stores, and report them. ``known``: the bytes of versions, to save reads.

    Never raises: publishing stops at the first obstacle, which is in the result.
    """
    published = Published(table.latest_version - len(table.unpublished))
    log = _Log(storage, table)
    only_found = False  # a file that another process has just linked may not be on its disk yet
    for commit in table.unpublished:
        path = commit_path(storage.table_root, commit.version)
        contested: int | None = None
        try:
            data = (known or {}).get(commit.version)
            if data is None:
                data = storage.read_unpublished(commit)
            obstacle = log.foreign
            if not obstacle and (commit.version in log.commits or not _put(storage.store, path, data)):
                only_found = True
                found = compare_commits(storage.store.read(path), data)
                obstacle = _obstacle_of(path, found)
                contested = commit.version if found is Comparison.OTHER_TRANSACTION else None
        except FileNotFoundInStorageError:
            only_found, obstacle = True, log.foreign or log.obstacle_without_file(path, commit)
        except DeltaError as error:
            obstacle = error.message
        except Exception as error:
            obstacle = f"{type(error).__name__}: {error}"
        if obstacle:
            obstacle = f"version {commit.version} cannot be published: {obstacle}"
            published = Published(published.version, obstacle, contested)
            _logger.warning("Table %s: %s", storage.table_name, published.obstacle)
            break
        published = Published(commit.version)
    if table.unpublished and published.version >= max(table.unpublished[0].version, 1):
        _report(storage, table, published.version, only_found=only_found)
    return published


class _Log:
    """The log's files after the published versions; for a single commit the log is not listed.

    ``foreign``: why publishing must stop; empty if it need not. A checkpoint or compaction covers versions absent from
    the log. It was made from other commits, and readers would use it after the catalog has forgotten its own commits.
    ``commits``: the listed commits.
    """

    def __init__(self, storage: CatalogStorage, table: ManagedTable) -> None:
        self._storage, self._table = storage, table
        self.foreign = ""
        self.commits: Mapping[int, LogFile] = {}
        self._checkpoints: list[int] = []
        if len(table.unpublished) < 2:
            return
        first = table.unpublished[0].version
        try:
            listing = list_log(storage.store, storage.table_root, max(0, first - _LONGEST_COMPACTION))
        except Exception as error:
            self.foreign = f"the log cannot be listed ({type(error).__name__}: {error})"
            return
        self.commits = by_version(listing.commits)
        newest = first - 1
        while newest + 1 in self.commits:
            newest += 1
        for file in (*listing.checkpoints, *listing.compactions):
            last = file.version if file.name.end_version is None else file.name.end_version
            if last > newest and last not in self.commits:
                self.foreign = f"{file.path} covers versions that are not in the log, {_MOVE}"
                return
        self._checkpoints = [one.version for one in complete_checkpoints(listing) if one.version >= first]

    def obstacle_without_file(self, path: str, commit: UnpublishedCommit) -> str:
        """The obstacle if the staged commit is missing: it was published and cleaned up, or the version is lost."""
        try:
            if commit.size_bytes in (None, self._storage.store.status(path).size_bytes):
                return ""
            return f"its staged commit {commit.file_name} is missing, and {path} is another commit"
        except FileNotFoundInStorageError:
            return "" if self._is_cleaned_up(commit) else f"its staged commit {commit.file_name} is missing"
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def _is_cleaned_up(self, commit: UnpublishedCommit) -> bool:
        """Whether a checkpoint of ratified commits covers the version: it was published, and the log was cleaned up."""
        version = max((one for one in self._checkpoints if one in self.commits), default=-1)
        if version <= commit.version or version > self._table.latest_version:
            return False
        newest = self._table.unpublished[version - self._table.unpublished[0].version]
        return self._storage.is_published(newest, self.commits[version])


def _put(store: Storage, path: str, data: bytes) -> bool:
    """Write the version. Returns: False if the file already exists."""
    try:
        store.put_if_absent(path, data)
        return True
    except FileExistsInStorageError:
        return False
    except Exception:
        # the file may exist although the answer was lost
        with contextlib.suppress(Exception):
            if store.exists(path):
                return False
        raise


def _obstacle_of(path: str, found: Comparison) -> str:
    """Why the existing file is not the version; empty if it is."""
    if found is Comparison.SAME:
        return ""
    if found is Comparison.OTHER_ACTIONS:
        return f"{path} exists, but has other actions than the ratified commit of the same transaction"
    return f"{path} exists and is another commit, {_MOVE}"


def _report(storage: CatalogStorage, table: ManagedTable, version: int, *, only_found: bool) -> None:
    try:
        if only_found and storage.store.scheme == "file":
            sync_directory(local_path(log_directory(storage.table_root)))
        storage.catalog.report_published(storage.table_name, table.table_id, version)
    except Exception as error:
        # the next writer reports it
        _logger.warning(
            "Version %d of table %s is published, but this could not be reported to the catalog: %s: %s",
            version,
            storage.table_name,
            type(error).__name__,
            error,
        )
