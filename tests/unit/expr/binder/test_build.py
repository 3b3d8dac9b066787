"""Trees from Python values, as pushed filters make them, and casts of constants."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.binder.build import Builder, bind_column, literal_of
from delta_pyds.expr.casts import cast_literal, nearest_float
from delta_pyds.expr.logic import and_, as_filter, is_null, not_, or_
from delta_pyds.expr.nodes import FALSE, NULL, TRUE, Column, Expr, In, Literal, Not, to_sql
from delta_pyds.expr.types import common_type, wider_decimal
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from delta_pyds.protocol.temporal import TimeZone

WHOLE, B, S = Column(("i",), INTEGER), Column(("b",), BOOLEAN), Column(("s",), STRING)
UTC = TimeZone("UTC")


@pytest.mark.parametrize(
    ("value", "data_type", "expected"),
    [
        (1, INTEGER, 1),
        (True, BOOLEAN, True),
        ("a", STRING, "a"),
        (bytearray(b"a"), BINARY, b"a"),
        (0.1, FLOAT, 0.10000000149011612),
        (Decimal("1.5"), DecimalType(10, 2), Decimal("1.5")),
        (Decimal("99999999999999999999999999999999999999"), DecimalType(38, 0), Decimal(10**38 - 1)),
        (dt.date(1970, 1, 2), DATE, 1),
        (dt.date(1, 1, 1), DATE, -719162),
        (dt.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=dt.timezone.utc), TIMESTAMP, 1_000_005),
        (dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), TIMESTAMP, 0),
        (dt.datetime(1969, 12, 31, 23, 59, 59), TIMESTAMP_NTZ, -1_000_000),
        (None, DATE, None),
    ],
)
def test_python_values_become_constants(value: object, data_type: DataType, expected: object) -> None:
    assert literal_of(value, data_type) == Literal(expected, data_type)


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        (True, INTEGER), (1, BOOLEAN), (2**31, INTEGER), (1.0, INTEGER), ("1", INTEGER), (1, DOUBLE), (b"a", STRING),
        (Decimal("1.555"), DecimalType(10, 2)), (Decimal("1e9"), DecimalType(10, 2)), (Decimal("NaN"),
        DecimalType(10, 2)),
        (dt.datetime(2020, 1, 1), TIMESTAMP), (dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc), TIMESTAMP_NTZ),
        (dt.datetime(2020, 1, 1), DATE), (dt.date(2020, 1, 1), TIMESTAMP_NTZ), ([1], STRING),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused(value: object, data_type: DataType) -> None:
    with pytest.raises(ExpressionError):
        literal_of(value, data_type)


def test_comparisons_take_python_values_of_the_columns_type() -> None:
    builder = Builder()
    assert to_sql(builder.compare("<=", WHOLE, 3)) == "i <= 3"
    assert to_sql(builder.null_safe_equal(WHOLE, None)) == "i IS NULL"
    assert builder.is_in(WHOLE, [3, None, 1, 3]) == or_([In(WHOLE, (3, 1)), NULL])
    assert builder.is_in(WHOLE, []) == FALSE
    assert builder.is_in(WHOLE, [None]) == NULL
    assert to_sql(builder.is_in(S, ["a"])) == "s = 'a'"
    assert not builder.zone.used


def test_a_field_of_a_struct_is_bound_through_its_parents() -> None:
    schema = StructType((StructField("St", StructType((StructField("X", INTEGER, True, {"__COLLATIONS": {}}),))),))
    assert bind_column(["st", "x"], schema) == Column(("St", "X"), INTEGER, collated=True)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (and_([]), TRUE),
        (or_([]), FALSE),
        (and_([TRUE, B]), B),
        (and_([FALSE, B, NULL]), FALSE),
        (or_([NULL, TRUE, B]), TRUE),
        (and_([B, B]), B),
        (not_(NULL), NULL),
        (not_(not_(B)), B),
        (not_(and_([B, is_null(WHOLE)])), or_([Not(B), Not(is_null(WHOLE))])),
        (is_null(Literal(None, INTEGER)), TRUE),
        (is_null(is_null(WHOLE)), FALSE),
        (is_null(Builder().compare("<", WHOLE, 1)), is_null(WHOLE)),
        (as_filter(NULL), FALSE),
        (as_filter(or_([NULL, B])), B),
        (as_filter(and_([or_([NULL, B]), is_null(WHOLE)])), and_([B, is_null(WHOLE)])),
    ],
)
def test_logic_folds(expr: Expr, expected: Expr) -> None:
    assert expr == expected


def test_logic_takes_booleans_only() -> None:
    for make in (lambda: and_([WHOLE]), lambda: not_(S), lambda: or_([B, WHOLE])):
        with pytest.raises(ExpressionError, match="BOOLEAN is needed"):
            make()


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (INTEGER, LONG, LONG),
        (INTEGER, FLOAT, DOUBLE),
        (FLOAT, DOUBLE, DOUBLE),
        (DecimalType(10, 2), FLOAT, DOUBLE),
        (DecimalType(10, 2), INTEGER, DecimalType(12, 2)),
        (LONG, DecimalType(2, 1), DecimalType(21, 1)),
        (STRING, INTEGER, LONG),
        (STRING, DecimalType(10, 2), DOUBLE),
        (STRING, DATE, DATE),
        (DATE, TIMESTAMP, TIMESTAMP),
        (DATE, TIMESTAMP_NTZ, TIMESTAMP_NTZ),
        (TIMESTAMP, TIMESTAMP_NTZ, TIMESTAMP),
        (STRING, BINARY, BINARY),
    ],
)
def test_two_types_meet_as_in_ansi_mode(left: DataType, right: DataType, expected: DataType) -> None:
    assert common_type(left, right) == expected
    assert common_type(right, left) == expected


def test_decimals_that_need_more_than_38_digits_give_up_digits_after_the_point() -> None:
    assert wider_decimal(DecimalType(38, 0), DecimalType(38, 10)) == DecimalType(38, 0)
    assert wider_decimal(DecimalType(30, 10), DecimalType(30, 20)) == DecimalType(38, 18)


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        ("1.555", STRING, DecimalType(10, 2), Decimal("1.56")),
        ("-1.555", STRING, DecimalType(10, 2), Decimal("-1.56")),
        ("1e2", STRING, DecimalType(10, 2), Decimal("100.00")),
        (" 12 ", STRING, INTEGER, 12),
        ("1.5f", STRING, DOUBLE, 1.5),
        ("-Infinity", STRING, FLOAT, float("-inf")),
        ("é", STRING, BINARY, "é".encode()),
        (Decimal("-1.9"), DecimalType(2, 1), INTEGER, -1),
        (-1.9, DOUBLE, INTEGER, -1),
        (2**53 + 1, LONG, DOUBLE, 2.0**53),
        (True, BOOLEAN, STRING, "true"),
        (12, INTEGER, STRING, "12"),
        (86_400_000_000 - 1, TIMESTAMP, DATE, 0),
        (-1, TIMESTAMP_NTZ, DATE, -1),
        (None, STRING, DATE, None),
    ],
)
def test_constants_are_cast_as_spark_casts_them(
    value: Any, source: DataType, target: DataType, expected: object
) -> None:
    found = cast_literal(Literal(value, source), target, UTC)
    assert found == Literal(expected, target)


@pytest.mark.parametrize(
    ("value", "source", "target", "code"),
    [
        ("1.5", STRING, INTEGER, "CAST_INVALID_INPUT"),
        ("1_000", STRING, INTEGER, "CAST_INVALID_INPUT"),
        ("\u0661", STRING, INTEGER, "CAST_INVALID_INPUT"),
        ("1e", STRING, DOUBLE, "CAST_INVALID_INPUT"),
        ("0x1p3", STRING, DOUBLE, "CAST_INVALID_INPUT"),
        ("99999999999", STRING, INTEGER, "CAST_OVERFLOW"),
        (float("nan"), DOUBLE, INTEGER, "CAST_OVERFLOW"),
        (1e10, DOUBLE, INTEGER, "CAST_OVERFLOW"),
        (Decimal("999.999"), DecimalType(6, 3), DecimalType(5, 2), "CAST_OVERFLOW"),
        (1, DATE, INTEGER, "DELTA_UNSUPPORTED_EXPRESSION"),
        (0.1, DOUBLE, DecimalType(3, 2), "DELTA_UNSUPPORTED_EXPRESSION"),
        (True, BOOLEAN, INTEGER, "DELTA_UNSUPPORTED_EXPRESSION"),
        (1.5, DOUBLE, STRING, "DELTA_UNSUPPORTED_EXPRESSION"),
    ],
)
def test_constants_that_do_not_fit_are_errors(value: Any, source: DataType, target: DataType, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        cast_literal(Literal(value, source), target, UTC)
    assert caught.value.code == code


def test_the_nearest_float_is_not_rounded_twice() -> None:
    # a hair above the middle of two floats: as a double it is the middle, which would round to even, down
    text = "1.00000005960464477539062500000000000001"
    assert nearest_float(Decimal(text)) == 1.0000001192092896
    assert nearest_float(Decimal("-" + text)) == -1.0000001192092896
    assert nearest_float(Decimal("1.000000059604644775390625")) == 1.0
    assert nearest_float(2**128) == float("inf")
    assert nearest_float(Decimal("3.40282356e38")) == 3.4028234663852886e38
    for value in (Decimal("0.1"), Decimal("1e-45"), Decimal("16777217"), Decimal("1.5")):
        found = nearest_float(value)
        assert abs(Fraction(found) - Fraction(value)) <= Fraction(value) / 2**24 or found == 1.401298464324817e-45
