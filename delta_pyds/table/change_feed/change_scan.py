"""A scan of the changes that a range of versions made to a table.

Protocol: "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.catalog.opening import task_options
from delta_pyds.columnar.older_arrow import concat_batches
from delta_pyds.columnar.path_keys import path_keys
from delta_pyds.columnar.scan_files import to_scan_files
from delta_pyds.errors import (
    DeltaError,
    FileNotFoundInStorageError,
    MissingLogFilesError,
    TimeTravelError,
    UserError,
)
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.commit_reader import read_commits
from delta_pyds.log.commit_times import TimedCommits, timed_commits
from delta_pyds.log.listing import LogFile, commit_by_name, list_log
from delta_pyds.protocol.actions import SingleAction
from delta_pyds.protocol.paths import log_directory, path_key
from delta_pyds.protocol.schema import StructType
from delta_pyds.storage.base import Storage
from delta_pyds.table.change_feed.changes import (
    FileChange,
    change_files,
    change_relation,
    changes_of,
    check_partition_values,
    kept_changes,
    selected_changes,
    without_partition_values,
)
from delta_pyds.table.change_feed.computed import Comparisons, ComputeChanges, check_change_feed, is_recorded
from delta_pyds.table.change_feed.net import NetFiles
from delta_pyds.table.change_feed.read_compatibility import table_incompatibility
from delta_pyds.table.change_feed.report import COMMITS_SCHEMA, ChangesReport, read_of_commit
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.history import CommitTimes, InCommitTimestamps
from delta_pyds.table.scan.row_selection import Relation, RowSelection, select_rows
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.tasks.scan_state import ScanFile, ScanState

_FILES_AT_ONCE = 8_192


@dataclass(frozen=True)
class ChangeRange:
    """Existing versions of a table, both ends inclusive."""

    first: int
    last: int


@dataclass(frozen=True)
class _CommitChanges:
    """The changes of one commit, with the files that must be compared marked."""

    version: int
    actions: Sequence[SingleAction]
    changes: Sequence[FileChange]
    recorded: bool


@dataclass(frozen=True)
class ChangeScan:
    """A planned read of changes: a selection of a change relation's rows.

    Attributes:
        latest: the snapshot that the range was chosen from.
        start: the table's configuration at the range's first version.
        read: the configuration whose columns are read.
        compute: how changes are computed that were not recorded.
        net: whether all commits of the range count as one, whose changes are computed.
    """

    selection: RowSelection
    range: ChangeRange
    latest: Snapshot
    start: TableConfiguration
    read: TableConfiguration
    compute: ComputeChanges = "auto"
    net: bool = False

    @property
    def state(self) -> ScanState:
        """The part that every task gets."""
        return self.selection.state

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the files to read as rows of ``columnar.scan_files``, in the order of their commits.

        ``data.read.computed_changes`` finds the changed rows of files that are compared with each other.

        Raises:
            MissingLogFilesError: a commit of the range was cleaned up.
            UserError: changes were not recorded and cannot be computed as the user wants, the table is another one, or
                its rows do not fit the columns.
            TimeTravelError: the version before the range was cleaned up, and is needed.
            UnsupportedFeatureError, ProtocolError: a version cannot be read.
        """
        # commits are small, and skipping costs as much for ten files as for thousands
        found: list[pa.RecordBatch] = []
        rows = 0
        for commit in self._changes():
            if not commit.changes:
                continue
            files = self._as_files(commit)
            found.append(files)
            rows += files.num_rows
            if rows >= _FILES_AT_ONCE:
                yield selected_changes(concat_batches(found), self.selection)
                found, rows = [], 0
        if found:
            yield selected_changes(concat_batches(found), self.selection)

    def explain(self) -> ChangesReport:
        """Report how the changes of each commit are found, and what that reads. Reads the log only.

        Raises: as ``batches``.
        """
        commits = [
            read_of_commit(c.version, c.changes, kept_changes(self._as_files(c), self.selection), recorded=c.recorded)
            for c in self._changes()
        ]
        found = pa.Table.from_pylist(commits, schema=COMMITS_SCHEMA)
        where = self.selection.where
        return ChangesReport(self.latest.table_root, self.range.first, self.range.last, self.net, where, found)

    @cached_property
    def _times(self) -> TimedCommits:
        split = InCommitTimestamps.of(self.latest.configuration.properties)
        return timed_commits(
            self.latest.storage,
            self.latest.table_root,
            self.range.first,
            self.range.last,
            in_commit=None if split is None else split.from_version,
        )

    def _commits(self) -> Iterator[tuple[int, Sequence[SingleAction], TableConfiguration]]:
        """Yield each commit with the configuration after it, once its rows are known to be readable."""
        first = self.range.first
        storage, root = self.latest.storage, self.latest.table_root
        current = self.start
        for file, actions in read_commits(storage, _commit_files(self._times, self.range, root)):
            version = file.version
            if version > first:
                before, current = current, configuration_after(current, actions, version)
                if current is not before:
                    check_same_table(current, self.read)
                    check_change_feed(current, self.compute, net=self.net)
                    _check_readable(current, self.read, self.range)
            elif (
                version > 0
                and any(a.meta_data is not None for a in actions)
                and any(c.kind == "delete" for c in changes_of(actions))
            ):
                # rows that this commit deleted have the previous schema, and are shown in the columns after the commit
                _check_readable(self._before_range().configuration, self.read, self.range, removed=True)
            yield version, actions, current

    def _before_range(self) -> Snapshot:
        first, root = self.range.first, self.latest.table_root
        try:
            return open_snapshot(self.latest.storage, root, first - 1)
        except TimeTravelError as error:
            kind = "net changes" if self.net else "changes"
            raise TimeTravelError(
                f"the {kind} of the table {root} from version {first} on need version {first - 1} too, which its log "
                "no longer has. Start at a later version.",
                table=root,
                version=first - 1,
                start=first,
            ) from error

    def _changes(self) -> Iterator[_CommitChanges]:
        """Yield the changes of each commit, or the net ones as those of the last."""
        return self._net_changes() if self.net else self._changes_of_commits()

    def _changes_of_commits(self) -> Iterator[_CommitChanges]:
        comparisons = Comparisons(self.compute, self.selection.state.time_zone)
        for version, actions, configuration in self._commits():
            changes = self._with_partition_values(changes_of(actions), version)
            recorded = is_recorded(changes, configuration)
            if changes:
                changes = comparisons.of(changes, configuration)
            yield _CommitChanges(version, actions, changes, recorded)

    def _net_changes(self) -> Iterator[_CommitChanges]:
        net = NetFiles()
        tracked = self.start.has_row_tracking
        for version, actions, configuration in self._commits():
            net.take(actions)
            tracked = tracked and configuration.has_row_tracking
            if version == self.range.last:
                first = self.range.first
                before = self._before_range() if net.needs_snapshot and first else None
                changes = self._with_partition_values(changes_of(net.actions(before)), first)
                comparisons = Comparisons(self.compute, self.selection.state.time_zone)
                changes = comparisons.compared(changes, configuration, tracked=tracked)
                yield _CommitChanges(version, actions, changes, recorded=False)

    def _with_partition_values(self, changes: Sequence[FileChange], version: int) -> Sequence[FileChange]:
        relation = self.selection.relation
        found = with_partition_values(changes, self.latest.storage, relation, version)
        check_partition_values(found, relation, version)
        return found

    def _as_files(self, commit: _CommitChanges) -> pa.RecordBatch:
        info = next((a.commit_info for a in commit.actions if a.commit_info is not None), None)
        timestamp_ms = self._times.timestamp_ms(commit.version, info)
        return change_files(commit.changes, version=commit.version, timestamp_ms=timestamp_ms)

    def files(self) -> Iterator[ScanFile]:
        """Yield the files to read as ``ScanFile`` values; see ``batches``."""
        for batch in self.batches():
            yield from to_scan_files(batch, self.latest.table_root)


def change_range(
    latest: Snapshot,
    *,
    starting_version: int | None = None,
    starting_timestamp_ms: int | None = None,
    ending_version: int | None = None,
    ending_timestamp_ms: int | None = None,
) -> ChangeRange:
    """The versions that options name, both ends inclusive. If an end has a version and a time, the version wins.

    Args:
        starting_timestamp_ms: starts at the first commit at or after it.
        ending_timestamp_ms: ends at the last commit at or before it. An end beyond the latest version, or no end,
            means the latest version.
    Raises:
        UserError: DELTA_NO_START_FOR_CDC_READ, DELTA_CDC_START_VERSION_AFTER_LATEST, DELTA_INVALID_CDC_RANGE.
        TimeTravelError: the commit of the start was cleaned up, or a time is outside of the table's history.
    """
    root = latest.table_root
    if starting_version is None and starting_timestamp_ms is None:
        raise UserError(
            f"the change feed of the table {root} needs a start: give startingVersion or startingTimestamp.",
            code="DELTA_NO_START_FOR_CDC_READ",
            table=root,
        )
    times: CommitTimes | None = None
    if (starting_version is None) or (ending_version is None and ending_timestamp_ms is not None):
        times = CommitTimes(
            latest.storage,
            root,
            properties=latest.configuration.properties,
            latest_version=latest.version,
        )
    first = starting_version
    if first is None:
        assert times is not None and starting_timestamp_ms is not None
        first = times.first_at_or_after(starting_timestamp_ms)
    if first > latest.version:
        raise UserError(
            f"the changes of the table {root} cannot start at version {first}: its latest version is "
            f"{latest.version}. Start at that version or an earlier one.",
            code="DELTA_CDC_START_VERSION_AFTER_LATEST",
            table=root,
            start=first,
            latest=latest.version,
        )
    last = latest.version if ending_version is None else min(ending_version, latest.version)
    if ending_version is None and ending_timestamp_ms is not None:
        assert times is not None
        last = times.last_at_or_before(ending_timestamp_ms)
    if last < first:
        raise UserError(
            f"the changes of the table {root} cannot start at version {first} and end before it, at version "
            f"{last}. Let the range end at or after its start.",
            code="DELTA_INVALID_CDC_RANGE",
            table=root,
            start=first,
            end=last,
        )
    _check_commit_exists(latest, first)
    return ChangeRange(first, last)


def plan_changes(
    latest: Snapshot,
    versions: ChangeRange,
    *,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    schema: StructType | None = None,
    time_zone: str = "UTC",
    storage_options: Mapping[str, Any] | None = None,
    verify_page_checksums: bool = True,
    compute: ComputeChanges = "auto",
    net: bool = False,
) -> ChangeScan:
    """Plan a read of the changes of the range; the other arguments are those of ``table.scan.scan.plan_scan``.

    Changes of versions with the feed on are recorded. Others are computed: see ``computed``. With ``net``, the rows are
    those that differ between the version before the range and its last one, as changes of that one.

    The columns are the latest ones, or with column mapping those of the range's last version, followed by the change
    columns.

    Raises: as ``ChangeScan.batches``; ExpressionError, ColumnNotFoundError, UserError;
        TimeTravelError, MissingLogFilesError if the log no longer has a schema of the range.
    """
    start = _configuration_at(latest, versions.first)
    read = latest.configuration
    if read.column_mapping_mode != "none":
        read = start if versions.last == versions.first else _configuration_at(latest, versions.last)
    check_same_table(start, read)
    check_change_feed(start, compute, net=net)
    _check_readable(start, read, versions)
    selection = select_changes(
        read,
        where=where,
        columns=columns,
        schema=schema,
        time_zone=time_zone,
        storage_options=task_options(latest.storage, storage_options),
        verify_page_checksums=verify_page_checksums,
    )
    return ChangeScan(selection, versions, latest, start, read, compute, net)


def select_changes(read: TableConfiguration, **choice: Any) -> RowSelection:
    """Choose rows and columns of the change feed; the arguments are those of ``table.scan.row_selection.select_rows``.

    Raises: as ``change_relation`` and ``select_rows``.
    """
    selection = select_rows(change_relation(read), **choice)
    columns = StructType(tuple(f for f in read.schema if f.name not in read.partition_columns))
    return replace(selection, state=replace(selection.state, compared_columns=columns))


def configuration_after(
    before: TableConfiguration, actions: Sequence[SingleAction], version: int
) -> TableConfiguration:
    """The configuration after a commit; ``before`` itself if the commit does not change it.

    Raises: UnsupportedFeatureError, ProtocolError, as ``load_configuration``.
    """
    metadata, protocol = before.metadata, before.protocol
    for action in actions:
        metadata = action.meta_data or metadata
        protocol = action.protocol or protocol
    if metadata is before.metadata and protocol is before.protocol:
        return before
    return before.redefined(version, protocol, metadata)


def check_same_table(found: TableConfiguration, read: TableConfiguration) -> None:
    """Raises: UserError (DELTA_TABLE_ID_MISMATCH) if another table replaced the one that is read."""
    if found.metadata.id != read.metadata.id:
        raise UserError(
            f"the table at {found.table_root} has the id {found.metadata.id} at version {found.version} but "
            f"{read.metadata.id} at version {read.version}: one table was replaced by another, and the changes of the "
            "two cannot be read together. Choose a range of versions after the replacement.",
            code="DELTA_TABLE_ID_MISMATCH",
            table=found.table_root,
            version=found.version,
        )


def with_partition_values(
    changes: Sequence[FileChange], storage: Storage, relation: Relation, version: int
) -> Sequence[FileChange]:
    """The changes of a commit, with partition values that early writers left out taken from the previous version.

    Changes stay as they are if that version cannot be read.
    Protocol: "Add File and Remove File" (``extendedFileMetadata``).
    """
    lacking = without_partition_values(changes, relation)
    if not lacking or version == 0:
        return changes
    paths = pa.array([path_key(c.path) for c in lacking], pa.string())
    wanted = AddRequest(
        columns=("path", "partitionValues", "size"),
        filter_fields=("path",),
        parsed_filter_fields=("path",),
        keep=lambda add: pc.is_in(path_keys(add.field("path").cast(pa.string())), value_set=paths),
    )
    found: dict[str, dict[str, Any]] = {}
    try:
        for batch in open_snapshot(storage, relation.table_root, version - 1).adds(wanted):
            found.update((path_key(row["path"]), row) for row in batch.files.to_pylist())
    except DeltaError:
        return changes  # the caller refuses changes without partition values
    unknown = {id(c) for c in lacking}
    return [_filled(c, found[key]) if id(c) in unknown and (key := path_key(c.path)) in found else c for c in changes]


def _filled(change: FileChange, add: Mapping[str, Any]) -> FileChange:
    return msgspec.structs.replace(
        change,
        partition_values=dict(add["partitionValues"] or ()),
        size=change.size if change.size is not None else add["size"],
    )


def _check_readable(
    found: TableConfiguration, read: TableConfiguration, versions: ChangeRange, *, removed: bool = False
) -> None:
    difference = table_incompatibility(found, read, removed=removed)
    if difference is None:
        return
    at_start = found.version <= versions.first
    if read.column_mapping_mode != "none":
        advice = "Read the versions before that change and those from it on separately."
    else:
        advice = "Start at the first version with these columns, or a later one."
    raise UserError(
        f"the changes of the table {found.table_root} from version {versions.first} to {versions.last} are read with "
        f"the columns of version {read.version}, which do not fit the rows of version {found.version}: {difference}. "
        f"{advice}",
        code="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"
        if at_start
        else "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
        table=found.table_root,
        version=found.version,
        read_version=read.version,
    )


def _configuration_at(latest: Snapshot, version: int) -> TableConfiguration:
    if version == latest.version:
        return latest.configuration
    return open_snapshot(latest.storage, latest.table_root, version).configuration


def _commit_files(commits: TimedCommits, versions: ChangeRange, table_root: str) -> Iterator[LogFile]:
    version = versions.first
    while version <= versions.last:
        file = commits.files.get(version)
        if file is None:
            raise MissingLogFilesError(
                f"the changes of the table {table_root} from version {versions.first} to {versions.last} cannot be "
                f"read: the commit of version {version} is no longer in its log. If the log was cleaned up, start at a "
                f"later version; otherwise restore {version:020d}.json in {log_directory(table_root)}.",
                table=table_root,
                version=version,
                missing_version=version,
            )
        yield file
        version += 1


def _check_commit_exists(latest: Snapshot, first: int) -> None:
    root = latest.table_root
    if first >= 0:
        try:
            commit_by_name(latest.storage, root, first)
            return
        except FileNotFoundInStorageError:
            pass
    versions = [file.version for file in list_log(latest.storage, root, 0, latest.version).commits]
    existing = f"those of versions {versions[0]} to {versions[-1]}" if versions else "none"
    raise TimeTravelError(
        f"the changes of the table {root} cannot start at version {first}: its log has no commit of that version. The "
        f"commits in the log: {existing}.",
        table=root,
        version=first,
        earliest=versions[0] if versions else None,
        latest=latest.version,
    )
