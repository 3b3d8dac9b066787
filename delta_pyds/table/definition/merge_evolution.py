"""The schema of the target of a merge whose source may bring new columns.

Invariant: only columns that a clause assigns, by name or with ``*``, are added. Existing columns stay in their
positions. Types change only if the table has type widening on.
Protocol: "Change Metadata", "Column Mapping", "Type Widening".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from delta_pyds.protocol.features import ICEBERG_COMPAT_FEATURES, Feature
from delta_pyds.protocol.schema import DataType, StructField, StructType, merge_parts
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
    """The table's schema with the source's new columns, as ``enforce_schema`` would return it.

    Args:
        star: a clause assigns all columns of the source.
        assigned: paths that clauses assign by name; paths that the source lacks add nothing.
    Raises: as ``enforce_schema`` for columns that cannot be added.
    """
    brought = source if star else _restricted_to(source, assigned)
    widening = configuration.properties.type_widening and configuration.supports(Feature.TYPE_WIDENING)
    iceberg = any(configuration.supports(ICEBERG_COMPAT_FEATURES[v]) for v in (1, 2))

    def with_type(old: DataType, new: DataType) -> DataType:
        if isinstance(old, StructType) and isinstance(new, StructType):
            return with_fields(old, new)
        merged = merge_parts(old, new, lambda part, other, _: with_type(part, other))
        return merged or (new if widening and can_widen(old, new, for_iceberg=iceberg) else old)

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


def _restricted_to(schema: StructType, paths: Sequence[tuple[str, ...]]) -> StructType:
    """The parts of the schema at or below the paths."""
    fields: list[StructField] = []
    for field in schema:
        below = [path[1:] for path in paths if path and path[0].lower() == field.name.lower()]
        if not below:
            continue
        if all(below) and isinstance(field.data_type, StructType):
            inner = _restricted_to(field.data_type, below)
            if inner.fields:
                fields.append(replace(field, data_type=inner))
        elif not all(below):
            fields.append(field)
    return StructType(tuple(fields))
