"""Partition values survive the way into the log and back, whatever their type."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.partition_values import PartitionValue, format_partition_value, parse_partition_value
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
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
    DataType,
    DecimalType,
)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


text = st.text(min_size=1)
timestamps = st.integers(-200_000_000_000_000_000, 300_000_000_000_000_000)
STRATEGIES: dict[DataType, st.SearchStrategy[Any]] = {
    STRING: text,
    BINARY: text.map(str.encode),
    BOOLEAN: st.booleans(),
    BYTE: integers(8),
    SHORT: integers(16),
    INTEGER: integers(32),
    LONG: integers(64),
    FLOAT: st.floats(width=32),
    DOUBLE: st.floats(),
    DATE: st.integers(-3_000_000, 10_000_000),
    TIMESTAMP: timestamps,
    TIMESTAMP_NTZ: timestamps,
    DecimalType(38, 10): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda i: Decimal(f"{i}e-10")),
    DecimalType(5, 0): st.integers(-99999, 99999).map(Decimal),
}


def same(left: PartitionValue, right: PartitionValue) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or struct.pack("d", left) == struct.pack("d", right)
    return left == right


@pytest.mark.parametrize("data_type", STRATEGIES, ids=str)
def test_values_round_trip(data_type: DataType) -> None:
    @given(st.none() | STRATEGIES[data_type], st.sampled_from(["UTC", "America/New_York", "+05:30"]))
    def round_trip(value: PartitionValue, zone: str) -> None:
        written = format_partition_value(value, data_type)
        assert written != ""
        assert same(parse_partition_value(written, data_type, zone), value)

    round_trip()


@given(st.binary(min_size=1))
def test_bytes_round_trip_or_are_refused(value: bytes) -> None:
    try:
        written = format_partition_value(value, BINARY)
    except ProtocolError:
        with pytest.raises(UnicodeDecodeError):
            value.decode()
    else:
        assert parse_partition_value(written, BINARY) == value


@pytest.mark.parametrize("data_type", STRATEGIES, ids=str)
def test_null_and_the_empty_string_are_null_for_every_type(data_type: DataType) -> None:
    assert parse_partition_value(None, data_type) is None
    assert parse_partition_value("", data_type) is None
    assert format_partition_value(None, data_type) is None
    assert format_partition_value("", STRING) is None


@pytest.mark.parametrize(
    ("written", "data_type", "zone", "value"),
    [
        ("1970-01-01 00:00:00", TIMESTAMP, "America/New_York", 5 * 3600 * 1_000_000),
        ("1970-01-01 00:00:00.000001", TIMESTAMP, "UTC", 1),
        ("1970-01-01T00:00:00.123456Z", TIMESTAMP, "America/New_York", 123456),
        ("1970-01-01 01:00:00+01:00", TIMESTAMP, "UTC", 0),
        ("1970-01-01 00:00:01", TIMESTAMP_NTZ, "America/New_York", 1_000_000),
        ("2021-09-08", DATE, "UTC", 18878),
        ("TRUE", BOOLEAN, "UTC", True),
        ("1.50", DecimalType(3, 2), "UTC", Decimal("1.5")),
        ("-Infinity", DOUBLE, "UTC", float("-inf")),
    ],
)
def test_all_forms_that_writers_use_are_read(written: str, data_type: DataType, zone: str, value: Any) -> None:
    assert parse_partition_value(written, data_type, zone) == value


@pytest.mark.parametrize(
    ("written", "data_type"),
    [
        ("128", BYTE),
        ("1.5", INTEGER),
        ("yes", BOOLEAN),
        ("2021-13-01", DATE),
        ("10:00", TIMESTAMP),
        ("2021-01-01 00:00:00 Nowhere/Land", TIMESTAMP),
        ("1.255", DecimalType(3, 2)),
        ("100.0", DecimalType(3, 1)),
        ("NaN", DecimalType(3, 1)),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(written: str, data_type: DataType) -> None:
    with pytest.raises(ProtocolError) as error:
        parse_partition_value(written, data_type)
    assert error.value.code == "DELTA_PARTITION_COLUMN_CAST_FAILED"
