"""Checks whether the existing files of a table meet the rules of Iceberg compatibility.

Invariant: nothing is rewritten here. According to the footer of each file, its columns, elements, keys and values have
the ids of the schema. Its timestamps have 64 bits. No file has a deletion vector.

Protocol: "Iceberg Compatibility V1", "Iceberg Compatibility V2".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow.parquet as pq

from delta_pyds.commands.definition.footers import look_at_footers
from delta_pyds.data.file_schema import FileColumn, file_columns
from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.properties import ICEBERG_COMPAT_PROPERTIES
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_NESTED_IDS,
    DataType,
    StructField,
    StructType,
    parse_schema,
    parts_of,
)
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.row_counts import row_counts


def require_compatible_files(snapshot: Snapshot, metadata: Metadata, version: int) -> None:
    """Refuse to enable a version of Iceberg compatibility if a file would have to be rewritten.

    ``metadata``: the table's after the change, with ids. Reads the footer of each file.

    Raises: UserError (DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_SHOULD_BE_DISABLED);
        UnsupportedOperationError (...CHANGE_VERSION_NEED_REWRITE) naming a file.
    """
    root, files = snapshot.table_root, list(live_files(plan_scan(snapshot)))
    vector = next((file.path for file in files if file.deletion_vector is not None), None)
    if vector is not None:
        raise UserError(
            f"{ICEBERG_COMPAT_PROPERTIES[version]} cannot be turned on for table {root}: rows of the file {vector} are "
            "deleted by a deletion vector. Set delta.enableDeletionVectors=false, and run REORG TABLE ... APPLY "
            "(PURGE) first.",
            code="DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_SHOULD_BE_DISABLED",
            table=root,
            path=vector,
        )
    schema = parse_schema(metadata.schema_string or "")
    partitions = [f for f in schema if f.name in (metadata.partition_columns or ())]
    inside = StructType(tuple(f for f in schema if f not in partitions))

    def look(parquet: pq.ParquetFile) -> str | None:
        columns = file_columns(parquet.schema_arrow)
        names = {column.name for column in columns}
        missing = next((f.name for f in partitions if f.physical_name not in names), None)
        if version == 1 and missing is not None:
            return f"does not hold the partition column {missing}"
        if any(parquet.schema.column(i).physical_type == "INT96" for i in range(len(parquet.schema))):
            return "holds timestamps of 96 bits"
        without = next(_without_id(columns, inside), None)
        return None if without is None else f"has no field id or a wrong one for {without}"

    found = [(file, why) for file, why in look_at_footers(snapshot, files, look) if why is not None]
    if version == 1:
        found += [(file, "has no numRecords") for file in files if row_counts(file.stats).num_records is None]
    if found:
        file, why = found[0]
        raise UnsupportedOperationError(
            f"{ICEBERG_COMPAT_PROPERTIES[version]} cannot be turned on for table {root}: {len(found)} of its "
            f"{len(files)} files were not written for it. The file {file.path} {why}. Create a new table with the "
            "property, and write the rows to it.",
            code="DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE",
            table=root,
            path=file.path,
        )


def _without_id(columns: Sequence[FileColumn], struct: StructType) -> Iterator[str]:
    """The fields whose column in the file lacks the id of the schema. Missing columns are null, and valid."""
    for f in struct:
        for column in columns:
            if f.physical_name.lower() == column.name.lower() or f.field_id == column.field_id:
                if column.field_id != f.field_id or column.name != f.physical_name:
                    yield f.name
                yield from _within(column, f.data_type, f, f.physical_name, f.name)


def _within(column: FileColumn, data_type: DataType, owner: StructField, key: str, shown: str) -> Iterator[str]:
    """The fields, elements, keys and values below a column that have other ids in the file.

    ``owner``: the nearest field; its metadata has the ids of elements, keys and values. ``key``: the path of
    ``column`` in that metadata.
    """
    if isinstance(data_type, StructType):
        yield from (f"{shown}.{name}" for name in _without_id(column.children, data_type))
        return
    ids = owner.metadata.get(COLUMN_MAPPING_NESTED_IDS) or {}
    for (part, part_type), child in zip(parts_of(data_type).items(), column.children, strict=False):
        if child.field_id is None or child.field_id != ids.get(f"{key}.{part}"):
            yield f"{shown}.{part}"
        yield from _within(child, part_type, owner, f"{key}.{part}", f"{shown}.{part}")
