"""Store assignment: conversion of incoming rows to the types of the table.

Invariant: a value is stored unchanged, or the task fails. If only some values may fail (a bigint for an int column),
every value is checked.

Nested structs match by name, without case. Missing fields are null, and a null struct stays null. Arrays that fit are
not copied, even if nullability or metadata of their Arrow fields differ.

Reference: its schema enforcement on write, and Spark's store assignment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.cast import (
    Child,
    ColumnLocation,
    Convert,
    MaybeConvert,
    is_list_like,
    list_of,
    map_of,
    struct_of,
)
from delta_pyds.columnar.schema import VARIANT as VARIANT_ARROW
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.errors import ConstraintViolationError, DeltaError, UserError
from delta_pyds.protocol.schema import (
    BINARY,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructType,
    display,
    nullable_throughout,
)
from delta_pyds.protocol.temporal import DAY_MICROS

# the floating point widths that hold every integer of the type exactly
_EXACT_FLOATS = {pa.int8(): (16, 32, 64), pa.int16(): (32, 64), pa.int32(): (64,)}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}


@dataclass(frozen=True)
class Assignment:
    """The conversion of a column: ``convert`` is None if its type fits already; ``data_type`` is the result's."""

    convert: MaybeConvert
    data_type: pa.DataType


def plan_assignment(source: pa.DataType, target: DataType, column: str, table: str = "") -> Assignment:
    """Plan, once per task, the conversion of ``source`` arrays to ``target``. ``column``, ``table``: names in messages.

    Raises: UserError (DELTA_FAILED_TO_MERGE_FIELDS) for incompatible types, naming both.
    """
    if fits(source, arrow_type(target)):
        return Assignment(None, source)
    wanted = arrow_type(nullable_throughout(target))
    return Assignment(_plan(source, target, wanted, _Incoming(table, column)), wanted)


def fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether the types differ at most in nullability and metadata."""
    if pt.is_struct(target):
        return (
            pt.is_struct(source)
            and [f.name for f in source] == [f.name for f in target]
            and all(fits(s.type, t.type) for s, t in zip(source, target, strict=True))
        )
    if pt.is_map(target):
        return pt.is_map(source) and fits(source.key_type, target.key_type) and fits(source.item_type, target.item_type)
    if pt.is_list(target):
        return pt.is_list(source) and fits(source.value_type, target.value_type)
    return bool(source == target)


def without_hidden_values(convert: Convert) -> Convert:
    """The conversion of structs with values inside null structs replaced by null, so that those cannot fail."""

    def run(array: pa.Array) -> pa.Array:
        if array.null_count:
            fields = [f.with_nullable(True) for f in array.type]
            array = pa.StructArray.from_arrays(array.flatten(), fields=fields, mask=array.is_null())
        return convert(array)

    return run


class _Incoming(ColumnLocation):
    """A column of the incoming rows, as messages name it. ``file``: the target table."""

    def child(self, name: str) -> _Incoming:
        return _Incoming(self.file, f"{self.column}.{name}")

    @property
    def of_table(self) -> str:
        return f"table {self.file}" if self.file else "the table"

    def null_found(self) -> DeltaError:
        return ConstraintViolationError(
            f"the rows for {self.of_table} have a null in '{self.column}', which is NOT NULL.",
            code="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
            column=self.column,
        )

    def refuse(self, source: pa.DataType, target: DataType, why: str = "") -> UserError:
        return UserError(
            f"the incoming rows have the column '{self.column}' as {source}, which cannot be stored as "
            f"{display(target).upper()} in {self.of_table} without changing values{why}: cast it before writing.",
            code="DELTA_FAILED_TO_MERGE_FIELDS",
            column=self.column,
            incoming_type=str(source),
            table_type=display(target),
        )


def _plan(source: pa.DataType, target: DataType, wanted: pa.DataType, where: _Incoming) -> MaybeConvert:
    if pt.is_null(source):
        return None if pt.is_null(wanted) else lambda array: pa.nulls(len(array), wanted)
    if pt.is_null(wanted):
        raise where.refuse(source, target, ", because the type holds only nulls")
    if isinstance(target, StructType):
        if not pt.is_struct(source):
            raise where.refuse(source, target)
        return without_hidden_values(struct_of(wanted, list(_fields(source, target, wanted, where))))
    if isinstance(target, ArrayType):
        if not is_list_like(source):
            raise where.refuse(source, target)
        part = where.child("element")
        return list_of(wanted, Child(0, _plan(source.value_type, target.element_type, wanted.value_type, part), part))
    if isinstance(target, MapType):
        if not pt.is_map(source):
            raise where.refuse(source, target)
        key, value = where.child("key"), where.child("value")
        return map_of(
            wanted,
            Child(0, _plan(source.key_type, target.key_type, wanted.key_type, key), key),
            Child(1, _plan(source.item_type, target.value_type, wanted.item_type, value), value),
        )
    if target == VARIANT:
        return _variant(source, where)
    return _leaf(source, target, wanted, where)


def _fields(source: pa.DataType, target: StructType, wanted: pa.DataType, where: _Incoming) -> Iterator[Child]:
    names = [f.name for f in source]
    used: set[int] = set()
    for field, arrow in zip(target, wanted, strict=True):
        part = where.child(field.name)
        index = find_name(names, field.name, part.column)
        if index is None:
            yield Child(None, None, part)
            continue
        used.add(index)
        yield Child(index, _plan(source.field(index).type, field.data_type, arrow.type, part), part)
    for i, name in enumerate(names):
        if i not in used and not pt.is_null(source.field(i).type):
            raise where.child(name).refuse(source.field(i).type, target, f", which has no field '{name}'")


def find_name(names: list[str], name: str, column: str) -> int | None:
    """The index of the name among others: the exact spelling first, else the only one that differs only in case.

    Raises: UserError (DELTA_DUPLICATE_COLUMNS_FOUND) for several matches.
    """
    close = [i for i, other in enumerate(names) if other.lower() == name.lower()]
    exact = [i for i in close if names[i] == name]
    found = exact if len(exact) == 1 else close
    if len(found) > 1:
        raise UserError(
            f"the incoming rows have {len(close)} columns that could be '{column}': "
            f"{', '.join(repr(names[i]) for i in close)}. Names are compared without case: keep one of them.",
            code="DELTA_DUPLICATE_COLUMNS_FOUND",
            column=column,
        )
    return found[0] if found else None


def _variant(source: pa.DataType, where: _Incoming) -> MaybeConvert:
    positions = [source.get_field_index(f.name) if pt.is_struct(source) else -1 for f in VARIANT_ARROW]
    if min(positions) < 0:
        raise where.refuse(source, VARIANT)
    children = []
    for position, field in zip(positions, VARIANT_ARROW, strict=True):
        part = where.child(field.name)
        children.append(Child(position, _leaf(source.field(position).type, BINARY, pa.binary(), part), part))
    return struct_of(VARIANT_ARROW, children)


def _leaf(source: pa.DataType, target: DataType, wanted: pa.DataType, where: _Incoming) -> MaybeConvert:
    if source == wanted:
        return None
    if pt.is_timestamp(source) and pt.is_timestamp(wanted):
        if source.unit == "us" and source.tz is not None and wanted.tz is not None:
            # Spark labels timestamps with the session's zone; the values are UTC
            return lambda array: array.view(wanted)
    elif _may_fit(source, wanted):
        return _checked(source, target, wanted, where)
    raise where.refuse(source, target)


def _may_fit(source: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast keeps a value or fails on it, and fails only for values that the target cannot hold."""
    if pt.is_signed_integer(source):
        return _holds_whole_numbers(source, wanted)
    if pt.is_decimal(source) and pt.is_decimal128(wanted):
        return bool(wanted.scale >= source.scale)
    return bool(
        (pt.is_large_string(source) and pt.is_string(wanted))
        or (pt.is_large_binary(source) and pt.is_binary(wanted))
        or (pt.is_float32(source) and pt.is_float64(wanted))
        or (pt.is_date32(source) and wanted == pa.timestamp("us"))
    )


def _holds_whole_numbers(source: pa.DataType, wanted: pa.DataType) -> bool:
    if pt.is_floating(wanted):
        return wanted.bit_width in _EXACT_FLOATS.get(source, ())
    if pt.is_decimal128(wanted):
        return bool(wanted.precision - wanted.scale >= _DIGITS[source])
    return bool(pt.is_signed_integer(wanted))


def _checked(source: pa.DataType, target: DataType, wanted: pa.DataType, where: _Incoming) -> Convert:
    """A cast that fails on the first value that the target cannot hold."""
    cast: Convert = _midnights if pt.is_date32(source) else lambda array: array.cast(wanted)

    def run(array: pa.Array) -> pa.Array:
        try:
            return cast(array)
        except pa.ArrowInvalid as e:
            if pt.is_large_string(source) or pt.is_large_binary(source):
                raise UserError(
                    f"a batch of the incoming rows has more than 2 GiB in the column '{where.column}': make batches "
                    "smaller with spark.sql.execution.arrow.maxRecordsPerBatch.",
                    column=where.column,
                ) from e
            raise ConstraintViolationError(
                f"a value of the incoming column '{where.column}' ({source}) does not fit the column's type "
                f"{display(target).upper()} in {where.of_table}: {e}. Correct the value, or widen the column's type.",
                code="CAST_OVERFLOW_IN_TABLE_INSERT",
                column=where.column,
            ) from None

    return run


def _midnights(array: pa.Array) -> pa.Array:
    days = array.view(pa.int32()).cast(pa.int64())
    return pc.multiply_checked(days, DAY_MICROS).view(pa.timestamp("us"))
