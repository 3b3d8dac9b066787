"""Encoding of actions as the lines of a commit file. Protocol: "Actions", "Delta Log Entries".

Fields that the protocol requires are always written; optional ones are left
out if they are None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor

StringMap = dict[str, "str | None"]

_A = TypeVar("_A", bound=Action)


def encode_commit(actions: Iterable[Action]) -> bytes:
    """Encode actions as a commit: one line for each action, in the given order.

    A ``commitInfo`` must be first, as the protocol requires for tables with
    in-commit timestamps.

    Raises: ProtocolError for a metaData without id or schema; ValueError for a
        commitInfo that is not the first action.
    """
    encode_into = msgspec.json.Encoder().encode_into
    out = bytearray()
    for action in actions:
        prefix, wire = _KINDS[type(action)]
        if out and type(action) is CommitInfo:
            raise ValueError("commitInfo must be the first action of a commit.")
        out += prefix
        encode_into(wire(action), out, -1)
        out += b"}\n"
    return bytes(out)


def wire_form(action: Action) -> Any:
    """The action for ``msgspec.json.encode``, in the protocol's form, without the name of its kind."""
    return _KINDS[type(action)][1](action)


# --- the same fields as in protocol/actions.py; those without a default are always written


class _Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    pass


class _Format(_Wire, frozen=True, gc=False):
    provider: str
    options: StringMap


class _Metadata(_Wire, frozen=True, kw_only=True):
    id: str
    name: str | None = None
    description: str | None = None
    format: _Format
    schema_string: str
    partition_columns: list[str]
    configuration: StringMap
    created_time: int | None = None


class _Add(_Wire, frozen=True, gc=False):
    path: str
    partition_values: StringMap
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: StringMap | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None


class _Remove(_Wire, frozen=True, kw_only=True, gc=False):
    path: str
    deletion_timestamp: int | None = None
    data_change: bool
    extended_file_metadata: bool | None = None
    partition_values: StringMap | None = None
    size: int | None = None
    tags: StringMap | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    stats: str | None = None


class _AddCDC(_Wire, frozen=True, gc=False):
    path: str
    partition_values: StringMap
    size: int
    data_change: bool
    tags: StringMap | None = None


class _Domain(_Wire, frozen=True, gc=False):
    domain: str
    configuration: str
    removed: bool


class _Sidecar(_Wire, frozen=True, gc=False):
    path: str
    size_in_bytes: int
    modification_time: int
    tags: StringMap | None = None


def _metadata(action: Metadata) -> _Metadata:
    if not action.id or action.schema_string is None:
        raise ProtocolError(
            f"A metaData action cannot be written without {'a schema' if action.id else 'an id'}: "
            "the protocol requires it, and readers could not open the table.",
            action="metaData",
        )
    given = action.format
    return _Metadata(
        id=action.id,
        name=action.name,
        description=action.description,
        format=_Format("parquet", {}) if given is None else _Format(given.provider, given.options or {}),
        schema_string=action.schema_string,
        partition_columns=action.partition_columns or [],
        configuration=action.configuration or {},
        created_time=action.created_time,
    )


def _protocol(action: Protocol) -> Protocol:
    """The protocol with the feature lists that reader version 3 and writer version 7 require."""
    reader, writer = action.reader_features, action.writer_features
    if action.min_reader_version >= 3 and reader is None:
        reader = []
    if action.min_writer_version >= 7 and writer is None:
        writer = []
    return Protocol(action.min_reader_version, action.min_writer_version, reader, writer)


def _add(action: AddFile) -> _Add:
    return _Add(
        action.path,
        action.partition_values or {},
        action.size,
        action.modification_time,
        action.data_change,
        action.stats,
        action.tags,
        action.deletion_vector,
        action.base_row_id,
        action.default_row_commit_version,
        action.clustering_provider,
    )


def _remove(action: RemoveFile) -> _Remove:
    extended = action.extended_file_metadata
    if extended is None and action.partition_values is not None and action.size is not None:
        extended = True
    return _Remove(
        path=action.path,
        deletion_timestamp=action.deletion_timestamp,
        data_change=action.data_change,
        extended_file_metadata=extended,
        partition_values=action.partition_values,
        size=action.size,
        tags=action.tags,
        deletion_vector=action.deletion_vector,
        base_row_id=action.base_row_id,
        default_row_commit_version=action.default_row_commit_version,
        stats=action.stats,
    )


def _unchanged(action: _A) -> _A:
    """Return the action itself: its required fields have no defaults, so they are always written."""
    return action


_KINDS: dict[type[Action], tuple[bytes, Callable[[Any], Any]]] = {
    CommitInfo: (b'{"commitInfo":', _unchanged),
    Metadata: (b'{"metaData":', _metadata),
    Protocol: (b'{"protocol":', _protocol),
    AddFile: (b'{"add":', _add),
    RemoveFile: (b'{"remove":', _remove),
    AddCDCFile: (b'{"cdc":', lambda a: _AddCDC(a.path, a.partition_values or {}, a.size, a.data_change, a.tags)),
    SetTransaction: (b'{"txn":', _unchanged),
    DomainMetadata: (b'{"domainMetadata":', lambda a: _Domain(a.domain, a.configuration, a.removed)),
    Sidecar: (b'{"sidecar":', lambda a: _Sidecar(a.path, a.size_in_bytes, a.modification_time, a.tags)),
    CheckpointMetadata: (b'{"checkpointMetadata":', _unchanged),
}
