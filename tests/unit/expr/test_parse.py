"""Predicate texts: grouping, literals, names, coercion, and what is refused."""

from __future__ import annotations

import pickle

import pytest

from delta_pyds.errors import ColumnNotFoundError, ExpressionError
from delta_pyds.expr.nodes import FALSE, Predicate, conjuncts, references, to_sql
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

INNER = StructType((StructField("x", INTEGER), StructField("Deep", StructType((StructField("y", STRING),)))))
SCHEMA = StructType(
    (
        StructField("i", INTEGER),
        StructField("l", LONG),
        StructField("by", BYTE),
        StructField("f", FLOAT),
        StructField("d", DOUBLE),
        StructField("dec", DecimalType(10, 2)),
        StructField("d38", DecimalType(38, 0)),
        StructField("s", STRING),
        StructField("b", BOOLEAN),
        StructField("bin", BINARY),
        StructField("dt", DATE),
        StructField("ts", TIMESTAMP),
        StructField("tn", TIMESTAMP_NTZ),
        StructField("st", INNER),
        StructField("ar", ArrayType(INTEGER)),
        StructField("m", MapType(STRING, INTEGER)),
        StructField("v", VARIANT),
        StructField("with.dot", INTEGER),
        StructField("Name", STRING),
        StructField("date", DATE),
        StructField("col`tick", INTEGER),
    )
)


def parse(text: str, time_zone: str = "UTC") -> Predicate:
    return parse_predicate(text, SCHEMA, time_zone=time_zone)


def sql(text: str, time_zone: str = "UTC") -> str:
    return to_sql(parse(text, time_zone).expr)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 1 OR i = 2 AND l = 3", "(i = 1) OR ((i = 2) AND (l = 3))"),
        ("NOT i = 1 AND b", "(i <> 1) AND b"),
        ("NOT (i = 1 AND b)", "(i <> 1) OR (NOT b)"),
        ("! b", "NOT b"),
        ("not not not b", "NOT b"),
        ("i = 1 IS NULL", "i IS NULL"),
        ("i = 1 = true", "i = 1"),
        ("i BETWEEN 1 AND 2 AND b", "(i >= 1) AND (i <= 2) AND b"),
        ("i NOT BETWEEN 1 AND 2", "(i < 1) OR (i > 2)"),
        ("i NOT IN (1, 2)", "NOT (i IN (1, 2))"),
        ("i IN (1, NULL)", "i = 1"),
        ("i NOT IN (1, NULL)", "FALSE"),
        ("i <=> NULL", "i IS NULL"),
        ("i <=> 1", "i IS NOT NULL AND (i = 1)"),
        ("i IS DISTINCT FROM 1", "i IS NULL OR (i <> 1)"),
        ("b IS NOT TRUE", "b IS NULL OR (NOT b)"),
        ("b IS UNKNOWN", "b IS NULL"),
        ("1 < i", "i > 1"),
        ("i == 1", "i = 1"),
        ("i != 1", "i <> 1"),
        ("s LIKE 'a%'", "s LIKE 'a%'"),
        ("s NOT LIKE 'a!%%' ESCAPE '!'", r"NOT (s LIKE 'a\\%%')"),
        ("s LIKE 'plain'", "s = 'plain'"),
        ("startswith(s, '50%')", r"s LIKE '50\\%%'"),
        ("contains(s, 'x')", "s LIKE '%x%'"),
        ("endswith(s, '')", "s IS NOT NULL"),
        ("i % 3 = -2", "(i % 3) = -2"),
        ("mod(i, 3) = 1 -- a comment\n", "(i % 3) = 1"),
        ("i = 1 -- a comment that goes on \\\n OR b", "i = 1"),
        ("i = 1 -- a comment \\ \n OR b", "(i = 1) OR b"),
        ("/* a /* b */ c */ i = 1 -- */", "i = 1"),
        ("/* a /*+ b */ i = 1 -- */", "i = 1"),
        ("i = 1 -- a comment \\\r\n OR b", "(i = 1) OR b"),
        ("i /* one /* two */ */ = 1", "i = 1"),
        ("1 = 1", "TRUE"),
        ("1 = 2 OR b", "b"),
        ("NULL", "FALSE"),
        ("i = NULL", "FALSE"),
        ("NOT (i = NULL)", "FALSE"),
    ],
)
def test_operators_group_and_fold_as_in_spark(text: str, expected: str) -> None:
    assert sql(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"s = 'a\n\t\\\'\"\Z\0\b'", "a\n\t\\'\"\x1a\0\b"),
        (r"s = '\%\_\q\141\u0041\U0001F600'", "\\%\\_qaA\U0001f600"),
        (r"s = '\uD83D\uDE00'", "\U0001f600"),
        ("s = 'it''s'", "it's"),
        ("s = 'it' 's'", "its"),
        ('s = "dou""ble"', 'dou"ble'),
        ('s = "it\'s"', "it's"),
        (r"s = r'raw\n'", r"raw\n"),
        (r's = R"raw\"', "raw\\"),
        ("s = 'two\nlines'", "two\nlines"),
        ("s = '-- no comment'", "-- no comment"),
    ],
)
def test_strings_are_read_as_spark_reads_them(text: str, expected: str) -> None:
    expr = parse(text).expr
    assert getattr(getattr(expr, "right", None), "value", None) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l = 1L", "l = 1"),
        ("by = -128Y", "by = -128"),
        ("i = 1S", "i = 1"),
        ("i < 1.5", "i < 2"),
        ("i <= -1.5BD", "i < -1"),
        ("i = 1.5", "FALSE"),
        ("i <> 1.5", "i IS NOT NULL"),
        ("i > 3e0", "i > 3"),
        ("i = 3000000000", "FALSE"),
        ("i < 3000000000", "i IS NOT NULL"),
        ("l = -9223372036854775808L", "l = -9223372036854775808"),
        ("l = 9007199254740992D", "(l >= 9007199254740992) AND (l < 9007199254740994)"),
        ("f = 0.1", "FALSE"),
        ("f = 0.1F", "f = 0.10000000149011612"),
        ("f >= 0.1", "f >= 0.10000000149011612"),
        ("d = .5", "d = 0.5"),
        ("d > 'NaN'", "FALSE"),
        ("d <= 'nan'", "d IS NOT NULL"),
        ("dec = 1.555", "FALSE"),
        ("dec < 1.555", "dec < 1.56"),
        ("dec = '1.5'", "dec = 1.50"),
        ("dec < 1e300", "dec IS NOT NULL"),
        ("d38 = 99999999999999999999999999999999999999", "d38 = 99999999999999999999999999999999999999"),
        ("i = '7'", "i = 7"),
        ("b = 'Yes'", "b"),
        ("bin = X'0f'", "bin = X'0F'"),
        ("bin = x 'F'", "bin = X'0F'"),
        ("dt = DATE '2020-1-5'", "dt = DATE '2020-01-05'"),
        ("dt < '2020'", "dt < DATE '2020-01-01'"),
        ("dt > DATE '-0044-03-15'", "dt > DATE '-0044-03-15'"),
        ("date = DATE '12000-01-01'", "date = DATE '+12000-01-01'"),
        ("tn = TIMESTAMP_NTZ '2020-01-01 10:00:00.5'", "tn = TIMESTAMP_NTZ '2020-01-01 10:00:00.5'"),
        ("tn = DATE '2020-01-01'", "tn = TIMESTAMP_NTZ '2020-01-01 00:00:00'"),
        ("dt = TIMESTAMP_NTZ '2020-01-01 10:00:00'", "FALSE"),
        ("cast(i as double) < 1.5", "i < 2"),
        ("i::bigint IN (1, 2.5)", "i = 1"),
        ("i = cast(1.9 as int)", "i = 1"),
        ("dec = cast('1.555' as decimal(10,2))", "dec = 1.56"),
        ("i IN ('1', 2, 2.5, 3000000000)", "i IN (1, 2)"),
        ("f IN (0.1, 1)", "f = 1.0"),
    ],
)
def test_literals_meet_columns_in_the_columns_own_type(text: str, expected: str) -> None:
    assert sql(text) == expected
    assert not parse(text).uses_time_zone


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ts = TIMESTAMP '2020-01-01 00:00:00'", "ts = TIMESTAMP '2020-01-01 05:00:00Z'"),
        ("ts = '2020-07-01'", "ts = TIMESTAMP '2020-07-01 04:00:00Z'"),
        ("ts >= DATE '2020-07-01'", "ts >= TIMESTAMP '2020-07-01 04:00:00Z'"),
        ("ts = TIMESTAMP_NTZ '2020-03-08 02:30:00'", "ts = TIMESTAMP '2020-03-08 07:30:00Z'"),
        ("dt < TIMESTAMP '2020-01-01 10:00:00'", "dt < DATE '2020-01-02'"),
        ("dt = TIMESTAMP '2020-01-01 05:00:00Z'", "dt = DATE '2020-01-01'"),
        ("tn = TIMESTAMP '2020-01-01 05:00:00Z'", "tn = TIMESTAMP_NTZ '2020-01-01 00:00:00'"),
    ],
)
def test_the_session_time_zone_settles_zone_less_texts(text: str, expected: str) -> None:
    assert sql(text, "America/New_York") == expected
    assert parse(text, "America/New_York").uses_time_zone


@pytest.mark.parametrize(
    "text",
    [
        "ts = TIMESTAMP '2020-01-01 05:00:00Z'",
        "ts = '2020-01-01 00:00:00-05:00'",
        "ts = '2020-01-01 00:00:00 America/New_York'",
    ],
)
def test_a_text_with_its_own_zone_does_not_depend_on_the_session(text: str) -> None:
    assert sql(text, "Asia/Kolkata") == "ts = TIMESTAMP '2020-01-01 05:00:00Z'"
    assert not parse(text, "Asia/Kolkata").uses_time_zone


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("I = 1", ("i",)),
        ("st.X = 1", ("st", "x")),
        ("ST.deep.Y = 'a'", ("st", "Deep", "y")),
        ("`with.dot` = 1", ("with.dot",)),
        ("`st`.`x` = 1", ("st", "x")),
        ("name = 'a'", ("Name",)),
        ("`col``tick` = 1", ("col`tick",)),
        ("ar IS NULL", ("ar",)),
        ("v IS NOT NULL", ("v",)),
        ("st.Deep IS NULL", ("st", "Deep")),
    ],
)
def test_names_resolve_whatever_their_case_to_the_tables_spelling(text: str, path: tuple[str, ...]) -> None:
    assert references(parse(text).expr) == {path}


@pytest.mark.parametrize("text", ["nope = 1", "st.nope = 1", "i.x = 1", "with_dot = 1", "m.k = 1", "ar.x = 1"])
def test_an_unknown_column_is_an_error_that_says_what_there_is(text: str) -> None:
    with pytest.raises(ColumnNotFoundError) as caught:
        parse(text)
    assert caught.value.code == "DELTA_COLUMN_NOT_FOUND"


def test_the_error_for_an_unknown_column_lists_the_columns() -> None:
    with pytest.raises(ColumnNotFoundError, match=r"no column 'nope'.*i, l, by.*with\.dot"):
        parse("nope = 1")


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("i = ", 4),
        ("", 0),
        ("   ", 3),
        ("i = 1 AND", 9),
        ("i = 1 l = 2", 6),
        ("(i = 1", 6),
        ("i = 1)", 5),
        ("s = 'open", 4),
        ("i IS NULL = true", 10),
        ("i ! = 1", 2),
        ("i IN ()", 6),
        ("i = 1 /* open", 6),
        ("i = 1 ; b", 6),
        ("i = ₤", 4),
        ("b = not b", 4),
        ("i isnull", 2),
        ("bin = X'0G'", 6),
        ("i BETWEEN 1", 11),
    ],
)
def test_a_syntax_error_shows_the_text_and_the_place(text: str, position: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.code == "PARSE_SYNTAX_ERROR"
    assert caught.value.parameters["position"] == position
    assert caught.value.message.endswith(f"{text}\n{'-' * position}^^^")


def test_a_syntax_error_on_a_later_line_counts_lines() -> None:
    with pytest.raises(ExpressionError, match=r"line 2, pos 6\)\n  l = = 2\n------\^") as caught:
        parse("i = 1 AND\n  l = = 2")
    assert caught.value.parameters["position"] == 16


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("upper(s) = 'A'", "the function upper"),
        ("rand() > 0.5", "the function rand"),
        ("count(i) > 1", "the function count"),
        ("current_date > dt", "current_date"),
        ("current_timestamp() > ts", "current_timestamp"),
        ("my.udf(i) = 1", "the function my.udf"),
        ("i IN (SELECT 1)", "a subquery"),
        ("EXISTS (SELECT 1)", "EXISTS"),
        ("(SELECT 1) = i", "a subquery"),
        ("CASE WHEN b THEN b END", "CASE"),
        ("if(b, b, b)", "the function if"),
        ("s RLIKE 'a'", "RLIKE"),
        ("s ILIKE 'a'", "ILIKE"),
        ("s LIKE ANY ('a', 'b')", "LIKE ANY"),
        ("i + 1 = 2", "the operator +"),
        ("-i = 1", "- before"),
        ("i * 2 = 1", r"the operator \*"),
        ("s || 'a' = 'b'", r"the operator \|\|"),
        ("ar[0] = 1", r"the operator \["),
        ("i DIV 2 = 1", "DIV"),
        ("dt > INTERVAL '1' DAY", "INTERVAL"),
        ("s = 'a' COLLATE utf8_lcase", "COLLATE"),
        ("try_cast('1' as int) = i", "TRY_CAST"),
        ("i = :p", "a parameter marker"),
        ("cast(s as int) = 1", "CAST|cast"),
        ("cast(i as string) = '1'", "cast"),
        ("cast(d as int) = 1", "cast"),
        ("s = 1", "STRING to BIGINT"),
        ("s = s AND ts = tn", "TIMESTAMP_NTZ to TIMESTAMP"),
        ("dt = ts", "time zone for every row"),
        ("ts <=> dt", "time zone for every row"),
        ("cast(dt as timestamp) = ts", "time zone for every row"),
        ("cast(dt as timestamp) < cast(dt as timestamp)", "time zone for every row"),
        ("i IN (1, l)", "IN with 'l'"),
        ("s LIKE s", "LIKE needs a string literal"),
        ("i LIKE '1'", "LIKE works on STRING"),
        ("ar = ar", "ARRAY"),
        ("st = st", "STRUCT"),
        ("m = m", "MAP"),
        ("v = 1", "VARIANT"),
        ("(i, l) IN ((1, 2))", "a list of values"),
        ("d % 2 = 1", "%"),
        ("i % l = 1", "%"),
        ("ts = '10:00'", "10:00"),
        ("ts = 'now'", "now"),
        ("dt = DATE 'today'", "today"),
        ("l < 9223372036854775808", "out of range for BIGINT"),
        ("d38 = 1.5", "38 digits"),
    ],
)
def test_what_cannot_be_evaluated_exactly_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(ExpressionError, match=named):
        parse(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("i", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("i AND b", "DATATYPE_MISMATCH"),
        ("i IS TRUE", "DATATYPE_MISMATCH"),
        ("b = 1", "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
        ("dt = 1", "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
        ("i = '1.0'", "CAST_INVALID_INPUT"),
        ("dt = '2020-02-30'", "CAST_INVALID_INPUT"),
        ("by = 128Y", "INVALID_NUMERIC_LITERAL_RANGE"),
        ("d = 1e400", "INVALID_NUMERIC_LITERAL_RANGE"),
        ("i = 999999999999999999999999999999999999999", "INVALID_NUMERIC_LITERAL_RANGE"),
        ("by = cast(300 as tinyint)", "CAST_OVERFLOW"),
        ("dec = 1e99999999BD", "INVALID_NUMERIC_LITERAL_RANGE"),
        ("f = 1e99999999F", "INVALID_NUMERIC_LITERAL_RANGE"),
        ("i % 0 = 1", "REMAINDER_BY_ZERO"),
        (r"s LIKE 'a\\b'", "INVALID_FORMAT.ESC_IN_THE_MIDDLE"),
        (r"s LIKE 'a\\'", "INVALID_FORMAT.ESC_AT_THE_END"),
        ("s LIKE 'a' ESCAPE 'xy'", "INVALID_ESC"),
    ],
)
def test_errors_have_sparks_codes(text: str, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.code == code


def test_a_wall_clock_column_is_refused_in_the_hour_after_clocks_go_forward() -> None:
    text = "tn >= TIMESTAMP '2020-03-08 03:{}:00'"
    with pytest.raises(ExpressionError, match="TIMESTAMP_NTZ literal"):
        parse(text.format("30"), "America/New_York")
    parse(text.format("30"), "UTC")
    assert sql("tn >= TIMESTAMP '2020-03-08 04:00:00'", "America/New_York") != ""


def test_an_unknown_time_zone_is_named() -> None:
    with pytest.raises(ExpressionError, match="'Mars/Olympus'"):
        parse("ts = '2020-01-01'", "Mars/Olympus")


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(ExpressionError, match="nesting"):
        parse("(" * 500 + "b" + ")" * 500)
    assert sql("(" * 60 + "b" + ")" * 60) == "b"
    worst = "i = 1"
    for _ in range(62):
        worst = f"i = 2 OR i <> 3 AND NOT NOT true = ({worst})"
    assert references(parse(worst).expr) == {("i",)}


def test_a_long_chain_is_no_deep_nesting() -> None:
    expr = parse(" OR ".join(f"i > {n}" for n in range(5000))).expr
    assert len(getattr(expr, "children", ())) == 5000
    assert sql("i" + " % 7" * 300 + " = 1").endswith("= 1")
    assert sql("b" + " = true" * 3000) == "b"
    assert sql("i" + "::int" * 3000 + " = 1") == "i = 1"


def test_predicates_survive_pickling_and_are_hashable() -> None:
    predicate = parse("i IN (1, 2) AND s LIKE 'a_%' OR st.Deep IS NULL AND dec < 1.5 AND by % 3 = 1 AND b")
    assert pickle.loads(pickle.dumps(predicate)) == predicate
    assert hash(pickle.loads(pickle.dumps(predicate))) == hash(predicate)


def test_conjuncts_are_the_parts_that_must_all_hold() -> None:
    assert [to_sql(part) for part in conjuncts(parse("i = 1 AND (b AND NOT (l = 1 OR l = 2))").expr)] == [
        "i = 1", "b", "l <> 1", "l <> 2",
    ]  # fmt: skip
    assert conjuncts(FALSE) == (FALSE,)
