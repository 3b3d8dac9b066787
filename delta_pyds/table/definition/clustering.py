"""Clustering columns, which the table's domain metadata names. Protocol: "Clustered Table"."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

from delta_pyds.errors import ProtocolError, UserError
from delta_pyds.protocol.actions import CLUSTERING_DOMAIN, DomainMetadata
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.properties import Property, TableProperties
from delta_pyds.protocol.schema import StructField, StructType, display, has_minimum
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.statistics_columns import (
    Path,
    find_path,
    parse_columns,
    physical_path,
    show_path,
    statistics_columns,
)

MAX_CLUSTERING_COLUMNS = 4


def clustering_columns(domains: Mapping[str, DomainMetadata]) -> tuple[tuple[str, ...], ...]:
    """Physical paths of the clustering columns, in order; empty if the table is not clustered.

    Raises: ProtocolError if the domain does not have the form that the protocol requires.
    """
    domain = domains.get(CLUSTERING_DOMAIN)
    if domain is None or domain.removed:
        return ()
    try:
        columns = decode_json(domain.configuration)["clusteringColumns"]
        return tuple(tuple(str(part) for part in ([path] if isinstance(path, str) else path)) for path in columns)
    except (ValueError, KeyError, TypeError):
        raise ProtocolError(
            f"the domain {CLUSTERING_DOMAIN} does not list clustering columns: {domain.configuration!r}.",
            code="DELTA_CLUSTERING_COLUMNS_MISMATCH",
        ) from None


def logical_clustering_columns(schema: StructType, domains: Mapping[str, DomainMetadata]) -> tuple[Path, ...]:
    """Logical paths of the clustering columns; a column that left the schema keeps its physical names."""
    paths = [(path, fields_along(schema, path)) for path in clustering_columns(domains)]
    return tuple((*(field.name for field in fields), *path[len(fields) :]) for path, fields in paths)


def fields_along(schema: StructType, physical: Path) -> list[StructField]:
    """The fields along a path of physical names, up to the first one that the schema lacks."""
    found: list[StructField] = []
    fields = schema.fields
    for name in physical:
        field = next((f for f in fields if f.physical_name == name), None)
        if field is None:
            break
        found.append(field)
        fields = field.data_type.fields if isinstance(field.data_type, StructType) else ()
    return found


def clustering_domain(
    table_root: str, schema: StructType, columns: Sequence[str | Sequence[str]], properties: TableProperties
) -> DomainMetadata:
    """The domain that names the clustering columns by their physical names.

    Args:
        columns: strings such as ``a.b``, or paths; empty for a table that is no longer clustered.
    Raises:
        UserError: a table cannot be clustered by these columns; with the reference's codes.
    Protocol: "Clustered Table".
    """
    paths = [_one_path(c) if isinstance(c, str) else tuple(c) for c in columns]
    if len(paths) > MAX_CLUSTERING_COLUMNS:
        raise UserError(
            f"the table {table_root} cannot be clustered by {len(paths)} columns: the maximum is "
            f"{MAX_CLUSTERING_COLUMNS}.",
            code="DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            table=table_root,
        )
    with_statistics = statistics_columns(schema, properties, ())
    found = [_clustering_column(table_root, schema, path, with_statistics) for path in paths]
    twice = [path for path in found if found.count(path) > 1]
    if twice:
        raise UserError(
            f"the clustering columns of table {table_root} name '{show_path(twice[0])}' twice: name each column once.",
            code="DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY",
            table=table_root,
        )
    stored = {
        "clusteringColumns": [list(physical_path(schema, path)) for path in found],
        # the reference repeats the domain's name in its configuration
        "domainName": CLUSTERING_DOMAIN,
    }
    return DomainMetadata(CLUSTERING_DOMAIN, json.dumps(stored, separators=(",", ":")))


def clustering_as_in(then: Mapping[str, DomainMetadata], now: Mapping[str, DomainMetadata]) -> DomainMetadata | None:
    """The change that gives a table with the domains ``now`` the clustering of ``then``; None if it has that."""
    wanted, known = then.get(CLUSTERING_DOMAIN), now.get(CLUSTERING_DOMAIN)
    if wanted is None and known is not None:
        return msgspec.structs.replace(known, removed=True)
    return None if wanted == known else wanted


def require_clustering_statistics(
    before: TableConfiguration, after: TableProperties, domains: Mapping[str, DomainMetadata], what: str
) -> None:
    """Refuse properties with which statistics of a clustering column would no longer be collected.

    ``what``: the table that would have them, for the message.
    """
    old = before.properties
    if (after.stats_columns, after.num_indexed_columns) == (old.stats_columns, old.num_indexed_columns):
        return
    paths = statistics_columns(before.schema, after, before.partition_columns)
    missing = set(clustering_columns(domains)) - {physical_path(before.schema, path) for path in paths}
    if missing:
        raise UserError(
            f"{what} is clustered by {', '.join(show_path(path) for path in sorted(missing))}, but no statistics of it "
            f"would be collected: name it in {Property.DATA_SKIPPING_STATS_COLUMNS}.",
            code="DELTA_CLUSTERING_COLUMN_MISSING_STATS",
            table=before.table_root,
        )


def _one_path(text: str) -> Path:
    paths = parse_columns(text)
    if len(paths) != 1:
        raise UserError(f"'{text}' does not name one clustering column.", code="DELTA_COLUMN_NOT_FOUND", column=text)
    return paths[0]


def _clustering_column(table_root: str, schema: StructType, path: Path, with_statistics: tuple[Path, ...]) -> Path:
    """The column in the schema's spelling."""
    found = find_path(schema, path)
    if found is None:
        raise UserError(
            f"the table {table_root} has no column '{show_path(path)}' to cluster by. "
            f"The columns are: {', '.join(schema.names)}.",
            code="DELTA_COLUMN_NOT_FOUND",
            table=table_root,
            column=show_path(path),
        )
    spelled, data_type = found
    if not has_minimum(data_type):
        raise UserError(
            f"the table {table_root} cannot be clustered by '{show_path(spelled)}' of type {display(data_type)}: "
            "the type has no minimum and maximum, so files cannot be skipped.",
            code="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
            table=table_root,
            column=show_path(spelled),
        )
    if spelled not in with_statistics:
        raise UserError(
            f"the table {table_root} cannot be clustered by '{show_path(spelled)}', which has no statistics. "
            f"Columns with statistics: {', '.join(map(show_path, with_statistics))}. Name the column in "
            "delta.dataSkippingStatsColumns, raise delta.dataSkippingNumIndexedCols, or move the column forward.",
            code="DELTA_CLUSTERING_COLUMN_MISSING_STATS",
            table=table_root,
            column=show_path(spelled),
        )
    return spelled
