"""The same predicate text gives the same rows here and in Spark itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.columnar.evaluate import matches
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.protocol.quoting import quote_name
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
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_pyds.spark.native.columns import nested
from delta_pyds.spark.native.expressions import to_column
from tests.support.sampling import sampled

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

NAN, INF = float("nan"), float("inf")
MAX_38 = 10**38 - 1
STRINGS = [
    None, "", "a", "A", "ab", "abc", "a%c", "a_c", "a\\c", "abcabc", "b", "é", "e\u0301", "日本", "日本語",
    "\U0001f600",
    "\U0001f600x", "\uffff", "\ue000", "z", "a\nc", "\n", "a\r\nc", "it's", 'say "x"', "  a ", "0", "1", "\x7f",
    "\x00", "tab\t",
    "a.c", "a*c", "[a]", "(a|b)", "^a$", "\u2028",
]  # fmt: skip
DAYS = [
    None, 0, 1, -1, 18262, 18263, 17600, 17601, -141428, -141427, -719162, -719163, -719529, 2932896, 2932897,
    3663000,
    -25567, -25568, 18331, 18566, 15340, 17838, 17839, 17840, 17578, 17579,
]  # fmt: skip
_HOUR = 3_600_000_000
_DST_SPRING, _DST_AUTUMN = 1583650800_000_000, 1604210400_000_000  # America/New_York, 2020
MOMENTS = [
    None, 0, 1, -1, 1577836800_000_000, 1577836799_999_999, 1577854800_000_000, 1577817000_000_000,
    1577836800_123_456,
    *(_DST_SPRING + n * _HOUR // 2 for n in range(-12, 5)), *(_DST_AUTUMN + n * _HOUR // 4 for n in range(-24, 9)),
    -12219292800_000_000, -62135596800_000_000, -62135596800_000_001, 253402300799_999_999, 253402300800_000_000,
    -2208988800_000_000, -2717650800_000_000,
]  # fmt: skip

COLUMNS: dict[str, tuple[Any, pa.DataType, list[Any]]] = {
    "b": (BOOLEAN, pa.bool_(), [None, True, False]),
    "by": (BYTE, pa.int8(), [None, 0, 1, -1, 2, 7, -7, 127, -128]),
    "sh": (SHORT, pa.int16(), [None, 0, 1, -1, 300, 32767, -32768]),
    "i": (INTEGER, pa.int32(), [None, 0, 1, -1, 2, 3, 10, 16777217, 2147483647, -2147483648]),
    "l": (LONG, pa.int64(), [None, 0, 1, -1, 5, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**62 + 1, 10**18]),
    "f": (FLOAT, pa.float32(), [None, 0.0, -0.0, 0.1, 1.5, -1.5, NAN, INF, -INF, 16777216.0, 3.4028234663852886e38]),
    "d": (DOUBLE, pa.float64(), [None, 0.0, -0.0, 0.1, 1.5, NAN, INF, -INF, 9007199254740993.0, 5e-324, 1e38, -0.1]),
    "dec": (
        DecimalType(10, 2), pa.decimal128(10, 2),
        [None, *map(Decimal, ("0.00", "1.00", "1.50", "1.55", "1.56", "-1.50", "99999999.99", "-99999999.99",
        "0.10"))],
    ),
    "d38": (
        DecimalType(38, 0), pa.decimal128(38, 0),
        [None, *map(Decimal, (0, 1, 2, -1, MAX_38, -MAX_38, 10**37, 12345678901234567890123456789012345678))],
    ),
    "dfr": (
        DecimalType(38, 18), pa.decimal128(38, 18),
        [None, Decimal("0.000000000000000000"), Decimal("0.100000000000000000"), Decimal("1.500000000000000001"),
         Decimal("-0.000000000000000001"), Decimal("99999999999999999999.999999999999999999")],
    ),
    "s": (STRING, pa.string(), STRINGS),
    "s2": (STRING, pa.string(), STRINGS[::-1][:17]),
    "bin": (BINARY, pa.binary(), [None, b"", b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\x00", b"a"]),
    "dt": (DATE, pa.date32(), DAYS),
    "ts": (TIMESTAMP, pa.timestamp("us", tz="UTC"), MOMENTS),
    "tn": (TIMESTAMP_NTZ, pa.timestamp("us"), MOMENTS),
    "st": (
        StructType((StructField("x", INTEGER), StructField("Deep.er", StructType((StructField("y", STRING),))))),
        pa.struct([("x", pa.int32()), ("Deep.er", pa.struct([("y", pa.string())]))]),
        [None, {"x": 1, "Deep.er": None}, {"x": None, "Deep.er": {"y": "k"}}, {"x": 2, "Deep.er": {"y": None}}],
    ),
    "ar": (ArrayType(INTEGER), pa.list_(pa.int32()), [None, [], [1, None]]),
    "m": (MapType(STRING, INTEGER), pa.map_(pa.string(), pa.int32()), [None, [], [("k", 1)]]),
    "dotted.name": (INTEGER, pa.int32(), [None, 4, 5]),
}  # fmt: skip
SCHEMA = StructType(tuple(StructField(name, kind[0]) for name, kind in COLUMNS.items()))
ROWS = 300

OPS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
COMPARED: dict[str, tuple[str, ...]] = {
    "b": ("true", "false", "NULL", "'t'", "' No '"),
    "by": ("1", "-128", "128", "300", "1.5", "-0.5", "1e0", "127.0D", "'7'", "1L", "cast('NaN' as double)", "NULL"),
    "sh": ("300S", "-32769", "0.0", "1.5F"),
    "i": ("1", "2147483647", "-2147483648", "2147483648", "1.5", "1.0", "16777217.0F", "16777216.5D", "'3'", "1e-3",
          "-1.0000000000000000000000000001", "cast('inf' as double)"),
    "l": ("9007199254740993", "9007199254740992D", "9007199254740993D", "9.3e18", "9223372036854775807", "1.5", "'5'",
          "-9223372036854775808L", "-9.3e18", "1e18", "0.5F", "9223372036854775806.5", "-0.000000000000000001"),
    "f": ("0.1", "0.1F", "0.1D", "0", "-0.0F", "1.5", "16777217", "16777216", "cast('NaN' as float)", "'NaN'",
          "cast('infinity' as float)", "'-inf'", "1e39", "3.4028235e38", "9007199254740993L", "'0.1'"),
    "d": ("0.1", "0.1F", "0", "-0.0", "'NaN'", "'inf'", "-1e308", "9007199254740993", "1.5BD", "1e38",
          "99999999999999999999999999999999999999", "5e-324", "0.10000000000000000000000000000000000001", "' 1.5 '"),
    "dec": ("1.5", "1.555", "1", "100000000", "1e0", "1.55D", "0.1D", "0.1F", "-99999999.99", "99999999.995",
        "'1.55'",
            "'NaN'", "123456789012", "1.50", "1e300", "0.0000000000000000000000000001"),
    "d38": ("1", "99999999999999999999999999999999999999", "1e38", "1e37", "2.0", "1.2345678901234567e37"),
    "dfr": ("0.1", "0.1D", "1.500000000000000001", "0", "1e20", "5", "10", "1.50"),
    "s": ("'a'", "''", "'b'", "'\\uFFFF'", "'\\uE000'", "'日本'", "'\\uD83D\\uDE00'", "'it''s'", "'a\\nc'", "'\\0'",
          "r'a\\c'", '"say \\"x\\""', "'\\Z'", "'A' 'b'", "NULL", "'a\\%c'", "'\\141'", "'\\x'"),
    "bin": ("X''", "X'00'", "X'7F'", "X'80'", "x'FF'", "X'ff0'", "'a'"),
    "dt": ("DATE '2020-01-01'", "'2020-01-01'", "DATE '1582-10-10'", "DATE '10000-01-01'", "DATE '0000-12-31'",
        "'2020'",
           "TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2020-01-01 00:00:01'", "TIMESTAMP '1900-01-01 00:00:00'",
           "TIMESTAMP_NTZ '2020-01-01 00:00:00'", "TIMESTAMP_NTZ '2018-03-10 12:00:00'", "'2020-3-8 12:00'",
           "TIMESTAMP '2020-11-01 05:00:00Z'", "cast('2020-03-10' as date)", "DATE '-0001-01-01'",
           "TIMESTAMP '9999-12-31 23:59:59.999999'", "TIMESTAMP '0001-01-01 00:00:00'",
           "TIMESTAMP '2018-11-04 03:00:00Z'", "TIMESTAMP '2018-11-04 00:30:00'", "TIMESTAMP '2018-02-17 23:30:00'",
           "TIMESTAMP '2018-02-18 02:30:00Z'"),
    "ts": ("TIMESTAMP '2020-01-01 00:00:00'", "'2020-01-01'", "TIMESTAMP '2020-03-08 02:30:00'", "DATE '2020-01-01'",
           "TIMESTAMP '2020-11-01 01:30:00'", "TIMESTAMP '2020-03-08 07:00:00Z'",
           "TIMESTAMP '2020-03-08 03:30:00+5:30'",
           "TIMESTAMP_NTZ '2020-11-01 01:30:00'", "TIMESTAMP_LTZ '2019-12-31 19:00:00 America/New_York'",
           "'1900-01-01'",
           "TIMESTAMP '1582-10-15 00:00:00'", "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '10000-01-01 00:00:00'",
           "'2020-01-01T00:00:00.123456789Z'", "DATE '2020-03-08'", "DATE '2018-11-04'",
           "TIMESTAMP '9999-12-31 23:59:59.999999'"),
    "tn": ("TIMESTAMP_NTZ '2020-01-01 00:00:00'", "'2020-01-01'", "TIMESTAMP_NTZ '2020-03-08 02:30:00'",
           "DATE '2020-01-01'", "TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2020-03-08 01:59:59'",
           "TIMESTAMP '2020-03-08 04:00:00'", "TIMESTAMP '2020-03-08 04:30:00'", "TIMESTAMP '2020-11-01 01:30:00'",
           "TIMESTAMP '2020-11-01 06:15:00Z'", "TIMESTAMP '2020-11-01 05:15:00Z'",
           "TIMESTAMP '2020-11-01 06:30:00Z'", "TIMESTAMP '2020-11-01 05:30:00Z'", "TIMESTAMP '1970-01-01 00:00:00Z'",
           "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
    "st.x": ("1", "NULL"),
    "st.`deep.ER`.Y": ("'k'",),
    "`dotted.name`": ("4",),
}  # fmt: skip
PATTERNS = (
    "'a%'", "'%c'", "'%b%'", "'a_c'", "'a%c'", "'%'", "''", "'_'", "'__'", "'_%'", "'%_%'", "'a\\\\%c'",
    "'a\\\\_%'", "'日_'",
    "'a!%c' ESCAPE '!'", "'a!!c' ESCAPE '!'", "'%\\n%'", "'a\\\\\\\\c'", "r'a\\\\c'", "'a%b%c'", "'%.%'",
    "'[a]'", "'^%$'", "'(_|_)'",
    "'a*%'", "'%%'", "'_ %'", "NULL", "'\\0%'", "'é'", "'%\\u2028'", "'it''_'", "'%_c'",
)  # fmt: skip
OTHERS = (
    "b", "NOT b", "! b", "b = (i = 1)", "(i = 1) = true", "i = 1 = b", "(i < 2) <> false", "(i < 2) >= b",
    "(i=1) > true",
    "b IS TRUE", "b IS NOT TRUE", "b IS FALSE", "b IS NOT FALSE", "b IS UNKNOWN", "b IS NOT UNKNOWN", "i = 1 IS NULL",
    "i = 1 IS NOT TRUE", "(b AND i = 1) IS NULL", "(b OR i IN (1, NULL)) IS NULL", "NOT b AND i = 1 OR l = 5",
    "NOT (b AND i = 1)", "NOT (b OR NOT i > 1)", "i IS NULL", "ar IS NULL", "m IS NOT NULL", "st IS NULL",
    "st.x IS NULL", "st.`Deep.er` IS NOT NULL", "st.`Deep.er`.y IS NULL", "bin IS NULL", "i BETWEEN 1 AND 2.5",
    "l NOT BETWEEN 0 AND 1e18", "dt BETWEEN '2020-01-01' AND DATE '2020-12-31'", "s BETWEEN 'a' AND 'b'",
    "f BETWEEN 0.1 AND 'NaN'", "d NOT BETWEEN -0.0 AND 0.1", "i IN (1)", "i IN (1, 2.5, '3')", "i NOT IN (1, 2)",
    "i IN (1, NULL)", "i NOT IN (1, NULL)", "i IN (NULL)", "l IN (1, 9007199254740992D)", "f IN (0.1, 1.5, 0)",
    "f IN (0.1F, cast('NaN' as float), -0.0F)", "d IN (0.1, 'NaN', 1)", "d NOT IN (0.0D, 'inf')",
    "d IN (0.0D, 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, 11D, 12D)",
    "d IN (-0.0D, 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, cast('NaN' as double))",
    "f IN (0F, 1F, 2F, 3F, 4F, 5F, 6F, 7F, 8F, 9F, 10F, cast('NaN' as float))",
    "i IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, NULL)", "dec IN (1.5, 1, 1.555)", "dec IN ('1.5', 1)",
    "s IN ('a', 'é', '日本', '')", "s NOT IN ('a')", "b IN (true, NULL)", "b IN (false)", "bin IN (X'00', X'FF')",
    "dt IN ('2020-01-01', DATE '1582-10-10')", "dt IN (DATE '2020-01-01', TIMESTAMP '2020-01-01 05:00:00')",
    "ts IN (DATE '2020-01-01', '2020-01-01 05:00:00Z')", "tn IN (TIMESTAMP_NTZ '2020-01-01 00:00:00', '1970')",
    "tn IN (TIMESTAMP '2020-11-01 05:30:00Z', TIMESTAMP '2020-03-08 08:30:00Z')",
    "i % 2 = 1", "i % -3 = -2", "by % 3 <> 0", "l % 10 BETWEEN 1 AND 8", "mod(i, 7) >= 2", "i % 1 = 0", "i % -1 = 0",
    "l % 9223372036854775807 = 0", "l % -9223372036854775808L < 0", "by % 300 = by", "i % 10L IN (1, 7)",
    "i % 4 % 3 = 1",
    "-7 % 3 = i", "i % 3 = 1.5", "i % 3 < 1.5", "startswith(s, 'a')", "endswith(s, 'c')", "contains(s, 'b')",
    "contains(s, '')", "startswith(s, NULL)", "startswith(s, '日')", "NOT contains(s, '%')", "s < s2", "s = s2",
    "s <=> s2",
    "i = l", "i < d", "f = d", "f < d", "f > d", "f >= d", "f <= d", "f <> d", "f <=> d", "d >= f", "l = d", "l < f",
    "dec = i", "dec < d", "dec >= l", "dec = dfr", "dec > f", "by = sh", "by <=> i", "dt = dt", "dt <= tn", "dt = tn",
    "ts = ts", "bin < bin", "d = d", "f <> f", "b = b", "b < (i = 1)", "dec = dec", "d38 < d", "i < dec",
    "cast(i as bigint) = 1", "cast(i as double) < 1.5", "cast(f as double) = 0.1",
    "cast(dt as timestamp) > '2020-01-01'",
    "cast(i as float) = 16777216F", "cast(i as decimal(12,2)) = 1.00",
    "cast(dt as timestamp_ntz) = DATE '2020-01-01'",
    "cast(dec as decimal(20,4)) < 1.55555", "i::bigint = 1", "cast(dec as double) = 0.1", "cast(l as float) = 9e15F",
    "i = cast('1' as int)", "i = cast(1.9 as int)", "i = cast(-1.9D as int)", "f = cast(0.1 as float)",
    "f = cast('0.1' as float)", "dec = cast('1.555' as decimal(10,2))", "d = cast(0.1F as double)",
    "s = cast(1 as string)",
    "dt = cast(TIMESTAMP '2020-01-01 12:00:00' as date)", "ts = cast(DATE '2020-03-08' as timestamp)",
    "tn = cast(TIMESTAMP '2020-03-08 07:30:00Z' as timestamp_ntz)",
    "ts = cast(TIMESTAMP_NTZ '2020-11-01 01:30:00' as timestamp)",
    "i = cast(NULL as int)", "1 = 1", "NULL", "false", "1D < 'NaN'", "'a' < 'B'", "X'80' > X'7F'", "1.50 = 1.5",
    "0.1F = 0.1",
    "0.0D = -0.0D", "TIMESTAMP '2020-03-08 02:30:00' = TIMESTAMP_NTZ '2020-03-08 03:30:00'", "i is distinct from 1",
    "i is not distinct from NULL", "s is distinct from 'a'", "(((i = 1)))", "i = 1 -- no\n OR i = 2",
    "i /* c /* d */ */ = 1",
    "i==1", "i!=1", "I = 1 AND L > -1", "`I` = 1", "i = +1", "i = - 1", "i in (((1)), 2)", "true AND i = 1",
    "NULL OR i = 1",
    "NULL AND i = 1", "NOT NULL", "not not i = 1", "i = 1 and not b is null", "st.x in (1, 2)",
    "i = -1::int", "by = -128::tinyint", "-2147483648::int = i", "l = -9223372036854775808::bigint",
    "dec < -1.5::double",
)  # fmt: skip


def _predicates() -> list[str]:
    compared = [
        f"{column} {op} {literal}"
        for column, literals in COMPARED.items()
        for number, literal in enumerate(literals)
        for op in (OPS if number < 3 else ("=", "<", "<=", ">"))
    ]
    swapped = [f"{literals[0]} {op} {column}" for column, literals in COMPARED.items() for op in OPS]
    patterns = [f"s {word} {pattern}" for pattern in PATTERNS for word in ("LIKE", "NOT LIKE")]
    return [*compared, *swapped, *patterns, *OTHERS]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Every value of every column several times, next to ever different values of the other columns."""
    columns = {
        name: pa.array(list(itertools.islice(itertools.cycle(values), ROWS)), kind)
        for name, (_, kind, values) in COLUMNS.items()
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path: Path = tmp_path_factory.mktemp("semantics") / "rows.parquet"
    pq.write_table(rows.append_column("row", pa.array(range(ROWS), pa.int32())), path)
    return spark.read.parquet(str(path)).repartition(1).cache()


def _values(frame: DataFrame, predicates: Mapping[str, Column]) -> dict[str, list[bool | None]]:
    answers: dict[str, list[bool | None]] = {}
    texts = list(predicates)
    for start in range(0, len(texts), 600):
        some = texts[start : start + 600]
        table = frame.sort("row").select(*[predicates[p].alias(f"p{n}") for n, p in enumerate(some)]).toArrow()
        answers.update({p: table.column(n).to_pylist() for n, p in enumerate(some)})
    return answers


@contextmanager
def _session(spark: SparkSession, **settings: str) -> Iterator[None]:
    # compiling a thousand expressions takes far longer than interpreting them
    settings = {**settings, "codegen.wholeStage": "false", "codegen.factoryMode": "NO_CODEGEN"}
    before = {key: spark.conf.get(f"spark.sql.{key}", None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.{key}", value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(f"spark.sql.{key}")
            else:
                spark.conf.set(f"spark.sql.{key}", old)


@pytest.mark.parametrize("time_zone", ["UTC", "America/New_York", "Asia/Kolkata", "America/Sao_Paulo"])
def test_a_predicate_selects_the_rows_that_spark_selects(
    spark: SparkSession, frame: DataFrame, rows: pa.Table, time_zone: str
) -> None:
    predicates = sampled(_predicates(), one_in=3)
    if time_zone != "UTC":
        timed = ("dt", "ts", "tn", "TIMESTAMP", "DATE")
        predicates = [p for p in predicates if any(word in p for word in timed)]
    # the newline ends a comment at the end of a predicate
    with _session(spark, **{"session.timeZone": time_zone}):
        expected = _values(frame, {p: F.expr(f"cast(({p}\n) as boolean)") for p in predicates})
    batch = rows.combine_chunks().to_batches()[0]
    wrong = []
    for predicate in predicates:
        said = expected[predicate]
        forms = {
            predicate: [v is True for v in said],
            f"NOT ({predicate}\n)": [v is False for v in said],
            f"({predicate}\n) IS NULL": [v is None for v in said],
        }
        for text, wanted in forms.items():
            expr = parse_predicate(text, SCHEMA, time_zone=time_zone).expr
            found = matches(expr, batch, batch.num_rows).to_pylist()
            if found != wanted:
                row = next(n for n in range(ROWS) if found[n] != wanted[n])
                wrong.append((text, row, f"here {found[row]}, Spark {wanted[row]}"))
    assert wrong == []


@pytest.mark.parametrize(("ansi", "form"), [("true", "{}"), ("false", "NOT ({}\n)")])
def test_a_predicate_as_columns_of_spark_selects_the_same_rows(
    spark: SparkSession, frame: DataFrame, rows: pa.Table, ansi: str, form: str
) -> None:
    # the native engine's filter: no rule of the session may take part in what it means
    texts = [form.format(p) for p in sampled(_predicates(), one_in=3)]
    exprs = {text: parse_predicate(text, SCHEMA, time_zone="UTC").expr for text in texts}
    columns = {
        text: to_column(e, lambda path: nested(F.col(quote_name(path[0])), path[1:])) for text, e in exprs.items()
    }
    assert [text for text, column in columns.items() if column is None] == []
    with _session(spark, **{"session.timeZone": "Asia/Kolkata", "ansi.enabled": ansi}):
        said = _values(frame, columns)
    batch = rows.combine_chunks().to_batches()[0]
    wanted = {text: matches(e, batch, batch.num_rows).to_pylist() for text, e in exprs.items()}
    assert [text for text in texts if [v is True for v in said[text]] != wanted[text]] == []


MALFORMED = (
    "i = 'x'", "i = '1.0'", "d = 'x'", "dt = '2020-01-01x'", "dt = DATE '2020-02-30'",
    "ts = TIMESTAMP '2020-01-01 25:00:00'",
    "b = 'maybe'", "i = 1e400", "by = 128Y", "i = b", "b = 1", "dt = 1", "ts = 1.5", "i", "s", "i + 1",
    "i IN ()", "i = ",
    "= 1", "i = 1 AND", "(i = 1", "i = 1)", "i = 'x", "i ! = 1", "i = 1 && b", "i IS NULL = true",
    "i IS NULL IS NULL",
    "s LIKE 'a' ESCAPE '!!'", "s LIKE 'a!b' ESCAPE '!'", "s LIKE 'a\\\\'", "nope = 1", "st.nope = 1", "i.x = 1",
    "i BETWEEN 1", "i IS 1", "i NOT = 1", "i % 0 = 1", "s = 'a' 1", "dt = DATE 'x'", "i = 1L2", "i isnull",
    "i BETWEEN SYMMETRIC 1 AND 2", "i = cast('x' as int)", "by = cast(300 as tinyint)", "bin = X'0G'", "i IS TRUE",
    "d = cast('1e' as double)", "i = 1 i = 2", "'a' = 1", "dec = cast('123456789012' as decimal(10,2))",
)  # fmt: skip


def test_what_spark_finds_wrong_is_an_error_here(frame: DataFrame) -> None:
    accepted = []
    for text in MALFORMED:
        with pytest.raises(Exception):  # noqa: B017 - whatever class Spark chooses
            frame.where(text).collect()
        try:
            parse_predicate(text, SCHEMA, time_zone="UTC")
        except Exception as e:
            assert type(e).__name__ in ("ExpressionError", "ColumnNotFoundError"), (text, e)
        else:
            accepted.append(text)
    assert accepted == []


def test_a_collation_is_refused_where_it_would_matter() -> None:
    schema = StructType((StructField("c", STRING, True, {"__COLLATIONS": {"c": "icu.UNICODE_CI"}}),))
    parse_predicate("c IS NOT NULL", schema, time_zone="UTC")
    for text in ("c = 'a'", "c LIKE 'a%'", "c IN ('a')", "startswith(c, 'a')", "c < c"):
        with pytest.raises(ExpressionError, match="collation"):
            parse_predicate(text, schema, time_zone="UTC")
