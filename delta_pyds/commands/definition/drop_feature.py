"""Dropping a feature and its artifacts, so that engines without the feature can use the table.

Invariant: nothing in the table needs the feature when it is removed from the protocol. The removing commit directly
follows the version that was checked, because another writer might use the feature again in between. Earlier versions
that readers cannot read without the feature are protected or truncated (``dropped_history``). If the drop is
interrupted, the table is valid, and the drop can be repeated.

Protocol: "Table Features"; the reference's table feature ``checkpointProtection``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from delta_pyds.commands.definition.dropped_history import (
    put_barrier,
    put_checkpoint,
    truncate_history,
    truncate_protected,
    used_since,
)
from delta_pyds.commands.definition.feature_artifacts import Dropping, has_artifacts, remove_artifacts, unset
from delta_pyds.errors import (
    CommitRetriesExceededError,
    ConflictError,
    MetadataChangedError,
    ProtocolChangedError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.protocol.actions import ROW_TRACKING_DOMAIN, DomainMetadata
from delta_pyds.protocol.features import FEATURES, Feature, TableFeature, find_feature, lowest_protocol
from delta_pyds.protocol.properties import Property
from delta_pyds.redaction import safe_logger
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.property_rules import PROPERTY_RULES
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import CommitPolicy, Committed, Transaction

logger = safe_logger(__name__)

# the drop fails if another writer uses the feature again this often
_MOST_RUNS = 5
# the drop fails if another writer is first with an unrelated commit this often
_MOST_ATTEMPTS = 50
# the drop of a reader feature must protect or truncate the history
_DROPPABLE = frozenset(
    {Feature.CHECK_CONSTRAINTS, Feature.IN_COMMIT_TIMESTAMP, Feature.ROW_TRACKING, Feature.DOMAIN_METADATA}
    | {Feature.DELETION_VECTORS, Feature.COLUMN_MAPPING, Feature.V2_CHECKPOINT, Feature.VACUUM_PROTOCOL_CHECK}
    | {Feature.TYPE_WIDENING, Feature.TYPE_WIDENING_PREVIEW, Feature.MATERIALIZE_PARTITION_COLUMNS}
    | {Feature.CHECKPOINT_PROTECTION}
)
# properties that are removed with the feature
_PROPERTIES = {
    Feature.ROW_TRACKING: (
        Property.ENABLE_ROW_TRACKING,
        Property.ROW_TRACKING_SUSPENDED,
        Property.MATERIALIZED_ROW_ID_COLUMN_NAME,
        Property.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME,
    ),
    Feature.MATERIALIZE_PARTITION_COLUMNS: (Property.ENABLE_MATERIALIZE_PARTITION_COLUMNS_FEATURE,),
}


class _InUseAgainError(Exception):
    """Another writer has used the feature again, or changed the table's definition."""


def drop_feature(dropping: Dropping, name: str, *, truncate_history: bool = False) -> Committed:
    """Remove the feature's artifacts from the table, and then the feature from its protocol.

    ``truncate_history``: versions that use the feature are deleted instead of protected. This takes two calls: the
    first one raises DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD if the table still used the feature.

    Raises: UserError with DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE, ..._FEATURE_NOT_PRESENT,
        ..._FEATURE_IS_DELTA_PROPERTY, ..._NONREMOVABLE_FEATURE, ..._DEPENDENT_FEATURE,
        ..._HISTORY_TRUNCATION_NOT_ALLOWED, ..._WAIT_FOR_RETENTION_PERIOD, ..._HISTORICAL_VERSIONS_EXIST,
        ..._CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD,
        DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION or
        DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE; UnsupportedOperationError for a table of a catalog; DeltaError with
        ..._CHECKPOINT_FAILED; a ConflictError if other writers were repeatedly first (..._CONFLICT_REVALIDATION_FAIL
        if they use the feature).
    """
    lost: ConflictError | None = None
    for _ in range(_MOST_RUNS):
        snapshot = dropping.open_table()
        snapshot.configuration.check_writable()
        snapshot.storage.require_put_if_absent(snapshot.table_root)
        feature = _droppable(snapshot.configuration, name, truncate_history)
        try:
            return _run(dropping, snapshot, feature, truncate_history)
        except _InUseAgainError:
            logger.info("Another writer changed %s while %s was dropped.", snapshot.table_root, feature.name)
        except ConflictError as error:
            # each step is a separate commit, so the next run continues after the last one
            logger.info("A step of dropping %s from %s lost a race: %s", feature.name, snapshot.table_root, error)
            lost = error
    raise ConflictError(
        f"the table feature {feature.name} was not dropped from table {snapshot.table_root}: other writers use it, or "
        f"changed the table's definition, {_MOST_RUNS} times. Stop them first, and drop it again. Until then, settings "
        "that were turned off for the drop stay off (for rowTracking: delta.enableRowTracking=false, "
        "delta.rowTrackingSuspended=true).",
        code="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        table=snapshot.table_root,
        feature=feature.name,
    ) from lost


def _droppable(configuration: TableConfiguration, name: str, truncate_history: bool) -> TableFeature:
    table = configuration.table_root
    if configuration.by_catalog:
        raise UnsupportedOperationError(
            f"the table {table} is managed by a catalog, which may need its features, so features cannot be dropped. "
            "Nothing was changed.",
            code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
            table=table,
        )
    feature = find_feature(name)
    if feature is None:
        if any(name.lower() == key.lower() for key in PROPERTY_RULES):
            raise _refusal(table, name, "FEATURE_IS_DELTA_PROPERTY", "is a table property (unsetProperties)")
        raise _refusal(table, name, "UNSUPPORTED_CLIENT_FEATURE", "is not a feature that delta_pyds supports")
    if not configuration.supports(feature.name):
        there = ", ".join(sorted(configuration.features))
        raise _refusal(table, feature.name, "FEATURE_NOT_PRESENT", f"is not a feature of the table, which has: {there}")
    if feature.name not in _DROPPABLE:
        raise _refusal(table, feature.name, "NONREMOVABLE_FEATURE", "can never be removed from a table")
    protection = feature.name == Feature.CHECKPOINT_PROTECTION
    if truncate_history and not (feature.for_readers or protection):
        raise _refusal(
            table, feature.name, "HISTORY_TRUNCATION_NOT_ALLOWED", "is a writer feature, which needs no truncation"
        )
    if protection and not truncate_history:
        raise UserError(
            f"the table feature {feature.name} of table {table} protects versions with features that readers may not "
            "support: it can only be dropped together with these versions (truncateHistory).",
            code="DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
            table=table,
            feature=feature.name,
        )
    users = sorted(n for n in configuration.features if n in FEATURES and feature.name in FEATURES[n].requires)
    if users:
        raise _refusal(table, feature.name, "DEPENDENT_FEATURE", f"is needed by {', '.join(users)}: drop that first")
    return feature


def _run(dropping: Dropping, snapshot: Snapshot, feature: TableFeature, truncates: bool) -> Committed:
    if feature.name == Feature.CHECKPOINT_PROTECTION:
        truncate_protected(dropping, snapshot)
        unset(dropping, dropping.open_table(), Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION)
    else:
        changed = remove_artifacts(dropping, snapshot, feature.name)
        if feature.for_readers and truncates:
            truncate_history(dropping, feature.name, just_removed=changed)
        elif feature.for_readers:
            put_barrier(dropping, feature.name)
    committed = _drop_unused(dropping, feature, truncates)
    if feature.for_readers and not truncates:
        try:
            put_checkpoint(dropping.open_table(), feature.name)
        except Exception as error:  # readers do not need this checkpoint
            logger.warning("%s is dropped, but no checkpoint followed: %s", feature.name, error)
    return committed


def _drop_unused(dropping: Dropping, feature: TableFeature, truncates: bool) -> Committed:
    """Commit right after a version that does not use the feature, even if others append meanwhile."""
    first = snapshot = dropping.open_table()
    if has_artifacts(first, feature.name):
        raise _InUseAgainError
    for left in reversed(range(_MOST_ATTEMPTS)):
        try:
            return _drop(snapshot, feature, dropping, truncates)
        except (MetadataChangedError, ProtocolChangedError):
            raise _InUseAgainError from None
        except CommitRetriesExceededError:
            if not left:
                raise
        seen, snapshot = snapshot.version, dropping.open_table()
        # an identity column's mark is in the schema, and changes with each append
        properties, before = snapshot.configuration.configuration, first.configuration.configuration
        changed = properties != before or snapshot.protocol != first.protocol
        if changed or used_since(snapshot, seen, feature.name):
            raise _InUseAgainError
    raise AssertionError("unreachable")


def _drop(snapshot: Snapshot, feature: TableFeature, dropping: Dropping, truncates: bool) -> Committed:
    transaction = Transaction(snapshot)
    left = snapshot.configuration.features - {feature.name}
    gone = _PROPERTIES.get(feature.name, ())
    properties = {key: value for key, value in snapshot.configuration.configuration.items() if key not in gone}
    if feature.for_readers and not truncates:
        left |= {Feature.CHECKPOINT_PROTECTION}
        properties[Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION] = str(snapshot.version + 1)
    transaction.set_protocol(lowest_protocol(left), without=feature.name)
    transaction.set_metadata(msgspec.structs.replace(snapshot.metadata, configuration=properties))
    domain = snapshot.domain_metadata.get(ROW_TRACKING_DOMAIN)
    if feature.name == Feature.ROW_TRACKING and domain is not None:
        transaction.set_domain(DomainMetadata(ROW_TRACKING_DOMAIN, domain.configuration, removed=True))
    parameters: dict[str, Any] = {"featureName": feature.name, "truncateHistory": truncates}
    return transaction.commit(
        Operation("DROP FEATURE", parameters),
        user_metadata=dropping.options.user_metadata,
        # the version that was checked must be the one directly before
        policy=CommitPolicy(max_attempts=1),
    )


def _refusal(table: str, feature: str, kind: str, why: str) -> UserError:
    return UserError(
        f"the table feature {feature} cannot be dropped from table {table}: it {why}.",
        code=f"DELTA_FEATURE_DROP_{kind}",
        table=table,
        feature=feature,
    )
