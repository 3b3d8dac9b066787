"""The ways in which Parquet files hold one and the same value."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.data.read.calendar import REFORM_DAY
from delta_pyds.data.read.reader import read
from delta_pyds.data.read.shared_plans import SharedPlans
from delta_pyds.errors import SchemaMismatchError, UnsupportedFeatureError
from delta_pyds.protocol.schema import (
    BINARY,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
)
from delta_pyds.tasks.scan_state import ScanFile
from tests.support.scans import scan, state_of, struct, write

FAR = [-62_135_596_800_000_000, -1, 0, 253_402_300_799_999_999]


def _one(
    tmp_path: Path, array: pa.Array, data_type: DataType, footer: dict[str, str] | None = None, **options: Any
) -> pa.ChunkedArray:
    table = pa.table({"c": array}).replace_schema_metadata(footer)
    return scan(state_of(tmp_path, struct(("c", data_type))), write(tmp_path / "part-1", table, **options)).column("c")


def _micros(values: list[int], tz: str | None = "UTC", unit: str = "us") -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.timestamp(unit, tz=tz))


@pytest.mark.parametrize("data_type", [TIMESTAMP, TIMESTAMP_NTZ])
def test_int96_timestamps_of_both_kinds(tmp_path: Path, data_type: DataType) -> None:
    values = [-9_000_000_000_000_000, -1, 0, 9_000_000_000_000_000, *FAR]
    got = _one(tmp_path, _micros(values, None), data_type, use_deprecated_int96_timestamps=True)
    assert got.cast(pa.int64()).to_pylist() == values


# Arrow before release 23 writes a negative number of nanoseconds of the day, and any Arrow reads that as unsigned
TURN = (1 << 64) // 1000


def _old_int96(tmp_path: Path, array: pa.Array, data_type: DataType = TIMESTAMP, **options: Any) -> pa.ChunkedArray:
    """A column as Arrow 18 wrote it, and as it is read."""
    options = {"use_deprecated_int96_timestamps": True, "compression": "none", "use_dictionary": False} | options
    file = write(tmp_path / "part-1", pa.table({"c": array}), **options)
    content = Path(file.path).read_bytes()
    a_second = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[array.type.unit]
    for value in array.cast(pa.int64()).drop_null().to_pylist():
        day, rest = divmod(value, 86_400 * a_second)
        if day < 0 < rest:
            new = _int96(day, rest * 10**9 // a_second)
            old = _int96(day + 1, rest * 10**9 // a_second - DAY * 1000)
            assert new in content or old in content
            content = content.replace(new, old)
    content, found = re.subn(rb"(?<=parquet-cpp-arrow version )\d\d\.\d\.\d", b"18.0.0", content)
    assert found == 1
    Path(file.path).write_bytes(content)
    return scan(state_of(tmp_path, struct(("c", data_type))), file).column("c").cast(pa.int64())


def _int96(day: int, nanos: int) -> bytes:
    return nanos.to_bytes(8, "little", signed=True) + (day + 2_440_588).to_bytes(4, "little")


EDGES = [
    *FAR, -9_223_372_036_854_775, -9_223_372_036_854_776, 9_223_372_036_854_775, 9_223_372_036_854_776, None,
    *(turns * TURN // 2 + more for turns in range(-6, 28) for more in (-1, 0, 1)), -86_400_000_000, -86_400_000_001,
]  # fmt: skip


@pytest.mark.parametrize("data_type", [TIMESTAMP, TIMESTAMP_NTZ])
@pytest.mark.parametrize(("unit", "factor"), [("s", 10**6), ("ms", 1000), ("us", 1)])
def test_int96_of_an_old_arrow(tmp_path: Path, unit: str, factor: int, data_type: DataType) -> None:
    values = [v if v is None else v // factor for v in EDGES]
    got = _old_int96(tmp_path, _micros(values, None, unit), data_type)
    assert got.to_pylist() == [v if v is None else v * factor for v in values]


def test_int96_of_an_old_arrow_and_a_new_one_share_no_plan(tmp_path: Path) -> None:
    array = _micros([-86_400_000_000, 1], None)  # both write these alike
    _old_int96(tmp_path, array)
    old = ScanFile(str(tmp_path / "part-1"), (tmp_path / "part-1").stat().st_size)
    content = (tmp_path / "part-1").read_bytes().replace(b"version 18.0.0", b"version 23.0.0")
    (tmp_path / "part-2").write_bytes(content)
    new = ScanFile(str(tmp_path / "part-2"), old.size_bytes)
    state = state_of(tmp_path, struct(("c", TIMESTAMP)))
    plans = SharedPlans(state)
    for file in (old, new, old):
        (batch,) = read(state, file, plans)
        assert batch.column(0).cast(pa.int64()).to_pylist() == [-86_400_000_000, 1]


def test_int96_of_an_old_arrow_with_nanoseconds_is_cut_as_spark_does(tmp_path: Path) -> None:
    """Spark divides the negative number, toward zero."""
    array = _micros([-1, -999, -1000, -1999, 1999, -9_000_000_000_000_000_384], None, "ns")
    assert _old_int96(tmp_path, array).to_pylist() == [0, 0, -1, -1, 1, -9_000_000_000_000_000]


def test_int96_of_an_old_arrow_that_may_be_two_instants_is_refused(tmp_path: Path) -> None:
    plain = [-9_000_000_000_000_000, -1, 0, 9_000_000_000_000_000]
    assert _old_int96(tmp_path, _micros(plain, None), store_schema=False).to_pylist() == plain
    for array in (_micros([FAR[-1]], None), _micros([-1], None, "ns")):
        with pytest.raises(UnsupportedFeatureError, match=r"part-1.*'c'.*pyarrow 23"):
            _old_int96(tmp_path, array, store_schema=False)


def test_int96_of_an_old_arrow_in_a_dictionary(tmp_path: Path) -> None:
    assert _old_int96(tmp_path, _micros([-1, 5, -1], None), use_dictionary=True).to_pylist() == [-1, 5, -1]


@pytest.mark.parametrize(("unit", "factor"), [("ms", 1000), ("us", 1)])
def test_int64_timestamps_of_both_units(tmp_path: Path, unit: str, factor: int) -> None:
    values = [v // factor for v in FAR]
    for tz, data_type in (("UTC", TIMESTAMP), (None, TIMESTAMP), (None, TIMESTAMP_NTZ)):
        got = _one(tmp_path, _micros(values, tz, unit), data_type, coerce_timestamps=unit)
        assert got.cast(pa.int64()).to_pylist() == [v * factor for v in values]


def test_nanosecond_timestamps_are_cut_toward_the_past(tmp_path: Path) -> None:
    got = _one(tmp_path, _micros([-1, 1, 1999], "UTC", "ns"), TIMESTAMP, version="2.6")
    assert got.cast(pa.int64()).to_pylist() == [-1, 0, 1]


def test_instants_are_not_read_as_wall_clock_time(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatchError, match="part-1"):
        _one(tmp_path, _micros([0], "UTC"), TIMESTAMP_NTZ)


@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize("precision", [5, 9, 10, 18, 19, 38])
def test_decimals_as_integers_and_as_bytes(tmp_path: Path, precision: int, as_integer: bool) -> None:
    exact = Context(prec=60)
    values = [Decimal(10**precision - 1).scaleb(-2, exact), Decimal(-1).scaleb(-2), None]
    array = pa.array(values, pa.decimal128(precision, 2))
    got = _one(tmp_path, array, DecimalType(precision, 2), store_decimal_as_integer=as_integer)
    assert got.to_pylist() == values


def test_type_widening_from_file_to_table(tmp_path: Path) -> None:
    cases: list[tuple[pa.DataType, DataType]] = [
        (pa.int8(), SHORT), (pa.int8(), LONG), (pa.int16(), INTEGER), (pa.int32(), LONG), (pa.int32(), DOUBLE),
        (pa.uint8(), SHORT), (pa.uint32(), LONG), (pa.int32(), DecimalType(12, 2)), (pa.float32(), DOUBLE),
    ]  # fmt: skip
    for source, data_type in cases:
        assert _one(tmp_path, pa.array([1, None, 7], source), data_type).to_pylist() == [1, None, 7]
    nested = _one(tmp_path, pa.array([[1, None], None], pa.list_(pa.int32())), ArrayType(LONG))
    assert nested.to_pylist() == [[1, None], None]


def test_narrowing_is_refused(tmp_path: Path) -> None:
    for source, data_type in ((pa.int64(), INTEGER), (pa.int32(), BYTE), (pa.uint32(), INTEGER), (pa.string(), LONG)):
        with pytest.raises(SchemaMismatchError, match="part-1"):
            _one(tmp_path, pa.nulls(1, source), data_type)


def test_bytes_in_all_clothes(tmp_path: Path) -> None:
    assert _one(tmp_path, pa.array([b"abc", None]), STRING).to_pylist() == ["abc", None]
    assert _one(tmp_path, pa.array(["abc", None]), BINARY).to_pylist() == [b"abc", None]
    assert _one(tmp_path, pa.array([b"ab", None], pa.binary(2)), BINARY).to_pylist() == [b"ab", None]
    uuid = pa.array([b"0123456789abcdef", None], pa.uuid())
    assert _one(tmp_path, uuid, BINARY).to_pylist() == [b"0123456789abcdef", None]
    assert _one(tmp_path, pa.array(["abc"], pa.large_string()), STRING).to_pylist() == ["abc"]
    if hasattr(pa, "json_"):  # since pyarrow 19
        assert _one(tmp_path, pa.array(['{"a":1}'], pa.json_()), STRING).to_pylist() == ['{"a":1}']


def test_files_without_the_arrow_schema_are_read_alike(tmp_path: Path) -> None:
    array = pa.array([[1, 2], None], pa.list_(pa.int64()))
    assert _one(tmp_path, array, ArrayType(LONG), store_schema=False).to_pylist() == [[1, 2], None]
    assert _one(tmp_path, array, ArrayType(LONG), use_compliant_nested_type=False).to_pylist() == [[1, 2], None]


# --- the old calendar

OLD = {"org.apache.spark.version": "2.4.5"}
MARKED = {"org.apache.spark.version": "3.2.0", "org.apache.spark.legacyDateTime": ""}
DAY = 86_400_000_000


def _julian_day(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the Julian calendar."""
    shift = (14 - month) // 12
    y, m = year + 4800 - shift, month + 12 * shift - 3
    return day + (153 * m + 2) // 5 + 365 * y + y // 4 - 32083 - 2440588


DATES = [(1, 1, 1), (4, 2, 29), (200, 2, 28), (200, 3, 1), (999, 12, 31), (1400, 3, 1), (1500, 2, 28), (1582, 10, 4)]


@pytest.mark.parametrize("footer", [OLD, MARKED, {"org.apache.spark.version": "2.3"}], ids=str)
def test_julian_dates_keep_their_day_month_and_year(tmp_path: Path, footer: dict[str, str]) -> None:
    days = [*(_julian_day(*d) for d in DATES), REFORM_DAY, 0, None]
    got = _one(tmp_path, pa.array(days, pa.int32()).cast(pa.date32()), DATE, footer)
    assert got.to_pylist() == [*(dt.date(*d) for d in DATES), dt.date(1582, 10, 15), dt.date(1970, 1, 1), None]


def test_every_julian_day_is_the_same_date_afterwards(tmp_path: Path) -> None:
    days = list(range(_julian_day(1, 1, 1), REFORM_DAY))
    got = _one(tmp_path, pa.array(days, pa.int32()).cast(pa.date32()), DATE, OLD).cast(pa.int32()).to_pylist()
    day = 0
    for year in range(1, 1583):
        for month in range(1, 13):
            leap = month == 2 and year % 4 == 0
            for number in range(1, (29 if leap else [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]) + 1):
                if day == len(days):
                    assert (year, month, number) == (1582, 10, 5)
                    return
                # 29 February of a year that is not a leap year now is 1 March
                expected = dt.date(year, month, 1) + dt.timedelta(number - 1)
                assert got[day] == (expected - dt.date(1970, 1, 1)).days
                day += 1
    raise AssertionError("the reform was not reached")


def test_julian_timestamps_of_utc_are_moved_and_others_refused(tmp_path: Path) -> None:
    micros = _julian_day(1500, 2, 28) * DAY + 5
    values = [micros, -2_208_988_800_000_001, 0]
    in_utc = MARKED | {"org.apache.spark.timeZone": "UTC"}
    got = _one(tmp_path, _micros(values), TIMESTAMP, in_utc)
    moved = (dt.date(1500, 2, 28) - dt.date(1970, 1, 1)).days * DAY + 5
    assert got.cast(pa.int64()).to_pylist() == [moved, *values[1:]]
    for footer in (OLD, MARKED, MARKED | {"org.apache.spark.timeZone": "Europe/Paris"}):
        with pytest.raises(UnsupportedFeatureError, match="part-1"):
            _one(tmp_path, _micros(values), TIMESTAMP, footer)
        assert _one(tmp_path, _micros([-2_208_988_800_000_000]), TIMESTAMP, footer).cast(pa.int64()).to_pylist() == [
            -2_208_988_800_000_000
        ]


def test_values_before_the_year_one_in_old_files_are_refused(tmp_path: Path) -> None:
    before = _julian_day(1, 1, 1) - 1
    in_utc = MARKED | {"org.apache.spark.timeZone": "UTC"}
    with pytest.raises(UnsupportedFeatureError):
        _one(tmp_path, pa.array([before], pa.int32()).cast(pa.date32()), DATE, in_utc)
    with pytest.raises(UnsupportedFeatureError):
        _one(tmp_path, _micros([before * DAY]), TIMESTAMP, in_utc)


def test_int96_has_marks_of_its_own(tmp_path: Path) -> None:
    values = [-3_000_000_000_000_000]
    options = {"use_deprecated_int96_timestamps": True}
    for footer in (
        {"org.apache.spark.version": "3.0.1"},
        {"org.apache.spark.version": "3.1", "org.apache.spark.legacyINT96": ""},
    ):
        with pytest.raises(UnsupportedFeatureError) as caught:
            _one(tmp_path, _micros(values), TIMESTAMP, footer, **options)
        assert caught.value.code == "INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME"
        # the other timestamps of such a file are of today's calendar
        assert _one(tmp_path, _micros(values), TIMESTAMP, footer).cast(pa.int64()).to_pylist() == values
    assert _one(tmp_path, _micros(values), TIMESTAMP, MARKED, **options).cast(pa.int64()).to_pylist() == values


@pytest.mark.parametrize(
    "footer", [None, {"org.apache.spark.version": "3.5.0"}, {"org.apache.spark.legacyDateTime": ""}], ids=str
)
def test_unmarked_files_are_taken_at_their_word(tmp_path: Path, footer: dict[str, str] | None) -> None:
    days = pa.array([-500_000], pa.int32()).cast(pa.date32())
    assert _one(tmp_path, days, DATE, footer).cast(pa.int32()).to_pylist() == [-500_000]
    assert _one(tmp_path, _micros(FAR), TIMESTAMP, footer).cast(pa.int64()).to_pylist() == FAR


def test_julian_dates_inside_lists_are_moved_too(tmp_path: Path) -> None:
    days = pa.array([_julian_day(1500, 1, 1)], pa.int32()).cast(pa.date32())
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), days)
    assert _one(tmp_path, lists, ArrayType(DATE), OLD).to_pylist() == [[dt.date(1500, 1, 1)]]
