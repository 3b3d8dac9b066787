"""Floating point numbers as texts. The pairs of Java are those of Java 25, whose rule is that of Java 19."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.protocol.floating_text import java_double, java_float, shortest_float, to_float
from delta_pyds.protocol.partition_values import format_partition_value, parse_partition_value
from delta_pyds.protocol.schema import DOUBLE, FLOAT, DataType

_DOUBLES = {
    0.0: "0.0", 1.0: "1.0", 100.0: "100.0", 1234567.0: "1234567.0", 9999999.0: "9999999.0", 1e7: "1.0E7",
    1e10: "1.0E10", -1e10: "-1.0E10", 123456789.123: "1.23456789123E8", 0.5: "0.5", 0.001: "0.001", 0.00123: "0.00123",
    9.99e-4: "9.99E-4", 1e-5: "1.0E-5", 1e21: "1.0E21", 1e22: "1.0E22", 9007199254740992.0: "9.007199254740992E15",
    math.inf: "Infinity", -math.inf: "-Infinity", 2.2250738585072014e-308: "2.2250738585072014E-308",
    1.7976931348623157e308: "1.7976931348623157E308",
    # two digits at least, the closest
    5e-324: "4.9E-324", 1e-323: "9.9E-324", 2e-323: "2.0E-323", 1e23: "1.0E23",
    # longer before Java 19
    2e23: "2.0E23", 8.41e21: "8.41E21",
}  # fmt: skip
_FLOATS = {
    0.1: "0.1", 1e10: "1.0E10", 16777216.0: "1.6777216E7", 3.4028235e38: "3.4028235E38", 1e-45: "1.4E-45",
    1.17549435e-38: "1.1754944E-38", 8589934592.0: "8.589935E9", 9e9: "9.0E9", 2.0**-96: "1.2621775E-29",
    33554432.0: "3.3554432E7", 0.001: "0.001", 1 / 3: "0.33333334", -2.5: "-2.5",
}  # fmt: skip


@pytest.mark.parametrize(("value", "text"), _DOUBLES.items())
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_double(value) == text
    assert format_partition_value(value, DOUBLE) == text


@pytest.mark.parametrize(("value", "text"), _FLOATS.items())
def test_floats_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_float(to_float(value)) == text
    assert format_partition_value(value, FLOAT) == text


@pytest.mark.parametrize("data_type", [DOUBLE, FLOAT])
def test_zeros_and_no_number(data_type: DataType) -> None:
    assert format_partition_value(-0.0, data_type) == "-0.0"
    assert format_partition_value(math.nan, data_type) == "NaN"


@pytest.mark.parametrize("text", ["1e+10", "10000000000.0", "1E10", "1.0E10", "1.0e10", "+1.0E10"])
def test_all_spellings_of_a_number_are_read(text: str) -> None:
    assert parse_partition_value(text, DOUBLE) == 1e10


@given(st.floats())
def test_a_double_reads_back(value: float) -> None:
    assert struct.pack("d", float(java_double(value))) == struct.pack("d", value) or math.isnan(value)


@given(st.floats(width=32))
def test_a_float_reads_back_and_has_no_more_digits_than_it_needs(value: float) -> None:
    for text in (java_float(value), shortest_float(value)):
        assert math.isnan(value) or struct.pack("<f", float(text)) == struct.pack("<f", value)
    if math.isfinite(value):
        digits = shortest_float(value).lower().partition("e")[0].replace(".", "").strip("-0")
        assert len(digits) <= len(f"{value:.8e}".partition("e")[0].replace(".", "").strip("-"))
