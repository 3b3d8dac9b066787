"""The actions of the log, field by field as the protocol names them.

Protocol: "Actions". Decoding ignores fields that are not listed, as the
protocol demands of readers.
"""

from __future__ import annotations

from typing import Any, Optional

import msgspec

from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor

# msgspec resolves these annotations at run time, on Python 3.10 too: hence Optional and Dict's builtin form.


class Action(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base: JSON names are the camel case of the attribute names."""


class Format(Action, frozen=True):
    provider: str = "parquet"
    options: Optional[dict[str, Optional[str]]] = None


class Metadata(Action, frozen=True):
    """The table's schema, partitioning and properties. Protocol: "Change Metadata"."""

    id: str = ""
    name: Optional[str] = None
    description: Optional[str] = None
    format: Optional[Format] = None
    schema_string: Optional[str] = None
    partition_columns: Optional[list[str]] = None
    created_time: Optional[int] = None
    configuration: Optional[dict[str, Optional[str]]] = None


class Protocol(Action, frozen=True):
    """What a reader and a writer must understand. Protocol: "Protocol Evolution"."""

    min_reader_version: int
    min_writer_version: int
    reader_features: Optional[list[str]] = None
    writer_features: Optional[list[str]] = None


class AddFile(Action, frozen=True):
    """A logical file that joins the table. ``size`` in bytes, ``modification_time`` in ms, ``stats`` as JSON text."""

    path: str
    partition_values: Optional[dict[str, Optional[str]]] = None
    size: int = 0
    modification_time: int = 0
    data_change: bool = True
    stats: Optional[str] = None
    tags: Optional[dict[str, Optional[str]]] = None
    deletion_vector: Optional[DeletionVectorDescriptor] = None
    base_row_id: Optional[int] = None
    default_row_commit_version: Optional[int] = None
    clustering_provider: Optional[str] = None


class RemoveFile(Action, frozen=True):
    """A logical file that leaves the table; a tombstone until it expires."""

    path: str
    deletion_timestamp: Optional[int] = None
    data_change: bool = True
    extended_file_metadata: Optional[bool] = None
    partition_values: Optional[dict[str, Optional[str]]] = None
    size: Optional[int] = None
    stats: Optional[str] = None
    tags: Optional[dict[str, Optional[str]]] = None
    deletion_vector: Optional[DeletionVectorDescriptor] = None
    base_row_id: Optional[int] = None
    default_row_commit_version: Optional[int] = None


class AddCDCFile(Action, frozen=True):
    """A file of change rows. Protocol: "Add CDC File"."""

    path: str
    partition_values: Optional[dict[str, Optional[str]]] = None
    size: int = 0
    data_change: bool = False
    tags: Optional[dict[str, Optional[str]]] = None


class SetTransaction(Action, frozen=True):
    """The last version that an application has written. Protocol: "Transaction Identifiers"."""

    app_id: str
    version: int
    last_updated: Optional[int] = None


class DomainMetadata(Action, frozen=True):
    """Configuration of a named domain; ``removed`` is a tombstone. Protocol: "Domain Metadata"."""

    domain: str
    configuration: str = ""
    removed: bool = False


class Sidecar(Action, frozen=True):
    """A file of file actions that a V2 checkpoint refers to. Protocol: "Sidecar File Information"."""

    path: str
    size_in_bytes: int = 0
    modification_time: int = 0
    tags: Optional[dict[str, Optional[str]]] = None


class CheckpointMetadata(Action, frozen=True):
    """Marks a V2 checkpoint. Protocol: "Checkpoint Metadata"."""

    version: int
    tags: Optional[dict[str, Optional[str]]] = None


class CommitInfo(Action, frozen=True):
    """Provenance of a commit; free-form but for the fields that readers use. Protocol: "Commit Provenance Information"."""

    timestamp: Optional[int] = None
    in_commit_timestamp: Optional[int] = None
    operation: Optional[str] = None
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
    engine_info: Any = None
    txn_id: Any = None
    tags: Any = None


class SingleAction(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a commit file: exactly one field is set, or none for an action of a later protocol."""

    add: Optional[AddFile] = None
    remove: Optional[RemoveFile] = None
    meta_data: Optional[Metadata] = None
    protocol: Optional[Protocol] = None
    txn: Optional[SetTransaction] = None
    domain_metadata: Optional[DomainMetadata] = None
    cdc: Optional[AddCDCFile] = None
    commit_info: Optional[CommitInfo] = None
    sidecar: Optional[Sidecar] = None
    checkpoint_metadata: Optional[CheckpointMetadata] = None


def file_key(file: AddFile | RemoveFile) -> tuple[str, str | None]:
    """The key of a logical file: its path and its deletion vector's id. Protocol: "Action Reconciliation"."""
    vector = file.deletion_vector
    return file.path, None if vector is None else vector.unique_id
