"""Unsupported general expressions are refused by name, before anything is evaluated."""

from __future__ import annotations

import pickle

import pytest

from delta_pyds.errors import ColumnNotFoundError, ExpressionError
from delta_pyds.expr.nodes import Literal, to_sql, type_of
from delta_pyds.expr.parse import parse_expression
from delta_pyds.protocol.schema import DATE, INTEGER, LONG, STRING, TIMESTAMP
from delta_pyds.table.definition.session_expressions import parse_session_expression
from tests.support.expressions import FAMILIES, REFUSED, SCHEMA

NOW = 1_600_000_000_123_456


@pytest.mark.parametrize("text", sorted(REFUSED))
@pytest.mark.parametrize("ansi", [True, False])
def test_what_cannot_be_evaluated_exactly_is_refused(text: str, ansi: bool) -> None:
    with pytest.raises(ExpressionError):
        parse_expression(text, SCHEMA, time_zone="UTC", ansi=ansi)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("coalesce(ar, array())", "DATATYPE_MISMATCH.DATA_DIFF_TYPES"),
        ("size(i)", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
        ("map('a', 1, 'a', 2)", "DUPLICATED_MAP_KEY"),
        ("DATE'many'", "INVALID_TYPED_LITERAL"),
    ],
)
def test_a_refusal_has_the_code_of_spark(text: str, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text, SCHEMA, time_zone="UTC", ansi=True)
    assert caught.value.code == code


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ExpressionError, match="Nowhere/Land") as caught:
        parse_expression("ts", SCHEMA, time_zone="Nowhere/Land", ansi=True)
    assert caught.value.code == "INVALID_TIMEZONE"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("nosuch(i)", "nosuch"), ("rand() > 0.5", "rand"), ("transform(ar, x -> x)", "->"), ("i & 1", "&"),
        ("date_format(ts, 'EEE')", "EEE"), ("count(*)", "count"), ("(SELECT 1)", "subquery"), ("uuid()", "uuid"),
        ("cast(i AS interval)", "interval"), ("s RLIKE '(?i)a'", "(?"), ("row_number() OVER (ORDER BY i)", "OVER"),
    ],
)  # fmt: skip
def test_a_refusal_names_what_is_not_supported(text: str, named: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_session_expression(text, SCHEMA, time_zone="UTC")
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "i +", "i + + ", "CASE END", "CASE WHEN b THEN 1", "cast(i AS)", "i IN ()", "(i", "f(i", "i 1", "'x",
    "a..b", "i NOT = 1",
     "INTERVAL 1", "trim(BOTH 'x' s)", "extract(year, dt)", "i IS 1", "a b c"],
)  # fmt: skip
def test_a_malformed_text_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse_expression(text, SCHEMA, time_zone="UTC", ansi=True)


def test_an_unknown_column_is_named_with_those_there_are() -> None:
    with pytest.raises(ColumnNotFoundError, match="nosuch"):
        parse_expression("nosuch + 1", SCHEMA, time_zone="UTC", ansi=True)
    with pytest.raises(ColumnNotFoundError, match="field 'zz'"):
        parse_expression("(st).zz", SCHEMA, time_zone="UTC", ansi=True)


def test_deep_nesting_is_refused_and_does_not_crash() -> None:
    with pytest.raises(ExpressionError, match="nesting"):
        parse_expression("(" * 500 + "i" + ")" * 500, SCHEMA, time_zone="UTC", ansi=True)


@pytest.mark.parametrize("prefix", ["-", "ar[", "position(", "abs("])
def test_whatever_repeats_without_end_is_refused(prefix: str) -> None:
    with pytest.raises(ExpressionError):
        parse_expression(prefix * 3000 + "i", SCHEMA, time_zone="UTC", ansi=True)


def test_a_long_chain_is_no_deep_nesting() -> None:
    text = " OR ".join(f"i > {n}" for n in range(3000))
    expr = parse_expression(text, SCHEMA, time_zone="UTC", ansi=True).expr
    assert len(getattr(expr, "children", ())) == 3000


@pytest.mark.parametrize("text", [text for texts in FAMILIES.values() for text in texts[::7]])
def test_a_bound_tree_is_picklable_readable_and_the_same_each_time(text: str) -> None:
    first = parse_expression(text, SCHEMA, time_zone="Asia/Kolkata", ansi=True, now_micros=NOW)
    again = parse_expression(text, SCHEMA, time_zone="Asia/Kolkata", ansi=True, now_micros=NOW)
    if "NaN" not in text:
        assert first == again
        assert pickle.loads(pickle.dumps(first)) == first
    assert to_sql(first.expr)


def test_only_expressions_that_ask_the_clock_use_the_time_zone() -> None:
    def uses(text: str) -> bool:
        return parse_expression(text, SCHEMA, time_zone="Europe/Paris", ansi=True).uses_time_zone

    assert [uses(t) for t in ("i + 1", "year(dt)", "upper(s)", "hour(tn)", "cast(ts AS bigint)", "ts = ts")] == [
        False
    ] * 6
    zoned = (
        "year(ts)",
        "hour(ts)",
        "cast(sd AS timestamp)",
        "dt = ts",
        "current_date()",
        "ts + INTERVAL 1 DAY",
        "ts > '2020-01-01'",
    )
    assert [uses(t) for t in zoned] == [True] * 7


def test_the_clock_is_read_once_when_the_expression_is_bound() -> None:
    bound = parse_expression("current_timestamp()", SCHEMA, time_zone="UTC", ansi=True, now_micros=NOW)
    assert bound.expr == Literal(NOW, TIMESTAMP)
    assert not bound.deterministic
    both = parse_session_expression("now()", SCHEMA, time_zone="UTC", now_micros=NOW)
    assert both.ansi == both.legacy == Literal(NOW, TIMESTAMP)
    late = 1_600_041_600_000_000  # 2020-09-14 00:00 UTC, still the 13th in New York
    day = parse_expression("current_date", SCHEMA, time_zone="America/New_York", ansi=True, now_micros=late)
    assert day.expr == Literal(18518, DATE)
    assert day.uses_time_zone


def test_both_meanings_are_bound_and_differ_where_the_rules_do() -> None:
    both = parse_session_expression("coalesce(i, '7')", SCHEMA, time_zone="UTC")
    assert type_of(both.ansi) == LONG
    assert both.legacy is not None and type_of(both.legacy) == STRING
    assert (both.sql, both.legacy_refusal) == ("coalesce(i, '7')", "")


def test_what_only_ansi_rules_can_bind_has_a_reason_instead_of_a_legacy_meaning() -> None:
    both = parse_session_expression("coalesce(b, 'true')", SCHEMA, time_zone="UTC")
    assert both.legacy is None
    assert "BOOLEAN" in both.legacy_refusal
    assert type_of(both.ansi).name == "boolean"


def test_a_whole_number_beside_a_number_stays_whole() -> None:
    assert type_of(parse_expression("i + 1", SCHEMA, time_zone="UTC", ansi=True).expr) == INTEGER
