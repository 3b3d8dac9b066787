"""Creating and replacing tables, for the builders of ``DeltaTable``.

Invariant: after success the path has a table with the requested columns; after an error it is unchanged. A replaced
table keeps its history and its features; the version with the new columns also removes all rows.

Protocol: "Change Metadata", "Protocol Evolution".
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from delta_pyds.catalog.opening import features_of_new_table, properties_of_new_table, table_storage
from delta_pyds.commands.write.existing_data import check_no_other_format
from delta_pyds.errors import ProtocolChangedError, TableNotFoundError, UserError
from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import Concealing
from delta_pyds.storage.base import Storage
from delta_pyds.table.definition.create import TableDefinition, new_table
from delta_pyds.table.definition.replacement import kept_properties, replacing_definition
from delta_pyds.table.scan.live_files import REMOVAL_COLUMNS, live_files, removal
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Committed, TableToCreate, Transaction

CreateMode = Literal["create", "create_if_not_exists", "replace", "create_or_replace"]


@dataclass(frozen=True, repr=False)
class CreateRequest(Concealing):
    """The requested table. ``partition_columns``, ``clustering_columns``: names, the latter with dots."""

    table_root: str
    mode: CreateMode
    columns: StructType
    partition_columns: tuple[str, ...] = ()
    clustering_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None
    user_metadata: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)


def existing_table(request: CreateRequest) -> Snapshot | None:
    """The existing table at the path; None if there is no table.

    Raises: UserError if the mode does not allow it (TABLE_OR_VIEW_ALREADY_EXISTS, TABLE_OR_VIEW_NOT_FOUND), or if the
        directory holds data of another format; errors of a damaged log.
    """
    storage = table_storage(request.table_root, request.storage_options)
    try:
        snapshot = open_snapshot(storage, request.table_root)
    except TableNotFoundError:
        if request.mode == "replace":
            raise TableNotFoundError(
                f"there is no table at {request.table_root} to replace. DeltaTable.createOrReplace creates it.",
                code="TABLE_OR_VIEW_NOT_FOUND",
                table=request.table_root,
            ) from None
        check_no_other_format(storage, request.table_root)
        return None
    if request.mode == "create":
        raise UserError(
            f"the table at {request.table_root} already exists (version {snapshot.version}). Nothing was changed: "
            "DeltaTable.createIfNotExists leaves it unchanged, DeltaTable.createOrReplace replaces it.",
            code="TABLE_OR_VIEW_ALREADY_EXISTS",
            table=request.table_root,
        )
    return snapshot


def create_table(request: CreateRequest) -> Committed | None:
    """Create or replace the table; None if it exists and stays unchanged (``create_if_not_exists``).

    Raises: as ``existing_table``; as ``new_table`` for invalid columns and properties; a ConflictError if another
        commit was first.
    """
    for _ in range(2):
        snapshot = existing_table(request)
        if snapshot is not None and request.mode == "create_if_not_exists":
            return None
        try:
            return _create(request) if snapshot is None else _replace(request, snapshot)
        except ProtocolChangedError:
            # another writer has created the table meanwhile: try again with the existing table
            if snapshot is not None or request.mode == "create_or_replace":
                raise
    raise AssertionError("unreachable")


def _create(request: CreateRequest) -> Committed:
    storage = table_storage(request.table_root, request.storage_options)
    storage.require_put_if_absent(request.table_root)
    made = _definition(request, storage)
    transaction = Transaction(TableToCreate(storage, request.table_root))
    transaction.set_metadata(made.metadata)
    transaction.set_protocol(made.protocol)
    for domain in made.domains:
        transaction.set_domain(domain)
    name = "CREATE OR REPLACE TABLE" if request.mode == "create_or_replace" else "CREATE TABLE"
    return transaction.commit(_operation(name, request, made.metadata), user_metadata=request.user_metadata)


def _definition(request: CreateRequest, storage: Storage) -> TableDefinition:
    return new_table(
        request.table_root,
        request.columns,
        partition_columns=request.partition_columns,
        clustering_columns=request.clustering_columns,
        properties=properties_of_new_table(storage, request.properties),
        features=features_of_new_table(storage),
        description=request.description,
        keep_nullability=True,
    )


def _replace(request: CreateRequest, snapshot: Snapshot) -> Committed:
    storage, before = snapshot.storage, snapshot.configuration
    before.check_writable()
    storage.require_put_if_absent(request.table_root)
    kept = replace(request, properties=kept_properties(before, request.properties))
    made = replacing_definition(before, snapshot.domain_metadata, _definition(kept, storage))
    metadata = made.metadata
    transaction = Transaction(snapshot)
    transaction.record_whole_table()
    transaction.set_metadata(metadata)
    transaction.set_protocol(made.protocol)
    for domain in made.domains:
        transaction.set_domain(domain)
    now_ms = int(time.time() * 1000)
    scan = plan_scan(snapshot, where=None, time_zone="UTC", storage_options=request.storage_options)
    transaction.remove(
        removal(file, deletion_timestamp_ms=now_ms, data_change=True) for file in live_files(scan, REMOVAL_COLUMNS)
    )
    name = "REPLACE TABLE" if request.mode == "replace" else "CREATE OR REPLACE TABLE"
    return transaction.commit(_operation(name, request, metadata), user_metadata=request.user_metadata)


def _operation(name: str, request: CreateRequest, metadata: Metadata) -> Operation:
    return Operation(
        name,
        {
            "isManaged": "false",
            "description": request.description,
            "partitionBy": list(metadata.partition_columns or ()),
            "clusterBy": list(request.clustering_columns),
            "properties": dict(metadata.configuration or {}),
        },
    )
