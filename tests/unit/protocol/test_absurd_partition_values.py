"""Partition values out of a damaged log: an error that shows the beginning of the text, in bounded time."""

from __future__ import annotations

from decimal import Decimal

import pytest

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.partition_values import parse_partition_value
from delta_pyds.protocol.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)

ABSURD = [
    "1e999999999", "-1e999999999", "1e-999999999", "1e99999999999999999999", "1" * 1_000_000, "sNaN", "1_0",
    "999999999-01-01", "9999999-01-01", "294248-01-01 00:00:00", "\ud800", "a\0b", "2020-01-01 00:00:00 ../x/y",
]  # fmt: skip


@pytest.mark.parametrize(
    "data_type", [INTEGER, LONG, DecimalType(10, 2), DATE, TIMESTAMP, TIMESTAMP_NTZ, BOOLEAN], ids=str
)
@pytest.mark.parametrize("text", ABSURD, ids=lambda text: ascii(text[:12]))
def test_an_absurd_value_is_an_error(text: str, data_type: DataType) -> None:
    if data_type == DATE and " " in text:
        text = text.replace(" ", "-")  # what follows a date does not matter, as in Spark
    with pytest.raises(ProtocolError) as caught:
        parse_partition_value(text, data_type)
    assert caught.value.code == "DELTA_PARTITION_COLUMN_CAST_FAILED"
    assert len(str(caught.value).encode()) < 1000


@pytest.mark.parametrize(("text", "data_type"), [("\ud800", STRING), ("1_0", DOUBLE)])
def test_what_is_no_text_and_no_number_elsewhere(text: str, data_type: DataType) -> None:
    with pytest.raises(ProtocolError):
        parse_partition_value(text, data_type)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0e999999999", "0"),
        ("0e-99", "0"),
        ("1.500000000000000000000000000000000000000000", "1.50"),
        ("1E2", "100"),
        ("-1", "-1"),
    ],
)
def test_decimals_of_any_spelling(text: str, value: str) -> None:
    found = parse_partition_value(text, DecimalType(10, 2))
    assert isinstance(found, Decimal) and found == Decimal(value)
    assert int(found.as_tuple().exponent) >= -2
