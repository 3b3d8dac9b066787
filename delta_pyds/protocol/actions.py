"""The actions of the log, with the protocol's field names.

Decoding ignores fields that are not listed, as the protocol requires of readers.
Protocol: "Actions".
"""

from __future__ import annotations

from typing import Any

import msgspec

from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.foreign_json import Int32, Int64
from delta_pyds.protocol.paths import path_key

# names of metadata domains. Protocol: "Domain Metadata"
ROW_TRACKING_DOMAIN = "delta.rowTracking"
CLUSTERING_DOMAIN = "delta.clustering"


class Action(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base class. JSON names are the attribute names in camel case."""


class Format(Action, frozen=True):
    provider: str = "parquet"
    options: dict[str, str | None] | None = None


class Metadata(Action, frozen=True):
    """The table's schema, partitioning and properties. Protocol: "Change Metadata"."""

    id: str = ""
    name: str | None = None
    description: str | None = None
    format: Format | None = None
    schema_string: str | None = None
    partition_columns: list[str] | None = None
    created_time: Int64 | None = None
    configuration: dict[str, str | None] | None = None


class Protocol(Action, frozen=True):
    """The versions and features that readers and writers must support. Protocol: "Protocol Evolution"."""

    min_reader_version: Int32
    min_writer_version: Int32
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class AddFile(Action, frozen=True):
    """A logical file that is added to the table. Protocol: "Add File and Remove File".

    ``size`` is in bytes, ``modification_time`` in milliseconds since the epoch, ``stats`` is JSON text.
    """

    path: str
    partition_values: dict[str, str | None] | None = None
    size: Int64 = 0
    modification_time: Int64 = 0
    data_change: bool = True
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: Int64 | None = None
    default_row_commit_version: Int64 | None = None
    clustering_provider: str | None = None


class RemoveFile(Action, frozen=True):
    """A logical file that is removed from the table; a tombstone until it expires.

    Protocol: "Add File and Remove File".
    """

    path: str
    deletion_timestamp: Int64 | None = None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: dict[str, str | None] | None = None
    size: Int64 | None = None
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: Int64 | None = None
    default_row_commit_version: Int64 | None = None


class AddCDCFile(Action, frozen=True):
    """A file of change rows. Protocol: "Add CDC File"."""

    path: str
    partition_values: dict[str, str | None] | None = None
    size: Int64 = 0
    data_change: bool = False
    tags: dict[str, str | None] | None = None


class SetTransaction(Action, frozen=True):
    """The last version that an application has written. Protocol: "Transaction Identifiers"."""

    app_id: str
    version: Int64
    last_updated: Int64 | None = None


class DomainMetadata(Action, frozen=True):
    """Configuration of a named domain; with ``removed`` a tombstone. Protocol: "Domain Metadata"."""

    domain: str
    configuration: str = ""
    removed: bool = False


class Sidecar(Action, frozen=True):
    """A file of file actions that a V2 checkpoint refers to. Protocol: "Sidecar File Information"."""

    path: str
    size_in_bytes: Int64 = 0
    modification_time: Int64 = 0
    tags: dict[str, str | None] | None = None


class CheckpointMetadata(Action, frozen=True):
    """Marks a V2 checkpoint. Protocol: "Checkpoint Metadata"."""

    version: Int64
    tags: dict[str, str | None] | None = None


class CommitInfo(Action, frozen=True):
    """Provenance of a commit: free-form, except the fields that readers use.

    Protocol: "Commit Provenance Information".
    """

    # first, as in the reference: readers look for it in the first bytes of the file
    in_commit_timestamp: Int64 | None = None
    timestamp: Int64 | None = None
    operation: str | None = None
    operation_parameters: Any = None
    operation_metrics: Any = None
    user_metadata: Any = None
    user_id: Any = None
    user_name: Any = None
    job: Any = None
    notebook: Any = None
    cluster_id: Any = None
    read_version: Any = None
    isolation_level: Any = None
    is_blind_append: Any = None
    data_change: Any = None
    engine_info: Any = None
    txn_id: Any = None
    tags: Any = None


class SingleAction(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a commit file. Exactly one field is set; none for an action that this release does not know."""

    add: AddFile | None = None
    remove: RemoveFile | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    txn: SetTransaction | None = None
    domain_metadata: DomainMetadata | None = None
    cdc: AddCDCFile | None = None
    commit_info: CommitInfo | None = None
    sidecar: Sidecar | None = None
    checkpoint_metadata: CheckpointMetadata | None = None


def file_key(file: AddFile | RemoveFile) -> tuple[str, str | None]:
    """The key of a logical file: its path's key and its deletion vector's id. Protocol: "Action Reconciliation"."""
    vector = file.deletion_vector
    return path_key(file.path), None if vector is None else vector.unique_id
