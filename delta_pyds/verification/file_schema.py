"""The schema of one data file, compared with the table's: names, ids, types.

Protocol: "Writer Requirements for Column Mapping", "Consistency Between Table Metadata and Data Files",
"Delta Data Type to Parquet Type Mappings", "Writer Requirements for IcebergCompatV2".
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq

from delta_pyds.data.file_schema import FileColumn, file_columns
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import (
    TYPE_CHANGES,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN
from delta_pyds.verification.report import Findings
from delta_pyds.verification.view import TableView, column_id

# the reference leaves this column in data files that it wrote together with change data
_IS_CHANGE = "__is_cdc"
# files keep the materialized row ids after the table lost the names (DROP FEATURE rowTracking)
_OLD_ROW_IDS = re.compile(r"_row-(id|commit-version)-col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WIDTHS = {"short": 16, "integer": 32, "long": 64}


def check_file_schema(view: TableView, parquet: pq.ParquetFile, path: str, findings: Findings) -> None:
    """Check names, ids and types of the columns. Reading the file shows whether a type can be converted."""
    columns = file_columns(parquet.schema_arrow)
    _check_names(view, columns, path, findings)
    _Fields(view, path, findings).check(view.columns, columns, "")
    _check_iceberg(view, parquet, columns, path, findings)
    if view.supports(Feature.MATERIALIZE_PARTITION_COLUMNS) and view.properties.iceberg_compat is None:
        names = {c.name for c in columns}
        for f in view.partition_fields:
            if f.physical_name not in names:
                # files from before the feature may lack it
                findings.warning("file.partition-column", path, f"it lacks the partition column {f.name}.")


def _check_names(view: TableView, columns: tuple[FileColumn, ...], path: str, findings: Findings) -> None:
    names = [c.name for c in columns]
    for name in sorted({n for n in names if names.count(n) > 1}):
        findings.error("file.duplicate-column", path, f"the data file has several columns named {name}.")
    if view.mapping_mode != "none":
        return  # columns that were dropped stay in the files
    p = view.properties
    known: set[str | None] = {f.name.lower() for f in view.columns}
    known |= {CHANGE_TYPE_COLUMN, _IS_CHANGE, p.materialized_row_id_column, p.materialized_row_commit_version_column}
    unknown = (n for n in names if n.lower() not in known and n not in known)
    strange = sorted(n for n in unknown if not _OLD_ROW_IDS.fullmatch(n))
    if strange:
        findings.warning("file.unknown-column", path, f"the table has no column {', '.join(strange)}.")


class _Fields:
    def __init__(self, view: TableView, path: str, findings: Findings) -> None:
        self._view = view
        self._path = path
        self._findings = findings

    def check(self, schema: StructType, columns: tuple[FileColumn, ...], prefix: str) -> None:
        by_name = {c.name: c for c in columns}
        for f in schema:
            column = by_name.get(f.physical_name)
            if column is None:
                continue
            name = f"{prefix}{f.name}"
            if self._view.mapping_mode != "none":
                self._check_id(f, column, name)
            self._check_width(f, column, name)
            self._below(f.data_type, column, name)

    def _below(self, data_type: DataType, column: FileColumn, name: str) -> None:
        if isinstance(data_type, StructType):
            self.check(data_type, column.children, f"{name}.")
        elif isinstance(data_type, ArrayType) and len(column.children) == 1:
            self._below(data_type.element_type, column.children[0], f"{name}.element")
        elif isinstance(data_type, MapType) and len(column.children) == 2:
            self._below(data_type.key_type, column.children[0], f"{name}.key")
            self._below(data_type.value_type, column.children[1], f"{name}.value")

    def _check_id(self, f: StructField, column: FileColumn, name: str) -> None:
        wanted = column_id(f)
        if column.field_id is not None and column.field_id != wanted:
            self._findings.error(
                "file.field-id", self._path, f"the column {name} has the field id {column.field_id}, not {wanted}."
            )
        elif column.field_id is None and self._view.mapping_mode == "id":
            self._findings.error("file.field-id", self._path, f"the column {name} has no field id.")

    def _check_width(self, f: StructField, column: FileColumn, name: str) -> None:
        """Check that a type is narrower in the file than in the table only with type widening."""
        found = column.data_type
        if not isinstance(f.data_type, PrimitiveType) or TYPE_CHANGES in f.metadata:
            return
        width = _WIDTHS.get(f.data_type.name)
        narrow = width is not None and pa.types.is_integer(found) and found.bit_width < width
        if narrow or (f.data_type.name == "double" and not pa.types.is_float64(found)):
            self._findings.warning(
                "file.type",
                self._path,
                f"the column {name} is {found} in the file, but {f.data_type.name} in the table.",
            )


def _check_iceberg(
    view: TableView, parquet: pq.ParquetFile, columns: tuple[FileColumn, ...], path: str, findings: Findings
) -> None:
    version = view.properties.iceberg_compat
    if version is None:
        return
    names = {c.name for c in columns}
    for f in view.partition_fields:
        if f.physical_name not in names:
            # V2 and V3 require it only in new files
            report = findings.error if version == 1 else findings.warning
            report("iceberg.partition-column", path, f"the data file lacks the partition column {f.name}.")
    schema = parquet.schema
    if any(schema.column(i).physical_type == "INT96" for i in range(len(schema))):
        findings.warning("iceberg.timestamp", path, "the data file stores timestamps as INT96.")
