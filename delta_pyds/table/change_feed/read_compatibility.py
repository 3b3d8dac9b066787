"""Checks whether rows written with one schema can be read with another without losing or changing a value.

Streams and the change feed read older files of the log with a newer schema.
Protocol: "Column Mapping", "Type Widening".
"""

from __future__ import annotations

from dataclasses import replace

from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import VOID, ArrayType, DataType, MapType, StructField, StructType, display, merge_parts
from delta_pyds.protocol.type_changes import was_widened
from delta_pyds.table.configuration import TableConfiguration


def incompatibility(data: StructType, read: StructType, *, widening: bool) -> str | None:
    """The reason why rows of schema ``data`` cannot be read as ``read``, as part of a sentence; None if they can.

    ``read`` must have every field of ``data``, nested ones too, under the same physical and logical name. The type must
    be the same; with ``widening`` it may be one that the feature typeWidening allows. ``read`` may have more fields if
    they are nullable, and may allow nulls where ``data`` does not. Both schemas come from ``load_configuration``.
    """
    return _fields(data, read, widening, "")


def table_incompatibility(data: TableConfiguration, read: TableConfiguration, *, removed: bool = False) -> str | None:
    """As ``incompatibility`` for two versions of a table; also compares partitioning and column mapping modes.

    Args:
        removed: the rows left the table with the commit that set the columns of ``read``. They are shown in these
            columns even if the names differ. Columns that ``read`` lacks do not matter.
    """
    schema = _shared(data.schema, read.schema) if removed else data.schema
    found = incompatibility(schema, read.schema, widening=read.supports(Feature.TYPE_WIDENING))
    if found is not None:
        return found
    # the values of partition columns are in the log, not in the files
    partitions = _partitioning(data), _partitioning(read)
    if removed:
        both = {f.physical_name for f in data.schema} & {f.physical_name for f in read.schema}
        partitions = partitions[0] & both, partitions[1] & both
    if partitions[0] != partitions[1]:
        data_columns, read_columns = listed(data.partition_columns), listed(read.partition_columns)
        return f"the data is partitioned by {data_columns}, but read as partitioned by {read_columns}"
    # files written before ids were assigned have none: every column would be null
    if read.column_mapping_mode == "id" != data.column_mapping_mode:
        return f"the column mapping mode of the data is {data.column_mapping_mode}, but it is read with mode id"
    return None


def _shared(data: StructType, read: StructType) -> StructType:
    """The fields of ``data`` whose physical names ``read`` has too, under the logical names of ``read``."""
    by_physical = {f.physical_name: f for f in read}
    fields = []
    for f in data:
        found = by_physical.get(f.physical_name)
        if found is not None:
            fields.append(replace(f, name=found.name, data_type=_shared_type(f.data_type, found.data_type)))
    return StructType(tuple(fields))


def _shared_type(data: DataType, read: DataType) -> DataType:
    if isinstance(data, StructType) and isinstance(read, StructType):
        return _shared(data, read)
    return merge_parts(data, read, lambda part, other, _: _shared_type(part, other)) or data


def _partitioning(configuration: TableConfiguration) -> set[str]:
    # values are found by name, so their order does not matter
    return {f.physical_name for f in configuration.schema if f.name in configuration.partition_columns}


def listed(names: tuple[str, ...]) -> str:
    """The partition columns, for a message."""
    return ", ".join(names) or "nothing"


def _fields(data: StructType, read: StructType, widening: bool, within: str) -> str | None:
    by_physical = {f.physical_name: f for f in read}
    for field in data:
        found = by_physical.pop(field.physical_name, None)
        path = within + field.name
        if found is None:
            again = read.find(field.name) is not None
            return f"the column '{path}' was dropped" + (" and another one of that name added" if again else "")
        difference = _field(field, found, widening, path)
        if difference is not None:
            return difference
    for field in by_physical.values():
        if not field.nullable:
            return f"the column '{within}{field.name}' was added as NOT NULL, but older files lack it"
    return None


def _field(data: StructField, read: StructField, widening: bool, path: str) -> str | None:
    if data.name != read.name:
        return f"the column '{path}' was renamed to '{read.name}'"
    if data.field_id is not None and read.field_id is not None and data.field_id != read.field_id:
        return f"the column '{path}' has the id {data.field_id} in the data, but {read.field_id} in the read schema"
    if data.nullable and not read.nullable:
        return f"the column '{path}' may be null in the data, but not in the read schema"
    return _types(data.data_type, read.data_type, widening, path)


def _types(data: DataType, read: DataType, widening: bool, path: str) -> str | None:
    if isinstance(data, StructType) and isinstance(read, StructType):
        return _fields(data, read, widening, f"{path}.")
    if isinstance(data, ArrayType) and isinstance(read, ArrayType):
        if data.contains_null and not read.contains_null:
            return f"elements of the column '{path}' may be null in the data, but not in the read schema"
        return _types(data.element_type, read.element_type, widening, f"{path}.element")
    if isinstance(data, MapType) and isinstance(read, MapType):
        if data.value_contains_null and not read.value_contains_null:
            return f"values of the column '{path}' may be null in the data, but not in the read schema"
        return _types(data.key_type, read.key_type, widening, f"{path}.key") or _types(
            data.value_type, read.value_type, widening, f"{path}.value"
        )
    # a column of type void is in no file
    if data in (read, VOID) or (widening and was_widened(data, read)):
        return None
    return f"the column '{path}' has type {display(data)} in the data, but {display(read)} in the read schema"
