"""The schema of a table into which rows are merged that may bring new columns.

Invariant: only what a clause assigns, or covers with ``*``, is added; what the table has stays, where it is; types
change only where the table allows that they become wider.

Protocol: "Change Metadata", "Column Mapping", "Type Widening".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from delta_pyds.protocol.features import ICEBERG_COMPAT_FEATURES, Feature
from delta_pyds.protocol.schema import ArrayType, DataType, MapType, StructField, StructType
from delta_pyds.protocol.type_changes import can_widen
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.schema_enforcement import enforce_schema


def merged_schema(
    configuration: TableConfiguration,
    source: StructType,
    *,
    star: bool,
    assigned: Sequence[tuple[str, ...]] = (),
) -> StructType:
    """The table's schema with what the source brings, as ``enforce_schema`` would return it.

    ``star``: a clause assigns all columns of the source. ``assigned``: paths that clauses assign by name; those that
    the source does not have add nothing.
    Raises: what ``enforce_schema`` raises for columns that cannot be added.
    """
    brought = source if star else _only(source, assigned)
    widening = configuration.properties.type_widening and configuration.supports(Feature.TYPE_WIDENING)
    iceberg = any(configuration.supports(ICEBERG_COMPAT_FEATURES[v]) for v in (1, 2))

    def with_type(old: DataType, new: DataType) -> DataType:
        if isinstance(old, StructType) and isinstance(new, StructType):
            return with_fields(old, new)
        if isinstance(old, ArrayType) and isinstance(new, ArrayType):
            return replace(old, element_type=with_type(old.element_type, new.element_type))
        if isinstance(old, MapType) and isinstance(new, MapType):
            key = with_type(old.key_type, new.key_type)
            return replace(old, key_type=key, value_type=with_type(old.value_type, new.value_type))
        return new if widening and can_widen(old, new, for_iceberg=iceberg) else old

    def with_fields(old: StructType, new: StructType) -> StructType:
        fields = []
        for field in old:
            given = new.find(field.name)
            fields.append(
                field if given is None else replace(field, data_type=with_type(field.data_type, given.data_type))
            )
        return StructType((*fields, *(f for f in new if old.find(f.name) is None)))

    wanted = with_fields(configuration.schema, brought)
    if wanted == configuration.schema:
        return configuration.schema
    return enforce_schema(configuration, wanted, merge_schema=True)


def _only(schema: StructType, paths: Sequence[tuple[str, ...]]) -> StructType:
    """The schema's columns and fields at the paths alone, with all that is in them."""
    fields: list[StructField] = []
    for field in schema:
        below = [path[1:] for path in paths if path and path[0].lower() == field.name.lower()]
        if not below:
            continue
        if all(below) and isinstance(field.data_type, StructType):
            inner = _only(field.data_type, below)
            if inner.fields:
                fields.append(replace(field, data_type=inner))
        elif not all(below):
            fields.append(field)
    return StructType(tuple(fields))
