"""Schema changes during a stream: checked, and recorded if the user enabled schema tracking.

Protocol: "Change Metadata", "Protocol Evolution".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from delta_pyds.errors import MissingLogFilesError, TimeTravelError, UserError
from delta_pyds.log.committer import LoggedCommit
from delta_pyds.protocol.stream_offset import BASE_INDEX, StreamOffset
from delta_pyds.table.change_feed.change_scan import configuration_after
from delta_pyds.table.change_feed.computed import ComputeChanges, check_change_feed
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.stream.schema import check_same_table, check_stream_schema
from delta_pyds.table.stream.schema_log import SchemaTracking


class StreamMetadata:
    """The known protocols and metadata of a table, by version.

    Invariant: rows of a commit are read with ``read`` only after its protocol and metadata were compared with
    ``read``, as far as the log still has them.

    Args:
        compute_changes: how a change feed computes changes that were not recorded; None for a stream of rows.
    """

    def __init__(
        self,
        read: TableConfiguration,
        open_version: Callable[[int], Snapshot],
        tracking: SchemaTracking | None,
        *,
        compute_changes: ComputeChanges | None,
        starting_given: bool,
    ) -> None:
        self.read = read
        self._open = open_version
        self._tracking = tracking
        self._compute_changes = compute_changes
        self._starting_given = starting_given
        self._known = {read.version: read}
        self._begun = False
        self._first = read.version
        self._tracking_begun = False

    @property
    def newest(self) -> TableConfiguration:
        """The configuration of the newest known version."""
        return self._known[max(self._known)]

    def in_force_at(self, version: int) -> TableConfiguration:
        """The configuration of a version of the batch that is read: the same in every process.

        Raises: UserError (DELTA_MISSING_CHANGE_DATA) if the log no longer shows it.
        """
        # commits from the first one on were checked, so that only it may be unknown
        if not any(self._first <= v <= version for v in self._known):
            self._at(self._first)
        known = max((v for v in self._known if self._first <= v <= version), default=None)
        if known is None:
            raise UserError(
                f"the table {self.read.table_root} no longer has the metadata of version {self._first} in its log, so "
                "it is unknown whether changes were recorded there. Start the query with a new checkpoint location "
                "and a later startingVersion.",
                code="DELTA_MISSING_CHANGE_DATA",
                table=self.read.table_root,
                version=self._first,
            )
        return self._known[known]

    # --- the first position of this process

    def begin(self, start: StreamOffset) -> None:
        """Compare the schema at the start of the stream with the one that it reads with. Later calls do nothing.

        Raises: as ``check_stream_schema`` and ``SchemaTracking.check_unblocked``.
        """
        if self._begun:
            return
        self._first = start.version
        if self._tracking is not None and self._tracking.latest() is not None:
            self._tracking.check_unblocked()
        # the version of an initial snapshot is checked when its files are opened
        if not start.is_initial:
            found = self.read
            if start.version < self.read.version:
                found = self._at(start.version) or self.read
            self.check(found)
        self._begun = True

    def begin_tracking(self, start: StreamOffset) -> None:
        """Record the schema at the start of the stream in an empty schema log.

        Raises: UserError (DELTA_STREAMING_METADATA_EVOLUTION) if it differs from the one that the stream reads with.
        """
        if self._tracking is None or self._tracking_begun:
            return
        if self._tracking.latest() is None:
            first = self._in_force(start)
            check_same_table(self.read, first)
            self._tracking.append(first.version, first.metadata, first.protocol)
            if self._tracking.changes(self.read, first):
                raise self._evolved(first, self._tracking)
        self._tracking_begun = True

    def _in_force(self, start: StreamOffset) -> TableConfiguration:
        """The configuration of the start's version, or of the version before if no file of the commit was read."""
        version = start.version
        if not start.is_initial and start.index <= BASE_INDEX:
            version = max(version - 1, 0)
        if version == self.read.version:
            return self.read
        found = self._known.get(version) or self._at(version)
        if found is None and version < start.version:
            found = self._at(start.version)
        return found or self._open(version).configuration

    def _at(self, version: int) -> TableConfiguration | None:
        """The configuration after a version; None if it can no longer be determined."""
        try:
            found = self._open(version).configuration
        except (TimeTravelError, MissingLogFilesError):
            return None
        return self._known.setdefault(version, found)

    def forget(self, before: int) -> None:
        """Drop configurations of versions below ``before`` that are no longer in force."""
        in_force = max((v for v in self._known if v < before), default=before)
        self._known = {v: known for v, known in self._known.items() if v >= in_force or v == self.read.version}

    # --- later commits

    def check_after_loss(self, first: int) -> None:
        """Check the schema before ``first``: commits that were cleaned up may have changed it.

        Raises: as ``check``.
        """
        found = self._at(first - 1) or self._at(first)
        if found is not None:
            self.check(found)

    def check(self, found: TableConfiguration) -> None:
        """Refuse rows written under ``found`` if they cannot be read with the stream's schema.

        Raises: as ``check_stream_schema``; with schema tracking, as ``adopt_schema``.
        """
        self._known.setdefault(found.version, found)
        if self._tracking is None:
            check_stream_schema(
                self.read,
                found,
                backfilling=found.version < self.read.version,
                compute_changes=self._compute_changes,
                starting_given=self._starting_given,
            )
            return
        if self._tracking.changes(self.read, found):
            self._adopt_schema(found, self._tracking)
        if self._compute_changes is not None:
            check_change_feed(found, self._compute_changes)

    def stops_at(self, commit: LoggedCommit) -> bool:
        """Whether the stream must end before this commit, to adopt another schema first.

        Raises: as ``check``, without schema tracking.
        """
        found = self.of(commit)
        if found is None:
            return False
        if self._tracking is not None and self._tracking.changes(self.read, found):
            return True
        self.check(found)
        return False

    def of(self, commit: LoggedCommit) -> TableConfiguration | None:
        """The configuration after a commit that changes protocol or metadata; None for others.

        Raises: as ``load_configuration``.
        """
        if all(action.meta_data is None and action.protocol is None for action in commit.actions):
            return None
        known = self._known.get(commit.version)
        if known is not None:
            check_same_table(self.read, known)
            return known
        before = self._known.get(max((v for v in self._known if v < commit.version), default=self.read.version))
        assert before is not None
        found = configuration_after(before, commit.actions, commit.version)
        check_same_table(self.read, found)
        self._known[commit.version] = found
        return found

    def adopt_schema(self, commit: LoggedCommit) -> NoReturn:
        """Record the schema of the commit that the stream stopped before, so that the next run reads with it.

        Raises: UserError, always: DELTA_STREAMING_METADATA_EVOLUTION, or an error of ``SchemaTracking.append``.
        """
        found = self.of(commit)
        assert found is not None and self._tracking is not None
        self._adopt_schema(found, self._tracking)

    def _adopt_schema(self, found: TableConfiguration, tracking: SchemaTracking) -> NoReturn:
        tracking.append(found.version, found.metadata, found.protocol)
        raise self._evolved(found, tracking)

    def _evolved(self, found: TableConfiguration, tracking: SchemaTracking) -> UserError:
        return UserError(
            f"the schema of table {self.read.table_root} at version {found.version} differs from the one that the "
            f"stream reads with, of version {self.read.version}. The new schema is recorded in {tracking.directory!r}: "
            "restart the query, and it continues from here with that schema. No row is lost.",
            code="DELTA_STREAMING_METADATA_EVOLUTION",
            table=self.read.table_root,
            version=found.version,
            read_version=self.read.version,
            retryable=True,
        )
