"""Conversion of decoded Parquet arrays to exactly the Arrow type of the table's column.

Invariant: no value changes. A conversion is the identity, a change of representation (dictionary to plain, milliseconds
to microseconds), or a widening of the type widening feature; anything else is refused.

A ``Convert`` is planned once per column and file, and run once per batch. ``None`` means that nothing is to be done,
so a file with the right types costs nothing. Nested arrays are rebuilt around their buffers, because Arrow's own cast
refuses a nullable child if the target is not nullable.

Specification: the RFC "Type Widening"; protocol: "Delta Data Type to Parquet Type Mappings".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.errors import CorruptDataFileError, DeltaError, SchemaMismatchError

Convert = Callable[[pa.Array], pa.Array]
MaybeConvert = Convert | None

# the decimal digits needed for every value of the type
_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
# the digits that the type widening RFC requires; early writers of the feature used fewer
_RFC_DIGITS = {pa.int8(): 10, pa.int16(): 10, pa.int32(): 10, pa.int64(): 20}
_WIDENINGS: dict[pa.DataType, frozenset[pa.DataType]] = {
    pa.int8(): frozenset({pa.int16(), pa.int32(), pa.int64(), pa.float64()}),
    pa.int16(): frozenset({pa.int32(), pa.int64(), pa.float64()}),
    pa.int32(): frozenset({pa.int64(), pa.float64()}),
    pa.float32(): frozenset({pa.float64()}),
    pa.date32(): frozenset({pa.timestamp("us")}),
    # Spark reads Parquet's unsigned integers as the next wider type
    pa.uint8(): frozenset({pa.int16(), pa.int32(), pa.int64()}),
    pa.uint16(): frozenset({pa.int32(), pa.int64()}),
    pa.uint32(): frozenset({pa.int64()}),
    pa.uint64(): frozenset({pa.decimal128(20, 0)}),
    pa.date64(): frozenset({pa.date32()}),
}


@dataclass(frozen=True)
class ColumnLocation:
    """The data file and the column, for messages; nested names are joined by dots."""

    file: str
    column: str

    def child(self, name: str) -> ColumnLocation:
        return ColumnLocation(self.file, f"{self.column}.{name}")

    def mismatch(self, source: object, target: object) -> SchemaMismatchError:
        return SchemaMismatchError(
            f"the data file '{self.file}' has the column '{self.column}' as {source}, which cannot be read as the "
            f"table's type {target} without changing values. The file was not written for this table's schema: "
            "rewrite it, or exclude it.",
            file=self.file,
            column=self.column,
            file_type=str(source),
            table_type=str(target),
        )

    def null_found(self) -> DeltaError:
        return CorruptDataFileError(
            f"the data file '{self.file}' has nulls in the column '{self.column}', which the table declares "
            "NOT NULL. Another program wrote it without regard to the schema: rewrite it, or drop the constraint.",
            code="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
            file=self.file,
            column=self.column,
        )

    def missing(self) -> DeltaError:
        return SchemaMismatchError(
            f"the data file '{self.file}' lacks the column '{self.column}', which the table declares NOT NULL. "
            "Rewrite the file with values for it, or drop the constraint.",
            code="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
            file=self.file,
            column=self.column,
        )


def plan(source: pa.DataType, target: pa.DataType, where: ColumnLocation) -> MaybeConvert:
    """A conversion of arrays of ``source`` to ``target``, matching struct fields by exact name."""
    if isinstance(source, pa.BaseExtensionType):
        inner = plan(source.storage_type, target, where)
        return lambda array: array.storage if inner is None else inner(array.storage)
    if pt.is_struct(target) and pt.is_struct(source):
        children: list[Child] = []
        for field in target:
            index = source.get_field_index(field.name)
            child = where.child(field.name)
            if index < 0 and not field.nullable:
                raise child.missing()
            convert = None if index < 0 else plan(source.field(index).type, field.type, child)
            children.append(Child(None if index < 0 else index, convert, child))
        return struct_of(target, children)
    if pt.is_map(target) and pt.is_map(source):
        key, value = where.child("key"), where.child("value")
        return map_of(
            target,
            Child(0, plan(source.key_type, target.key_type, key), key),
            Child(1, plan(source.item_type, target.item_type, value), value),
        )
    if pt.is_list(target) and is_list_like(source):
        element = where.child("element")
        return list_of(target, Child(0, plan(source.value_type, target.value_type, element), element))
    return leaf(source, target, where)


def is_list_like(data_type: pa.DataType) -> bool:
    return bool(
        pt.is_list(data_type)
        or pt.is_large_list(data_type)
        or pt.is_fixed_size_list(data_type)
        or pt.is_list_view(data_type)
        or pt.is_large_list_view(data_type)
    )


# --- leaf values


def leaf(source: pa.DataType, target: pa.DataType, where: ColumnLocation) -> MaybeConvert:
    """A conversion of leaf values to ``target``.

    Raises: SchemaMismatchError naming file, column and both types.
    """
    if isinstance(source, pa.BaseExtensionType):
        inner = leaf(source.storage_type, target, where)
        return lambda array: array.storage if inner is None else inner(array.storage)
    if source == target:
        return None
    if pt.is_null(target) or pt.is_null(source):
        return lambda array: pa.nulls(len(array), target)
    if pt.is_dictionary(source):
        inner = leaf(source.value_type, target, where)
        decoded = pa.DictionaryArray.dictionary_decode
        return decoded if inner is None else lambda array: inner(decoded(array))
    if pt.is_timestamp(source) and pt.is_timestamp(target):
        return _timestamp(source, target, where)
    if _is_bytes(source) and (pt.is_string(target) or pt.is_binary(target)):
        return _bytes(source, target, where)
    if widens(source, target):
        return _checked(lambda array: array.cast(target), source, target, where)
    raise where.mismatch(source, target)


def widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether every value of ``source`` is also a value of the wider ``target``. Protocol: "Type Widening"."""
    if target in _WIDENINGS.get(source, ()):
        return True
    if pt.is_decimal128(target):
        if pt.is_decimal(source):
            more_scale = target.scale - source.scale
            return bool(more_scale >= 0 and target.precision - source.precision >= more_scale)
        return source in _INTEGER_DIGITS and target.precision - target.scale >= _INTEGER_DIGITS[source]
    return False


def widens_by_rfc(source: pa.DataType, target: pa.DataType) -> bool:
    """As ``widens``, but with the RFC's required digits for integers that become decimals."""
    if pt.is_decimal(target) and source in _RFC_DIGITS:
        return bool(pt.is_decimal128(target) and target.precision - target.scale >= _RFC_DIGITS[source])
    return widens(source, target)


def _checked(cast: Convert, source: pa.DataType, target: pa.DataType, where: ColumnLocation) -> Convert:
    """A cast whose error for an unsuitable value names the file."""

    def run(array: pa.Array) -> pa.Array:
        try:
            return cast(array)
        except pa.ArrowInvalid as e:
            raise SchemaMismatchError(
                f"the data file '{where.file}' has a value in the column '{where.column}' ({source}) that is not "
                f"a value of the table's type {target}: {e}.",
                file=where.file,
                column=where.column,
            ) from None

    return run


def _timestamp(source: pa.DataType, target: pa.DataType, where: ColumnLocation) -> Convert:
    """Any unit to microseconds. The source's time zone is only a label: its values are UTC."""
    if source.tz is not None and target.tz is None:
        # without a zone an instant has no wall clock time; Spark refuses this, too
        raise where.mismatch(source, target)
    if source.unit == "us":
        return lambda array: array.view(target)
    if source.unit == "ns":
        bare = pa.timestamp("ns")

        def floor(array: pa.Array) -> pa.Array:
            # casts truncate toward zero, which would move instants before 1970 forward
            return pc.floor_temporal(array.view(bare), unit="microsecond").cast(pa.timestamp("us")).view(target)

        return floor
    return _checked(lambda array: array.cast(pa.timestamp("us", tz=source.tz)).view(target), source, target, where)


def _is_bytes(data_type: pa.DataType) -> bool:
    return bool(
        pt.is_string(data_type)
        or pt.is_binary(data_type)
        or pt.is_large_string(data_type)
        or pt.is_large_binary(data_type)
        or pt.is_string_view(data_type)
        or pt.is_binary_view(data_type)
        or pt.is_fixed_size_binary(data_type)
    )


def _bytes(source: pa.DataType, target: pa.DataType, where: ColumnLocation) -> Convert:
    """Bytes stay as they are: a string column without the UTF8 annotation is not validated, as in Spark."""
    if pt.is_fixed_size_binary(source) and not pt.is_binary(target):
        raise where.mismatch(source, target)
    if pt.is_binary(source) or pt.is_string(source):
        return lambda array: array.view(target)
    if pt.is_large_string(source) or pt.is_string_view(source):
        return _checked(lambda array: array.cast(pa.string()).view(target), source, target, where)
    return _checked(lambda array: array.cast(pa.binary()).view(target), source, target, where)


# --- nested values


@dataclass(frozen=True)
class Child:
    """A part of a target: its index in the source (None: all null), its conversion, and its name for messages."""

    index: int | None
    convert: MaybeConvert
    where: ColumnLocation


class Rebuild:
    """A ``Convert`` of nested values; it returns an array unchanged if its type is right already."""

    def __init__(self, target: pa.DataType, children: Sequence[Child], build: Convert) -> None:
        self._target = target
        self._build = build
        # only the type is replaced: no value is converted, moved, dropped or added
        self._plain = all(c.index == i and _is_plain(c.convert) for i, c in enumerate(children))

    def __call__(self, array: pa.Array) -> pa.Array:
        if self._plain and array.type == self._target:
            return array
        return self._build(array) if len(array) else pa.array([], type=self._target)

    @property
    def is_plain(self) -> bool:
        return self._plain


def _is_plain(convert: MaybeConvert) -> bool:
    return convert is None or (isinstance(convert, Rebuild) and convert.is_plain)


def struct_of(target: pa.DataType, children: Sequence[Child]) -> Convert:
    """Rebuild structs with the target's fields in the target's order."""
    fields = [target.field(i) for i in range(target.num_fields)]

    def build(array: pa.Array) -> pa.Array:
        parts = []
        for field, child in zip(fields, children, strict=True):
            if child.index is None:
                parts.append(pa.nulls(len(array), field.type))
                continue
            if array.null_count and pt.is_struct(field.type):
                # fields of this struct must be null where its parent is null
                part = array.flatten()[child.index]
            else:
                part = array.field(child.index)
            if child.convert is not None:
                part = child.convert(part)
            if not field.nullable and part.null_count:
                _no_visible_null(array, part, child.where)
            parts.append(part)
        return pa.Array.from_buffers(target, len(array), [validity(array)], array.null_count, children=parts)

    return Rebuild(target, children, build)


def _no_visible_null(parent: pa.Array, part: pa.Array, where: ColumnLocation) -> None:
    """Raise for a null in a required field, unless its parent is null."""
    hidden = parent.null_count and not pc.any(pc.and_(parent.is_valid(), part.is_null())).as_py()
    if not hidden:
        raise where.null_found()


def list_of(target: pa.DataType, element: Child) -> Convert:
    """Rebuild lists of any layout as plain lists of the target's element."""

    def build(array: pa.Array) -> pa.Array:
        offsets, values = list_parts(array)
        values = _element(values, element, target.value_field)
        return pa.Array.from_buffers(
            target, len(array), [validity(array), offsets], array.null_count, children=[values]
        )

    return Rebuild(target, [element], build)


def map_of(target: pa.DataType, key: Child, value: Child) -> Convert:
    """Rebuild maps with the target's keys and values."""
    entries_type = pa.struct([target.key_field, target.item_field])

    def build(array: pa.Array) -> pa.Array:
        start, offsets, length = _offsets(array)
        keys = _element(array.keys.slice(start, length), key, target.key_field)
        values = _element(array.items.slice(start, length), value, target.item_field)
        entries = pa.Array.from_buffers(entries_type, len(keys), [None], 0, children=[keys, values])
        return pa.Array.from_buffers(
            target, len(array), [validity(array), offsets], array.null_count, children=[entries]
        )

    return Rebuild(target, [key, value], build)


def _element(values: pa.Array, child: Child, field: pa.Field) -> pa.Array:
    if child.index is None:
        return pa.nulls(len(values), field.type)
    if child.convert is not None:
        values = child.convert(values)
    if not field.nullable and values.null_count:
        raise child.where.null_found()
    return values


def validity(array: pa.Array) -> pa.Buffer | None:
    """The validity bitmap, for an array of the same length that starts at offset 0."""
    if array.null_count == 0:
        return None
    if array.offset == 0:
        return array.buffers()[0]
    return array.is_valid().buffers()[1]


def list_parts(array: pa.Array) -> tuple[pa.Buffer, pa.Array]:
    """32-bit offsets that start at 0, and just the values that they address. Not for an empty array."""
    if pt.is_list(array.type):
        start, offsets, length = _offsets(array)
        return offsets, array.values.slice(start, length)
    values = pc.list_flatten(array)
    lengths = pc.fill_null(pc.list_value_length(array).cast(pa.int32()), 0)
    ends = pc.cumulative_sum(lengths)
    return pa.concat_arrays([pa.array([0], pa.int32()), ends]).buffers()[1], values


def _offsets(array: pa.Array) -> tuple[int, pa.Buffer, int]:
    """The start of the values, offsets relative to it, and the number of values."""
    offsets = array.offsets
    start, end = offsets[0].as_py(), offsets[-1].as_py()
    if start == 0 and offsets.offset == 0:
        return 0, offsets.buffers()[1], end
    # an untyped scalar would make 64-bit offsets
    return start, pc.subtract(offsets, pa.scalar(start, pa.int32())).buffers()[1], end - start
