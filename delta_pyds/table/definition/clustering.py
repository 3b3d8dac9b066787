"""Clustering columns, as the table's domain metadata names them. Protocol: "Clustered Table"."""

from __future__ import annotations

from collections.abc import Mapping

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.actions import CLUSTERING_DOMAIN, DomainMetadata
from delta_pyds.protocol.foreign_json import decode_json


def clustering_columns(domains: Mapping[str, DomainMetadata]) -> tuple[tuple[str, ...], ...]:
    """Physical paths of the clustering columns, in order; empty where the table is not clustered.

    Raises: ProtocolError when the domain does not say what the protocol requires.
    """
    domain = domains.get(CLUSTERING_DOMAIN)
    if domain is None or domain.removed:
        return ()
    try:
        columns = decode_json(domain.configuration)["clusteringColumns"]
        return tuple(tuple(str(part) for part in ([path] if isinstance(path, str) else path)) for path in columns)
    except (ValueError, KeyError, TypeError):
        raise ProtocolError(
            f"the domain {CLUSTERING_DOMAIN} does not name clustering columns: {domain.configuration!r}.",
            code="DELTA_CLUSTERING_COLUMNS_MISMATCH",
        ) from None
