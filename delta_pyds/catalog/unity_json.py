"""Conversion between Unity Catalog's values and ours: tables, commits and definitions.

Invariant: the catalog gets the schema, properties, protocol and domains of the commit, and nothing that it derives
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from delta_pyds.catalog.interface import CommitProposal, ManagedTable, NewTable, UnpublishedCommit
from delta_pyds.errors import CatalogError
from delta_pyds.protocol.actions import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN, DomainMetadata, Metadata, Protocol
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json

MANAGED = "MANAGED"
_DOMAINS = (CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN)
# properties that the catalog derives from protocol, domains and its own state
_DERIVED = frozenset(
    (
        "delta.minReaderVersion",
        "delta.minWriterVersion",
        "delta.clusteringColumns",
        "delta.rowTracking.rowIdHighWaterMark",
        "delta.lastUpdateVersion",
        "delta.lastCommitTimestamp",
    )
)
_FEATURE = "delta.feature."
# keys of a schema's types: in schemaString, and in the catalog
_TYPE_KEYS = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
}


class _Kebab(msgspec.Struct, rename="kebab"):
    """Fields that are not listed are ignored."""


class StagedCommit(_Kebab):
    version: int
    timestamp: int
    file_name: str
    file_size: int | None = None
    file_modification_timestamp: int = 0


class TableMetadata(_Kebab):
    table_uuid: str
    location: str
    table_type: str = MANAGED
    properties: dict[str, str | None] = {}


class LoadedTable(_Kebab):
    """The answer of ``loadTable``, ``createTable`` and ``updateTable``."""

    metadata: TableMetadata
    commits: list[StagedCommit] | None = None
    latest_table_version: int | None = None
    uniform: Any = None


class Features(_Kebab):
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class StorageCredential(_Kebab):
    prefix: str | None = None
    expiration_time_ms: int | None = None
    config: dict[str, str | None] | None = None


class Credentials(_Kebab):
    storage_credentials: list[StorageCredential] | None = None


class StagingTable(_Kebab):
    table_id: str
    location: str
    required_protocol: Features
    required_properties: dict[str, str | None] = {}
    storage_credentials: list[StorageCredential] | None = None


def managed_table(name: str, loaded: LoadedTable, forbids: frozenset[str]) -> ManagedTable:
    """The state of the table. Raises: CatalogError if the answer has no latest version."""
    if loaded.latest_table_version is None:
        raise CatalogError(
            f"the catalog returned no latest version of table {name!r}, so it does not manage the table: open it by "
            f"its path {loaded.metadata.location!r}.",
            table=name,
        )
    commits = sorted(loaded.commits or (), key=lambda commit: commit.version)
    unpublished = tuple(
        UnpublishedCommit(
            commit.version,
            commit.timestamp,
            file_name=commit.file_name,
            size_bytes=commit.file_size,
            modification_time_ms=commit.file_modification_timestamp,
        )
        for commit in commits
    )
    metadata = loaded.metadata
    return ManagedTable(
        name, metadata.table_uuid, metadata.location, loaded.latest_table_version, unpublished, forbids=forbids
    )


def is_managed(loaded: LoadedTable) -> bool:
    """Whether the catalog manages the commits of the table. It does not for external tables."""
    return loaded.metadata.properties.get(f"{_FEATURE}catalogManaged") == "supported"


def creation(name: str, table: NewTable) -> dict[str, Any]:
    """The body of ``createTable``."""
    metadata = table.metadata
    body: dict[str, Any] = {
        "name": name,
        "location": table.location,
        "table-type": MANAGED,
        "columns": columns_of(metadata),
        "partition-columns": list(metadata.partition_columns or ()),
        "protocol": _protocol(table.protocol),
        "properties": _properties(metadata),
        "last-commit-timestamp-ms": table.timestamp_ms,
    }
    if metadata.description is not None:
        body["comment"] = metadata.description
    domains = _domains(table.domains)
    if domains:
        body["domain-metadata"] = domains
    return body


def proposed(proposal: CommitProposal) -> dict[str, Any]:
    """The body of ``updateTable`` for a commit and everything that it changes."""
    updates: list[dict[str, Any]] = [
        {
            "action": "add-commit",
            "commit": {
                "version": proposal.version,
                "timestamp": proposal.timestamp_ms,
                "file-name": proposal.file_name,
                "file-size": proposal.size_bytes,
                "file-modification-timestamp": proposal.modification_time_ms,
            },
        }
    ]
    if proposal.protocol is not None:
        updates.append({"action": "set-protocol", "protocol": _protocol(proposal.protocol)})
    if proposal.metadata is not None:
        updates += _metadata_changes(proposal.metadata, proposal.metadata_before or Metadata())
    updates += _domain_changes(proposal.domains)
    if proposal.published_version is not None and proposal.published_version > 0:
        updates.append(_published(proposal.published_version))
    return {"requirements": _of_table(proposal.table_id), "updates": updates}


def published(table_id: str, version: int) -> dict[str, Any]:
    """The body of ``updateTable`` that reports versions as published."""
    return {"requirements": _of_table(table_id), "updates": [_published(version)]}


def columns_of(metadata: Metadata) -> Any:
    """The schema for the catalog: as in the log, with other names in arrays and maps.

    Raises: CatalogError for a schema that is not JSON.
    """
    try:
        schema = decode_json(metadata.schema_string or "")
    except InvalidJSONError as error:
        raise CatalogError(f"the schema of the table cannot be sent to the catalog: {error}.") from None
    return _type(schema)


def _type(found: Any) -> Any:
    if not isinstance(found, dict):
        return found
    if found.get("type") == "struct":
        fields = [{"metadata": {}, **field, "type": _type(field.get("type"))} for field in found.get("fields") or ()]
        return {"type": "struct", "fields": fields}
    return {_TYPE_KEYS.get(key, key): _type(value) for key, value in found.items()}


def _of_table(table_id: str) -> list[dict[str, str]]:
    return [{"type": "assert-table-uuid", "uuid": table_id}]


def _published(version: int) -> dict[str, Any]:
    return {"action": "set-latest-backfilled-version", "latest-published-version": version}


def _protocol(protocol: Protocol) -> dict[str, Any]:
    return {
        "min-reader-version": protocol.min_reader_version,
        "min-writer-version": protocol.min_writer_version,
        "reader-features": list(protocol.reader_features or ()),
        "writer-features": list(protocol.writer_features or ()),
    }


def _properties(metadata: Metadata) -> dict[str, str]:
    found = (metadata.configuration or {}).items()
    return {
        key: value for key, value in found if value is not None and key not in _DERIVED and not key.startswith(_FEATURE)
    }


def _metadata_changes(metadata: Metadata, before: Metadata) -> Iterator[dict[str, Any]]:
    """The changes between two metadata; a comment and properties that only the catalog has stay."""
    if metadata.schema_string != before.schema_string:
        yield {"action": "set-columns", "columns": columns_of(metadata)}
    now, known = _properties(metadata), _properties(before)
    changed = {key: value for key, value in now.items() if known.get(key) != value}
    if changed:
        yield {"action": "set-properties", "updates": changed}
    gone = [key for key in known if key not in now]
    if gone:
        yield {"action": "remove-properties", "removals": gone}
    if (metadata.partition_columns or []) != (before.partition_columns or []):
        yield {"action": "set-partition-columns", "partition-columns": list(metadata.partition_columns or ())}
    if metadata.description != before.description:
        yield {"action": "set-table-comment", "comment": metadata.description or ""}


def _domains(domains: Iterable[DomainMetadata]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for domain in domains:
        if domain.domain in _DOMAINS and not domain.removed:
            key = "clusteringColumns" if domain.domain == CLUSTERING_DOMAIN else "rowIdHighWaterMark"
            try:
                found[domain.domain] = {key: decode_json(domain.configuration).get(key)}
            except InvalidJSONError as error:
                raise CatalogError(f"the domain {domain.domain} cannot be sent to the catalog: {error}.") from None
    return found


def _domain_changes(domains: Iterable[DomainMetadata]) -> Iterator[dict[str, Any]]:
    made = list(domains)
    found = _domains(made)
    if found:
        yield {"action": "set-domain-metadata", "updates": found}
    gone = [domain.domain for domain in made if domain.domain in _DOMAINS and domain.removed]
    if gone:
        yield {"action": "remove-domain-metadata", "domains": gone}
