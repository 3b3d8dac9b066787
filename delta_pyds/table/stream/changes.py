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

    ``selection``: from ``select_changes``. ``compute``: how changes are computed that were not recorded.
    ``metadata``: shows which commits recorded their changes, and which have in-commit timestamps.
    """

    storage: Storage
    table_root: str
    selection: RowSelection
    exclude: re.Pattern[str] | None
    compute: ComputeChanges
    metadata: StreamMetadata

    def of(self, commit: LoggedCommit) -> list[FileChange]:
        changes = changes_of(commit.actions)
        return changes if self.exclude is None else [c for c in changes if self.exclude.search(c.path) is None]

    def sizes(self, commit: LoggedCommit) -> pa.Int64Array:
        """The size of each file of the commit, in bytes."""
        return pa.array([change.size or 0 for change in self.of(commit)], pa.int64())

    def rows(self, commit: LoggedCommit, times: TimedCommits) -> pa.RecordBatch:
        """The files that may hold wanted rows, as rows of ``columnar.scan_files``. ``times`` must cover the commit."""
        changes: Sequence[FileChange] = self.of(commit)
        info = next((a.commit_info for a in commit.actions if a.commit_info is not None), None)
        time_ms = self._time(times, commit.version, info) if changes else 0
        changes = with_partition_values(changes, self.storage, self.selection.relation, commit.version)
        check_partition_values(changes, self.selection.relation, commit.version)
        changes = self._comparisons.of(changes, self.metadata.in_force_at(commit.version))
        if self.exclude is not None and any(c.compared is not None for c in changes):
            self._check_none_excluded(commit)
        files = change_files(changes, version=commit.version, timestamp_ms=time_ms)
        return selected_changes(files, self.selection)

    def _check_none_excluded(self, commit: LoggedCommit) -> None:
        """Raises: UserError if a file is left out that may have the partner of a row that is not."""
        excluded = next((c for c in changes_of(commit.actions) if self.exclude and self.exclude.search(c.path)), None)
        if excluded is not None:
            raise UserError(
                f"the changes of version {commit.version} of the table {self.table_root} were not recorded, and "
                f"excludeRegex leaves out the file '{excluded.path}', with which others must be compared. Leave out "
                "excludeRegex, or start the stream after this version.",
                code="DELTA_MISSING_CHANGE_DATA",
                table=self.table_root,
                version=commit.version,
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
