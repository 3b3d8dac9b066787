"""A long list of plain numbers is read at once, and means what it means number by number."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.columnar.evaluate import evaluate
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import Expr, In, Or
from delta_pyds.expr.parse import parse_expression, parse_predicate
from delta_pyds.protocol.schema import (
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    DataType,
    DecimalType,
    StructField,
    StructType,
)

TYPES: list[DataType] = [
    DOUBLE, FLOAT, INTEGER, LONG, STRING,
    *(DecimalType(*one) for one in ((5, 2), (12, 2), (18, 18), (38, 0), (38, 10), (38, 38), (20, 1))),
]  # fmt: skip
SCHEMA = StructType(tuple(StructField(f"c{n}", kind) for n, kind in enumerate(TYPES)))
DIGITS = st.text("0123456789", min_size=1, max_size=20)
WHOLE = st.builds("".join, st.tuples(st.sampled_from(["", "-", "- ", "+"]), DIGITS))
DECIMALS = st.one_of(
    WHOLE,
    st.builds("{}.{}".format, WHOLE, st.one_of(DIGITS, st.just(""))),
    st.builds(".{}".format, DIGITS),
    st.sampled_from(["0.0", "-0.0", "-.0", "000.50", "1.", "2147483648", "9223372036854775808", "1.5BD"]),
)
DOUBLES = st.one_of(
    st.builds("{}{}".format, DECIMALS, st.sampled_from("dD")),
    st.builds("{}e{}".format, DECIMALS, st.integers(-12, 12)),
    st.sampled_from(["-0.0D", "0.0D", "1e99D", "1E-99", "1e400", "1e+5", "0.1D", "1e-400", "1.5F", "16777217D"]),
)
CENTS = st.decimals(-999, 999, places=2).map("{:f}".format)
LISTS = st.one_of(
    st.lists(st.one_of(st.integers(-999, 999).map(str), CENTS), min_size=1),
    st.lists(st.floats(-1e9, 1e9, width=32).map(lambda value: f"{value:.6f}D"), min_size=1),
    st.lists(DECIMALS, min_size=1, max_size=8),
    st.lists(DOUBLES, min_size=1, max_size=8),
    st.lists(st.one_of(DECIMALS, DOUBLES), min_size=1, max_size=8),
)  # fmt: skip


ROWS = pa.RecordBatch.from_arrays(
    [
        pa.array([-0.0, 0.0, math.nan, None, 1.5, -999.0, 1e99, math.inf], pa.float64()),
        pa.array([Decimal(n) for n in ("0.00", "1.50", "-1.50", "999.00", "0.05")] + [None] * 3, pa.decimal128(12, 2)),
    ],
    names=["c0", "c6"],
)


def meaning(text: str) -> Any:
    """The predicate with each list's values sorted; or the error."""
    try:
        return _unordered(parse_predicate(text, SCHEMA, time_zone="UTC").expr)
    except ExpressionError as error:
        return error.code


def _unordered(expr: Expr) -> Any:
    if isinstance(expr, In):
        return expr.child, sorted(map(repr, expr.values))
    return {repr(_unordered(child)) for child in expr.children} if isinstance(expr, Or) else expr


@given(column=st.integers(0, len(TYPES) - 1), numbers=LISTS, gap=st.sampled_from([",", " ,\n"]))
def test_a_list_read_at_once_is_the_list_read_number_by_number(column: int, numbers: list[str], gap: str) -> None:
    inner = gap.join(numbers) + " " * 1_000  # as long as a long list
    # a comment makes it no plain list
    assert meaning(f"c{column} IN ({inner})") == meaning(f"c{column} IN (/**/{inner})")


def value(text: str) -> Any:
    try:
        expr = parse_expression(text, SCHEMA, time_zone="UTC", ansi=True).expr
        return evaluate(expr, ROWS, ROWS.num_rows).to_pylist()
    except ExpressionError as error:
        return error.code


@given(column=st.sampled_from(ROWS.schema.names), numbers=LISTS)
def test_in_a_constraint_it_has_the_same_value(column: str, numbers: list[str]) -> None:
    inner = ",".join(numbers) + " " * 1_000
    assert value(f"{column} IN ({inner})") == value(f"{column} IN (/**/{inner})")
