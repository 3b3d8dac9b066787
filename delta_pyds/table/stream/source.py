"""The streaming source: offsets of a table's log and the files between two of them.

Protocol: "Delta Log Entries", "Action Reconciliation", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from delta_pyds.catalog.managed import is_catalog_managed
from delta_pyds.errors import DeltaError, MissingLogFilesError, TimeTravelError, UserError
from delta_pyds.log.commit_times import TimedCommits
from delta_pyds.log.committer import LoggedCommit
from delta_pyds.log.listing import list_log
from delta_pyds.log.segment import latest_version
from delta_pyds.protocol.stream_offset import BASE_INDEX, METADATA_CHANGE_INDEX, StreamOffset
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage
from delta_pyds.table.change_feed.computed import ComputeChanges
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.history import CommitTimes
from delta_pyds.table.scan.row_selection import RowSelection
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.stream.budget import Budget
from delta_pyds.table.stream.changes import StreamChanges
from delta_pyds.table.stream.commit import StreamRules, data_files
from delta_pyds.table.stream.commit_poller import CommitPoller, log_ends_before
from delta_pyds.table.stream.files import NO_FILES, StreamFiles, select_files
from delta_pyds.table.stream.initial_files import initial_files
from delta_pyds.table.stream.metadata import StreamMetadata
from delta_pyds.table.stream.schema_log import SchemaTracking

logger = safe_logger(__name__)

# The maximum number of commits in one limited batch. Commits without data must not each become a batch, but reading
# many of them must not take minutes.
_MAX_COMMITS = 1_000


@dataclass(frozen=True)
class StreamOptions:
    """The options of a stream, checked; named as the reference's options.

    Attributes:
        starting_version, starting_timestamp_ms: the start of a query without a checkpoint; at most one of them. With
            neither it first reads the current table.
        max_files, max_bytes: limits of a batch, at least 1 if set.
        exclude: files are skipped if this is found in their path, as in the log.
        compute_changes: how a change feed computes changes that were not recorded.
    """

    starting_version: int | Literal["latest"] | None = None
    starting_timestamp_ms: int | None = None
    max_files: int | None = 1000
    max_bytes: int | None = None
    rules: StreamRules = field(default_factory=StreamRules)
    exclude: re.Pattern[str] | None = None
    fail_on_data_loss: bool = True
    read_change_feed: bool = False
    compute_changes: ComputeChanges = "auto"

    @property
    def starting_given(self) -> bool:
        return self.starting_version is not None or self.starting_timestamp_ms is not None


class StreamSource:
    """Offsets of a stream, and the files between two of them; for one thread.

    Invariants: the result of ``batches`` depends only on the two offsets, the log and the options, so it is the same in
    every process; the attributes are only a cache. Every file that the options admit lies between exactly one pair of
    successive offsets.

    ``read``: the schema of the rows. ``selection``: from ``Relation.of(read)``; for a change feed, of
    ``changes.change_relation(read)``.
    """

    def __init__(
        self,
        storage: Storage,
        table_root: str,
        options: StreamOptions,
        read: TableConfiguration,
        selection: RowSelection,
        *,
        tracking: SchemaTracking | None = None,
    ) -> None:
        self._storage = storage
        self._root = table_root
        self._options = options
        self._read = read
        self._selection = selection
        self._poller = CommitPoller(storage, table_root)
        self._metadata = StreamMetadata(
            read,
            self._open,
            tracking,
            compute_changes=options.compute_changes if options.read_change_feed else None,
            starting_given=options.starting_given,
        )
        self._changes: StreamChanges | None = None
        if options.read_change_feed:
            self._changes = StreamChanges(
                storage,
                table_root,
                selection,
                options.exclude,
                options.compute_changes,
                self._metadata,
            )
        self._initial: StreamOffset | None = None
        self._asked_from_initial = False
        self._end_version: int | None = None
        self._snapshot: Snapshot | None = None
        self._snapshot_files: StreamFiles | None = None
        self._commit_files: dict[int, StreamFiles] = {}
        self._lost = range(0)

    # --- offsets

    def initial_offset(self) -> StreamOffset:
        """The start of a query without a checkpoint; determined once.

        Raises: TimeTravelError for a start that the log does not have; errors of opening the table.
        """
        if self._initial is None:
            self._initial = self._find_initial()
        return self._initial

    def _find_initial(self) -> StreamOffset:
        options = self._options
        if options.starting_timestamp_ms is not None:
            return self._at(_version_from(self._storage, self._read, options.starting_timestamp_ms))
        if options.starting_version == "latest":
            return self._at(self._latest_version() + 1)
        if options.starting_version is not None:
            _check_starting_version(self._storage, self._root, options.starting_version)
            return self._at(options.starting_version)
        # a query with a fixed end reads the table as of that version
        self._snapshot = open_snapshot(self._storage, self._root, self._end_version)
        return StreamOffset(self._read.metadata.id, self._snapshot.version, is_initial=True)

    def fix_end(self) -> None:
        """Limit all later offsets to the current latest version: ``Trigger.AvailableNow``."""
        latest = self._latest_version()
        if self._initial is not None and self._initial.is_initial:
            latest = max(latest, self._initial.version)
        self._end_version = latest

    def newest_offset(self) -> StreamOffset | None:
        """The offset after the newest known commit, or None. Does no I/O."""
        seen = [v for v in (self._poller.newest, self._snapshot.version if self._snapshot else None) if v is not None]
        return self._at(max(seen) + 1) if seen else None

    def latest_offset(self, start: StreamOffset, *, unlimited: bool = False) -> StreamOffset:
        """The end of the batch that begins at ``start``, within the limits; ``start`` itself if there is nothing new.

        Raises:
            UserError: an offset of another table, a commit that a stream cannot follow, or a schema change (see
                ``StreamMetadata``).
            MissingLogFilesError: the log was cleaned up before the stream had read it.
        """
        self._check_table(start)
        self._forget(start)
        self._metadata.begin_tracking(start)
        if self._options.starting_version == "latest" and start == self._initial and not self._asked_from_initial:
            # an empty batch first: then the checkpoint has the position before anything is read from it
            self._asked_from_initial = True
            return start
        if self._end_version is not None and start.version > self._end_version:
            return start
        self._metadata.begin(start)
        budget = Budget(None, None) if unlimited else Budget(self._options.max_files, self._options.max_bytes)
        if start.is_initial:
            return self._end_in_files(self._files_of_snapshot(start.version), start, start.index, budget)
        return self._end_in_commits(start, budget)

    def _end_in_files(self, files: StreamFiles, at: StreamOffset, after: int, budget: Budget) -> StreamOffset:
        """The end of a batch that reads files of the version of ``at``, from the one after index ``after`` on."""
        position = files.position_after(after)
        end = position + budget.take(files.sizes[position:])
        return self._at(at.version + 1) if end == len(files) else replace(at, index=files.number(end - 1))

    def _end_in_commits(self, start: StreamOffset, budget: Budget) -> StreamOffset:
        end = start
        last = self._last_commit(start, unlimited=budget.unlimited)
        for commit in self._commits(start.version, last):
            if self._metadata.stops_at(commit):
                stop = self._at(commit.version, METADATA_CHANGE_INDEX)
                if stop.position <= start.position:
                    self._metadata.adopt_schema(commit)
                return stop
            end = self._end_in_commit(commit, start, budget)
            if budget.full or end.version == commit.version:
                return end
        resumed = self._after_loss(end.version)
        return end if resumed == end.version else self._at(resumed)

    def _last_commit(self, start: StreamOffset, *, unlimited: bool) -> int:
        """The last version that a batch from ``start`` may read."""
        if unlimited and self._end_version is not None:
            return self._end_version
        last = start.version + _MAX_COMMITS - 1
        if unlimited:
            return max(last, self._latest_version())
        return last if self._end_version is None else min(last, self._end_version)

    def _end_in_commit(self, commit: LoggedCommit, start: StreamOffset, budget: Budget) -> StreamOffset:
        if self._changes is not None:
            whole = budget.take_whole(self._changes.sizes(commit))
            return self._at(commit.version + 1 if whole else commit.version)
        after = _last_read_index(commit.version, start)
        return self._end_in_files(self._files_of(commit), self._at(commit.version), after, budget)

    # --- files

    def batches(self, start: StreamOffset, end: StreamOffset) -> Iterator[pa.RecordBatch]:
        """The files after ``start`` up to ``end``, as rows of ``columnar.scan_files``; no batch is empty.

        A checkpoint does not contain the start of a query's first batch. If that batch runs again, the given start may
        be after the end. Then the start is derived from the end.

        Raises: as ``latest_offset``; UserError for offsets that go backwards.
        """
        self._check_table(start)
        self._check_table(end)
        if start.is_initial and start.index == BASE_INDEX:
            start = self._start_of_snapshot(end)
        elif start.position > end.position:
            self._check_backwards(start, end)
            return iter(())
        if start.position == end.position:
            return iter(())
        self._metadata.begin(start)
        return self._between(start, end)

    def _between(self, start: StreamOffset, end: StreamOffset) -> Iterator[pa.RecordBatch]:
        if start.is_initial:
            rows = self._files_of_snapshot(start.version).between(start.index, end.index if end.is_initial else None)
            if rows.num_rows:
                yield rows
            if end.is_initial:
                return
            start = self._at(start.version + 1)
        last = end.version if end.index > BASE_INDEX else end.version - 1
        if self._changes is not None and end.index > BASE_INDEX:
            raise _invalid_offset(self._root, end, "a change feed is read in whole commits")
        at = start.version
        times: TimedCommits | None = None
        for commit in self._commits(start.version, last):
            if self._metadata.stops_at(commit):
                self._metadata.adopt_schema(commit)
            if self._changes is not None:
                times = times or self._changes.times(commit.version, last)
                rows = self._changes.rows(commit, times)
            else:
                until = end.index if commit.version == end.version else None
                rows = self._files_of(commit).between(_last_read_index(commit.version, start), until)
            at = commit.version + 1
            if rows.num_rows:
                yield rows
        at = self._after_loss(at)
        if at <= last:
            raise log_ends_before(self._storage, self._root, at)

    def committed(self, end: StreamOffset) -> None:
        """Drop cached data before ``end``: this process will not request it again."""
        self._forget(end)

    def _forget(self, position: StreamOffset) -> None:
        self._poller.forget(position.version)
        self._metadata.forget(position.version)
        self._commit_files = {v: files for v, files in self._commit_files.items() if v >= position.version}
        if not position.is_initial:
            self._snapshot = self._snapshot_files = None

    # --- one version

    def _files_of_snapshot(self, version: int) -> StreamFiles:
        if self._snapshot is not None and self._snapshot.version != version:
            self._snapshot = self._snapshot_files = None
        if self._snapshot_files is None:
            try:
                self._snapshot = self._open(version)
            except (TimeTravelError, MissingLogFilesError) as error:
                raise self._snapshot_is_gone(version, error) from error
            self._metadata.check(self._snapshot.configuration)
            self._snapshot_files = initial_files(
                self._snapshot,
                self._selection,
                self._options.exclude,
                change_feed_ms=None if self._changes is None else self._changes.time_of(version),
            )
        return self._snapshot_files

    def _files_of(self, commit: LoggedCommit) -> StreamFiles:
        found = self._commit_files.get(commit.version)
        if found is None:
            if all(action.add is None and action.remove is None for action in commit.actions):
                return NO_FILES
            files = data_files(commit, self._options.rules, self._root)
            found = self._commit_files[commit.version] = select_files(files, self._selection, self._options.exclude)
        return found

    # --- the log

    def _commits(self, first: int, last: int) -> Iterator[LoggedCommit]:
        """As ``CommitPoller.commits``, but skips commits that were cleaned up if the user accepts the loss."""
        first = self._after_loss(first)
        while first <= last:
            try:
                yield from self._poller.commits(first, last)
                return
            except MissingLogFilesError as error:
                if self._options.fail_on_data_loss or error.code != "DELTA_MISSING_FILES_UNEXPECTED_VERSION":
                    raise
                self._lost = range(int(error.parameters["version"]), int(error.parameters["earliest"]))
                first = self._lost.stop
                logger.warning(
                    "Versions %d to %d of table %r were removed from its log before the stream had read them. Their "
                    "changes are not read, because failOnDataLoss is false; the stream continues with version %d.",
                    self._lost.start,
                    first - 1,
                    self._root,
                    first,
                )
                self._metadata.check_after_loss(first)

    def _after_loss(self, version: int) -> int:
        return self._lost.stop if version in self._lost else version

    def _open(self, version: int) -> Snapshot:
        if self._snapshot is not None and self._snapshot.version == version:
            return self._snapshot
        return open_snapshot(self._storage, self._root, version)

    def _latest_version(self) -> int:
        return latest_version(self._storage, self._root)

    def _snapshot_is_gone(self, version: int, error: TimeTravelError | MissingLogFilesError) -> DeltaError:
        latest = error.parameters.get("latest")
        if is_catalog_managed(self._storage) and isinstance(latest, int) and latest < version:
            return log_ends_before(self._storage, self._root, version)
        return MissingLogFilesError(
            f"The stream was reading table {self._root!r} at version {version}, and that version can no longer be "
            f"reconstructed: {error.message} Start the query with a new checkpoint location, to read the whole "
            "table again; failOnDataLoss=false does not help here.",
            code="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
            table=self._root,
            version=version,
        )

    # --- positions

    def _at(self, version: int, index: int = BASE_INDEX) -> StreamOffset:
        return StreamOffset(self._read.metadata.id, version, index)

    def _start_of_snapshot(self, end: StreamOffset) -> StreamOffset:
        """The start of the snapshot that a first batch with this end has read."""
        if end.is_initial:
            return replace(end, index=BASE_INDEX)
        if end.index != BASE_INDEX or end.version == 0:
            raise _invalid_offset(self._root, end, "a first batch ends in the snapshot that the stream begins with")
        return StreamOffset(end.table_id, end.version - 1, is_initial=True)

    def _check_backwards(self, start: StreamOffset, end: StreamOffset) -> None:
        """Accept a later start only for an empty first batch that runs again; otherwise the offset is invalid."""
        if start == self._initial and self._options.starting_version == "latest" and not end.is_initial:
            return
        raise _invalid_offset(self._root, end, f"the batch begins after that, at {start.to_json()}")

    def _check_table(self, offset: StreamOffset) -> None:
        if offset.table_id != self._read.metadata.id:
            raise UserError(
                f"the checkpoint of the query belongs to the table with the id {offset.table_id}, but the table "
                f"{self._root!r} has the id {self._read.metadata.id}: it was replaced by another one. To read the "
                "new table, start the query with a new checkpoint location.",
                code="DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
                table=self._root,
                old_table_id=offset.table_id,
                new_table_id=self._read.metadata.id,
            )


def _last_read_index(version: int, start: StreamOffset) -> int:
    """The index of the last file that was read before the batch, among those of the version."""
    return max(start.index, BASE_INDEX) if version == start.version else BASE_INDEX


def _invalid_offset(table_root: str, end: StreamOffset, why: str) -> UserError:
    return UserError(
        f"the checkpoint of the query has an invalid end offset of table {table_root!r}: "
        f"{end.to_json()}, but {why}. The options for the start of the stream were changed before its first batch "
        "was done, or the checkpoint belongs to another query: restore the options, or start the query with a new "
        "checkpoint location.",
        code="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        table=table_root,
    )


# --- the start of a stream without a checkpoint


def _check_starting_version(storage: Storage, table_root: str, version: int) -> None:
    """Check that a stream can begin with a version: its commit is in the log, or it is the next version.

    Raises: TimeTravelError naming the first and the last possible version; TableNotFoundError.
    """
    if any(file.version == version for file in list_log(storage, table_root, version, missing_ok=True).commits[:1]):
        return
    latest = latest_version(storage, table_root)
    if version == latest + 1:
        return
    commits = [file.version for file in list_log(storage, table_root, missing_ok=True).commits]
    # a gap among the remaining commits is reported when the stream reaches it
    if version in commits:
        return
    earliest = commits[0] if commits else latest + 1
    raise TimeTravelError(
        f"A stream of table {table_root!r} cannot begin with startingVersion {version}: its log has "
        f"the commits of versions {earliest} to {latest}. Use one of these, or {latest + 1} or 'latest' to begin "
        "with the next commit; or leave startingVersion out, to read the current table first.",
        table=table_root,
        version=version,
        earliest=earliest,
        latest=latest,
    )


def _version_from(storage: Storage, read: TableConfiguration, timestamp_ms: int) -> int:
    """The first version committed at or after the time, among those with a commit file.

    Raises: TimeTravelError (DELTA_TIMESTAMP_GREATER_THAN_COMMIT) for a time after the last commit; TableNotFoundError.
    """
    root = read.table_root
    latest = latest_version(storage, root)
    times = CommitTimes(storage, root, properties=read.properties, latest_version=latest)
    try:
        before = times.version_at(timestamp_ms)
    except TimeTravelError as error:
        if error.code != "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION":
            raise
        # commits before the first version that can be reconstructed are incomplete
        first = times.earliest or 0
        return min((version for version in times.commits if version >= first), default=latest + 1)
    return before if times.commit_timestamp(before) == timestamp_ms else before + 1
