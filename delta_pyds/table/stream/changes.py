"""The files that a commit adds to a change data feed stream. Protocol: "Reader Requirements for AddCDCFile"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from delta_pyds.errors import MissingLogFilesError, UserError
from delta_pyds.log.commit_reader import read_commit_info
from delta_pyds.log.commit_times import TimedCommits, timed_commits
from delta_pyds.log.committer import LoggedCommit
from delta_pyds.protocol.actions import CommitInfo
from delta_pyds.storage.base import Storage
from delta_pyds.table.change_feed.change_scan import with_partition_values
from delta_pyds.table.change_feed.changes import (
    FileChange,
    change_files,
    changes_of,
    check_partition_values,
    selected_changes,
)
from delta_pyds.table.change_feed.computed import Comparisons, ComputeChanges
from delta_pyds.table.history import InCommitTimestamps
from delta_pyds.table.scan.row_selection import RowSelection
from delta_pyds.table.stream.metadata import StreamMetadata


@dataclass(frozen=True)
class StreamChanges:
    """The change files of commits, each with its version and time.

    ``selection``: from ``select_changes``. ``compute``: how to compute changes that were not recorded.
    ``metadata``: shows which commits recorded their changes, and which have in-commit timestamps.
    """

    storage: Storage
    table_root: str
    selection: RowSelection
    exclude: re.Pattern[str] | None
    compute: ComputeChanges
    metadata: StreamMetadata

    def of(self, commit: LoggedCommit) -> list[FileChange]:
        return [change for change in changes_of(commit.actions) if not self._excludes(change)]

    def _excludes(self, change: FileChange) -> bool:
        return self.exclude is not None and self.exclude.search(change.path) is not None

    def sizes(self, commit: LoggedCommit) -> pa.Int64Array:
        """The size of each file of the commit, in bytes."""
        return pa.array([change.size or 0 for change in self.of(commit)], pa.int64())

    def rows(self, commit: LoggedCommit, times: TimedCommits) -> pa.RecordBatch:
        """The files that may hold wanted rows, as rows of ``columnar.scan_files``. ``times`` must cover the commit."""
        changes = with_partition_values(
            changes_of(commit.actions), self.storage, self.selection.relation, commit.version
        )
        # before files are excluded: a row is also compared with those of excluded files
        changes = self._comparisons.of(changes, self.metadata.in_force_at(commit.version))
        self._check_none_excluded(commit.version, changes)
        changes = [change for change in changes if not self._excludes(change)]
        check_partition_values(changes, self.selection.relation, commit.version)
        info = next((a.commit_info for a in commit.actions if a.commit_info is not None), None)
        time_ms = self._time(times, commit.version, info) if changes else 0
        files = change_files(changes, version=commit.version, timestamp_ms=time_ms)
        return selected_changes(files, self.selection)

    def _check_none_excluded(self, version: int, changes: Sequence[FileChange]) -> None:
        """Raises: UserError if a file is excluded with which one that is not must be compared."""
        read = {c.compared.group for c in changes if c.compared is not None and not self._excludes(c)}
        compared = (c for c in changes if c.compared is not None and c.compared.group in read)
        excluded = next(filter(self._excludes, compared), None)
        if excluded is not None:
            raise UserError(
                f"the changes of version {version} of the table {self.table_root} were not recorded, and excludeRegex "
                f"excludes the file '{excluded.path}', with which others must be compared. Leave out excludeRegex, or "
                "start the stream after this version.",
                code="DELTA_MISSING_CHANGE_DATA",
                table=self.table_root,
                version=version,
            )

    @cached_property
    def _comparisons(self) -> Comparisons:
        # one for all commits: a batch of the stream may have several, with groups of their own
        return Comparisons(self.compute, self.selection.state.time_zone)

    def times(self, first: int, last: int) -> TimedCommits:
        """The times of the commits from ``first`` to ``last``, by one listing."""
        own = InCommitTimestamps.of(self.metadata.newest.properties)
        in_commit = None if own is None else own.from_version
        return timed_commits(self.storage, self.table_root, first, last, in_commit=in_commit)

    def time_of(self, version: int) -> int:
        """The commit time of the version, in ms. Raises: MissingLogFilesError if its commit file is missing."""
        times = self.times(version, version)
        file = times.files.get(version)
        info = None
        if file is not None and times.has_in_commit_timestamp(version):
            info = read_commit_info(self.storage, file)
        return self._time(times, version, info)

    def _time(self, times: TimedCommits, version: int, info: CommitInfo | None) -> int:
        if version not in times.files:
            raise MissingLogFilesError(
                f"The commit time of version {version} of table {self.table_root!r} is unknown: its commit file is no "
                "longer in the log, and each row of a change feed has that time. Restore the file, or start the "
                "query with a new checkpoint location.",
                code="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
                table=self.table_root,
                version=version,
            )
        return times.timestamp_ms(version, info)
