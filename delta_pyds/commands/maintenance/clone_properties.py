"""The properties of a clone. The user's properties must fit the files, which stay as the source wrote them.

Invariant: the clone returns every row of the source unchanged, and every row satisfies the rules of the clone.

Protocol: "Change Metadata", "Column Mapping", "Iceberg Compatibility V2", "CHECK Constraints".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delta_pyds.errors import OptionError, UnsupportedOperationError, UserError
from delta_pyds.protocol.features import Feature, implied_features
from delta_pyds.protocol.properties import (
    CONSTRAINT_PREFIX,
    ICEBERG_COMPAT_PROPERTIES,
    Property,
    TableProperties,
    parse_properties,
)
from delta_pyds.table.definition.clustering import require_clustering_statistics
from delta_pyds.table.definition.property_rules import check_consistent, read_properties
from delta_pyds.table.definition.schema_rules import check_columns
from delta_pyds.table.definition.statistics_columns import check_statistics_columns
from delta_pyds.table.snapshot import Snapshot


@dataclass(frozen=True)
class CloneProperties:
    """``configuration``: the source's, overridden by the user's. ``features``: requested by name or by versions."""

    configuration: Mapping[str, str | None]
    features: tuple[str, ...]


def clone_properties(source: Snapshot, given: Mapping[str, str]) -> CloneProperties:
    """The properties of a clone.

    Raises: OptionError for invalid properties (see ``property_rules``), and for CHECK constraints
        (DELTA_ADD_CONSTRAINTS); UserError (DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE) for another column mapping;
        UnsupportedOperationError for Iceberg compatibility.
    """
    for key in given:
        if key.lower().startswith(CONSTRAINT_PREFIX):
            raise OptionError(
                f"the property {key} is a CHECK constraint, but a clone checks no rows. Clone without it, and call "
                "DeltaTable.addConstraint of the clone, which checks the existing rows.",
                code="DELTA_ADD_CONSTRAINTS",
                property=key,
            )
    request = read_properties(given)
    if Feature.CLUSTERING in request.features:
        raise OptionError(
            "the table feature clustering cannot be added to a clone by its name: use DeltaTable.clusterBy of the "
            "clone, with the clustering columns.",
            code="DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        )
    configuration = {**source.configuration.configuration, **request.configuration}
    check_consistent(configuration)
    _check_files_fit(source, parse_properties(configuration))
    implied = implied_features(request.reader_version or 1, request.writer_version or 1)
    return CloneProperties(configuration, tuple(dict.fromkeys((*request.features, *sorted(implied)))))


def _check_files_fit(source: Snapshot, after: TableProperties) -> None:
    before = source.configuration
    mode = before.column_mapping_mode
    # under another mode readers would search for the columns in the files by other names
    if after.column_mapping_mode != mode:
        raise UserError(
            f"a clone of table {source.table_root} cannot have {Property.COLUMN_MAPPING_MODE}="
            f"{after.column_mapping_mode}: its files are those of the source, with the column names of mode {mode}. "
            "Clone without the property, and change the clone afterwards.",
            code="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            table=source.table_root,
        )
    for version, key in ICEBERG_COMPAT_PROPERTIES.items():
        if after.iceberg_compat == version != before.properties.iceberg_compat:
            raise UnsupportedOperationError(
                f"{key} cannot be turned on for a clone of table {source.table_root}: its files were not written for "
                "it. Create a new table with the property, and write the rows to it.",
                code="DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE",
                table=source.table_root,
            )
    if after.change_data_feed and not before.properties.change_data_feed:
        check_columns(before.schema, before.partition_columns, mapped=mode != "none", change_data_feed=True)
    if after.stats_columns != before.properties.stats_columns:
        check_statistics_columns(before.schema, after.stats_columns, before.partition_columns)
    require_clustering_statistics(before, after, source.domain_metadata, f"the clone of table {source.table_root}")
