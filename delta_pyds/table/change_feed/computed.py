"""Which files of a commit are compared with each other, where the table did not record its changes.

Protocol: "Row Tracking", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import count
from typing import Final, Literal

import msgspec

from delta_pyds.errors import ProtocolError, UserError
from delta_pyds.protocol.partition_values import format_partition_value, parse_partition_value
from delta_pyds.table.change_feed.changes import FileChange
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.tasks.scan_state import ComparedFile, RowIdColumns

ComputeChanges = Literal["auto", "rowIds", "values", "never"]
"""The ways to compute changes that were not recorded: by row ids where the table has row tracking and by values
elsewhere (auto), by row ids or by values always, or not at all."""

COMPUTE_CHANGES: Final[tuple[ComputeChanges, ...]] = ("auto", "rowIds", "values", "never")


class Comparisons:
    """The comparisons of a scan: it numbers their groups.

    Args:
        compute: how the user wants changes to be computed.
        time_zone: of partition values without one.
    """

    def __init__(self, compute: ComputeChanges, time_zone: str) -> None:
        self._compute = compute
        self._time_zone = time_zone
        self._groups = count()

    def of(self, changes: Sequence[FileChange], configuration: TableConfiguration) -> Sequence[FileChange]:
        """The changes of one commit, with the files that must be compared marked.

        A commit that only adds or only removes rows has nothing to compare. Files that are not marked keep their kind:
        all their rows are inserts, or deletes.

        Args:
            changes: with partition values.
            configuration: after the commit.
        Raises: UserError for changes that were not recorded: DELTA_MISSING_CHANGE_DATA if ``compute`` is never, or if
            it is rowIds and the table has no row tracking.
        """
        if is_recorded(changes, configuration):
            return changes
        check_change_feed(configuration, self._compute)
        return self.compared(changes, configuration, tracked=configuration.has_row_tracking)

    def compared(
        self, changes: Sequence[FileChange], configuration: TableConfiguration, *, tracked: bool
    ) -> Sequence[FileChange]:
        """The same for changes that are always computed. ``tracked``: row tracking was on at each compared version.

        Raises: UserError (DELTA_MISSING_CHANGE_DATA) if ``compute`` is rowIds, and ``tracked`` is False or a file has
            no row ids.
        """
        if len({c.kind for c in changes}) < 2:
            return changes
        # early writers, and tables before their backfill, have files without row ids
        known = all(c.base_row_id is not None and c.default_row_commit_version is not None for c in changes)
        if self._compute != "values" and tracked and known:
            return self._compared(changes, configuration.row_id_columns())
        if self._compute == "rowIds":
            raise _no_row_ids(configuration)
        marked: list[FileChange] = []
        for members in self._partitions(changes, configuration):
            marked += self._compared(members, None) if len({c.kind for c in members}) == 2 else members
        return marked

    def _compared(self, changes: Sequence[FileChange], row_ids: RowIdColumns | None) -> list[FileChange]:
        group = next(self._groups)
        return [msgspec.structs.replace(c, compared=ComparedFile(group, c.kind == "delete", row_ids)) for c in changes]

    def _partitions(
        self, changes: Sequence[FileChange], configuration: TableConfiguration
    ) -> Iterator[list[FileChange]]:
        """Yield the changes of each partition: rows of two partitions are not equal."""
        types = [
            (f.physical_name, f.data_type) for f in configuration.schema if f.name in configuration.partition_columns
        ]
        found: defaultdict[Hashable, list[FileChange]] = defaultdict(list)
        for change in changes:
            texts = change.partition_values or {}
            try:
                # as text again: NaN is one value, and -0.0 is another one than 0.0
                key = tuple(
                    format_partition_value(parse_partition_value(texts.get(name), kind, self._time_zone), kind)
                    for name, kind in types
                )
            except ProtocolError:
                # the task that reads the file reports it
                key = tuple(texts.get(name) for name, _ in types)
            found[key].append(change)
        yield from found.values()


def is_recorded(changes: Sequence[FileChange], configuration: TableConfiguration) -> bool:
    """Whether a commit recorded its changes. ``configuration``: after it."""
    return configuration.properties.change_data_feed or any(c.kind == "cdc" for c in changes)


def check_change_feed(found: TableConfiguration, compute: ComputeChanges, *, net: bool = False) -> None:
    """Check that the changes of a version are recorded, or can be computed as the user wants.

    Args:
        net: they are always computed.
    Raises: UserError (DELTA_MISSING_CHANGE_DATA).
    """
    if found.properties.change_data_feed and not net:
        return
    if compute == "never":
        reason = "net changes are always computed" if net else "its change feed is off there"
        raise UserError(
            f"the changes of the table {found.table_root} must be computed at version {found.version}: {reason}. But "
            "the option computeChanges is never, which refuses this. Leave out computeChanges. Or read only versions "
            "in which the feed is on, and no net changes; the table property delta.enableChangeDataFeed=true turns it "
            "on for later versions.",
            code="DELTA_MISSING_CHANGE_DATA",
            table=found.table_root,
            version=found.version,
        )
    if compute == "rowIds" and not found.has_row_tracking:
        raise _no_row_ids(found)


def _no_row_ids(found: TableConfiguration) -> UserError:
    reason = "its rows have no ids there"
    if found.has_row_tracking:
        reason = "the log has no row ids for a file that this version changed"
    return UserError(
        f"the changes of the table {found.table_root} cannot be computed by row ids at version {found.version}: "
        f"{reason}. Leave out the option computeChanges, or computeUpdates of Spark's own read of changes. Then rows "
        "are compared by their values, and an update is a delete and an insert.",
        code="DELTA_MISSING_CHANGE_DATA",
        table=found.table_root,
        version=found.version,
    )
