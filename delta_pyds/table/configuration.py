"""What a table's protocol and metadata allow and require. Feature checks live here.

Protocol: "Protocol Evolution", "Table Features", "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from delta_pyds.errors import ProtocolError, UnsupportedFeatureError
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.features import (
    CATALOG_FEATURES,
    READABLE_FEATURES,
    READER_VERSION_WITH_FEATURES,
    WRITABLE_FEATURES,
    WRITER_VERSION_WITH_FEATURES,
    Feature,
    active_properties,
    supported_features,
)
from delta_pyds.protocol.properties import (
    CATALOG_ADDRESS,
    CATALOG_TABLE,
    UNITY_TABLE_ID,
    TableProperties,
)
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_ID,
    COLUMN_MAPPING_PHYSICAL_NAME,
    StructField,
    StructType,
    change_fields,
    parse_schema,
)
from delta_pyds.table.sound_schema import check_sound
from delta_pyds.tasks.scan_state import RowIdColumns

_UNIVERSAL_FORMATS = "delta.universalFormat.enabledFormats"
# the code of the refusal to open such a table by its path
MANAGED_BY_CATALOG = "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"


@dataclass(frozen=True)
class TableConfiguration:
    """Protocol and metadata of one version, checked.

    Invariants, once ``load_configuration`` returned it: this version of the
    software can read the table; the schema parses; each partition column is a
    column of it; under column mapping every field, nested ones too, has a
    physical name, and without it none has (a stray one must not be honoured);
    what a catalog manages was opened through one (``by_catalog``); the other half is ``require_managed``.
    """

    table_root: str
    version: int
    protocol: Protocol
    metadata: Metadata
    schema: StructType
    properties: TableProperties
    by_catalog: bool = False

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Logical names, in the table's order and spelling."""
        return tuple(self.metadata.partition_columns or ())

    @property
    def configuration(self) -> Mapping[str, str | None]:
        return self.metadata.configuration or {}

    @cached_property
    def column_mapping_mode(self) -> str:
        return _column_mapping_mode(self.protocol, self.properties)

    @cached_property
    def features(self) -> frozenset[str]:
        """All features that the table supports, listed or implied by its versions."""
        return supported_features(self.protocol)

    def supports(self, feature: str) -> bool:
        """Whether the table supports the feature of that name, listed or implied by its versions.

        Protocol: "Supported Features", "Writer Version Requirements".
        """
        return feature in self.features

    def check_writable(self) -> None:
        """Refuse a table of which this software cannot honour all that its protocol asks of writers.

        Raises: UnsupportedFeatureError naming each feature that it cannot (DELTA_UNSUPPORTED_FEATURES_FOR_WRITE),
            or the version (DELTA_INVALID_PROTOCOL_VERSION), or what the protocol action lacks
            (DELTA_STATE_RECOVER_ERROR); ProtocolError for a property that cannot be understood.
        Protocol: "Protocol Evolution", "Table Features".
        """
        _check_writable(self.table_root, self.version, self.protocol, self.features)
        self._check_not_converted()
        if self.properties.unusable:
            raise ProtocolError(
                f"the table {self.table_root} cannot be written to: {self.properties.unusable[0]} Set it right first, "
                "with the engine that set it.",
                code="DELTA_INVALID_TABLE_PROPERTY",
                table=self.table_root,
                version=self.version,
            )

    def _check_not_converted(self) -> None:
        """Each commit of such a table brings the metadata of Iceberg that it was converted to.

        Specification of Unity Catalog's interface: "Write a Commit".
        """
        formats = (self.configuration.get(_UNIVERSAL_FORMATS) or "").lower().split(",")
        if self.configuration.get(UNITY_TABLE_ID) and "iceberg" in map(str.strip, formats):
            raise UnsupportedFeatureError(
                f"the table {self.table_root} of Unity Catalog is for readers of Iceberg too (UniForm: "
                f"{_UNIVERSAL_FORMATS} has iceberg), so each commit must bring metadata of Iceberg, which delta_pyds "
                "does not make. Reading it works; write it with an engine that converts, or leave the property out.",
                code="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
                table=self.table_root,
                version=self.version,
                features=["UniForm"],
            )

    @property
    def has_row_tracking(self) -> bool:
        """Every row has a stable id and a commit version. Protocol: "Row Tracking"."""
        return self.properties.row_tracking and self.supports(Feature.ROW_TRACKING)

    @property
    def hidden_columns(self) -> tuple[str, ...]:
        """Physical columns for row ids and row commit versions. No column of the schema may have these names."""
        p = self.properties
        names = (p.materialized_row_id_column, p.materialized_row_commit_version_column)
        return tuple(n for n in names if n is not None)

    def row_id_columns(self) -> RowIdColumns:
        """The materialized row tracking columns. Raises: UnsupportedFeatureError on a table without row tracking."""
        if not self.has_row_tracking:
            raise UnsupportedFeatureError(
                f"the table {self.table_root} has no row tracking (version {self.version}): its rows have no ids. "
                "Leave out the option rowIds, or set delta.enableRowTracking=true on the table.",
                code="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
                table=self.table_root,
                version=self.version,
            )
        return RowIdColumns(
            self.properties.materialized_row_id_column, self.properties.materialized_row_commit_version_column
        )


def load_configuration(
    table_root: str, version: int, protocol: Protocol, metadata: Metadata, *, by_catalog: bool = False
) -> TableConfiguration:
    """Check that the table can be read, and read its schema and properties. ``by_catalog``: its catalog was asked.

    Raises: UnsupportedFeatureError naming each feature that is not supported, or a format of files that is not;
        ProtocolError for a schema or property that cannot be read.
    """
    _check_manager(table_root, version, protocol, metadata, by_catalog)
    _check_readable(table_root, version, protocol)
    _check_format(table_root, version, metadata)
    if metadata.schema_string is None:
        raise ProtocolError(
            f"the metaData action of table {table_root} at version {version} has no schemaString: "
            "the table has no columns to read.",
            code="DELTA_STATE_RECOVER_ERROR",
            table=table_root,
            version=version,
        )
    try:
        schema = parse_schema(metadata.schema_string)
        properties = active_properties(protocol, metadata.configuration or {})
        mode = _column_mapping_mode(protocol, properties)
        check_sound(schema, metadata.partition_columns or (), mode)
    except ProtocolError as e:
        raise ProtocolError(
            f"table {table_root}, version {version}: {e.message}", code=e.code, **e.parameters
        ) from None
    for name in metadata.partition_columns or ():
        if name not in schema.names:
            raise ProtocolError(
                f"table {table_root}, version {version}: the partition column '{name}' is not in the schema.",
                code="DELTA_MISSING_PARTITION_COLUMN",
                table=table_root,
                version=version,
                column=name,
            )
    if mode == "none":
        schema = change_fields(schema, _without_mapping)
    return TableConfiguration(table_root, version, protocol, metadata, schema, properties, by_catalog)


def _check_manager(table_root: str, version: int, protocol: Protocol, metadata: Metadata, by_catalog: bool) -> None:
    """Who says which versions there are is the table's to say.

    Protocol: "Catalog-managed Table Enablement", "Table Discovery".
    """
    managed = sorted(supported_features(protocol) & CATALOG_FEATURES)
    if managed and not by_catalog:
        raise UnsupportedFeatureError(
            f"the table {table_root} is managed by a catalog (feature {managed[0]}): its newest commits are known to "
            f"the catalog only, so opening it by path could miss them. Open it by its name there, {_which(metadata)}.",
            code=MANAGED_BY_CATALOG,
            table=table_root,
            version=version,
            features=managed,
        )


def require_managed(latest: TableConfiguration) -> None:
    """Of the newest version: a table that was opened through its catalog says itself that it has one.

    Versions from before it was given to the catalog do not.

    Raises: ProtocolError (DELTA_CATALOG_MANAGED_FEATURE_MISSING).
    Protocol: "Catalog-managed Table Enablement".
    """
    protocol = latest.protocol
    lists = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
    lacking = [name for name, features in lists.items() if Feature.CATALOG_MANAGED not in (features or ())]
    if latest.by_catalog and lacking:
        raise ProtocolError(
            f"the catalog manages the table at {latest.table_root}, and the table's own log (version {latest.version}) "
            f"does not say so: {' and '.join(lacking)} must have the feature catalogManaged, both of them. Without it "
            "other readers and writers do without the catalog. "
            "Open it by its path, or see what made the catalog believe that.",
            code="DELTA_CATALOG_MANAGED_FEATURE_MISSING",
            table=latest.table_root,
            version=latest.version,
        )


def _which(metadata: Metadata) -> str:
    """What the table's properties say of its catalog, as a reader would ask for it."""
    properties = metadata.configuration or {}
    unity = properties.get(UNITY_TABLE_ID)
    if unity:
        return f"in Unity Catalog, which has it under the id {unity}: table='...', catalog='...'"
    name, catalog = properties.get(CATALOG_TABLE), properties.get(CATALOG_ADDRESS)
    return f"table={name or '...'!r}, catalog={catalog or '...'!r}"


def _check_readable(table_root: str, version: int, protocol: Protocol) -> None:
    reader = protocol.min_reader_version
    if reader > READER_VERSION_WITH_FEATURES or reader < 1:
        raise UnsupportedFeatureError(
            f"the table {table_root} needs reader version {reader} of the Delta protocol (version {version} of the "
            f"table says so), and this software reads up to {READER_VERSION_WITH_FEATURES}. Use a newer release.",
            code="DELTA_INVALID_PROTOCOL_VERSION",
            table=table_root,
            version=version,
            reader_version=reader,
        )
    if reader < READER_VERSION_WITH_FEATURES:
        return
    if protocol.reader_features is None:
        raise ProtocolError(
            f"the protocol action of table {table_root} (version {version}) has reader version {reader} and no "
            "readerFeatures: what the table needs cannot be known.",
            code="DELTA_STATE_RECOVER_ERROR",
            table=table_root,
            version=version,
        )
    features = set(protocol.reader_features)
    unknown = sorted(features - READABLE_FEATURES)
    if unknown:
        raise UnsupportedFeatureError(
            f"the table {table_root} (version {version}) needs table features that this software does not read: "
            f"{', '.join(unknown)}. Use a newer release, or drop the feature from the table with the engine that "
            "added it.",
            code="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
            table=table_root,
            version=version,
            features=unknown,
        )


def _check_format(table_root: str, version: int, metadata: Metadata) -> None:
    """Protocol: "Format Specification"."""
    provider = "parquet" if metadata.format is None else metadata.format.provider
    if provider.lower() != "parquet":
        raise UnsupportedFeatureError(
            f"the data files of table {table_root} (version {version}) are of the format {provider!r} "
            "(format.provider), and delta_pyds reads and writes Parquet alone. Use the engine that wrote the table.",
            code="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
            table=table_root,
            version=version,
            features=[f"format.provider={provider}"],
        )


def _check_writable(table_root: str, version: int, protocol: Protocol, features: frozenset[str]) -> None:
    writer = protocol.min_writer_version
    if not 1 <= writer <= WRITER_VERSION_WITH_FEATURES:
        raise UnsupportedFeatureError(
            f"the table {table_root} needs writer version {writer} of the Delta protocol (version {version} of the "
            f"table says so), and this software writes up to {WRITER_VERSION_WITH_FEATURES}. Use a newer release.",
            code="DELTA_INVALID_PROTOCOL_VERSION",
            table=table_root,
            version=version,
            writer_version=writer,
        )
    with_features = writer == WRITER_VERSION_WITH_FEATURES
    missing = None
    if with_features and protocol.writer_features is None:
        missing = f"writer version {writer} and no writerFeatures"
    elif not with_features and protocol.min_reader_version >= READER_VERSION_WITH_FEATURES:
        missing = f"reader version {protocol.min_reader_version}, which needs writer version 7, and has {writer}"
    if missing is not None:
        raise UnsupportedFeatureError(
            f"the protocol action of table {table_root} (version {version}) has {missing}: what the table needs of "
            "writers cannot be known.",
            code="DELTA_STATE_RECOVER_ERROR",
            table=table_root,
            version=version,
        )
    refused = sorted(features - WRITABLE_FEATURES)
    if refused:
        raise UnsupportedFeatureError(
            f"the table {table_root} (version {version}) needs table features that this software does not write: "
            f"{', '.join(refused)}. Use a newer release, or drop the feature from the table with the engine that "
            "added it.",
            code="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            table=table_root,
            version=version,
            features=refused,
        )


def _column_mapping_mode(protocol: Protocol, properties: TableProperties) -> str:
    """The mode, honoured only where the protocol action supports column mapping."""
    supported = protocol.min_reader_version == 2 or Feature.COLUMN_MAPPING in (protocol.reader_features or ())
    return properties.column_mapping_mode if supported else "none"


def _without_mapping(f: StructField) -> StructField:
    """Ids and physical names count only where column mapping is on."""
    stray = (COLUMN_MAPPING_PHYSICAL_NAME, COLUMN_MAPPING_ID)
    return replace(f, metadata={k: v for k, v in f.metadata.items() if k not in stray})
