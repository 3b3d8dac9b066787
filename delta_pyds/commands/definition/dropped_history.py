"""The versions before a feature was dropped: protected or deleted.

Invariant: a reader without the feature never has to open a version that uses it. Either checkpoints separate those
versions from the later ones, and no clean-up deletes these checkpoints while older commits remain
(``checkpointProtection``); or no version of the log uses the feature any more.

Protocol: "Table Features", "Metadata Cleanup"; the reference's table feature ``checkpointProtection``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import get_args

from delta_pyds.commands.definition.feature_artifacts import Dropping, has_artifacts
from delta_pyds.errors import DeltaError, UserError
from delta_pyds.log.cleanup import clean_log, protected_before
from delta_pyds.log.commit_reader import read_commits
from delta_pyds.log.listing import list_log
from delta_pyds.log.segment import CheckpointKind, complete_checkpoints
from delta_pyds.protocol.actions import Metadata, SingleAction
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.properties import Property, parse_interval_ms
from delta_pyds.protocol.schema import TYPE_CHANGES
from delta_pyds.redaction import safe_logger
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.maintenance import checkpoint_and_clean
from delta_pyds.table.transaction.transaction import Transaction

logger = safe_logger(__name__)

# The reference's readers try two older checkpoints if they cannot use one.
_BARRIERS = 3
_CHECKPOINT_ATTEMPTS = 3
_MINUTE_MS = 60_000
_KINDS = get_args(CheckpointKind)


def put_barrier(dropping: Dropping, feature: str) -> None:
    """Write three checkpoints, each after a commit of its own, after all versions that use the feature.

    Raises: DeltaError (DELTA_FEATURE_DROP_CHECKPOINT_FAILED).
    """
    for _ in range(_BARRIERS):
        _commit_nothing(dropping)
        put_checkpoint(dropping.open_table(), feature)


def put_checkpoint(snapshot: Snapshot, feature: str) -> None:
    """Write a checkpoint of that version. Raises: DeltaError (DELTA_FEATURE_DROP_CHECKPOINT_FAILED)."""
    version, reason = snapshot.version, ""
    for _ in range(_CHECKPOINT_ATTEMPTS):
        try:
            checkpoint_and_clean(snapshot.storage, snapshot.replay, now_ms=_now_ms())
        except Exception as error:  # the checkpoint may exist anyway: only the clean-up after it may have failed
            reason = f": {error}"
        listing = list_log(snapshot.storage, snapshot.table_root, version, version)
        # a reader without the feature may support V2 checkpoints, unless these are the feature
        usable = ("classic", "multipart") if feature == Feature.V2_CHECKPOINT else _KINDS
        if any(checkpoint.kind in usable for checkpoint in complete_checkpoints(listing)):
            return
    raise DeltaError(
        f"the table feature {feature} was not dropped from table {snapshot.table_root}, because no checkpoint of "
        f"version {version} could be written{reason}. The table is valid; drop the feature again.",
        code="DELTA_FEATURE_DROP_CHECKPOINT_FAILED",
        table=snapshot.table_root,
        feature=feature,
    )


def truncate_history(dropping: Dropping, feature: str, *, just_removed: bool) -> None:
    """Delete old versions of the log, and check that no remaining version uses the feature.

    ``just_removed``: this drop has just removed artifacts, so the previous version still used the feature.

    Raises: UserError (DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD, DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST).
    """
    _commit_nothing(dropping)
    snapshot = dropping.open_table()
    put_checkpoint(snapshot, feature)
    if just_removed:
        raise _wait(snapshot, feature, "WAIT_FOR_RETENTION_PERIOD", "was in use until now, so old versions use it")
    _truncate(snapshot)
    if _history_uses(snapshot, feature):
        raise _wait(snapshot, feature, "HISTORICAL_VERSIONS_EXIST", "is not used any more, but old versions use it")


def truncate_protected(dropping: Dropping, snapshot: Snapshot) -> None:
    """Delete all versions that the table protects.

    Raises: UserError (DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD).
    """
    if _is_truncated(snapshot):
        return
    _commit_nothing(dropping)
    snapshot = dropping.open_table()
    put_checkpoint(snapshot, Feature.CHECKPOINT_PROTECTION)
    _truncate(snapshot)
    if not _is_truncated(snapshot):
        raise _wait(
            snapshot,
            Feature.CHECKPOINT_PROTECTION,
            "CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
            "protects versions that use dropped features",
        )


def _commit_nothing(dropping: Dropping) -> None:
    snapshot = dropping.open_table()
    transaction = Transaction(snapshot)
    transaction.commit(Operation("Empty Commit", {}), user_metadata=dropping.options.user_metadata)


def _truncate(snapshot: Snapshot) -> None:
    configuration = snapshot.configuration
    removed = clean_log(
        snapshot.storage,
        snapshot.table_root,
        retention_ms=_retention_ms(snapshot),
        now_ms=_now_ms(),
        configuration=configuration.configuration,
        protocol=configuration.protocol,
        granularity_ms=_MINUTE_MS,
        truncate=True,
    )
    logger.info("%d files of the log of %s were deleted.", removed, snapshot.table_root)


def _retention_ms(snapshot: Snapshot) -> int:
    """The retention of history for a drop. Raises: UserError (DELTA_INVALID_TABLE_PROPERTY)."""
    key = Property.DROP_FEATURE_TRUNCATE_HISTORY_RETENTION_DURATION
    text = snapshot.configuration.configuration.get(key) or "interval 24 hours"
    try:
        return parse_interval_ms(text)
    except ValueError:
        raise UserError(
            f"the table property {key} of table {snapshot.table_root} is '{text}', which is not a duration such as "
            "'interval 24 hours'. Set it to a duration.",
            code="DELTA_INVALID_TABLE_PROPERTY",
            table=snapshot.table_root,
            property=key,
        ) from None


# --- remaining versions


def _is_truncated(snapshot: Snapshot) -> bool:
    protected = protected_before(snapshot.configuration.configuration, snapshot.protocol)
    if Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION not in snapshot.configuration.configuration:
        # without the property (a replacement of the table removes it) all earlier versions may need protection
        protected = snapshot.version
    if protected <= 0:
        return True
    listing = list_log(snapshot.storage, snapshot.table_root, 0, snapshot.version)
    if any(file.version < protected for file in (*listing.commits, *listing.checkpoints)):
        return False
    return bool(complete_checkpoints(listing))


def _history_uses(snapshot: Snapshot, feature: str) -> bool:
    """Whether a version that can be reconstructed uses the feature, even if its protocol does not list it."""
    listing = list_log(snapshot.storage, snapshot.table_root, 0, snapshot.version)
    if feature == Feature.V2_CHECKPOINT and any(file.name.uuid is not None for file in listing.checkpoints):
        return True
    first = min((checkpoint.version for checkpoint in complete_checkpoints(listing)), default=None)
    if first is not None and has_artifacts(open_snapshot(snapshot.storage, snapshot.table_root, first), feature):
        return True
    return any(_use(actions, feature) for _, actions in read_commits(snapshot.storage, listing.commits))


def used_since(snapshot: Snapshot, version: int, feature: str) -> bool:
    """Whether the table uses the feature since a later version than the given one, which did not use it.

    Only files in later commits are checked, so that a large table is not read again after each commit of others.
    """
    if feature not in (Feature.DELETION_VECTORS, Feature.ROW_TRACKING):
        return has_artifacts(snapshot, feature)
    commits = list_log(snapshot.storage, snapshot.table_root, version + 1, snapshot.version).commits
    if [file.version for file in commits] != list(range(version + 1, snapshot.version + 1)):
        return True
    return any(
        line.add is not None
        and (line.add.deletion_vector if feature == Feature.DELETION_VECTORS else line.add.base_row_id) is not None
        for _, actions in read_commits(snapshot.storage, commits)
        for line in actions
    )


def _use(actions: Iterable[SingleAction], feature: str) -> bool:
    for action in actions:
        if action.meta_data is not None and _metadata_uses(action.meta_data, feature):
            return True
        if feature == Feature.DELETION_VECTORS:
            file = action.add or action.remove
            if file is not None and file.deletion_vector is not None:
                return True
    return False


def _metadata_uses(metadata: Metadata, feature: str) -> bool:
    configuration = metadata.configuration or {}
    if feature == Feature.DELETION_VECTORS:
        return (configuration.get(Property.ENABLE_DELETION_VECTORS) or "").strip().lower() == "true"
    if feature == Feature.COLUMN_MAPPING:
        return (configuration.get(Property.COLUMN_MAPPING_MODE) or "none").strip().lower() != "none"
    if feature == Feature.V2_CHECKPOINT:
        return (configuration.get(Property.CHECKPOINT_POLICY) or "classic").strip().lower() == "v2"
    if feature in (Feature.TYPE_WIDENING, Feature.TYPE_WIDENING_PREVIEW):
        return TYPE_CHANGES in (metadata.schema_string or "")
    return False


def _wait(snapshot: Snapshot, feature: str, kind: str, why: str) -> UserError:
    properties = snapshot.configuration.properties
    hours = _retention_ms(snapshot) / 3_600_000
    return UserError(
        f"the table feature {feature} of table {snapshot.table_root} {why}. Drop it again with truncateHistory when "
        f"those versions are {hours:g} hours old ({Property.DROP_FEATURE_TRUNCATE_HISTORY_RETENTION_DURATION}; without "
        f"truncation the log keeps them for {properties.log_retention_ms / 86_400_000:g} days, "
        f"{Property.LOG_RETENTION_DURATION}).",
        code=f"DELTA_FEATURE_DROP_{kind}",
        table=snapshot.table_root,
        feature=feature,
    )


def _now_ms() -> int:
    return int(time.time() * 1000)
