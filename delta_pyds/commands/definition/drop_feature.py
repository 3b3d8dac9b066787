"""A feature taken away, with all that the table has of it, so that engines that do not know it can go on.

Invariant: nothing of the table needs the feature when the protocol loses it, and that commit comes right after the
version that was looked at: another writer may use the feature again in between. Versions before it that readers could
not read without the feature are protected or truncated (``dropped_history``). If it ends in the middle the table is
sound, and it can begin again.

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
from delta_pyds.commands.definition.feature_traces import Dropping, has_traces, remove_traces, unset
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

# how often another writer may use the feature again before it is the user's to say what now
_MOST_RUNS = 5
# how often another writer may be first with a commit that has nothing to do with the feature
_MOST_ATTEMPTS = 50
# those of readers among them need their history protected
_DROPPABLE = frozenset(
    {Feature.CHECK_CONSTRAINTS, Feature.IN_COMMIT_TIMESTAMP, Feature.ROW_TRACKING, Feature.DOMAIN_METADATA}
    | {Feature.DELETION_VECTORS, Feature.COLUMN_MAPPING, Feature.V2_CHECKPOINT, Feature.VACUUM_PROTOCOL_CHECK}
    | {Feature.TYPE_WIDENING, Feature.TYPE_WIDENING_PREVIEW, Feature.MATERIALIZE_PARTITION_COLUMNS}
    | {Feature.CHECKPOINT_PROTECTION}
)
# what goes with the feature itself
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
    """Another writer has made use of the feature, or changed the table's definition."""


def drop_feature(dropping: Dropping, name: str, *, truncate_history: bool = False) -> Committed:
    """Take what the table has of the feature away, and then the feature from its protocol.

    ``truncate_history``: versions that use the feature are deleted instead of protected. That is in two calls: the
    first ends in DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD where the table still used the feature.

    Raises: UserError with DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE, ..._FEATURE_NOT_PRESENT,
        ..._FEATURE_IS_DELTA_PROPERTY, ..._NONREMOVABLE_FEATURE, ..._DEPENDENT_FEATURE,
        ..._HISTORY_TRUNCATION_NOT_ALLOWED, ..._WAIT_FOR_RETENTION_PERIOD, ..._HISTORICAL_VERSIONS_EXIST,
        ..._CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD,
        DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION or
        DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE; UnsupportedOperationError for a table of a catalog; DeltaError with
        ..._CHECKPOINT_FAILED; a ConflictError where other writers were first, time after time
        (..._CONFLICT_REVALIDATION_FAIL where they use the feature).
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
            # each step is a commit of its own, so the next run goes on from the last of them
            logger.info("A step of dropping %s from %s lost a race: %s", feature.name, snapshot.table_root, error)
            lost = error
    raise ConflictError(
        f"the table feature {feature.name} was not dropped from table {snapshot.table_root}: other writers use it, or "
        f"changed the table's definition, {_MOST_RUNS} times. Let them end first, and drop it again. What was turned "
        "off for it stays off till then (of rowTracking: delta.enableRowTracking=false, "
        "delta.rowTrackingSuspended=true).",
        code="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        table=snapshot.table_root,
        feature=feature.name,
    ) from lost


def _droppable(configuration: TableConfiguration, name: str, truncate_history: bool) -> TableFeature:
    table = configuration.table_root
    if configuration.by_catalog:
        raise UnsupportedOperationError(
            f"the table {table} is managed by a catalog, which was not asked what it needs of its features: none is "
            "dropped.",
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
        raise _refusal(table, feature.name, "NONREMOVABLE_FEATURE", "stays in a table that has it")
    protection = feature.name == Feature.CHECKPOINT_PROTECTION
    if truncate_history and not (feature.for_readers or protection):
        raise _refusal(
            table, feature.name, "HISTORY_TRUNCATION_NOT_ALLOWED", "is for writers alone, and no history needs to go"
        )
    if protection and not truncate_history:
        raise UserError(
            f"the table feature {feature.name} of table {table} protects versions of which readers may not know all "
            "features: it can go only with them (truncateHistory).",
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
        changed = remove_traces(dropping, snapshot, feature.name)
        if feature.for_readers and truncates:
            truncate_history(dropping, feature.name, just_removed=changed)
        elif feature.for_readers:
            put_barrier(dropping, feature.name)
    committed = _drop_unused(dropping, feature, truncates)
    if feature.for_readers and not truncates:
        try:
            put_checkpoint(dropping.open_table(), feature.name)
        except Exception as error:  # readers do without
            logger.warning("%s is dropped, but no checkpoint followed: %s", feature.name, error)
    return committed


def _drop_unused(dropping: Dropping, feature: TableFeature, truncates: bool) -> Committed:
    """Commit right after a version that does not use the feature, whatever others append meanwhile."""
    first = snapshot = dropping.open_table()
    if has_traces(first, feature.name):
        raise _InUseAgainError
    for left in range(_MOST_ATTEMPTS - 1, -1, -1):
        try:
            return _drop(snapshot, feature, dropping, truncates)
        except (MetadataChangedError, ProtocolChangedError):
            raise _InUseAgainError from None
        except CommitRetriesExceededError:
            if not left:
                raise
        seen, snapshot = snapshot.version, dropping.open_table()
        # an identity column's mark is in the schema, and changes with each append
        same = (snapshot.configuration.configuration, snapshot.protocol) == (
            first.configuration.configuration,
            first.protocol,
        )
        if not same or used_since(snapshot, seen, feature.name):
            raise _InUseAgainError
    raise AssertionError("unreachable")


def _drop(snapshot: Snapshot, feature: TableFeature, dropping: Dropping, truncates: bool) -> Committed:
    transaction = Transaction(snapshot)
    left = snapshot.configuration.features - {feature.name}
    gone = _PROPERTIES.get(feature.name, ())
    kept = {key: value for key, value in snapshot.configuration.configuration.items() if key not in gone}
    if feature.for_readers and not truncates:
        left |= {Feature.CHECKPOINT_PROTECTION}
        kept[Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION] = str(snapshot.version + 1)
    transaction.set_protocol(lowest_protocol(left), without=feature.name)
    transaction.set_metadata(msgspec.structs.replace(snapshot.metadata, configuration=kept))
    known = snapshot.domain_metadata.get(ROW_TRACKING_DOMAIN)
    if feature.name == Feature.ROW_TRACKING and known is not None:
        transaction.set_domain(DomainMetadata(ROW_TRACKING_DOMAIN, known.configuration, removed=True))
    parameters: dict[str, Any] = {"featureName": feature.name, "truncateHistory": truncates}
    return transaction.commit(
        Operation("DROP FEATURE", parameters),
        user_metadata=dropping.options.user_metadata,
        # what was looked at must be the very version before
        policy=CommitPolicy(max_attempts=1),
    )


def _refusal(table: str, feature: str, kind: str, why: str) -> UserError:
    return UserError(
        f"the table feature {feature} cannot be dropped from table {table}: it {why}.",
        code=f"DELTA_FEATURE_DROP_{kind}",
        table=table,
        feature=feature,
    )
