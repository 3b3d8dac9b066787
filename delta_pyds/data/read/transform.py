"""Binding of file columns to the columns of the table.

Invariant: at every depth a table column is bound to a file column by the rule of the column mapping mode. A column that
the file lacks is null; a column that the table lacks is never decoded.

Protocol: "Reader Requirements for Column Mapping".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from delta_pyds.columnar.cast import Child, ColumnLocation, MaybeConvert, is_list_like, list_of, map_of, struct_of
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.file_schema import FileColumn
from delta_pyds.data.read.variant import variant_of
from delta_pyds.errors import ProtocolError, SchemaMismatchError
from delta_pyds.protocol.schema import VARIANT, ArrayType, DataType, MapType, PrimitiveType, StructField, StructType

LeafConvert = Callable[[FileColumn, pa.DataType, ColumnLocation], MaybeConvert]


_PARTED = (StructType, ArrayType, MapType)


@dataclass(frozen=True)
class Binding:
    """A column or nested field of the table and its column in the file (``source``; None if the file lacks it).

    ``children`` follow the table's type: fields, element, or key and value.
    """

    where: ColumnLocation
    data_type: DataType
    target: pa.DataType
    source: FileColumn | None
    children: tuple[Binding, ...] = ()

    def lacks(self) -> bool:
        """Whether the file lacks this column or a part of it, which then reads as null."""
        return (self.source is None and not pt.is_null(self.target)) or any(child.lacks() for child in self.children)

    def leaves(self, size_of: Callable[[int], int]) -> list[int]:
        """The file's leaf columns that this column needs. ``size_of``: bytes of a leaf on disk."""
        if self.source is None:
            return []
        everything = range(self.source.first_leaf, self.source.last_leaf)
        if not self.children:
            return list(everything)
        needed = [i for child in self.children for i in child.leaves(size_of)]
        if isinstance(self.data_type, MapType):
            # without its key or value column a map is decoded as a list
            for part in self.source.children:
                if not any(part.first_leaf <= i < part.last_leaf for i in needed):
                    needed.append(min(range(part.first_leaf, part.last_leaf), key=size_of))
        # every leaf has the nulls and lengths of the levels above it, so one is enough
        return needed or [min(everything, key=size_of)]


class _Siblings:
    """The columns of a file, or the fields of a struct in it, indexed by name and id."""

    def __init__(self, columns: Iterable[FileColumn]) -> None:
        self.by_name: dict[str, list[FileColumn]] = {}
        self.by_folded_name: dict[str, list[FileColumn]] = {}
        self.by_id: dict[int, list[FileColumn]] = {}
        for column in columns:
            self.by_name.setdefault(column.name, []).append(column)
            self.by_folded_name.setdefault(column.name.lower(), []).append(column)
            if column.field_id is not None:
                self.by_id.setdefault(column.field_id, []).append(column)


class FileColumnBinder:
    """Binds table columns to the columns of one file. ``mode``: ``none``, ``name`` or ``id``."""

    def __init__(self, file: str, columns: tuple[FileColumn, ...], mode: str) -> None:
        self._file = file
        self._mode = mode
        self._columns = _Siblings(columns)
        self._has_ids = mode != "id" or any(c.has_field_ids() for c in columns)

    def bind(self, field: StructField) -> Binding:
        """Bind a top-level column.

        Raises: SchemaMismatchError if the file's column has an incompatible type, is ambiguous, or is missing although
            the table's column is NOT NULL.
        """
        where = ColumnLocation(self._file, field.name)
        if not self._has_ids:
            raise SchemaMismatchError(
                f"the data file '{self._file}' has no Parquet field ids, which a table with column mapping mode "
                "'id' needs to find its columns. Rewrite the file with ids, or set delta.columnMapping.mode to 'name'.",
                code="DELTA_COLUMN_MAPPING_FIELD_ID_MISSING",
                file=self._file,
            )
        return self._bind(field, self._columns, where)

    def bind_physical(self, name: str, data_type: DataType) -> Binding:
        """Bind a column outside of the schema, by its exact name in the file."""
        where = ColumnLocation(self._file, name)
        return self._typed(data_type, self._only(self._columns.by_name.get(name, []), where), where)

    def _bind(self, field: StructField, candidates: _Siblings, where: ColumnLocation) -> Binding:
        source = self._find(field, candidates, where)
        if source is None and not field.nullable and field.data_type != PrimitiveType("void"):
            raise where.missing()
        return self._typed(field.data_type, source, where)

    def _find(self, field: StructField, candidates: _Siblings, where: ColumnLocation) -> FileColumn | None:
        if self._mode == "id":
            if field.field_id is None:
                raise ProtocolError(
                    f"the column '{where.column}' has no delta.columnMapping.id, although the table has column mapping "
                    "mode 'id': its schema is damaged.",
                    code="DELTA_MISSING_COLUMN_ID",
                    column=where.column,
                )
            return self._only(candidates.by_id.get(field.field_id, []), where)
        name = field.name if self._mode == "none" else field.physical_name
        found = candidates.by_name.get(name) or candidates.by_folded_name.get(name.lower(), [])
        return self._only(found, where)

    def _only(self, found: Sequence[FileColumn], where: ColumnLocation) -> FileColumn | None:
        if len(found) > 1:
            raise SchemaMismatchError(
                f"the data file '{self._file}' has {len(found)} columns that could be '{where.column}': "
                f"{', '.join(repr(c.name) for c in found)}. Rewrite the file with one of them.",
                code="FAILED_READ_FILE.PARQUET_COLUMN_AMBIGUOUS",
                file=self._file,
                column=where.column,
            )
        return found[0] if found else None

    def _typed(self, data_type: DataType, source: FileColumn | None, where: ColumnLocation) -> Binding:
        target = arrow_type(data_type)
        if source is not None and pt.is_null(source.data_type) and isinstance(data_type, _PARTED):
            source = None
        if source is None or pt.is_null(target):
            return Binding(where, data_type, target, None)
        if isinstance(data_type, StructType):
            if not pt.is_struct(source.data_type):
                raise where.mismatch(source.data_type, target)
            fields = _Siblings(source.children)
            children = [self._bind(f, fields, where.child(f.name)) for f in data_type.fields]
            return Binding(where, data_type, target, source, tuple(children))
        if isinstance(data_type, ArrayType):
            if not is_list_like(source.data_type):
                raise where.mismatch(source.data_type, target)
            element = self._typed(data_type.element_type, source.children[0], where.child("element"))
            return Binding(where, data_type, target, source, (element,))
        if isinstance(data_type, MapType):
            if not pt.is_map(source.data_type):
                raise where.mismatch(source.data_type, target)
            key = self._typed(data_type.key_type, source.children[0], where.child("key"))
            value = self._typed(data_type.value_type, source.children[1], where.child("value"))
            return Binding(where, data_type, target, source, (key, value))
        if data_type != VARIANT and source.children:
            raise where.mismatch(source.data_type, target)
        return Binding(where, data_type, target, source)


class Selection:
    """The leaves that one pass decodes, and the resulting shape of the decoded arrays."""

    def __init__(self, leaves: Iterable[int], columns: Sequence[FileColumn]) -> None:
        self._set = frozenset(leaves)
        self.leaves = sorted(self._set)
        self._positions = self._decoded(columns)

    def covers(self, leaves: Iterable[int]) -> bool:
        return self._set.issuperset(leaves)

    def position(self, column: FileColumn) -> int:
        """The index of the top-level column among the decoded arrays."""
        return self._positions[column.first_leaf]

    def _decoded(self, columns: Sequence[FileColumn]) -> dict[int, int]:
        """The position of each column with a decoded part, by its first leaf."""
        positions: dict[int, int] = {}
        for column in columns:
            at = bisect_left(self.leaves, column.first_leaf)
            if at < len(self.leaves) and self.leaves[at] < column.last_leaf:
                positions[column.first_leaf] = len(positions)
        return positions

    def convert(self, binding: Binding, leaf: LeafConvert) -> MaybeConvert:
        """A function that converts the decoded array of the binding's source to the table's type.

        ``leaf`` plans the conversion of leaf values.
        """
        source = binding.source
        if source is None:
            raise ValueError(f"nothing is decoded for {binding.where.column}")
        convert = self._convert(binding, source, leaf)
        if not source.is_extension:
            return convert
        return lambda array: array.storage if convert is None else convert(array.storage)

    def _convert(self, binding: Binding, source: FileColumn, leaf: LeafConvert) -> MaybeConvert:
        if binding.data_type == VARIANT:
            return variant_of(source, binding.where)
        if isinstance(binding.data_type, StructType):
            positions = self._decoded(source.children)
            return struct_of(binding.target, [self._child(b, positions, leaf) for b in binding.children])
        if not binding.children:
            return leaf(source, binding.target, binding.where)
        positions = {c.first_leaf: i for i, c in enumerate(source.children)}
        parts = [self._child(b, positions, leaf) for b in binding.children]
        if isinstance(binding.data_type, MapType):
            return map_of(binding.target, *parts)
        return list_of(binding.target, parts[0])

    def _child(self, binding: Binding, positions: dict[int, int], leaf: LeafConvert) -> Child:
        if binding.source is None:
            return Child(None, None, binding.where)
        return Child(positions[binding.source.first_leaf], self.convert(binding, leaf), binding.where)
