from __future__ import annotations

import datetime as dt
import struct as struct_module
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.schema import VARIANT as VARIANT_ARROW
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.write.store_assignment import fits, plan_assignment
from delta_pyds.errors import ConstraintViolationError, UserError
from delta_pyds.protocol.schema import (
    BINARY,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_pyds.protocol.type_changes import is_checked_narrowing, is_lossless


def assign(array: pa.Array, target: DataType) -> pa.Array:
    assignment = plan_assignment(array.type, target, "c")
    result = array if assignment.convert is None else assignment.convert(array)
    result.validate(full=True)
    assert result.type == assignment.data_type
    assert fits(result.type, arrow_type(target))
    return result


def struct(*fields: tuple[str, DataType]) -> StructType:
    return StructType(tuple(StructField(name, kind) for name, kind in fields))


@pytest.mark.parametrize(
    ("source", "target", "value", "result"),
    [
        (pa.int8(), LONG, -128, -128),
        (pa.int32(), LONG, 7, 7),
        (pa.int64(), INTEGER, 2**31 - 1, 2**31 - 1),
        (pa.int32(), SHORT, -32768, -32768),
        (pa.int16(), BYTE, 127, 127),
        (pa.int32(), DOUBLE, 2**31 - 1, float(2**31 - 1)),
        (pa.int16(), FLOAT, -32768, -32768.0),
        (pa.int32(), DecimalType(12, 2), 5, Decimal("5.00")),
        (pa.int64(), DecimalType(19, 0), 2**63 - 1, Decimal(2**63 - 1)),
        (pa.float32(), DOUBLE, 0.5, 0.5),
        (pa.decimal128(5, 2), DecimalType(10, 4), Decimal("123.45"), Decimal("123.4500")),
        (pa.decimal128(10, 2), DecimalType(5, 2), Decimal("999.99"), Decimal("999.99")),
        (pa.large_string(), STRING, "é", "é"),
        (pa.large_binary(), BINARY, b"\xff", b"\xff"),
        (pa.date32(), TIMESTAMP_NTZ, dt.date(1969, 12, 31), dt.datetime(1969, 12, 31)),
    ],
)
def test_values_that_the_table_holds_arrive_unchanged(
    source: pa.DataType, target: DataType, value: Any, result: Any
) -> None:
    array = pa.array([None, value, value, None], source)
    assert assign(array, target).to_pylist() == [None, result, result, None]
    assert assign(array.slice(1, 2), target).to_pylist() == [result, result]


@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        (pa.int64(), INTEGER, 2**31),
        (pa.int32(), SHORT, -32769),
        (pa.int16(), BYTE, 128),
        (pa.decimal128(10, 2), DecimalType(5, 2), Decimal("1000.00")),
        (pa.date32(), TIMESTAMP_NTZ, 2**31 - 1),
    ],
)
def test_a_value_that_does_not_fit_fails_with_the_column_and_both_types(
    source: pa.DataType, target: DataType, value: Any
) -> None:
    array = pa.array([0, 0, value], pa.int32()).cast(source) if source == pa.date32() else pa.array([value], source)
    with pytest.raises(ConstraintViolationError, match=r"'c' \(.*column's type [A-Z]") as e:
        assign(array, target)
    assert e.value.code == "CAST_OVERFLOW_IN_TABLE_INSERT"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), DOUBLE),
        (pa.int32(), FLOAT),
        (pa.float64(), FLOAT),
        (pa.float64(), LONG),
        (pa.int32(), DecimalType(9, 0)),
        (pa.decimal128(5, 2), DecimalType(10, 1)),
        (pa.decimal128(5, 0), LONG),
        (pa.string(), BINARY),
        (pa.binary(), STRING),
        (pa.string(), LONG),
        (pa.int64(), STRING),
        (pa.bool_(), INTEGER),
        (pa.timestamp("us"), TIMESTAMP),
        (pa.timestamp("us", "UTC"), TIMESTAMP_NTZ),
        (pa.timestamp("ns", "UTC"), TIMESTAMP),
        (pa.date32(), TIMESTAMP),
        (pa.timestamp("us", "UTC"), DATE),
        (pa.int64(), VOID),
        (pa.int64(), struct(("a", LONG))),
        (pa.struct([("a", pa.int64())]), LONG),
        (pa.list_(pa.int64()), MapType(LONG, LONG)),
        (pa.map_(pa.int64(), pa.int64()), ArrayType(LONG)),
        (pa.struct([("value", pa.binary())]), VARIANT),
    ],
)
def test_types_that_could_lose_something_are_refused_whatever_the_values(source: pa.DataType, target: DataType) -> None:
    with pytest.raises(UserError, match="cast it before writing") as e:
        plan_assignment(source, target, "c")
    assert e.value.code == "DELTA_FAILED_TO_MERGE_FIELDS"


def test_a_column_that_fits_is_handed_on_as_it_is() -> None:
    source = pa.struct([pa.field("a", pa.list_(pa.field("x", pa.int64(), False)), False, {"k": "v"})])
    assert plan_assignment(source, struct(("a", ArrayType(LONG))), "c").convert is None
    assert plan_assignment(VARIANT_ARROW, VARIANT, "c").convert is None


def test_instants_are_relabelled_without_a_copy() -> None:
    array = pa.array([0, None, -1], pa.timestamp("us", "Europe/Berlin"))
    result = assign(array, TIMESTAMP)
    assert result.type == pa.timestamp("us", "UTC")
    assert result.buffers()[1].address == array.buffers()[1].address
    assert result.cast(pa.int64()).to_pylist() == [0, None, -1]


def test_instants_inside_of_arrays_and_structs_are_relabelled_too() -> None:
    kind = ArrayType(struct(("t", TIMESTAMP), ("n", TIMESTAMP_NTZ)))
    source = pa.list_(pa.struct([("t", pa.timestamp("us", "America/New_York")), ("n", pa.timestamp("us"))]))
    values = [None, [{"t": 5, "n": 6}, None], [{"t": None, "n": None}]]
    result = assign(pa.array(values, source), kind)
    instants = pa.list_(pa.struct([("t", pa.int64()), ("n", pa.int64())]))
    assert result.cast(instants).to_pylist() == values


def test_more_text_than_a_batch_can_hold_is_an_error_that_says_what_to_do() -> None:
    # the offsets are looked at before any text, which is not there
    offsets = pa.py_buffer(struct_module.pack("<qq", 0, 2**31))
    text = pa.foreign_buffer(offsets.address, 2**31, offsets)
    array = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, text])
    convert = plan_assignment(array.type, STRING, "c").convert
    assert convert is not None
    with pytest.raises(UserError, match=r"'c'.*maxRecordsPerBatch"):
        convert(array)


_LEAVES: list[DataType] = [
    BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID,
    *(DecimalType(p, s) for p, s in ((3, 0), (5, 0), (10, 0), (12, 2), (19, 0), (20, 0), (38, 18), (38, 38))),
]  # fmt: skip


@pytest.mark.parametrize("target", _LEAVES)
@pytest.mark.parametrize("source", _LEAVES)
def test_what_planning_accepts_the_task_can_do(source: DataType, target: DataType) -> None:
    if is_lossless(source, target) or is_checked_narrowing(source, target):
        array = pa.array([None, None], arrow_type(source))
        assert assign(array, target).to_pylist() == [None, None]


def test_a_column_of_no_type_is_null() -> None:
    kind = struct(("a", ArrayType(LONG)))
    assert assign(pa.nulls(3), kind).to_pylist() == [None] * 3
    assert assign(pa.nulls(2), VARIANT).to_pylist() == [None] * 2
    assert assign(pa.nulls(2), VOID).to_pylist() == [None] * 2


def test_structs_match_by_name_whatever_the_case_and_lack_nulls() -> None:
    array = pa.array([{"B": 1, "A": {"Y": 2}}, None, {"B": None, "A": None}])
    kind = struct(("a", struct(("x", STRING), ("y", LONG))), ("b", INTEGER), ("c", ArrayType(STRING)))
    assert assign(array, kind).to_pylist() == [
        {"a": {"x": None, "y": 2}, "b": 1, "c": None},
        None,
        {"a": None, "b": None, "c": None},
    ]


def test_structs_inside_arrays_and_maps_match_by_name_too() -> None:
    element = pa.struct([("B", pa.int32()), ("a", pa.large_string())])
    kind = struct(("A", STRING), ("b", LONG))
    rows = [[{"B": 1, "a": "x"}, None], None, [], [{"B": 2, "a": None}]]
    result = assign(pa.array(rows, pa.large_list(element)).slice(1, 3), ArrayType(kind))
    assert result.to_pylist() == [None, [], [{"A": None, "b": 2}]]
    maps = pa.array([[(1, {"B": 1, "a": "x"})], None], pa.map_(pa.int32(), element))
    assert assign(maps, MapType(LONG, kind)).to_pylist() == [[(1, {"A": "x", "b": 1})], None]


def test_a_value_below_a_null_struct_cannot_fail() -> None:
    inner = pa.array([2**40, 5], pa.int64())
    array = pa.StructArray.from_arrays([inner], ["a"], mask=pa.array([True, False]))
    assert assign(array, struct(("a", INTEGER))).to_pylist() == [None, {"a": 5}]


def test_a_nested_field_that_the_table_lacks_is_refused_unless_it_can_only_be_null() -> None:
    with pytest.raises(UserError, match=r"'c\.extra'.*no field 'extra'"):
        plan_assignment(pa.struct([("a", pa.int64()), ("extra", pa.int64())]), struct(("a", LONG)), "c")
    array = pa.array([{"a": 1, "extra": None}], pa.struct([("a", pa.int64()), ("extra", pa.null())]))
    assert assign(array, struct(("a", LONG))).to_pylist() == [{"a": 1}]


def test_nested_names_that_differ_in_case_alone_are_ambiguous() -> None:
    source = pa.struct([("Ab", pa.int64()), ("aB", pa.int64())])
    with pytest.raises(UserError, match="'Ab', 'aB'") as e:
        plan_assignment(source, struct(("ab", LONG)), "c")
    assert e.value.code == "DELTA_DUPLICATE_COLUMNS_FOUND"


def test_of_two_nested_names_the_second_is_not_dropped_in_silence() -> None:
    source = pa.struct([("ab", pa.int64()), ("aB", pa.int64())])
    with pytest.raises(UserError, match="no field 'aB'"):
        plan_assignment(source, struct(("ab", LONG)), "c")


def test_a_variant_finds_its_parts_by_name() -> None:
    source = pa.struct([("metadata", pa.large_binary()), ("value", pa.large_binary())])
    array = pa.array([{"metadata": b"m", "value": b"v"}, None], source)
    assert assign(array, VARIANT).to_pylist() == [{"value": b"v", "metadata": b"m"}, None]


def test_empty_arrays_convert() -> None:
    kind = struct(("a", ArrayType(MapType(STRING, LONG))))
    source = pa.struct([("A", pa.list_(pa.map_(pa.large_string(), pa.int32())))])
    assert assign(pa.array([], source), kind).to_pylist() == []
