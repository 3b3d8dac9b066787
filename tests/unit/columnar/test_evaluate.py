"""Evaluation over Arrow: nested columns, slices, null logic, and the values where engines differ."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.comparison import compare_constant
from delta_pyds.columnar.evaluate import evaluate, matches
from delta_pyds.columnar.rows import batch_resolver
from delta_pyds.errors import ColumnNotFoundError
from delta_pyds.expr.nodes import Expr, Literal
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.protocol.schema import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DataType,
    DecimalType,
    StructField,
    StructType,
)

NAN = math.nan


def expression(text: str, **columns: DataType) -> Expr:
    schema = StructType(tuple(StructField(name, kind) for name, kind in columns.items()))
    return parse_predicate(text, schema, time_zone="UTC").expr


def found(text: str, values: list[Any], data_type: DataType, arrow: pa.DataType) -> list[bool]:
    batch = pa.RecordBatch.from_arrays([pa.array(values, arrow)], names=["c"])
    return matches(expression(text, c=data_type), batch, len(values)).to_pylist()


STRUCT = StructType((StructField("x", INTEGER), StructField("in", StructType((StructField("y", STRING),)))))
STRUCT_ARROW = pa.struct([("x", pa.int32()), ("in", pa.struct([("y", pa.string())]))])
STRUCTS = [
    {"x": 1, "in": {"y": "a"}},
    None,
    {"x": None, "in": None},
    {"x": 4, "in": {"y": None}},
    {"x": 5, "in": {"y": "e"}},
]


@pytest.mark.parametrize(("offset", "length"), [(0, 5), (1, 4), (2, 2), (4, 1), (5, 0)])
def test_fields_of_structs_mind_parents_and_slices(offset: int, length: int) -> None:
    whole = pa.RecordBatch.from_arrays([pa.array(STRUCTS, STRUCT_ARROW)], names=["st"])
    batch = whole.slice(offset, length)
    rows = STRUCTS[offset : offset + length]
    nulls = matches(expression("st.x IS NULL", st=STRUCT), batch, length).to_pylist()
    assert nulls == [row is None or row["x"] is None for row in rows]
    deep = matches(expression("st.`in`.y = 'e'", st=STRUCT), batch, length).to_pylist()
    assert deep == [row is not None and row["in"] is not None and row["in"]["y"] == "e" for row in rows]
    assert matches(expression("st IS NULL", st=STRUCT), batch, length).to_pylist() == [row is None for row in rows]


def test_a_value_under_a_null_struct_does_not_show() -> None:
    child = pa.array([1, 2, 3], pa.int32())
    hidden = pa.StructArray.from_arrays([child], names=["x"], mask=pa.array([False, True, False]))
    batch = pa.RecordBatch.from_arrays([hidden], names=["st"])
    assert batch_resolver(batch)(("st", "x")).to_pylist() == [1, None, 3]
    assert batch_resolver(batch.slice(1))(("st", "x")).to_pylist() == [None, 3]


def test_a_column_that_the_batch_lacks_is_named() -> None:
    resolve = batch_resolver(pa.RecordBatch.from_arrays([pa.array(STRUCTS, STRUCT_ARROW)], names=["st"]))
    with pytest.raises(ColumnNotFoundError, match="'nope'"):
        resolve(("nope",))
    with pytest.raises(ColumnNotFoundError, match="'nope'"):
        resolve(("st", "nope"))


def test_columns_may_come_from_a_function() -> None:
    asked = []

    def resolve(path: tuple[str, ...]) -> pa.Array:
        asked.append(path)
        return pa.array([1, None, 3], pa.int32())

    assert evaluate(expression("st.x > 2", st=STRUCT), resolve, 3).to_pylist() == [False, None, True]
    assert asked == [("st", "x")]


def test_constants_fill_all_rows() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2], pa.int32())], names=["c"])
    assert matches(expression("1 = 1", c=INTEGER), batch, 2).to_pylist() == [True, True]
    assert matches(expression("NULL", c=INTEGER), batch, 2).to_pylist() == [False, False]
    assert evaluate(expression("1 = 1", c=INTEGER), batch, 2).type == pa.bool_()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c = 0", [True, True, False, False, False, False]),
        ("c = 'NaN'", [False, False, True, False, False, False]),
        ("c > 'inf'", [False, False, True, False, False, False]),
        ("c >= 1", [False, False, True, True, False, False]),
        ("c < 1", [True, True, False, False, False, True]),
        ("c <> 0", [False, False, True, True, False, True]),
        ("c <> 'NaN'", [True, True, False, True, False, True]),
        ("NOT (c > 0)", [True, True, False, False, False, True]),
        ("c IN (0, 'NaN')", [True, True, True, False, False, False]),
        ("c NOT IN (0)", [False, False, True, True, False, True]),
        ("c = c", [True, True, True, True, False, True]),
        ("c < c", [False] * 6),
        ("c >= c", [True, True, True, True, False, True]),
        ("c <=> NULL", [False, False, False, False, True, False]),
    ],
)
@pytest.mark.parametrize(("data_type", "arrow"), [(DOUBLE, pa.float64()), (FLOAT, pa.float32())])
def test_nan_is_the_greatest_and_zeros_are_equal(
    text: str, expected: list[bool], data_type: DataType, arrow: pa.DataType
) -> None:
    assert found(text, [0.0, -0.0, NAN, 1.5, None, -1.5], data_type, arrow) == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("=", [False, True, None]),
        ("<>", [True, False, None]),
        ("<", [True, False, None]),
        ("<=", [True, True, None]),
        (">", [False, False, None]),
        (">=", [False, True, None]),
    ],
)
def test_a_constant_may_be_nan(op: str, expected: list[bool | None]) -> None:
    """Beside a column it is rewritten before; beside ``0D`` it stays."""
    assert compare_constant(op, pa.array([0.0, NAN, None]), Literal(NAN, DOUBLE)).to_pylist() == expected


def test_nan_with_any_bits_is_nan() -> None:
    payload = pa.Array.from_buffers(pa.float64(), 2, [None, pa.py_buffer(b"\x01\0\0\0\0\0\xf8\xff" * 2)])
    batch = pa.RecordBatch.from_arrays([payload], names=["c"])
    for text in ("c = 'NaN'", "c IN ('NaN', 1)", "c > 1"):
        assert matches(expression(text, c=DOUBLE), batch, 2).to_pylist() == [True, True]


def test_strings_compare_by_their_bytes() -> None:
    values = ["\uffff", "\U0001f600", "z", "é", None]
    assert found("c > '\\uFFFF'", values, STRING, pa.string()) == [False, True, False, False, False]
    assert found("c > 'z'", values, STRING, pa.string()) == [True, True, False, True, False]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("'a%'", ["a", "ab", "a\nb", "a.b", "a\U0001f600b"]),
        ("'a_b'", ["a\nb", "a.b", "a\U0001f600b"]),
        ("'a.b'", ["a.b"]),
        ("'%\\n%'", ["a\nb"]),
        ("'_'", ["a", "\U0001f600", "%"]),
        ("'!%' ESCAPE '!'", ["%"]),
        ("'%b'", ["ab", "a\nb", "a.b", "a\U0001f600b"]),
        ("''", [""]),
    ],
)
def test_patterns_count_characters_and_take_nothing_else_specially(pattern: str, expected: list[str]) -> None:
    values = ["a", "ab", "a\nb", "a.b", "a\U0001f600b", "\U0001f600", "%", "", None]
    hits = found(f"c LIKE {pattern}", values, STRING, pa.string())
    assert [value for value, hit in zip(values, hits, strict=True) if hit] == expected


def test_decimals_compare_exactly_at_38_digits() -> None:
    big = Decimal(10**38 - 1)
    values = [big, Decimal(10**38 - 2), Decimal(1 - 10**38), None]
    kind, arrow = DecimalType(38, 0), pa.decimal128(38, 0)
    assert found(f"c = {big}", values, kind, arrow) == [True, False, False, False]
    assert found(f"c < {big}", values, kind, arrow) == [False, True, True, False]
    assert found("c < 1e38", values, kind, arrow) == [False, False, True, False]  # as doubles


def test_decimals_become_the_nearest_double() -> None:
    # dividing digits by a power of ten would be one step off for some of these
    values = [Decimal(n).scaleb(-18) for n in (1, 3, 7, 123456789012345678901, 1800000000000000018)]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values, pa.decimal128(38, 18)), pa.array([float(v) for v in values])], names=["n", "d"]
    )
    assert matches(expression("n = d", n=DecimalType(38, 18), d=DOUBLE), batch, 5).to_pylist() == [True] * 5


def test_whole_numbers_meet_doubles_as_doubles() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([2**53 + 1, 2**53]), pa.array([2.0**53, 2.0**53])], names=["l", "d"])
    assert matches(expression("l = d", l=LONG, d=DOUBLE), batch, 2).to_pylist() == [True, True]


def test_remainders_have_the_sign_of_the_dividend_and_never_overflow() -> None:
    values = [-128, -7, -1, 0, 1, 7, 127, None]
    assert found("c % 3 = -1", values, BYTE, pa.int8()) == [False, True, True, False, False, False, False, False]
    assert found("c % -1Y = 0", values, BYTE, pa.int8()) == [True] * 7 + [False]
    assert found("c % 300 = c", values, BYTE, pa.int8()) == [True] * 7 + [False]


def test_unknown_stays_unknown_until_the_end() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([True, False, None] * 3), pa.array([True] * 3 + [False] * 3 + [None] * 3)], names=["a", "b"]
    )
    both = expression("a AND b", a=BOOLEAN, b=BOOLEAN)
    assert evaluate(both, batch, 9).to_pylist() == [True, False, None, False, False, False, None, False, None]
    either = expression("a OR b", a=BOOLEAN, b=BOOLEAN)
    assert evaluate(either, batch, 9).to_pylist() == [True, True, True, True, False, None, True, None, None]
    result = matches(either, batch, 9)
    assert result.null_count == 0
    assert result.to_pylist() == [True, True, True, True, False, False, True, False, False]


def test_dates_and_timestamps_outside_of_pythons_years_work() -> None:
    days = [0, 2_932_897, -719_163, None]
    assert found("c >= DATE '10000-01-01'", days, DATE, pa.date32()) == [False, True, False, False]
    micros = [0, 253_402_300_800_000_000, None]
    stamp = pa.timestamp("us", tz="UTC")
    assert found("c >= TIMESTAMP '10000-01-01 00:00:00'", micros, TIMESTAMP, stamp) == [False, True, False]
