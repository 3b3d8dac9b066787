"""A feature taken away, with all that the table has of it, so that writers that do not know it can go on.

Invariant: nothing of the table needs the feature when the protocol loses it, and the last commit comes right after
the version that was looked at: another writer may use the feature again in between. If it ends in the middle the table
is sound, and it can begin again.

A feature that readers have to know is in the table's history too, which then has to be protected or truncated: that
is refused by name here.

Protocol: "Table Features", "Row Tracking", "In-Commit Timestamps", "CHECK Constraints", "Domain Metadata".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec

from delta_pyds.commands.definition.change import DefinitionChange, DefinitionOptions, commit_change
from delta_pyds.errors import CommitRetriesExceededError, UnsupportedOperationError, UserError
from delta_pyds.protocol.actions import ROW_TRACKING_DOMAIN, AddFile, DomainMetadata
from delta_pyds.protocol.features import FEATURES, Feature, TableFeature, find_feature, weakest_protocol
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX, Property
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import CommitPolicy, Committed, Transaction

_UNBACKFILL = "ROW TRACKING UNBACKFILL"
# as the reference: a commit stays of a size that readers take at once
_FILES_AT_ONCE = 100_000
# how often another writer may be first before it is the user's to say what now
_MOST_RUNS = 5
# the reference keeps them in every table
_NEVER = frozenset(
    {Feature.APPEND_ONLY, Feature.INVARIANTS, Feature.CHANGE_DATA_FEED, Feature.GENERATED_COLUMNS, Feature.CLUSTERING}
    | {Feature.IDENTITY_COLUMNS, Feature.ALLOW_COLUMN_DEFAULTS, Feature.TIMESTAMP_NTZ, Feature.VARIANT_TYPE}
    | {Feature.ICEBERG_COMPAT_V1, Feature.ICEBERG_COMPAT_V2, Feature.ICEBERG_COMPAT_V3}
)
_DROPPABLE = frozenset(
    {Feature.CHECK_CONSTRAINTS, Feature.IN_COMMIT_TIMESTAMP, Feature.ROW_TRACKING, Feature.DOMAIN_METADATA}
)


def drop_feature(
    open_table: Callable[[], Snapshot], name: str, options: DefinitionOptions, *, truncate_history: bool = False
) -> Committed:
    """Take what the table has of the feature away, and then the feature from its protocol.

    Raises: UserError with DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE, ..._FEATURE_NOT_PRESENT,
        ..._NONREMOVABLE_FEATURE, ..._DEPENDENT_FEATURE, ..._HISTORY_TRUNCATION_NOT_ALLOWED or
        DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE; UnsupportedOperationError for a feature whose history has to be
        protected; a ConflictError where other writers were first, time after time.
    """
    for left in range(_MOST_RUNS - 1, -1, -1):
        snapshot = open_table()
        snapshot.configuration.check_writable()
        snapshot.storage.require_put_if_absent(snapshot.table_root)
        feature = _droppable(snapshot.configuration, name, truncate_history)
        prepared = _prepared(snapshot, feature, open_table, options)
        try:
            return _drop(prepared, feature, options)
        except CommitRetriesExceededError:
            if not left:
                raise
    raise AssertionError("unreachable")


def _droppable(configuration: TableConfiguration, name: str, truncate_history: bool) -> TableFeature:
    table = configuration.table_root
    feature = find_feature(name)
    if feature is None:
        raise _refusal(table, name, "UNSUPPORTED_CLIENT_FEATURE", "is no feature that this software knows")
    if not configuration.supports(feature.name):
        there = ", ".join(sorted(configuration.features))
        raise _refusal(table, feature.name, "FEATURE_NOT_PRESENT", f"is none of the table's, which are: {there}")
    if feature.name in _NEVER:
        raise _refusal(table, feature.name, "NONREMOVABLE_FEATURE", "stays in a table that has it")
    users = sorted(n for n in configuration.features if n in FEATURES and feature.name in FEATURES[n].requires)
    if users:
        raise _refusal(table, feature.name, "DEPENDENT_FEATURE", f"is needed by {', '.join(users)}: drop that first")
    if feature.name not in _DROPPABLE:
        raise UnsupportedOperationError(
            f"the table feature {feature.name} of table {table} is in versions that readers may still open, and this "
            "version of delta_pyds cannot drop a feature that the history has. Drop it with the engine that added it.",
            table=table,
            feature=feature.name,
        )
    if truncate_history:
        raise _refusal(
            table, feature.name, "HISTORY_TRUNCATION_NOT_ALLOWED", "is for writers alone, and no history needs to go"
        )
    return feature


def _prepared(
    snapshot: Snapshot, feature: TableFeature, open_table: Callable[[], Snapshot], options: DefinitionOptions
) -> Snapshot:
    """The table with nothing left of the feature but its name."""
    configuration = snapshot.configuration
    if feature.name == Feature.CHECK_CONSTRAINTS:
        left = sorted(k for k in configuration.configuration if k.lower().startswith(CONSTRAINT_PREFIX))
        if left:
            raise UserError(
                f"table {snapshot.table_root} has the CHECK constraints "
                f"{', '.join(key[len(CONSTRAINT_PREFIX) :] for key in left)}: drop them first (dropConstraint).",
                code="DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
                table=snapshot.table_root,
            )
    elif feature.name == Feature.DOMAIN_METADATA and snapshot.domain_metadata:
        raise _refusal(
            snapshot.table_root,
            feature.name,
            "DEPENDENT_FEATURE",
            f"is used: the table has the domains {', '.join(sorted(snapshot.domain_metadata))}",
        )
    elif feature.name == Feature.IN_COMMIT_TIMESTAMP and configuration.properties.in_commit_timestamps:
        _set(snapshot, {Property.ENABLE_IN_COMMIT_TIMESTAMPS: "false"}, options)
        return open_table()
    elif feature.name == Feature.ROW_TRACKING:
        return _without_row_ids(snapshot, open_table, options)
    return snapshot


def _without_row_ids(snapshot: Snapshot, open_table: Callable[[], Snapshot], options: DefinitionOptions) -> Snapshot:
    properties = snapshot.configuration.properties
    if properties.row_tracking or not properties.row_tracking_suspended:
        # no writer gives ids from here on
        _set(snapshot, {Property.ENABLE_ROW_TRACKING: "false", Property.ROW_TRACKING_SUSPENDED: "true"}, options)
        snapshot = open_table()
    batches = 0
    while files := list(islice(_with_ids(snapshot), _FILES_AT_ONCE)):
        transaction = Transaction(snapshot.storage, snapshot.table_root, snapshot)
        transaction.record_files(file.path for file in files)
        transaction.add(
            msgspec.structs.replace(file, data_change=False, base_row_id=None, default_row_commit_version=None)
            for file in files
        )
        transaction.commit(Operation(_UNBACKFILL, {"batchId": str(batches)}), user_metadata=options.user_metadata)
        batches += 1
        snapshot = open_table()
    return snapshot


def _with_ids(snapshot: Snapshot) -> Iterator[AddFile]:
    scan = plan_scan(snapshot)
    return (
        file for file in live_files(scan) if file.base_row_id is not None or file.default_row_commit_version is not None
    )


def _set(snapshot: Snapshot, properties: dict[str, str], options: DefinitionOptions) -> None:
    metadata = msgspec.structs.replace(
        snapshot.metadata, configuration={**snapshot.configuration.configuration, **properties}
    )
    commit_change(
        snapshot, DefinitionChange(Operation("SET TBLPROPERTIES", {"properties": properties}), metadata), options
    )


def _drop(snapshot: Snapshot, feature: TableFeature, options: DefinitionOptions) -> Committed:
    transaction = Transaction(snapshot.storage, snapshot.table_root, snapshot)
    left = snapshot.configuration.features - {feature.name}
    transaction.set_protocol(weakest_protocol(left), without=feature.name)
    gone = {
        Feature.ROW_TRACKING: (
            Property.ENABLE_ROW_TRACKING,
            Property.ROW_TRACKING_SUSPENDED,
            Property.MATERIALIZED_ROW_ID_COLUMN_NAME,
            Property.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME,
        ),
        Feature.IN_COMMIT_TIMESTAMP: (
            Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
            Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
        ),
    }.get(feature.name, ())
    kept = {key: value for key, value in snapshot.configuration.configuration.items() if key not in gone}
    transaction.set_metadata(msgspec.structs.replace(snapshot.metadata, configuration=kept))
    known = snapshot.domain_metadata.get(ROW_TRACKING_DOMAIN)
    if feature.name == Feature.ROW_TRACKING and known is not None:
        transaction.set_domain(DomainMetadata(ROW_TRACKING_DOMAIN, known.configuration, removed=True))
    parameters: dict[str, Any] = {"featureName": feature.name, "truncateHistory": False}
    return transaction.commit(
        Operation("DROP FEATURE", parameters),
        user_metadata=options.user_metadata,
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
