from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.cast import widens, widens_by_rfc
from delta_pyds.columnar.schema import VARIANT
from delta_pyds.errors import CorruptDataFileError, SchemaMismatchError
from tests.support.conforming import conform

UTC = pa.timestamp("us", tz="UTC")
NTZ = pa.timestamp("us")


def _conform(array: pa.Array, target: pa.DataType) -> pa.Array:
    result = conform(array, target)
    result.validate(full=True)
    assert result.type == target
    return result


WIDENINGS = [
    (pa.int8(), pa.int16(), [-128, 127]),
    (pa.int8(), pa.int32(), [-128, 127]),
    (pa.int8(), pa.int64(), [-128, 127]),
    (pa.int16(), pa.int32(), [-32768, 32767]),
    (pa.int16(), pa.int64(), [-32768, 32767]),
    (pa.int32(), pa.int64(), [-(2**31), 2**31 - 1]),
    (pa.int8(), pa.float64(), [-128, 127]),
    (pa.int16(), pa.float64(), [-32768, 32767]),
    (pa.int32(), pa.float64(), [-(2**31), 2**31 - 1]),
    (pa.float32(), pa.float64(), [0.1, float("inf")]),
    (pa.uint8(), pa.int16(), [0, 255]),
    (pa.uint16(), pa.int32(), [0, 65535]),
    (pa.uint32(), pa.int64(), [0, 2**32 - 1]),
]


@pytest.mark.parametrize(("source", "target", "values"), WIDENINGS, ids=str)
def test_widening_keeps_extremes_and_nulls(source: pa.DataType, target: pa.DataType, values: list[Any]) -> None:
    array = pa.array([*values, None], source)
    assert _conform(array, target).to_pylist() == array.to_pylist()


@pytest.mark.parametrize(
    ("source", "bits", "digits", "asked"),
    [(pa.int8(), 8, 3, 10), (pa.int16(), 16, 5, 10), (pa.int32(), 32, 10, 10), (pa.int64(), 64, 19, 20)],
    ids=str,
)
@pytest.mark.parametrize("scale", [0, 1, 5])
def test_integers_widen_to_decimals_that_hold_every_one(
    source: pa.DataType, bits: int, digits: int, asked: int, scale: int
) -> None:
    values = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, -7, None]
    for precision in range(digits + scale, 38):
        target = pa.decimal128(precision, scale)
        found = _conform(pa.array(values, source), target).to_pylist()
        assert found == [None if v is None else Decimal(v) for v in values]
        # early writers made decimals of fewer digits than the RFC asks for, which Spark's own reader refuses
        assert widens_by_rfc(source, target) == (precision - scale >= asked)
    if scale < digits:
        with pytest.raises(SchemaMismatchError, match="'c'"):
            conform(pa.array([1], source), pa.decimal128(digits + scale - 1, scale))


def test_unsigned_long_is_a_decimal_of_twenty_digits() -> None:
    array = pa.array([2**64 - 1], pa.uint64())
    assert _conform(array, pa.decimal128(20, 0)).to_pylist() == [Decimal(2**64 - 1)]


def test_decimal_widens_where_whole_digits_do_not_get_fewer() -> None:
    array = pa.array([Decimal("123.45"), None], pa.decimal128(5, 2))
    assert _conform(array, pa.decimal128(7, 4)).to_pylist() == [Decimal("123.4500"), None]
    assert _conform(array, pa.decimal128(38, 2)).to_pylist() == array.to_pylist()
    for worse in (pa.decimal128(5, 4), pa.decimal128(6, 4), pa.decimal128(5, 1), pa.decimal128(4, 2)):
        with pytest.raises(SchemaMismatchError):
            conform(array, worse)


def test_date_widens_to_wall_clock_timestamp_only() -> None:
    days = pa.array([-719162, 0, 2932896], pa.int32()).cast(pa.date32())
    micros = _conform(days, NTZ).cast(pa.int64()).to_pylist()
    assert micros == [d * 86_400_000_000 for d in (-719162, 0, 2932896)]
    with pytest.raises(SchemaMismatchError):
        conform(days, UTC)


UNRELATED = [
    (pa.int64(), pa.int32()), (pa.int32(), pa.int16()), (pa.int32(), pa.int8()), (pa.float64(), pa.float32()),
    (pa.int64(), pa.float64()), (pa.int32(), pa.float32()), (pa.string(), pa.int32()), (pa.int32(), pa.string()),
    (pa.bool_(), pa.int32()), (pa.int32(), pa.bool_()), (pa.int64(), UTC), (UTC, pa.int64()), (UTC, NTZ),
    (pa.int32(), pa.date32()), (pa.date32(), pa.int32()), (pa.uint32(), pa.int32()), (pa.uint64(), pa.int64()),
    (pa.decimal128(5, 2), pa.float64()), (pa.float64(), pa.decimal128(38, 10)), (pa.time64("us"), pa.int64()),
    (pa.float16(), pa.float32()), (pa.binary(4), pa.string()), (pa.list_(pa.int32()), pa.int32()),
    (pa.int32(), pa.list_(pa.int32())), (pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int32())),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), UNRELATED, ids=str)
def test_a_narrowing_or_unrelated_type_is_refused_naming_file_column_and_types(
    source: pa.DataType, target: pa.DataType
) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        conform(pa.nulls(1, source), target)
    for part in ("part-1.parquet", "'c'", str(source), str(target)):
        assert part in str(caught.value)
    assert caught.value.code == "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH"


def test_timestamps_of_every_unit_become_microseconds() -> None:
    for unit, factor in (("s", 10**6), ("ms", 10**3), ("us", 1)):
        array = pa.array([-1, 0, 5, None], pa.int64()).cast(pa.timestamp(unit))
        got = _conform(array, UTC).cast(pa.int64()).to_pylist()
        assert got == [-factor, 0, 5 * factor, None]


def test_nanoseconds_are_cut_toward_the_past() -> None:
    array = pa.array([-1, -1000, 999, 1001, None], pa.int64()).cast(pa.timestamp("ns", tz="Asia/Tokyo"))
    assert _conform(array, UTC).cast(pa.int64()).to_pylist() == [-1, -1, 0, 1, None]


def test_zone_of_the_file_is_a_label_that_does_not_move_the_instant() -> None:
    array = pa.array([123], pa.int64()).cast(pa.timestamp("us", tz="Asia/Tokyo"))
    assert _conform(array, UTC).cast(pa.int64()).to_pylist() == [123]
    # what has no zone is read as UTC, as Spark does
    assert _conform(pa.array([123], pa.int64()).cast(NTZ), UTC).cast(pa.int64()).to_pylist() == [123]


def test_timestamps_outside_the_nanosecond_range_survive() -> None:
    array = pa.array([-62_135_596_800_000_000, 253_402_300_799_999_999], pa.int64()).cast(NTZ)
    assert _conform(array, UTC).cast(pa.int64()).to_pylist() == array.cast(pa.int64()).to_pylist()


def test_milliseconds_beyond_microseconds_are_refused() -> None:
    array = pa.array([2**62], pa.int64()).cast(pa.timestamp("ms"))
    with pytest.raises(SchemaMismatchError, match=r"part-1\.parquet"):
        conform(array, UTC)


def test_strings_of_every_layout_become_plain() -> None:
    for source in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        array = pa.array(["a", None, "ü"], pa.string()).cast(source)
        assert _conform(array, pa.string()).to_pylist() == ["a", None, "ü"]
        assert _conform(array.slice(1), pa.string()).to_pylist() == [None, "ü"]
    for source in (pa.large_binary(), pa.binary_view(), pa.binary(2)):
        assert _conform(pa.array([b"ab", None], source), pa.binary()).to_pylist() == [b"ab", None]


def test_bytes_without_annotation_are_a_string_as_they_are() -> None:
    result = conform(pa.array([b"ok", b"\xff\xfe"], pa.binary()), pa.string())
    assert result.type == pa.string()
    assert result.view(pa.binary()).to_pylist() == [b"ok", b"\xff\xfe"]


def test_nullability_is_rebuilt_at_every_depth_without_copying_values() -> None:
    loose = pa.struct(
        [("l", pa.list_(pa.field("item", pa.struct([("x", pa.int32())])))), ("m", pa.map_("string", "int32"))]
    )
    strict = pa.struct(
        [
            pa.field("l", pa.list_(pa.field("element", pa.struct([pa.field("x", pa.int32(), False)]), False)), False),
            pa.field("m", pa.map_(pa.field("key", pa.string(), False), pa.field("value", pa.int32(), False)), False),
        ]
    )
    rows = [{"l": [{"x": 1}, {"x": 2}], "m": [("a", 1)]}, None, {"l": [], "m": []}]
    array = pa.array(rows, loose)
    result = _conform(array, strict)
    assert result.to_pylist() == rows
    assert (
        result.field("l").values.field("x").buffers()[1].address
        == array.field("l").values.field("x").buffers()[1].address
    )
    assert _conform(array.slice(1), strict).to_pylist() == rows[1:]
    assert _conform(array.slice(2), strict).to_pylist() == rows[2:]
    assert _conform(array.slice(3), strict).to_pylist() == []


def test_not_null_fields_below_a_null_are_no_violation_at_any_depth() -> None:
    inner = pa.StructArray.from_arrays([pa.array([1, None], pa.int32())], fields=[pa.field("x", pa.int32())])
    array = pa.StructArray.from_arrays([inner], fields=[pa.field("b", inner.type, False)], mask=pa.array([False, True]))
    strict = pa.struct([pa.field("b", pa.struct([pa.field("x", pa.int32(), False)]), False)])
    assert _conform(array, strict).to_pylist() == [{"b": {"x": 1}}, None]


def test_null_in_a_not_null_field_is_refused_only_where_the_parent_is_there() -> None:
    loose = pa.struct([("x", pa.int32())])
    strict = pa.struct([pa.field("x", pa.int32(), False)])
    assert _conform(pa.array([{"x": 1}, None], loose), strict).to_pylist() == [{"x": 1}, None]
    with pytest.raises(CorruptDataFileError, match=r"'c\.x'"):
        conform(pa.array([{"x": 1}, None, {"x": None}], loose), strict)
    with pytest.raises(CorruptDataFileError, match=r"'c\.element'"):
        conform(pa.array([[1, None]]), pa.list_(pa.field("element", pa.int64(), False)))


def test_struct_fields_are_matched_by_name_reordered_and_filled() -> None:
    array = pa.array(
        [{"b": 1, "a": "x", "gone": 0}, None], pa.struct([("b", "int32"), ("a", "string"), ("gone", "int8")])
    )
    target = pa.struct([("a", pa.string()), ("new", pa.list_(pa.int64())), ("b", pa.int64())])
    assert _conform(array, target).to_pylist() == [{"a": "x", "new": None, "b": 1}, None]
    with pytest.raises(SchemaMismatchError, match="NOT NULL"):
        conform(array, pa.struct([pa.field("new", pa.int32(), False)]))


def test_lists_of_every_layout_become_plain() -> None:
    rows = [[1, 2], None, [3, 4]]
    target = pa.list_(pa.field("element", pa.int64()))
    for source in (pa.list_(pa.int32(), 2), pa.large_list(pa.int32()), pa.list_view(pa.int32()), pa.list_(pa.int32())):
        array = pa.array(rows, source)
        assert _conform(array, target).to_pylist() == rows, source
        assert _conform(array.slice(1), target).to_pylist() == rows[1:], source
        assert _conform(array.slice(0, 0), target).to_pylist() == [], source


def test_maps_keep_entries_when_sliced() -> None:
    rows = [[("a", 1)], None, [("b", None), ("c", 3)]]
    target = pa.map_(pa.field("key", pa.string(), False), pa.field("value", pa.int64()))
    array = pa.array(rows, pa.map_(pa.large_string(), pa.int8()))
    assert _conform(array, target).to_pylist() == rows
    assert _conform(array.slice(2), target).to_pylist() == rows[2:]


def test_null_type_gives_and_takes_nulls_of_any_type() -> None:
    assert _conform(pa.nulls(2), VARIANT).to_pylist() == [None, None]
    assert _conform(pa.array([1, 2]), pa.null()).to_pylist() == [None, None]
    target = pa.list_(pa.field("element", pa.null()))
    assert _conform(pa.array([[1, 2], []]), target).to_pylist() == [[None, None], []]


def test_an_array_that_is_right_already_is_returned_itself() -> None:
    target = pa.struct([("l", pa.list_(pa.field("element", pa.string())))])
    array = pa.array([{"l": ["a"]}], target)
    assert conform(array, target) is array


@pytest.mark.parametrize("precision", range(1, 12))
@pytest.mark.parametrize("scale", range(6))
def test_decimal_widens_exactly_where_its_greatest_value_fits(precision: int, scale: int) -> None:
    """Every pair: (10, 2) to (10, 4) has more digits after the point, and too few before it."""
    if scale > precision:
        return
    source = pa.decimal128(precision, scale)
    for wider in range(1, 14):
        for more in range(wider + 1):
            target = pa.decimal128(wider, more)
            fits = wider - more >= precision - scale and more >= scale
            assert widens(source, target) == fits, target
