"""Protocol and metadata of one version, parsed as far as possible. Invariant: nothing here raises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.features import FEATURES, Feature
from delta_pyds.protocol.properties import Property, TableProperties, parse_properties
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_ID,
    COLUMN_MAPPING_PHYSICAL_NAME,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    change_fields,
    parse_schema,
)

_PREVIEWS = {
    Feature.TYPE_WIDENING: (Feature.TYPE_WIDENING_PREVIEW,),
    Feature.VARIANT_TYPE: (Feature.VARIANT_TYPE_PREVIEW,),
}
_NO_COLUMNS = StructType(())


@dataclass(frozen=True)
class FieldAt:
    """A field at any depth. ``path``: logical names, with ``element``, ``key`` and ``value`` in arrays and maps.

    ``physical``: the path by physical names. ``in_struct``: it is not inside of an array or a map.
    """

    path: tuple[str, ...]
    physical: tuple[str, ...]
    field: StructField
    in_struct: bool

    @property
    def name(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True)
class TableView:
    """The parsed protocol and metadata.

    ``schema``: None if it cannot be read; then ``properties`` are the defaults. It has physical names and ids only with
    column mapping. ``partition_fields``: the partition columns that exist in the schema.
    """

    protocol: Protocol | None
    metadata: Metadata | None
    schema: StructType | None = None
    properties: TableProperties = field(default_factory=TableProperties)
    schema_problem: str | None = None
    property_problem: str | None = None
    mapping_mode: str = "none"
    partition_fields: tuple[StructField, ...] = ()

    @property
    def configuration(self) -> dict[str, str]:
        found = (self.metadata.configuration if self.metadata else None) or {}
        return {k: v for k, v in found.items() if v is not None}

    @property
    def columns(self) -> StructType:
        return self.schema or _NO_COLUMNS

    @property
    def data_schema(self) -> StructType:
        """The columns of data files."""
        partitions = {f.name for f in self.partition_fields}
        return StructType(tuple(f for f in self.columns if f.name not in partitions))

    def supports(self, feature: str) -> bool:
        return self.protocol is not None and supports(self.protocol, feature)


def supports(protocol: Protocol, feature: str) -> bool:
    """Whether the protocol has the feature: it is listed, or implied by the versions."""
    for name in (feature, *_PREVIEWS.get(feature, ())):
        known = FEATURES.get(name)
        listed = name in (protocol.writer_features or ())
        implied = (
            known is not None
            and known.writer_version is not None
            and known.writer_version <= protocol.min_writer_version < 7
        )
        if not listed and not implied:
            continue
        if known is None or not known.for_readers or protocol.min_reader_version < 3:
            if known is None or not known.for_readers:
                return True
            return known.reader_version is not None and known.reader_version <= protocol.min_reader_version
        if name in (protocol.reader_features or ()):
            return True
    return False


def view_of(protocol: Protocol | None, metadata: Metadata | None) -> TableView:
    view = TableView(protocol, metadata)
    if metadata is None:
        return view
    try:
        properties = parse_properties(view.configuration)
        view = replace(view, properties=properties, property_problem=" ".join(properties.unusable))
    except ProtocolError as e:
        view = replace(view, property_problem=e.message)
    if metadata.schema_string is None:
        return replace(view, schema_problem="there is no schemaString.")
    try:
        schema = parse_schema(metadata.schema_string)
    except (ProtocolError, ValueError, TypeError, RecursionError) as e:
        return replace(view, schema_problem=e.message if isinstance(e, ProtocolError) else f"it is damaged: {e}.")
    mode = view.configuration.get(Property.COLUMN_MAPPING_MODE, "none").lower()
    if mode not in ("name", "id") or not view.supports(Feature.COLUMN_MAPPING):
        mode = "none"
        schema = change_fields(schema, _unmapped)
    names = {f.name: f for f in schema}
    partitions = tuple(names[n] for n in metadata.partition_columns or () if n in names)
    return replace(view, schema=schema, mapping_mode=mode, partition_fields=partitions)


def _unmapped(f: StructField) -> StructField:
    stray = (COLUMN_MAPPING_PHYSICAL_NAME, COLUMN_MAPPING_ID)
    if not any(key in f.metadata for key in stray):
        return f
    return replace(f, metadata={k: v for k, v in f.metadata.items() if k not in stray})


def column_id(field: StructField) -> int | None:
    """The column mapping id; None if it is missing or not a number, which is a finding of the metadata."""
    try:
        return field.field_id
    except ProtocolError:
        return None


def fields_of(schema: StructType) -> Iterator[FieldAt]:
    """All fields at all depths, outer ones first."""
    yield from _fields(schema, (), (), True)


def _fields(
    data_type: DataType, path: tuple[str, ...], physical: tuple[str, ...], in_struct: bool
) -> Iterator[FieldAt]:
    if isinstance(data_type, StructType):
        for f in data_type:
            at = FieldAt((*path, f.name), (*physical, f.physical_name), f, in_struct)
            yield at
            yield from _fields(f.data_type, at.path, at.physical, in_struct)
    elif isinstance(data_type, ArrayType):
        yield from _fields(data_type.element_type, (*path, "element"), (*physical, "element"), False)
    elif isinstance(data_type, MapType):
        yield from _fields(data_type.key_type, (*path, "key"), (*physical, "key"), False)
        yield from _fields(data_type.value_type, (*path, "value"), (*physical, "value"), False)
