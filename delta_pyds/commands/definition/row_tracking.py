"""Row ids for the existing files of a table, so that row tracking can be enabled.

Invariant: once the feature is supported, writers assign ids to every new file; existing files get their ids here, in
commits that change no row. An interrupted assignment can be repeated: files keep the ids that they have.

Protocol: "Row Tracking".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from delta_pyds.commands.definition.change import DefinitionChange, DefinitionOptions, commit_change
from delta_pyds.errors import ConflictError, UnsupportedOperationError
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.features import Feature
from delta_pyds.redaction import safe_logger
from delta_pyds.table.definition.protocol_upgrade import upgrade_protocol
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.conflict import BACKFILL
from delta_pyds.table.transaction.transaction import Transaction

logger = safe_logger(__name__)
# as in the reference, to limit the size of a commit
_FILES_AT_ONCE = 100_000
_MOST_CONFLICTS = 100


def backfill(open_table: Callable[[], Snapshot], options: DefinitionOptions) -> Snapshot:
    """Assign row ids to all files without them. Returns: the table afterwards.

    Other writers may change the table meanwhile. After a conflict, the table is opened again, and only the files that
    still lack ids are looked at.

    Raises: UnsupportedOperationError while the feature is being dropped; ProtocolError for a file with an unknown
        number of rows; as ``Transaction.commit``, but a ConflictError only after 100 conflicts.
    """
    batches = conflicts = 0
    while True:
        snapshot = open_table()
        try:
            if not _commit_next(snapshot, options, batches):
                return snapshot
            batches += snapshot.configuration.supports(Feature.ROW_TRACKING)
        except ConflictError as error:
            conflicts += 1
            if conflicts == _MOST_CONFLICTS:
                raise
            logger.info("Another commit changed %s. Its current files get row ids: %s", snapshot.table_root, error)


def _commit_next(snapshot: Snapshot, options: DefinitionOptions, batches: int) -> bool:
    """Commit the next step. Returns: False if no file lacks ids.

    ``batches``: the number of earlier commits that assigned ids.
    """
    snapshot.configuration.check_writable()
    snapshot.storage.require_put_if_absent(snapshot.table_root)
    properties = snapshot.configuration.properties
    if properties.row_tracking_suspended:
        raise UnsupportedOperationError(
            f"table {snapshot.table_root} assigns no row ids (delta.rowTrackingSuspended=true): unset that first.",
            code="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            table=snapshot.table_root,
        )
    if not snapshot.configuration.supports(Feature.ROW_TRACKING):
        commit_change(snapshot, _supporting_change(snapshot), options)
        return True
    files = list(islice(_without_ids(snapshot), _FILES_AT_ONCE))
    if not files:
        return False
    transaction = Transaction(snapshot)
    transaction.record_files(file.path for file in files)
    transaction.add(msgspec.structs.replace(file, data_change=False) for file in files)
    transaction.commit(Operation(BACKFILL, {"batchId": str(batches)}), user_metadata=options.user_metadata)
    logger.info("%d files of %s have row ids now.", len(files), snapshot.table_root)
    return True


def _supporting_change(snapshot: Snapshot) -> DefinitionChange:
    """The change that makes the table support the feature, without enabling it: rows may still lack ids."""
    features = (Feature.ROW_TRACKING, Feature.DOMAIN_METADATA)
    protocol = upgrade_protocol(
        snapshot.protocol, snapshot.metadata, domains=tuple(snapshot.domain_metadata.values()), features=features
    )
    shown = json.loads(msgspec.json.encode(protocol))
    return DefinitionChange(Operation("UPGRADE PROTOCOL", {"newProtocol": shown}), snapshot.metadata, protocol=protocol)


def _without_ids(snapshot: Snapshot) -> Iterator[AddFile]:
    scan = plan_scan(snapshot, where=None, time_zone="UTC", storage_options={})
    return (file for file in live_files(scan) if file.base_row_id is None)
