"""The columns of the Parquet files that we write, from the table's columns.

Invariant: a file has only physical names, the ids of column mapping, and types that the protocol lists; conversion to
file columns does not change values. Types that Parquet cannot store are refused; void columns are left out and read as
null.

Protocol: "Delta Data Type to Parquet Type Mappings", "Writer Requirements for
Column Mapping", "Writer Requirements for IcebergCompatV2".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.cast import (
    Child,
    ColumnLocation,
    Convert,
    MaybeConvert,
    is_list_like,
    leaf,
    list_of,
    map_of,
    struct_of,
)
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.file_schema import FileColumn, file_columns
from delta_pyds.errors import DeltaError, SchemaMismatchError, UserError
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_NESTED_IDS,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    change_fields,
    display,
)
from delta_pyds.tasks.write_state import WriteState

_FIELD_ID = b"PARQUET:field_id"
# the specification's key, and the one that the reference writes into a table's schema
_NESTED_IDS = (COLUMN_MAPPING_NESTED_IDS, "parquet.field.nested.ids")

# in Parquet's order; the Arrow type that Spark expects has the fields in the opposite order
_VARIANT = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)


@dataclass(frozen=True)
class FileField:
    """A column of the files. ``position``: among the table's columns. ``column``: its leaves in a file."""

    field: StructField
    position: int
    column: FileColumn


def mapped_schema(state: WriteState) -> StructType:
    """The table's schema, with the physical names and ids to use in files and in the log.

    Without column mapping names are physical names; a schema copied from another table may have stray ids and names.
    Protocol: "Reader Requirements for Column Mapping".
    """
    if state.column_mapping_mode != "none":
        return state.schema
    return change_fields(
        state.schema,
        lambda f: replace(
            f, metadata={k: v for k, v in f.metadata.items() if not k.startswith("delta.columnMapping.")}
        ),
    )


class FileSchema:
    """The schema of all files of one write.

    Attributes:
        arrow: the schema for the Parquet writer.
        fields: in the order of the file: data columns, then the partition columns if files have them.
    Raises:
        UserError: the table has no data column (DELTA_NON_PARTITION_COLUMN_ABSENT), or a nested void that Parquet
            cannot leave out.
    """

    def __init__(self, state: WriteState) -> None:
        self._naming = _Naming(state.column_mapping_mode != "none", state.nested_field_ids)
        partitions = set(state.partition_columns)
        positions = [(i, f) for i, f in enumerate(mapped_schema(state)) if f.data_type != VOID]
        data = [(i, f) for i, f in positions if f.name not in partitions]
        if not data:
            raise UserError(
                f"the table {state.table_root} has no column that its files could store: every column is void or a "
                "partition column. Add a column of another type.",
                code="DELTA_NON_PARTITION_COLUMN_ABSENT",
                table=state.table_root,
            )
        if state.partition_columns_in_files:
            data += [(i, f) for i, f in positions if f.name in partitions]
        self._arrow_fields = [self._naming.field(f, f.name, required=not f.nullable) for _, f in data]
        self.arrow = pa.schema(self._arrow_fields)
        self.fields = tuple(
            FileField(f, i, column) for (i, f), column in zip(data, file_columns(self.arrow), strict=True)
        )
        self._table_names = list(state.schema.names)
        self._converts: dict[pa.Schema, list[MaybeConvert]] = {}

    def columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The columns of the files, from a batch of the table's columns.

        Raises:
            SchemaMismatchError: the batch does not have the table's schema.
            DeltaError: a null in a NOT NULL column (DELTA_NOT_NULL_CONSTRAINT_VIOLATED).
        """
        converts = self._converts.get(batch.schema)
        if converts is None:
            converts = self._converts[batch.schema] = self._plan(batch.schema)
        arrays = []
        for file_field, target, convert in zip(self.fields, self._arrow_fields, converts, strict=True):
            array = batch.column(file_field.position)
            if convert is not None:
                array = convert(array)
            if not target.nullable and array.null_count:
                raise _Written("", file_field.field.name).null_found()
            arrays.append(array)
        return arrays

    def _plan(self, given: pa.Schema) -> list[MaybeConvert]:
        if given.names != self._table_names:
            raise SchemaMismatchError(
                f"rows with the columns {given.names} cannot be written to a table with the columns "
                f"{self._table_names}: they must be the same, in the same order.",
                code="DELTA_METADATA_MISMATCH",
            )
        return [
            _convert(f.field.data_type, given.field(f.position).type, target.type, _Written("", target.name))
            for f, target in zip(self.fields, self._arrow_fields, strict=True)
        ]


class _Written(ColumnLocation):
    """For messages about rows that are not yet in a file."""

    def child(self, name: str) -> ColumnLocation:
        return _Written(self.file, f"{self.column}.{name}")

    def mismatch(self, source: object, target: object) -> SchemaMismatchError:
        return SchemaMismatchError(
            f"the column '{self.column}' has the type {target} in the table, but the type {source} in the rows to be "
            "written.",
            code="DELTA_METADATA_MISMATCH",
            column=self.column,
        )

    def null_found(self) -> DeltaError:
        return UserError(
            f"a row to be written has a null in the column '{self.column}', which the table declares NOT NULL. "
            "Nothing was committed.",
            code="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
            column=self.column,
        )


@dataclass(frozen=True)
class _Naming:
    """Names, ids and nullability of Parquet fields."""

    ids: bool
    nested_ids: bool

    def field(self, field: StructField, shown: str, required: bool) -> pa.Field:
        nested = _NestedIds.of(field) if self.nested_ids else _NestedIds({}, ())
        data_type = self._type(field.data_type, shown, required, nested)
        return pa.field(field.physical_name, data_type, not required, self._id(field.field_id if self.ids else None))

    def _id(self, number: int | None) -> dict[bytes, bytes] | None:
        return None if number is None else {_FIELD_ID: str(number).encode()}

    def _type(self, data_type: DataType, shown: str, required: bool, nested: _NestedIds) -> pa.DataType:
        """``required``: whether fields directly inside may be required; not if a parent may be null."""
        if isinstance(data_type, StructType):
            fields = [f for f in data_type.fields if f.data_type != VOID]
            if not fields:
                raise _void(shown, data_type)
            return pa.struct([self.field(f, f"{shown}.{f.name}", required and not f.nullable) for f in fields])
        if isinstance(data_type, ArrayType):
            return pa.list_(self._part("element", data_type.element_type, shown, True, nested))
        if isinstance(data_type, MapType):
            key = self._part("key", data_type.key_type, shown, False, nested)
            return pa.map_(key, self._part("value", data_type.value_type, shown, True, nested))
        return _VARIANT if data_type == VARIANT else arrow_type(data_type)

    def _part(self, name: str, data_type: DataType, shown: str, nullable: bool, nested: _NestedIds) -> pa.Field:
        if data_type == VOID:
            raise _void(f"{shown}.{name}", data_type)
        below = nested.below(name)
        return pa.field(name, self._type(data_type, f"{shown}.{name}", False, below), nullable, self._id(below.number))


@dataclass(frozen=True)
class _NestedIds:
    """Ids of elements, keys and values, by their paths from the field whose metadata has them."""

    ids: Mapping[str, Any]
    prefixes: tuple[str, ...]

    @staticmethod
    def of(field: StructField) -> _NestedIds:
        ids: Mapping[str, Any] = next((field.metadata[k] for k in _NESTED_IDS if field.metadata.get(k)), {})
        return _NestedIds(ids, (field.physical_name, field.name))

    def below(self, part: str) -> _NestedIds:
        return _NestedIds(self.ids, tuple(f"{prefix}.{part}" for prefix in self.prefixes))

    @property
    def number(self) -> int | None:
        return next((int(self.ids[prefix]) for prefix in self.prefixes if prefix in self.ids), None)


def _void(shown: str, data_type: DataType) -> UserError:
    return UserError(
        f"'{shown}' is of type {display(data_type)}, which Parquet files cannot store, because it has only void. "
        "Give it another type.",
        code="DELTA_UNSUPPORTED_DATA_TYPES",
        column=shown,
    )


def _convert(data_type: DataType, source: pa.DataType, target: pa.DataType, where: ColumnLocation) -> MaybeConvert:
    """A function that converts arrays of the table's type to the file's: the same values under other names."""
    if isinstance(data_type, StructType):
        if not pt.is_struct(source) or [f.name for f in source] != list(data_type.names):
            raise where.mismatch(source, arrow_type(data_type))
        children, at = [], 0
        for i, f in enumerate(data_type.fields):
            if f.data_type == VOID:
                continue
            below = where.child(f.name)
            children.append(Child(i, _convert(f.data_type, source.field(i).type, target.field(at).type, below), below))
            at += 1
        return struct_of(target, children)
    if isinstance(data_type, ArrayType):
        if not is_list_like(source):
            raise where.mismatch(source, arrow_type(data_type))
        below = where.child("element")
        element = _convert(data_type.element_type, source.value_type, target.value_type, below)
        return list_of(target, Child(0, element, below))
    if isinstance(data_type, MapType):
        if not pt.is_map(source):
            raise where.mismatch(source, arrow_type(data_type))
        key, value = where.child("key"), where.child("value")
        return map_of(
            target,
            Child(0, _convert(data_type.key_type, source.key_type, target.key_type, key), key),
            Child(1, _convert(data_type.value_type, source.item_type, target.item_type, value), value),
        )
    if data_type == VARIANT:
        if not pt.is_struct(source) or {f.name for f in source} != {"metadata", "value"}:
            raise where.mismatch(source, arrow_type(data_type))
        parts = [Child(source.get_field_index(f.name), None, where.child(f.name)) for f in target]
        return _with_empty_parts(struct_of(target, parts), target)
    if source == target:
        return None
    return leaf(source, target, where)


def _with_empty_parts(rebuild: Convert, target: pa.DataType) -> Convert:
    """Null variants with empty parts: Arrow's writer refuses nulls in required fields, even inside a null struct."""

    def build(array: pa.Array) -> pa.Array:
        array = rebuild(array)
        if not array.null_count:
            return array
        parts = [pc.fill_null(array.field(i), b"") for i in range(target.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=array.is_null())

    return build
