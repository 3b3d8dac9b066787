"""The streaming source: offsets of a table's log and the files between two of them.

Protocol: "Delta Log Entries", "Action Reconciliation", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from delta_pyds.catalog.managed import is_catalog_managed
from delta_pyds.errors import DeltaError, MissingLogFilesError, TimeTravelError, UserError
from delta_pyds.log.commit_times import TimedCommits
from delta_pyds.log.committer import LoggedCommit
from delta_pyds.log.segment import latest_version
from delta_pyds.protocol.stream_offset import BASE_INDEX, METADATA_CHANGE_INDEX, StreamOffset
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.scan.row_selection import RowSelection
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.stream.admission import Budget
from delta_pyds.table.stream.changes import StreamChanges
from delta_pyds.table.stream.commit import data_files
from delta_pyds.table.stream.commit_poller import CommitPoller, log_ends_before
from delta_pyds.table.stream.files import NO_FILES, StreamFiles, select_files
from delta_pyds.table.stream.initial_files import initial_files
from delta_pyds.table.stream.metadata import StreamMetadata
from delta_pyds.table.stream.options import StreamOptions
from delta_pyds.table.stream.schema_log import SchemaTracking
from delta_pyds.table.stream.start import check_starting_version, version_from

__all__ = ["StreamOptions", "StreamSource"]

logger = safe_logger(__name__)

# Commits that one batch looks at: those without data must neither make a batch each nor one that takes minutes.
_MAX_COMMITS = 1_000


class StreamSource:
    """Offsets of a stream, and the files between two of them.

    Invariant: what ``batches`` gives follows from its two offsets, the log and
    the options, so that any process gives the same; what is kept here is a
    cache. Every file that the options let through lies between exactly one
    pair of successive offsets. ``read``: the schema of the rows. ``selection``:
    of ``Relation.of(read)``, of a change feed that of ``changes.change_relation(read)``.
    For one thread.
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
        self._tail = CommitPoller(storage, table_root)
        self._metadata = StreamMetadata(
            read,
            self._open,
            tracking,
            change_feed=options.read_change_feed,
            starting_given=options.starting_given,
        )
        self._changes: StreamChanges | None = None
        if options.read_change_feed:
            self._changes = StreamChanges(
                storage, table_root, selection, options.exclude, lambda: self._metadata.newest
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
        """Where a query without a checkpoint begins; found once.

        Raises: TimeTravelError for a start that the log does not have; what opening the table raises.
        """
        if self._initial is None:
            self._initial = self._find_initial()
        return self._initial

    def _find_initial(self) -> StreamOffset:
        options = self._options
        if options.starting_timestamp_ms is not None:
            return self._at(version_from(self._storage, self._read, options.starting_timestamp_ms))
        if options.starting_version == "latest":
            return self._at(self._latest_version() + 1)
        if options.starting_version is not None:
            check_starting_version(self._storage, self._root, options.starting_version)
            return self._at(options.starting_version)
        # a query whose end is fixed reads the table as it is there
        self._snapshot = open_snapshot(self._storage, self._root, self._end_version)
        return StreamOffset(self._read.metadata.id, self._snapshot.version, is_initial=True)

    def fix_end(self) -> None:
        """No later offset goes beyond the version that is the latest now: ``Trigger.AvailableNow``."""
        latest = self._latest_version()
        if self._initial is not None and self._initial.is_initial:
            latest = max(latest, self._initial.version)
        self._end_version = latest

    def newest_offset(self) -> StreamOffset | None:
        """The offset after the newest commit seen, or None. Does no I/O."""
        seen = [v for v in (self._tail.newest, self._snapshot.version if self._snapshot else None) if v is not None]
        return self._at(max(seen) + 1) if seen else None

    def latest_offset(self, start: StreamOffset, *, unlimited: bool = False) -> StreamOffset:
        """The end of the batch that begins at ``start``, within the limits; ``start`` itself if nothing is there.

        Raises: UserError for an offset of another table, for commits that a stream cannot follow, and for schemas
            (see ``StreamMetadata``); MissingLogFilesError where the log was cleaned up before it was read.
        """
        self._check_table(start)
        self._forget(start)
        self._metadata.begin_tracking(start)
        if self._options.starting_version == "latest" and start == self._initial and not self._asked_from_initial:
            # an empty batch, so that the position is in the checkpoint before anything is read from it
            self._asked_from_initial = True
            return start
        if self._end_version is not None and start.version > self._end_version:
            return start
        self._metadata.begin(start)
        budget = Budget(None, None) if unlimited else Budget(self._options.max_files, self._options.max_bytes)
        return self._end_in_snapshot(start, budget) if start.is_initial else self._end_in_commits(start, budget)

    def _end_in_snapshot(self, start: StreamOffset, budget: Budget) -> StreamOffset:
        files = self._files_of_snapshot(start.version)
        place = files.place_after(start.index)
        end = place + budget.take(files.sizes[place:])
        if end == len(files):
            return self._at(start.version + 1)
        return replace(start, index=files.number(end - 1))

    def _end_in_commits(self, start: StreamOffset, budget: Budget) -> StreamOffset:
        end = start
        last = start.version + _MAX_COMMITS - 1
        for commit in self._commits(start.version, last if self._end_version is None else min(last, self._end_version)):
            if self._metadata.stops_at(commit):
                stop = self._at(commit.version, METADATA_CHANGE_INDEX)
                if stop.position <= start.position:
                    self._metadata.take_over(commit)
                return stop
            end = self._end_in_commit(commit, start, budget)
            if budget.full or end.version == commit.version:
                return end
        resumed = self._past_loss(end.version)
        return end if resumed == end.version else self._at(resumed)

    def _end_in_commit(self, commit: LoggedCommit, start: StreamOffset, budget: Budget) -> StreamOffset:
        if self._changes is not None:
            whole = budget.take_whole(self._changes.sizes(commit))
            return self._at(commit.version + 1 if whole else commit.version)
        files = self._files_of(commit)
        place = files.place_after(_read_of(commit.version, start))
        end = place + budget.take(files.sizes[place:])
        if end == len(files):
            return self._at(commit.version + 1)
        return self._at(commit.version, files.number(end - 1))

    # --- files

    def batches(self, start: StreamOffset, end: StreamOffset) -> Iterator[pa.RecordBatch]:
        """The files after ``start`` up to ``end``, as rows of ``columnar.scan_files``; no batch is empty.

        The start of a query's first batch is in no checkpoint: when that batch
        is run again, the one given may be newer than the end, which then decides.

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
            raise _unusable(self._root, end, "a change feed is read in whole commits")
        at = start.version
        times: TimedCommits | None = None
        for commit in self._commits(start.version, last):
            if self._metadata.stops_at(commit):
                self._metadata.take_over(commit)
            if self._changes is not None:
                times = times or self._changes.times(commit.version, last)
                rows = self._changes.rows(commit, times)
            else:
                until = end.index if commit.version == end.version else None
                rows = self._files_of(commit).between(_read_of(commit.version, start), until)
            at = commit.version + 1
            if rows.num_rows:
                yield rows
        at = self._past_loss(at)
        if at <= last:
            raise log_ends_before(self._storage, self._root, at)

    def committed(self, end: StreamOffset) -> None:
        """Forget what is before ``end``: this process will not ask for it again."""
        self._forget(end)

    def _forget(self, position: StreamOffset) -> None:
        self._tail.forget(position.version)
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
        """As ``CommitPoller.commits``, past what was cleaned up where the user accepts the loss."""
        first = self._past_loss(first)
        while first <= last:
            try:
                yield from self._tail.commits(first, last)
                return
            except MissingLogFilesError as error:
                if self._options.fail_on_data_loss or error.code != "DELTA_MISSING_FILES_UNEXPECTED_VERSION":
                    raise
                self._lost = range(int(error.parameters["version"]), int(error.parameters["earliest"]))
                first = self._lost.stop
                logger.warning(
                    "Versions %d to %d of table %r are gone from its log before the stream has read them. What they "
                    "changed is not read, for failOnDataLoss is false; the stream goes on with version %d.",
                    self._lost.start,
                    first - 1,
                    self._root,
                    first,
                )
                self._metadata.check_after_loss(first)

    def _past_loss(self, version: int) -> int:
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
            f"The stream was reading table {self._root!r} as it was at version {version}, and that version cannot be "
            f"recreated any more: {error.message} Start the query with a new checkpoint location, to read the whole "
            "table again; failOnDataLoss=false does not help here.",
            code="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
            table=self._root,
            version=version,
        )

    # --- positions

    def _at(self, version: int, index: int = BASE_INDEX) -> StreamOffset:
        return StreamOffset(self._read.metadata.id, version, index)

    def _start_of_snapshot(self, end: StreamOffset) -> StreamOffset:
        """Before the first file of the snapshot that a first batch with this end has read."""
        if end.is_initial:
            return replace(end, index=BASE_INDEX)
        if end.index != BASE_INDEX or end.version == 0:
            raise _unusable(self._root, end, "a first batch ends in the snapshot that the stream begins with")
        return StreamOffset(end.table_id, end.version - 1, is_initial=True)

    def _check_backwards(self, start: StreamOffset, end: StreamOffset) -> None:
        """A first batch that was empty and is run again may begin later; anything else is another stream's."""
        if start == self._initial and self._options.starting_version == "latest" and not end.is_initial:
            return
        raise _unusable(self._root, end, f"the batch is to begin after that, at {start.to_json()}")

    def _check_table(self, offset: StreamOffset) -> None:
        if offset.table_id != self._read.metadata.id:
            raise UserError(
                f"the checkpoint of the query is of the table with the id {offset.table_id}, and the table "
                f"{self._root!r} has the id {self._read.metadata.id}: it was replaced by another one. To read the "
                "new table, start the query with a new checkpoint location.",
                code="DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
                table=self._root,
                old_table_id=offset.table_id,
                new_table_id=self._read.metadata.id,
            )


def _read_of(version: int, start: StreamOffset) -> int:
    """The index of the last file of the version that was read before the batch."""
    return max(start.index, BASE_INDEX) if version == start.version else BASE_INDEX


def _unusable(table_root: str, end: StreamOffset, why: str) -> UserError:
    return UserError(
        f"the checkpoint of the query has an offset of table {table_root!r} that cannot be read up to: "
        f"{end.to_json()}, but {why}. The options that say where the stream begins were changed before its first batch "
        "was done, or the checkpoint is another query's: set the options as they were, or start the query with a new "
        "checkpoint location.",
        code="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        table=table_root,
    )
