"""Texts of megabytes and of ten thousand levels: bound in moderate time, or refused with a sentence."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.evaluate import evaluate, matches
from delta_pyds.errors import ColumnNotFoundError, ExpressionError
from delta_pyds.expr.nodes import And, Call, Comparison, Expr, In, Not, Or, references, to_sql
from delta_pyds.expr.parse import parse_expression, parse_predicate
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.expr.stats_rewrite import AllOf, AnyOf, Bounds, OnPartition, Within, needs, skipping
from delta_pyds.protocol.schema import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
    StructField,
    StructType,
)

TYPES = {
    "i": INTEGER, "l": LONG, "y": BYTE, "s": STRING, "d": DOUBLE, "n": DecimalType(10, 2), "t": DATE, "ts": TIMESTAMP,
    "b": BOOLEAN, "p": INTEGER,
}  # fmt: skip
SCHEMA = StructType(tuple(StructField(name, kind) for name, kind in TYPES.items()))
MANY = 10_000


def predicate(text: str) -> Expr:
    return parse_predicate(text, SCHEMA, time_zone="UTC").expr


def expression(text: str) -> Expr:
    return parse_expression(text, SCHEMA, time_zone="UTC", ansi=True).expr


BINDERS = [predicate, expression]
BATCH = pa.RecordBatch.from_arrays(
    [
        pa.array([1, 5000, None, -7, 9], pa.int32()), pa.array([1, 5000, None, -7, 2**40], pa.int64()),
        pa.array([1, 100, None, -7, 9], pa.int8()), pa.array(["1", "v5000", None, "it", ""]),
        pa.array([1.0, 5000.0, None, -7.5, 9.0]),
    ],
    names=["i", "l", "y", "s", "d"],
)  # fmt: skip


# --- long


@pytest.mark.parametrize("bind", BINDERS)
@pytest.mark.parametrize("column", ["i", "l", "y", "d"])
@pytest.mark.parametrize(
    "values",
    [range(-3000, 3001, 1), range(-7, -4000, -1), [*range(1000), 2**40, -(2**63), 2**63 - 1], [2**31] * 500, [9] * 999],
)
def test_a_long_list_of_numbers_means_what_its_values_mean(
    bind: Callable[[str], Expr], column: str, values: Any
) -> None:
    wanted = set(values)
    for gap in (",", " ,\n\t"):
        expr = bind(f"{column} IN ({gap.join(map(str, values))})")
        expected = [None if v is None else v in wanted for v in BATCH.column(column).to_pylist()]
        assert matches(expr, BATCH, 5).to_pylist() == [e is True for e in expected]
        negated = bind(f"{column} NOT IN ({gap.join(map(str, values))})")
        assert matches(negated, BATCH, 5).to_pylist() == [e is False for e in expected]


@pytest.mark.parametrize("bind", BINDERS)
def test_a_long_list_of_strings_means_what_its_values_mean(bind: Callable[[str], Expr]) -> None:
    values = [f"v{n}" for n in range(MANY)] + ["", " ", "a,b", "--", "it"]
    for gap in (",", " ,\n"):
        expr = bind(f"s IN ({gap.join(repr(v) for v in values)})")
        assert evaluate(expr, BATCH, 5).to_pylist() == [False, True, None, True, True]


@pytest.mark.parametrize("bind", BINDERS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # none of these is a plain list: a comment, a doubled quote, an expression, escapes, a number too large
        ("i IN (" + "5, " * 600 + "1 --, 9\n, 7)", [True, False, None, False, False]),
        ("s IN (" + "'x', " * 600 + "'it''s', '')", [False, False, None, False, True]),
        ("s IN (" + "'x', " * 600 + "'i' 't')", [False, False, None, True, False]),
        ("s IN (" + "'x', " * 600 + r"'\u0069t')", [False, False, None, True, False]),
        ("s IN (" + "'x', " * 600 + "'(', ')', 'it')", [False, False, None, True, False]),
        ("s IN (" + "'x', " * 600 + "')', 'it')", [False, False, None, True, False]),
        ("s IN (" + "'x', " * 600 + "',') OR s = 'it'", [False, False, None, True, False]),
        ("l IN (" + "5, " * 600 + "99999999999999999999, 1)", [True, False, None, False, False]),
        ("i IN (" + "5, " * 600 + "9) OR i IN (-7)", [False, False, None, True, True]),
        ("i IN (" + "5, " * 600 + "- 7)", [False, False, None, True, False]),
    ],
)
def test_a_list_that_is_not_plain_means_the_same(bind: Callable[[str], Expr], text: str, expected: list[Any]) -> None:
    assert evaluate(bind(text), BATCH, 5).to_pylist() == expected


@pytest.mark.parametrize(
    "text", ["i IN (" + "1, " * 600 + ")", "i IN (" + "1, " * 600 + "1 1)", "i (" + "1," * 900 + "1)"]
)
def test_a_long_list_that_is_no_list_is_a_syntax_error_with_a_place(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        predicate(text)
    assert len(str(caught.value)) < 2000


def test_a_long_list_of_another_type_is_cast_value_by_value() -> None:
    days = ", ".join(f"'2020-01-{n % 28 + 1:02d}'" for n in range(200))
    expr = predicate(f"t IN ({days})")
    assert isinstance(expr, In) and len(expr.values) == 28
    general = expression(f"t IN ({days})")
    assert isinstance(general, In) and sorted(general.values) == sorted(expr.values)
    with pytest.raises(ExpressionError, match="2020-13"):
        predicate(f"t IN ({days}, '2020-13-01')")


@pytest.mark.parametrize("bind", BINDERS)
def test_a_chain_of_equalities_is_one_list(bind: Callable[[str], Expr]) -> None:
    mixed = " OR ".join(f"i = {n} OR s = 'v{n}'" for n in range(MANY))
    expr = bind(mixed)
    assert isinstance(expr, Or) and [type(child) for child in expr.children] == [In, In]
    assert evaluate(expr, BATCH, 5).to_pylist() == [True, True, None, False, True]
    expr = bind(" AND ".join(f"i <> {n}" for n in range(MANY)))
    assert isinstance(expr, Not) and isinstance(expr.child, In)
    assert evaluate(expr, BATCH, 5).to_pylist() == [False, False, None, True, False]


def test_what_is_no_equality_with_a_constant_stays_beside_the_list() -> None:
    expr = predicate(" OR ".join([*(f"i = {n}" for n in range(50)), "i > 4000", "i = l", "i <> 3", "d = 'NaN'"]))
    assert isinstance(expr, Or)
    assert [to_sql(child) for child in expr.children[1:]] == ["i > 4000", "CAST(i AS BIGINT) = l", "i <> 3", "d = nan"]
    short = predicate(" OR ".join(f"i = {n}" for n in range(15)))
    assert isinstance(short, Or) and len(short.children) == 15


def test_a_part_that_may_fail_is_asked_for_the_rows_that_reach_it_only() -> None:
    # rows with i = 5000 and i = 9 divide by zero, unless they were found before
    before = expression(" OR ".join([*(f"i = {n}" for n in (5000, 9, *range(100, 130))), "1 / (i - 9) > 2"]))
    assert matches(before, BATCH, 5).to_pylist() == [False, True, False, False, True]
    after = expression(" OR ".join([*(f"i = {n}" for n in range(100, 130)), "1 / (i - 9) > 2", "i = 9"]))
    with pytest.raises(ExpressionError) as caught:
        matches(after, BATCH, 5)
    assert caught.value.code == "DIVIDE_BY_ZERO"


@pytest.mark.parametrize(("word", "node"), [("AND", And), ("OR", Or)])
@pytest.mark.parametrize("bind", BINDERS)
def test_a_chain_of_other_conditions_is_flat(
    bind: Callable[[str], Expr], word: str, node: type[And] | type[Or]
) -> None:
    expr = bind(f" {word} ".join(f"i > {n}" for n in range(MANY)))
    assert isinstance(expr, node) and len(expr.children) == MANY
    skip = skipping(expr, ["p"])
    # statistics are compared with a thousand conditions at most, and of a longer OR against one bound of each column
    assert isinstance(skip, AllOf if word == "AND" else Bounds)
    assert pickle.loads(pickle.dumps((expr, skip))) == (expr, skip)


def test_partition_conditions_stay_however_many_others_there_are() -> None:
    skip = skipping(predicate(" AND ".join([*(f"i > {n}" for n in range(3000)), "p = 1", "p < 7"])), ["p"])
    assert isinstance(skip, AllOf) and isinstance(skip.parts[0], OnPartition)
    assert needs(skip).partition_columns == {"p"}


def test_statistics_see_a_chain_as_a_list() -> None:
    skip = skipping(predicate(" OR ".join(f"i = {n}" for n in range(MANY))), ["p"])
    assert isinstance(skip, AllOf) and isinstance(skip.parts[1], Within) and len(skip.parts[1].values) == MANY
    assert not isinstance(skip, AnyOf)


def test_concatenations_are_flat() -> None:
    expr = expression("s" + " || s || 'x'" * MANY)
    assert isinstance(expr, Call) and len(expr.args) == 2 * MANY + 1
    assert to_sql(expression("s || 'a' || s || 'b'")) == "concat(s, 'a', s, 'b')"


@pytest.mark.parametrize("bind", BINDERS)
@pytest.mark.parametrize("pattern", ["_" * 1_000_000, "%a" * 500_000, "a_" * 10_000])
def test_a_pattern_too_long_is_at_fault_itself(bind: Callable[[str], Expr], pattern: str) -> None:
    with pytest.raises(ExpressionError, match="of LIKE has") as caught:
        bind(f"s LIKE '{pattern}'")
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("shape", ["{}%", "%{}", "%{}%", "{}"])
def test_a_long_text_in_a_plain_pattern_is_matched(shape: str) -> None:
    text = "ab" * 300_000
    rows = pa.record_batch({"s": pa.array([text, "ab"])})
    assert matches(predicate(f"s LIKE '{shape.format(text)}'"), rows, 2).to_pylist() == [True, False]


def test_a_regular_expression_that_takes_too_much_memory_is_at_fault_itself() -> None:
    with pytest.raises(ExpressionError, match="RLIKE"):
        evaluate(expression("s RLIKE '((a{999}){999}){999}'"), BATCH, 5)
    with pytest.raises(ExpressionError, match="10000 are supported"):
        expression(f"s RLIKE '{'a' * 20_000}'")


# --- deep


DEEP = {
    "sum": "i" + " + 1" * MANY + " = 1", "remainder": "i" + " % 7" * MANY + " = 1",
    "brackets": "(" * MANY + "b" + ")" * MANY,
    "case": "CASE WHEN b THEN " * MANY + "b" + " END" * MANY, "comparisons": "b" + " = b" * MANY,
    "products": "d" + " * 2" * MANY + " = 1", "functions": "abs(" * MANY + "i" + ")" * MANY,
    "elements": "i" + "[0]" * MANY,
    "signs": "- " * MANY + "i = 1", "days": "t" + " + INTERVAL 1 DAY" * MANY + " = t", "same": "b" + " <=> b" * MANY,
    "subjects": "CASE " * 30 + "i" + " WHEN 1 THEN 1 WHEN 2 THEN 2 END" * 30 + " = 1",
    "tests": "(" * 40 + "b" + " IS TRUE)" * 40, "ranges": "(" * 40 + "b" + " BETWEEN false AND true)" * 40,
    "nullif": "nullif(" * 35 + "i" + ", 1)" * 35 + " = 1", "same few": "b" + " <=> b" * 40,
}  # fmt: skip


@pytest.mark.parametrize("bind", BINDERS)
@pytest.mark.parametrize("name", DEEP)
def test_what_is_too_deep_is_refused_with_a_sentence(name: str, bind: Callable[[str], Expr]) -> None:
    with pytest.raises((ExpressionError, ColumnNotFoundError)) as caught:
        bind(DEEP[name])
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    ("bind", "name", "said"),
    [(expression, "sum", "180 levels"), (predicate, "remainder", "206 levels"), (predicate, "brackets", "64 levels"),
     (expression, "case", "40 levels"), (expression, "products", "a separate column"),
     (predicate, "tests", "repeats")],
)  # fmt: skip
def test_the_limit_is_stated(bind: Callable[[str], Expr], name: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        bind(DEEP[name])


@pytest.mark.parametrize(
    ("bind", "text"),
    [
        (expression, "i" + " + 1" * 170 + " > 0"), (expression, "d" + " / 2" * 170 + " > 0"),
        (expression, "coalesce(" * 38 + "i" + ", 1)" * 38 + " = 1"), (predicate, "i" + " % 7" * 300 + " = 1"),
        (expression, "CASE WHEN b THEN " * 35 + "b" + " END" * 35), (predicate, "NOT " * MANY + "b"),
        (predicate, "(i = 1 OR (b AND " * 30 + "b" + "))" * 30), (expression, "n" + " + 1" * 120 + " > 0"),
        (predicate, "b" + " = true" * MANY),
    ],
)  # fmt: skip
def test_what_is_accepted_can_be_handed_over_shown_and_evaluated(bind: Callable[[str], Expr], text: str) -> None:
    expr = bind(text)
    again = pickle.loads(pickle.dumps(expr))
    assert again == expr and hash(again) == hash(expr) and repr(again) == repr(expr)
    assert references(expr) and len(to_sql(expr)) < 100_000
    rows = {"i": pa.int32(), "d": pa.float64(), "b": pa.bool_(), "n": pa.decimal128(10, 2)}
    batch = pa.RecordBatch.from_arrays([pa.nulls(2, t) for t in rows.values()], names=list(rows))
    assert len(evaluate(expr, batch, 2)) == 2
    needs(skipping(expr, ["p"]))


# --- odd texts


@pytest.mark.parametrize("bind", BINDERS)
@pytest.mark.parametrize(
    "number",
    ["1e999999999", "1e99999999999999999999", "1e-99999999999999999999", "1" * 5000, "1" * 5000 + "L", "1e999999999F",
     "1e-999999999F", "1e999999999BD", "1" * 5000 + "BD", "1e999999999D", "0e999999999F"],
)  # fmt: skip
def test_an_absurd_number_is_out_of_range_at_its_place(bind: Callable[[str], Expr], number: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        bind(f"d > {number}")
    assert caught.value.code == "INVALID_NUMERIC_LITERAL_RANGE"
    assert caught.value.parameters["position"] == 4 and len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text", ["1e5000", "11e999999", "1e999999", "1" * 5000, "1" * 100_000, "999999999-01-01", "1_0"]
)
@pytest.mark.parametrize("column", ["i", "n", "t", "ts"])
def test_an_absurd_text_is_no_value(column: str, text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        predicate(
            f"{column} = CAST('{text}' AS {'DECIMAL(10,2)' if column == 'n' else 'INT' if column == 'i' else 'DATE'})"
        )
    assert caught.value.code in ("CAST_INVALID_INPUT", "CAST_OVERFLOW") and len(str(caught.value)) < 1000


@pytest.mark.parametrize("bind", BINDERS)
@pytest.mark.parametrize("text", ["s = '\ud800'", "\udfff = 1", "`\ud800` = 1", "s = 'a' -- \ud800", r"s = '\ud800'"])
def test_half_a_surrogate_pair_is_no_text(bind: Callable[[str], Expr], text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        bind(text)
    assert caught.value.code == "PARSE_SYNTAX_ERROR"
    str(caught.value).encode()


def test_a_float_far_beyond_both_ends_is_found_at_once() -> None:
    assert to_sql(predicate("d = CAST('1e999999' AS FLOAT)")) == "d = inf"
    assert to_sql(predicate("d > CAST('1e-999999' AS FLOAT)")) == "d > 0.0"


def test_the_place_in_a_long_text_is_shown_with_what_is_around_it() -> None:
    with pytest.raises(ExpressionError) as caught:
        predicate("i > 1 AND " * 5_000 + "i >> 2")
    assert "i >> 2" in str(caught.value) and len(str(caught.value)) < 2000
    with pytest.raises(ExpressionError) as caught:
        predicate("i > 1 AND " * 5_000 + "i > > 2")
    assert "i > > 2\n" in str(caught.value) and "pos 50004" in str(caught.value)


def test_an_arrow_is_one_symbol() -> None:
    with pytest.raises(ExpressionError, match="the operator =>"):
        predicate("i => 1")


def test_comparisons_of_few_constants_stay_as_they_are_written() -> None:
    assert isinstance(predicate("i = 1"), Comparison)


@pytest.mark.parametrize(
    "text",
    [*(quote + "a" * 10_000_000 for quote in "'\"`"), "'" + "''" * 2_000_000, "--" + "a" * 10_000_000],
    ids=["single", "double", "backtick", "doubled", "comment"],
)
@pytest.mark.parametrize("statement", [False, True])
def test_a_quote_without_an_end_costs_about_its_own_length(text: str, statement: bool) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ExpressionError) as raised:
            tokenize(f"a = {text}" if "--" not in text else f"{text}\n'", statement=statement)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(text)
    finally:
        tracemalloc.stop()
    assert len(str(raised.value)) < 2_000


def test_long_quotes_are_what_they_stand_for() -> None:
    for quote in "'\"`":
        text = quote + f"a{quote}{quote}" * 5_000 + quote
        (token, _) = tokenize(text)
        assert token.value == f"a{quote}" * 5_000 and token.text == text
    (token, _) = tokenize("'" + '\\n\'\'\\"""\\\\' * 5_000 + "'")
    assert token.value == '\n\'"""\\' * 5_000
