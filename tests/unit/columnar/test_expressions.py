"""General expressions over Arrow: where they are evaluated, where they fail, and what they give. No Spark."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.evaluate import evaluate, matches
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import type_of
from delta_pyds.expr.parse import parse_expression
from delta_pyds.protocol.schema import ArrayType, StructField, StructType
from tests.support.expressions import FAMILIES, SCHEMA, table

BATCH = table().combine_chunks().to_batches()[0]


def value(text: str, batch: pa.RecordBatch = BATCH, *, ansi: bool = True, time_zone: str = "UTC") -> pa.Array:
    bound = parse_expression(text, SCHEMA, time_zone=time_zone, ansi=ansi)
    # what tasks get has been through a pickle
    return evaluate(pickle.loads(pickle.dumps(bound.expr)), batch, batch.num_rows)


def rows(**columns: list[Any]) -> pa.RecordBatch:
    """A batch of the schema's columns with these values; the others are null."""
    count = len(next(iter(columns.values())))
    arrays = [pa.array(columns.get(field.name, [None] * count), arrow_type(field.data_type)) for field in SCHEMA.fields]
    return pa.RecordBatch.from_arrays(arrays, names=list(SCHEMA.names))


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_values_come_in_the_arrow_type_of_the_expression_one_per_row(family: str) -> None:
    few = BATCH.slice(0, 3)
    for text in FAMILIES[family]:
        expr = parse_expression(text, SCHEMA, time_zone="UTC", ansi=False).expr
        found = evaluate(expr, few, 3)
        assert (found.type, len(found)) == (arrow_type(type_of(expr)), 3), text


def test_an_empty_batch_has_no_values_and_no_errors() -> None:
    empty = BATCH.slice(0, 0)
    for texts in FAMILIES.values():
        for text in texts[::3]:
            bound = parse_expression(text, SCHEMA, time_zone="America/New_York", ansi=True)
            assert len(evaluate(bound.expr, empty, 0)) == 0, text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("i + 1", "ARITHMETIC_OVERFLOW"), ("l * 2", "ARITHMETIC_OVERFLOW"), ("-i", "ARITHMETIC_OVERFLOW"),
        ("by + by2", "ARITHMETIC_OVERFLOW"), ("i / i2", "DIVIDE_BY_ZERO"), ("i % i2", "REMAINDER_BY_ZERO"),
        ("dec / 0", "DIVIDE_BY_ZERO"), ("cast(sn AS int)", "CAST_INVALID_INPUT"), ("cast(l AS int)", "CAST_OVERFLOW"),
        ("cast(d AS int)", "CAST_OVERFLOW"),
        ("cast(dec AS decimal(3,1))", "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"),
        ("d38 * d38", "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"), ("ar[5]", "INVALID_ARRAY_INDEX"),
        ("make_date(2021, 2, 29)", "DATETIME_FIELD_OUT_OF_BOUNDS"), ("element_at(ar, 0)", "INVALID_INDEX_OF_ZERO"),
        ("cast(sd AS date)", "CAST_INVALID_INPUT"), ("sn + 1", "CAST_INVALID_INPUT"), ("l div 0", "DIVIDE_BY_ZERO"),
    ],
)  # fmt: skip
def test_ansi_rules_make_an_error_with_the_code_of_spark(text: str, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(text)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "text",
    [
        "CASE WHEN i2 <> 0 THEN 10 / i2 ELSE 0 END", "IF(i2 = 0, 0, 10 / i2)", "i2 = 0 OR 10 / i2 > 1",
        "i2 <> 0 AND 10 / i2 > 1", "coalesce(i2, 1 / 0)", "IF(true, 1, 1 / 0)", "CASE WHEN false THEN 1 / 0 END",
        "i2 IN (0, 1, 2, 10 / i2)", "NULL + 1 / 0", "CASE i2 WHEN 0 THEN 0 WHEN 10 / i2 THEN 1 ELSE 10 % i2 END",
        "IF(try_cast(sn AS int) IS NULL, 0, cast(sn AS int))", "nvl2(i2, 1, 1 / 0)",
    ],
)  # fmt: skip
def test_what_is_not_evaluated_for_a_row_is_no_error_for_it(text: str) -> None:
    batch = rows(i2=[0, 1, 2, 5], sn=["1", "x", "", "2"])
    assert len(value(text, batch)) == 4


def test_one_live_row_that_fails_is_enough() -> None:
    batch = rows(b=[False, True, None], i=[1, 0, 0])
    assert value("IF(b, 0, 10 / i)", rows(b=[False, True], i=[1, 0])).to_pylist() == [10.0, 0.0]
    with pytest.raises(ExpressionError):
        value("IF(b, 0, 10 / i)", batch)
    assert value("IF(b, 0, 10 / i)", batch, ansi=False).to_pylist() == [10.0, 0.0, None]


def test_null_stops_evaluation_of_the_other_side() -> None:
    batch = rows(i=[None, 1], i2=[0, 1], l=[None, 3])
    assert value("i + (1 div i2)", batch).to_pylist() == [None, 2]
    # the divisor comes first
    assert value("l div i2", batch).to_pylist() == [None, 3]


def test_without_ansi_rules_whole_numbers_wrap_around_and_bad_texts_are_null() -> None:
    batch = rows(i=[2147483647], sn=["x"], by=[127])
    assert value("i + 1", batch, ansi=False).to_pylist() == [-2147483648]
    assert value("by + 1Y", batch, ansi=False).to_pylist() == [-128]
    assert value("cast(sn AS int)", batch, ansi=False).to_pylist() == [None]


def test_the_days_when_clocks_change() -> None:
    batch = rows(ts=[1583650800_000_000, 1583647200_000_000 + 1, 1604206800_000_000, 1604210400_000_000])
    hours = value("hour(ts)", batch, time_zone="America/New_York").to_pylist()
    assert hours == [3, 1, 1, 1]
    days = value("date_trunc('day', ts)", batch, time_zone="America/New_York").cast(pa.int64()).to_pylist()
    assert days == [1583643600_000_000] * 2 + [1604203200_000_000] * 2
    later = value("ts + INTERVAL 1 DAY", batch, time_zone="America/New_York").cast(pa.int64()).to_pylist()
    assert later[1] - 1583647200_000_001 == 23 * 3_600_000_000


def test_nested_empty_literals_have_no_elements() -> None:
    batch = BATCH.slice(0, 2)
    assert value("array()", batch).to_pylist() == [[], []]
    assert value("map()", batch).to_pylist() == [[], []]
    assert isinstance(type_of(parse_expression("array()", SCHEMA, time_zone="UTC", ansi=True).expr), ArrayType)


def test_decimals_round_half_away_from_zero() -> None:
    batch = rows(dec=[Decimal("2.50"), Decimal("-2.50"), Decimal("1.45")])
    assert value("round(dec)", batch).to_pylist() == [Decimal(3), Decimal(-3), Decimal(1)]
    assert value("bround(dec)", batch).to_pylist() == [Decimal(2), Decimal(-2), Decimal(1)]


def test_a_character_that_versions_of_unicode_disagree_about_is_refused() -> None:
    assert value("upper(s)", rows(s=["straße"])).to_pylist() == ["STRASSE"]
    with pytest.raises(ExpressionError, match="U\\+019B"):
        value("upper(s)", rows(s=["\u019b"]))


def test_text_that_is_not_utf_8_is_refused_where_characters_count() -> None:
    batch = pa.record_batch({"s": pa.array([b"\xff\xfe"], pa.binary()).cast(pa.string(), safe=False)})
    schema = StructType((StructField("s", type_of(parse_expression("s", SCHEMA, time_zone="UTC", ansi=True).expr)),))
    for text in ("length(s)", "upper(s)", "substring(s, 1, 1)", "s RLIKE 'a'"):
        with pytest.raises(ExpressionError, match="UTF-8"):
            evaluate(parse_expression(text, schema, time_zone="UTC", ansi=True).expr, batch, 1)
    octets = parse_expression("octet_length(s)", schema, time_zone="UTC", ansi=True).expr
    assert evaluate(octets, batch, 1).to_pylist() == [2]


def test_times_of_today_and_short_zone_names_are_refused_rather_than_null() -> None:
    for text in ("12:30", "2020-01-01 00:00:00 PST"):
        with pytest.raises(ExpressionError, match="not supported"):
            value("cast(sd AS timestamp)", rows(sd=[text]), ansi=False)


def test_a_condition_that_is_null_does_not_match() -> None:
    bound = parse_expression("i / i2 > 1", SCHEMA, time_zone="UTC", ansi=True)
    batch = rows(i=[4, None, 1], i2=[2, 1, 2])
    assert matches(bound.expr, batch, 3).to_pylist() == [True, False, False]
