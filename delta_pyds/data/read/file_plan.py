"""The plan for reading one file, made before any page is read.

Invariant: no leaf column of the file is decoded twice, unless the predicate and the output need different parts of one
nested column. Leaves that neither needs are not decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from delta_pyds.columnar import cast
from delta_pyds.columnar.cast import ColumnLocation, Convert, MaybeConvert
from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.data.columns import Constant, null_column, record_batch
from delta_pyds.data.file_schema import FileColumn
from delta_pyds.data.read import calendar, change_type, int96
from delta_pyds.data.read.batch_size import Widths
from delta_pyds.data.read.data_file import DataFile
from delta_pyds.data.read.dictionaries import expanding_dictionaries
from delta_pyds.data.read.footer_statistics import RowGroupStatistics, kept_row_groups
from delta_pyds.data.read.output import partition_column
from delta_pyds.data.read.row_groups import RowGroup
from delta_pyds.data.read.transform import Binding, FileColumnBinder, Selection
from delta_pyds.expr.nodes import references
from delta_pyds.protocol.schema import LONG, StructField, StructType, nullable_throughout
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, ScanFile, ScanState


@dataclass(frozen=True)
class Decoded:
    """A column decoded from the file: ``arrays[index]`` of the early or late pass, converted."""

    late: bool
    index: int
    convert: MaybeConvert
    required: ColumnLocation | None  # the column, if it must not have nulls
    is_plain: bool  # ``convert`` only expands dictionaries

    def array(self, early: Sequence[pa.Array], late: Sequence[pa.Array]) -> pa.Array:
        array = (late if self.late else early)[self.index]
        if self.convert is not None:
            array = self.convert(array)
        if self.required is not None and array.null_count:
            raise self.required.null_found()
        return array


Source = Decoded | Constant
_Bound = Binding | Constant


def predicate_fields(state: ScanState) -> tuple[StructField, ...]:
    """The columns that the predicate uses, with the parts that it needs. All may be null in them.

    A null in a NOT NULL column is reported when the column is returned, for returned rows only.
    """
    if state.predicate is None:
        return ()
    names = {path[0] for path in references(state.predicate)}
    fields = [f for f in state.inputs.fields if f.name in names]
    fields += [f for f in state.output.fields if f.name in names - {f.name for f in fields}]
    return tuple(StructField(f.name, nullable_throughout(f.data_type), True, f.metadata) for f in fields)


class FilePlan:
    """The plan of one file. Raises, when created: SchemaMismatchError, ProtocolError.

    Attributes:
        early, late: the leaves of the two passes. The second one decodes the rows that satisfy the predicate.
        returns_early: columns of the first pass are returned, not only used by the predicate.
        returns_decoded: the first pass decodes exactly the returned columns; only a batch's types may differ.
        has_views: the file asks for string or binary views.
        widths: the widths of the decoded columns.
        lacks: the file lacks a column or a part of one, which reads as null.
        absent: the materialized columns that the file lacks.
        outputs: follow ``state.output``.
        row_id, row_commit_version: the materialized columns; None if the file has none.
        change_type: the column of this name in a change data file; None if it is among the outputs.
    """

    def __init__(self, state: ScanState, file: ScanFile, data: DataFile) -> None:
        self._state = state
        self._file = file
        self._data = data
        self._julian_dates = calendar.uses_julian_dates(data.key_values)
        self._julian_int96 = calendar.uses_julian_int96(data.key_values)
        self._binder = FileColumnBinder(file.path, data.columns, state.column_mapping_mode)
        self.lacks = False
        self.absent: list[str] = []
        self._change_type = change_type.bind(self._binder, file.path) if file.change_data else None
        outputs = [self._bound(f) for f in state.output.fields]
        unreturned = None if any(b is self._change_type for b in outputs) else self._change_type
        row_id, version = self._materialised()
        self._predicate_schema, inputs = self._predicate_inputs()
        returned = [*outputs, row_id, version, unreturned]
        early = self._leaves(inputs)
        if early:
            # parts of a nested column from two passes cannot be combined
            self.early = Selection(early, data.columns)
            late = [b for b in returned if not self.early.covers(self._leaves([b]))]
            self.late = Selection(self._leaves(late), data.columns)
        else:
            self.early, self.late = Selection(self._leaves(returned), data.columns), Selection([], data.columns)
        self.widths = Widths.of(data.metadata.schema, [*self.early.leaves, *self.late.leaves])
        self.outputs = [self._source(b, f.nullable) for b, f in zip(outputs, state.output.fields, strict=True)]
        self._inputs = [self._source(b, True) for b in inputs]
        self.row_id = None if row_id is None else self._source(row_id, True)
        self.row_commit_version = None if version is None else self._source(version, True)
        self.change_type = None if unreturned is None else self._source(unreturned, True)
        sources = [*self.outputs, self.row_id, self.row_commit_version, self.change_type]
        self.returns_early = any(isinstance(s, Decoded) and not s.late for s in sources)
        self.returns_decoded = returned == outputs + [None] * 3 and all(
            isinstance(s, Decoded) and not s.late and s.index == i and s.is_plain and s.required is None
            for i, s in enumerate(self.outputs)
        )
        self.has_views = data.has_views

    # --- which columns are needed

    def _bound(self, field: StructField) -> _Bound:
        if field.physical_name in self._state.partition_columns:
            if self._change_type is not None and field.physical_name == CHANGE_TYPE_COLUMN:
                return self._change_type
            return partition_column(self._state, self._file, field)
        binding = self._binder.bind(field)
        if binding.lacks():
            self.lacks = True
            self._data.check_names()
        return null_column(binding.target) if binding.source is None else binding

    def _materialised(self) -> tuple[Binding | None, Binding | None]:
        if self._state.row_ids is None:
            return None, None
        names = self._state.row_ids.row_id, self._state.row_ids.row_commit_version
        found = [None if name is None else self._binder.bind_physical(name, LONG) for name in names]
        self.absent = [n for n, b in zip(names, found, strict=True) if n is not None and b is not None and b.lacks()]
        self._data.check_absent(self.absent)
        row_id, version = (None if b is None or b.source is None else b for b in found)
        return row_id, version

    def _predicate_inputs(self) -> tuple[pa.Schema, list[_Bound]]:
        fields = predicate_fields(self._state)
        return arrow_schema(StructType(fields)), [self._bound(f) for f in fields]

    def _leaves(self, bounds: Iterable[_Bound | None]) -> list[int]:
        return [leaf for b in bounds if isinstance(b, Binding) for leaf in b.leaves(self._data.size_of)]

    # --- how to get the columns

    def _source(self, bound: _Bound, nullable: bool) -> Source:
        if isinstance(bound, Constant):
            return bound
        if bound.source is None:
            return null_column(bound.target)
        late = not self.early.covers(self._leaves([bound]))
        selection = self.late if late else self.early
        convert = selection.convert(bound, self._leaf)
        is_plain = convert is None
        convert = expanding_dictionaries(bound.source, convert)
        if bound is self._change_type:
            convert = change_type.checked(convert, self._file.path)
        return Decoded(late, selection.position(bound.source), convert, None if nullable else bound.where, is_plain)

    def _leaf(self, column: FileColumn, target: pa.DataType, where: ColumnLocation) -> MaybeConvert:
        convert = cast.leaf(column.data_type, target, where)
        if pt.is_date32(column.data_type):
            if not self._julian_dates:
                return convert
            moved = calendar.rebase(column.data_type, self._data.key_values, where)
            return moved if convert is None else _both(moved, convert)
        if not pt.is_timestamp(target):
            return convert
        is_int96 = self._data.metadata.schema.column(column.first_leaf).physical_type == "INT96"
        if is_int96 and self._data.has_nanosecond_int96:
            convert = int96.to_micros(target, self._data.key_values, where)
        if target.tz is not None and (self._julian_int96 if is_int96 else self._julian_dates):
            move = calendar.rebase(target, self._data.key_values, where)
            return move if convert is None else _both(convert, move)
        return convert

    # --- rows and row groups

    def predicate_batch(self, early: Sequence[pa.Array], num_rows: int) -> pa.RecordBatch:
        """The columns that the predicate uses, with the table's types."""
        arrays = [s.array(early, ()) if isinstance(s, Decoded) else s.array(num_rows) for s in self._inputs]
        return record_batch(arrays, self._predicate_schema, num_rows)

    def kept(self, row_groups: Sequence[RowGroup]) -> list[RowGroup]:
        """The row groups that the footer does not rule out."""
        skip = self._state.skip
        if skip is not None and self._change_type is not None:
            skip = change_type.without_change_type(skip)
        if skip is None:
            return list(row_groups)
        return kept_row_groups(skip, self.statistics(row_groups), row_groups)

    def statistics(self, row_groups: Sequence[RowGroup]) -> RowGroupStatistics:
        """The footer's statistics of the scan's columns in these row groups."""
        return RowGroupStatistics(
            self._data.metadata,
            self._data.footer,
            row_groups,
            self._bind_path,
            self._partition,
            julian=self._julian_dates or self._julian_int96,
        )

    def _bind_path(self, path: tuple[str, ...]) -> Binding | None:
        """The binding of a leaf column; None if the footer has no statistics for the path."""
        field = self._field(path[0])
        if field is None:
            return None
        binding = self._binder.bind(StructField(field.name, field.data_type, True, field.metadata))
        for name in path[1:]:
            if binding.source is None:
                return None
            if not isinstance(binding.data_type, StructType) or name not in binding.data_type.names:
                return None
            binding = binding.children[binding.data_type.names.index(name)]
        return None if binding.children or isinstance(binding.data_type, StructType) else binding

    def _partition(self, name: str) -> pa.Scalar:
        field = self._field(name)
        if field is None:
            raise ValueError(f"the scan has no column {name}")
        return partition_column(self._state, self._file, field).value

    def _field(self, name: str) -> StructField | None:
        fields = (*self._state.inputs.fields, *self._state.output.fields)
        return next((f for f in fields if f.name == name), None)


def _both(first: Convert, second: Convert) -> Convert:
    return lambda array: second(first(array))
