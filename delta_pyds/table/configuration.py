"""What a table's protocol and metadata allow and require. Feature checks live here.

Protocol: "Protocol Evolution", "Table Features", "Column Mapping".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
    ArrayType,
    MapType,
    StructField,
    StructType,
    change_fields,
    parse_schema,
    structs,
)
from delta_pyds.tasks.scan_state import RowIdColumns

_UNIVERSAL_FORMATS = "delta.universalFormat.enabledFormats"
# the error code for opening such a table by its path
MANAGED_BY_CATALOG = "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"


@dataclass(frozen=True)
class TableConfiguration:
    """Protocol and metadata of one version, checked.

    Invariants of each value that ``load_configuration`` returns:

    - delta_pyds can read the table, and the schema parses;
    - each partition column is a column of the schema;
    - with column mapping every field, nested ones too, has a physical name; without it no field has one
      (a stray physical name must not be honoured);
    - a catalog-managed table was opened through its catalog (``by_catalog``). ``require_managed`` checks the converse.
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
        """Refuse a table with a protocol requirement for writers that delta_pyds cannot honour.

        Raises:
            UnsupportedFeatureError: names each unsupported feature (DELTA_UNSUPPORTED_FEATURES_FOR_WRITE), the
                version (DELTA_INVALID_PROTOCOL_VERSION), or the missing part of the protocol action
                (DELTA_STATE_RECOVER_ERROR).
            ProtocolError: a property has an invalid value.
        Protocol: "Protocol Evolution", "Table Features".
        """
        _check_writable(self.table_root, self.version, self.protocol, self.features)
        self._check_no_uniform()
        if self.properties.unusable:
            raise ProtocolError(
                f"the table {self.table_root} cannot be written to: {self.properties.unusable[0]} Correct it first, "
                "with the engine that set it.",
                code="DELTA_INVALID_TABLE_PROPERTY",
                table=self.table_root,
                version=self.version,
            )

    def _check_no_uniform(self) -> None:
        """Refuse a Unity Catalog table with UniForm: each of its commits must carry converted Iceberg metadata.

        Specification of Unity Catalog's interface: "Write a Commit".
        """
        formats = (self.configuration.get(_UNIVERSAL_FORMATS) or "").lower().split(",")
        if self.configuration.get(UNITY_TABLE_ID) and "iceberg" in map(str.strip, formats):
            raise UnsupportedFeatureError(
                f"the table {self.table_root} of Unity Catalog is also readable as Iceberg (UniForm: "
                f"{_UNIVERSAL_FORMATS} has iceberg), so each commit must carry Iceberg metadata, which delta_pyds "
                "does not make. Reading it works. To write it, use an engine that converts, or drop the property.",
                code="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
                table=self.table_root,
                version=self.version,
                features=["UniForm"],
            )

    @property
    def has_row_tracking(self) -> bool:
        """Whether every row has a stable id and a commit version. Protocol: "Row Tracking"."""
        return self.properties.row_tracking

    @property
    def hidden_columns(self) -> tuple[str, ...]:
        """Physical columns of row ids and row commit versions. A schema column must not have one of these names."""
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

    def redefined(self, version: int, protocol: Protocol, metadata: Metadata) -> TableConfiguration:
        """The same table at a version with this definition. Raises: as ``load_configuration``."""
        return load_configuration(self.table_root, version, protocol, metadata, by_catalog=self.by_catalog)


def load_configuration(
    table_root: str, version: int, protocol: Protocol, metadata: Metadata, *, by_catalog: bool = False
) -> TableConfiguration:
    """Check that delta_pyds can read the table, and read its schema and properties.

    Args:
        by_catalog: the table was opened through its catalog.
    Raises:
        UnsupportedFeatureError: names each unsupported feature, or an unsupported file format.
        ProtocolError: the schema or a property cannot be read.
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
        _check_schema(schema, metadata.partition_columns or (), mode)
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
    """Refuse to open a catalog-managed table by its path.

    Protocol: "Catalog-managed Table Enablement", "Table Discovery".
    """
    managed = sorted(supported_features(protocol) & CATALOG_FEATURES)
    if managed and not by_catalog:
        raise UnsupportedFeatureError(
            f"the table {table_root} is managed by a catalog (feature {managed[0]}): only the catalog has its newest "
            f"commits, so opening it by path could miss them. Open it by its name there, {_catalog_address(metadata)}.",
            code=MANAGED_BY_CATALOG,
            table=table_root,
            version=version,
            features=managed,
        )


def require_managed(latest: TableConfiguration) -> None:
    """Check that a table opened through a catalog says itself that it is catalog-managed.

    Args:
        latest: the newest version. Versions from before the table joined the catalog lack the feature.
    Raises:
        ProtocolError: DELTA_CATALOG_MANAGED_FEATURE_MISSING.
    Protocol: "Catalog-managed Table Enablement".
    """
    protocol = latest.protocol
    lists = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
    lacking = [name for name, features in lists.items() if Feature.CATALOG_MANAGED not in (features or ())]
    if latest.by_catalog and lacking:
        raise ProtocolError(
            f"the catalog manages the table at {latest.table_root}, but the table's own log (version {latest.version}) "
            f"does not say so: the feature catalogManaged is missing in {' and '.join(lacking)}. Without it other "
            "readers and writers bypass the catalog. Open the table by its path, or find out why the catalog manages "
            "it.",
            code="DELTA_CATALOG_MANAGED_FEATURE_MISSING",
            table=latest.table_root,
            version=latest.version,
        )


def _catalog_address(metadata: Metadata) -> str:
    """The name and the catalog of the table, as arguments of a read. They come from its properties."""
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
            f"the table {table_root} (version {version}) needs reader version {reader} of the Delta protocol, and "
            f"delta_pyds reads up to {READER_VERSION_WITH_FEATURES}. Use a newer release.",
            code="DELTA_INVALID_PROTOCOL_VERSION",
            table=table_root,
            version=version,
            reader_version=reader,
        )
    if reader < READER_VERSION_WITH_FEATURES:
        return
    if protocol.reader_features is None:
        raise ProtocolError(
            f"the protocol action of table {table_root} (version {version}) has reader version {reader} but no "
            "readerFeatures: the features that the table needs are unknown.",
            code="DELTA_STATE_RECOVER_ERROR",
            table=table_root,
            version=version,
        )
    features = set(protocol.reader_features)
    unknown = sorted(features - READABLE_FEATURES)
    if unknown:
        raise UnsupportedFeatureError(
            f"the table {table_root} (version {version}) needs table features that delta_pyds does not read: "
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
            f"the data files of table {table_root} (version {version}) have the format {provider!r} "
            "(format.provider), but delta_pyds reads and writes only Parquet. Use the engine that wrote the table.",
            code="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
            table=table_root,
            version=version,
            features=[f"format.provider={provider}"],
        )


def _check_writable(table_root: str, version: int, protocol: Protocol, features: frozenset[str]) -> None:
    writer = protocol.min_writer_version
    if not 1 <= writer <= WRITER_VERSION_WITH_FEATURES:
        raise UnsupportedFeatureError(
            f"the table {table_root} (version {version}) needs writer version {writer} of the Delta protocol, and "
            f"delta_pyds writes up to {WRITER_VERSION_WITH_FEATURES}. Use a newer release.",
            code="DELTA_INVALID_PROTOCOL_VERSION",
            table=table_root,
            version=version,
            writer_version=writer,
        )
    with_features = writer == WRITER_VERSION_WITH_FEATURES
    missing = None
    if with_features and protocol.writer_features is None:
        missing = f"writer version {writer} but no writerFeatures"
    elif not with_features and protocol.min_reader_version >= READER_VERSION_WITH_FEATURES:
        missing = f"reader version {protocol.min_reader_version}, which needs writer version 7, but has {writer}"
    if missing is not None:
        raise UnsupportedFeatureError(
            f"the protocol action of table {table_root} (version {version}) has {missing}: the features that it needs "
            "of writers are unknown.",
            code="DELTA_STATE_RECOVER_ERROR",
            table=table_root,
            version=version,
        )
    refused = sorted(features - WRITABLE_FEATURES)
    if refused:
        raise UnsupportedFeatureError(
            f"the table {table_root} (version {version}) needs table features that delta_pyds does not write: "
            f"{', '.join(refused)}. Use a newer release, or drop the feature from the table with the engine that "
            "added it.",
            code="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            table=table_root,
            version=version,
            features=refused,
        )


def _check_schema(schema: StructType, partition_columns: Sequence[str], mapping_mode: str) -> None:
    """Refuse an ambiguous schema: with it, some column would be read with the values of another.

    Names, physical names and ids must be unique. Names are compared exactly: some tables have columns ``a`` and ``A``.
    Partition columns must not have a nested type.

    Raises:
        ProtocolError: DELTA_DUPLICATE_COLUMNS_FOUND, DELTA_MISSING_PHYSICAL_NAME, DELTA_DUPLICATED_PHYSICAL_NAME,
            DELTA_DUPLICATED_COLUMN_ID, DELTA_INVALID_PARTITION_COLUMN_TYPE.
    Protocol: "Change Metadata", "Column Mapping", "Partition Value Serialization".
    """
    ids: set[int] = set()
    for struct in structs(schema):
        _check_distinct([f.name for f in struct], "name", "DELTA_DUPLICATE_COLUMNS_FOUND")
        if mapping_mode == "none":
            continue
        physical: list[str] = []
        for f in struct:
            name = f.metadata.get(COLUMN_MAPPING_PHYSICAL_NAME)
            if not isinstance(name, str) or not name:
                raise ProtocolError(
                    f"column mapping is on, but the field '{f.name}' has no physical name: "
                    "the column cannot be found in the data files.",
                    code="DELTA_MISSING_PHYSICAL_NAME",
                    column=f.name,
                )
            physical.append(name)
            number = f.field_id  # raises for an invalid id
            if mapping_mode == "id" and number is not None:
                if number in ids:
                    raise ProtocolError(
                        f"two columns have the column mapping id {number}: one would be read with the values of the "
                        "other. Restore the commit that holds this schema.",
                        code="DELTA_DUPLICATED_COLUMN_ID",
                        id=number,
                    )
                ids.add(number)
        _check_distinct(physical, "physical name", "DELTA_DUPLICATED_PHYSICAL_NAME")
    if partition_columns:
        by = set(partition_columns)
        for f in schema:
            if f.name in by and isinstance(f.data_type, StructType | ArrayType | MapType):
                raise ProtocolError(
                    f"the partition column '{f.name}' has a nested type, but a partition value is a single string.",
                    code="DELTA_INVALID_PARTITION_COLUMN_TYPE",
                    column=f.name,
                )
        _check_distinct(partition_columns, "name among the partition columns", "DELTA_DUPLICATE_COLUMNS_FOUND")


def _check_distinct(names: Sequence[str], kind: str, code: str) -> None:
    if len(set(names)) == len(names):
        return
    twice = next(name for name, count in Counter(names).items() if count > 1)
    raise ProtocolError(
        f"two columns have the {kind} '{twice}': one would be read with the values of the other. "
        "Restore the commit that holds this schema.",
        code=code,
        name=twice,
    )


def _column_mapping_mode(protocol: Protocol, properties: TableProperties) -> str:
    """The mode; ``none`` unless the protocol action supports column mapping."""
    supported = protocol.min_reader_version == 2 or Feature.COLUMN_MAPPING in (protocol.reader_features or ())
    return properties.column_mapping_mode if supported else "none"


def _without_mapping(f: StructField) -> StructField:
    """The field without its id and physical name, which count only with column mapping."""
    stray = (COLUMN_MAPPING_PHYSICAL_NAME, COLUMN_MAPPING_ID)
    return replace(f, metadata={k: v for k, v in f.metadata.items() if k not in stray})
