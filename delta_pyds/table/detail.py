"""A one-line summary of a table: identity, layout columns, size, properties and protocol.

Invariant: all fields describe the same version; times are in ms since the epoch.

Protocol: "Change Metadata", "Protocol Evolution".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delta_pyds.protocol.features import supported_features
from delta_pyds.protocol.quoting import quote_where_needed
from delta_pyds.table.definition.clustering import logical_clustering_columns
from delta_pyds.table.snapshot import Snapshot


@dataclass(frozen=True)
class TableDetail:
    """A row of DESCRIBE DETAIL.

    Attributes:
        last_modified_ms: modification time of the commit's file, even with in-commit timestamps; None without the file.
        clustering_columns: logical names, quoted as in Spark SQL; a nested column's names are joined by dots.
        features: all features that the protocol lists or implies, ascending.
    """

    id: str
    name: str | None
    description: str | None
    location: str
    created_ms: int | None
    last_modified_ms: int | None
    partition_columns: tuple[str, ...]
    clustering_columns: tuple[str, ...]
    num_files: int
    size_bytes: int
    properties: Mapping[str, str | None]
    min_reader_version: int
    min_writer_version: int
    features: tuple[str, ...]


def table_detail(snapshot: Snapshot) -> TableDetail:
    """The detail of a version. Reads the list of live files for their number and size.

    Raises:
        ProtocolError: the clustering domain is damaged. Errors of reading a checkpoint pass through.
    """
    metadata, protocol = snapshot.metadata, snapshot.protocol
    last_commit = snapshot.segment.last_commit
    return TableDetail(
        id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        location=snapshot.table_root,
        created_ms=metadata.created_time,
        last_modified_ms=None if last_commit is None else last_commit.modification_time_ms,
        partition_columns=tuple(metadata.partition_columns or ()),
        clustering_columns=tuple(
            ".".join(map(quote_where_needed, path))
            for path in logical_clustering_columns(snapshot.schema, snapshot.domain_metadata)
        ),
        num_files=snapshot.totals.num_files,
        size_bytes=snapshot.totals.size_bytes,
        properties=dict(metadata.configuration or {}),
        min_reader_version=protocol.min_reader_version,
        min_writer_version=protocol.min_writer_version,
        features=tuple(sorted(supported_features(protocol))),
    )
