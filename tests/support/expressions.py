"""Columns of every type with the values that matter, and expressions over them by family."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

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
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

NAN, INF = float("nan"), float("inf")
MAX_38 = 10**38 - 1
ROWS = 59
STRINGS = [
    None, "", "a", "A", "ab", "abc", "a%c", "a_c", "abcabc", "b", "é", "É", "e\u0301", "日本", "日本語", "ß", "İ", "ΑΣ",
    "\U0001f600", "\U0001f600x", "z", "a\nc", "\n", "a\r\nc", "it's", "  a ", " ", "\t", "0", "1", "x1", "ab12", "12ab",
    "a.c", "a-b-c", "--", "-", "x\x0by", "a\u2028", "a\x85", "foo\n", "foo", "foo\r\n", "AbC dEf", "\x00",
]  # fmt: skip
NUMBERS = [
    None, "0", "1", "-1", "+7", " 12 ", "\t5\n", "127", "128", "-128", "32768", "2147483647", "2147483648", "00012",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1.5", ".5", "5.", ".", "-.7", "1e3", "1E-2",
    "1e400", "-1e-400", "NaN", "nan", "inf", "-Infinity", "+inf", "abc", "", " ", "1 2", "1_000", "1d", "1.5f", "\x011",
    "1\x7f", "12345678.905", "99999999.995", "1.005", "-0", "-0.0", "0.1", "16777217", "true", "T", "yes", " No ", "f",
    "1,5", "\u0661", "--1", "+", "1e", "123456789012345678901234567890123456789", "0.30000000000000004",
]  # fmt: skip
MOMENTS_TEXT = [
    None, "2020-01-01", "2020-02-30", "2020-1-5", "2020", "2020-03", "2020-03-08 02:30:00", "2020-11-01 01:30:00",
    "2020-11-01T01:30:00.5", "2020-03-08 02:30:00.123456", "2020-03-08 02:30:00.1234567", "2020-01-01 x",
    "2020-01-01 00:00:00Z", "2020-01-01 00:00:00+05:30", "2020-01-01 00:00:00 America/New_York", "0001-01-01",
    "9999-12-31 23:59:59.999999", "10000-01-01", "-0001-01-01", "0000-01-01", " 2020-01-01 ", "2020-01-01T", "nope", "",
    "2020-13-01", "2020-01-01 24:00:00", "2020-01-01 1:2:3", "20200101", "2020-01-01 12", "2020-01-01 12:30",
    "1582-10-10",
    "2020-06-15 12:34:56", "2020-01 x", "\u0662020-01-01", "2020-01-01 \u65e5",
]  # fmt: skip
DAYS = [
    None, 0, 1, -1, 18262, 18321, 18322, 18330, 18351, 17600, -141428, -141427, -719162, -719163, 2932896, 2932897,
    -25567, 18331, 18566, 11016, 11015, 19782, 20453, -719528, 10957, 59, 60, 364, 365, 106751991 // 4,
]  # fmt: skip
_HOUR = 3_600_000_000
_SPRING, _AUTUMN = 1583650800_000_000, 1604210400_000_000  # clocks change in New York, 2020
MOMENTS = [
    None, 0, 1, -1, 1577836800_000_000, 1577836799_999_999, 1577854800_000_000, 1577836800_123_456, 999_999,
    *(_SPRING + n * _HOUR // 2 for n in range(-5, 4)), *(_AUTUMN + n * _HOUR // 2 for n in range(-4, 4)),
    -12219292800_000_000, -62135596800_000_000, 253402300799_999_999, -2208988800_000_000, -2717650800_000_000,
    -2717640000_000_000, 1234567890_120_000, 4102444800_000_000, 253402300800_000_000, 951782400_000_000,
]  # fmt: skip
_DECIMALS = list(map(Decimal, (
    "0.00", "1.00", "1.50", "1.55", "-1.55", "1.45", "99999999.99", "-99999999.99", "0.10", "2.50", "-2.50", "7.00",
    "0.05",
    "128.00",
)))  # fmt: skip

Column = tuple[DataType, pa.DataType, list[Any]]
COLUMNS: dict[str, Column] = {
    "b": (BOOLEAN, pa.bool_(), [None, True, False]),
    "b2": (BOOLEAN, pa.bool_(), [True, True, None, False, False, None, True]),
    "by": (BYTE, pa.int8(), [None, 0, 1, -1, 2, 7, -7, 127, -128]),
    "by2": (BYTE, pa.int8(), [1, 127, -1, 0, None, 3, -128]),
    "sh": (SHORT, pa.int16(), [None, 0, 1, -1, 300, 32767, -32768, 1000]),
    "i": (INTEGER, pa.int32(), [None, 0, 1, -1, 2, 3, 10, 16777217, 2147483647, -2147483648, 12, 55]),
    "i2": (INTEGER, pa.int32(), [0, 3, -1, None, 2147483647, -2147483648, 7, -7, 1, 65536]),
    "l": (LONG, pa.int64(), [None, 0, 1, -1, 5, 2**53 + 1, 2**63 - 1, -(2**63), 2**62 + 1, 10**18, 1583650800]),
    "l2": (LONG, pa.int64(), [1, -1, 2, None, 0, 3, 2**63 - 1, -(2**63), 10]),
    "f": (FLOAT, pa.float32(), [None, 0.0, -0.0, 0.1, 1.5, -1.5, NAN, INF, -INF, 16777216.0, 3.4e38, 127.9,
    2147483648.0]),
    "f2": (FLOAT, pa.float32(), [1.5, 0.0, NAN, None, -2.5, INF, 0.1, 3.0]),
    "d": (DOUBLE, pa.float64(), [None, 0.0, -0.0, 0.1, 1.5, -1.5, NAN, INF, -INF, 9007199254740993.0, 5e-324,
    1e38, -0.1,
                                2.5, 127.99, -128.5, 9.223372036854775807e18, -9.3e18, 2147483647.5,
                                32768.0, -9.223372036854775808e18]),
    "d2": (DOUBLE, pa.float64(), [0.0, 2.0, NAN, -INF, None, 1e-300, 0.3, -7.25, -0.0, 3.0, 1e308]),
    "dec": (DecimalType(10, 2), pa.decimal128(10, 2), [None, *_DECIMALS]),
    "dec2": (DecimalType(10, 2), pa.decimal128(10, 2), [*_DECIMALS[::-1][:11], None]),
    "d38": (DecimalType(38, 0), pa.decimal128(38, 0),
            [None, *map(Decimal, (0, 1, 2, -1, MAX_38, -MAX_38, 10**37, 2**63, -(2**63) - 1, 2**63 - 1, 7))]),
    "dfr": (DecimalType(38, 18), pa.decimal128(38, 18),
            [None, *(Decimal(t).quantize(Decimal("1e-18"), context=Context(prec=38)) for t in (
                "0", "0.1", "1.500000000000000001", "1e-18", "-2.5", "99999999999999999999.999999999999999999"))]),
    "s": (STRING, pa.string(), STRINGS),
    "s2": (STRING, pa.string(), STRINGS[::-1][:41]),
    "sn": (STRING, pa.string(), NUMBERS),
    "sd": (STRING, pa.string(), MOMENTS_TEXT),
    "bin": (BINARY, pa.binary(), [None, b"", b"\x00", b"a", b"abc", b"\x7f", "é".encode(), b"\xff\x00"]),
    "dt": (DATE, pa.date32(), DAYS),
    "dt2": (DATE, pa.date32(), DAYS[::-1][:23]),
    "ts": (TIMESTAMP, pa.timestamp("us", tz="UTC"), MOMENTS),
    "tn": (TIMESTAMP_NTZ, pa.timestamp("us"), MOMENTS),
    "st": (
        StructType((StructField("x", INTEGER), StructField("in", StructType((StructField("y", STRING),))))),
        pa.struct([("x", pa.int32()), ("in", pa.struct([("y", pa.string())]))]),
        [None, {"x": 1, "in": None}, {"x": None, "in": {"y": "k"}}, {"x": 2, "in": {"y": None}}],
    ),
    "ar": (ArrayType(INTEGER), pa.list_(pa.int32()), [None, [], [1, None], [5], [7, 8, 9, None, 0]]),
    "m": (MapType(STRING, INTEGER), pa.map_(pa.string(), pa.int32()),
          [None, [], [("k", 1)], [("a", None), ("k", 2)], [("b", 3)]]),
}  # fmt: skip
SCHEMA = StructType(tuple(StructField(name, kind[0]) for name, kind in COLUMNS.items()))

_NUMBERS = ("by", "sh", "i", "l", "f", "d", "dec", "d38", "dfr")
ARITHMETIC = [
    *(f"{a} {op} {b}" for op in ("+", "-", "*", "/", "%") for a, b in (
        ("by", "by2"), ("i", "i2"), ("l", "l2"), ("f", "f2"), ("d", "d2"), ("dec", "dec2"), ("i", "l2"), ("by", "i2"),
        ("i", "d2"), ("dec", "i2"), ("dec", "dfr"), ("d38", "dec2"), ("d38", "d38"), ("dfr", "dfr"), ("dec", "d2"),
        ("i", "1"), ("1", "i"), ("l", "2"), ("dec", "1.5"), ("dec", "3"), ("d", "2"), ("i", "'2'"), ("sn", "1"),
        ("sn", "1.5D"),
        ("i", "NULL"), ("f", "d2"), ("sh", "by2"), ("dec", "l2"), ("sh", "100S"), ("i", "0"), ("d", "0D"), ("dec", "0"),
    )),
    *(f"{f}({a}, {b})" for f in ("mod", "pmod") for a, b in (
        ("by", "by2"), ("i", "i2"), ("l", "l2"), ("d", "d2"), ("dec", "dec2"), ("i", "7"), ("i", "-7"), ("sh", "by2"),
        ("f", "f2"), ("dec", "3"),
    )),
    *(f"{a} div {b}" for a, b in (("i", "i2"), ("l", "l2"), ("by", "by2"), ("l", "0"), ("i", "3"))),
    *(f"{form.format(c)}" for form in ("-{}", "+{}", "abs({})", "- -{}", "ceil({})", "floor({})", "sign({})",
    "sqrt({})",
                                      "negative({})", "ceiling({})", "signum({})") for c in _NUMBERS),
    *(f"{f}({c}, {n})" for f in ("round", "bround") for c in ("by", "sh", "i", "l", "dec", "d38", "dfr")
      for n in (0, 1, 2, 3, 20, -1, -2, -9, -19, -30)),
    *(f"round({c})" for c in ("i", "dec", "dfr")), "sqrt(sn)", "abs(sn)", "-sn",
    *(f"{f}({args})" for f in ("greatest", "least") for args in (
        "i, i2", "i, l2", "d, d2", "f, f2", "dec, dec2", "s, s2", "dt, dt2", "i, i2, 5", "dec, i", "d, i", "ts, ts",
        "b, b2",
        "i, NULL", "by, sh, i", "dec, dfr")),
    *(f"isnan({c})" for c in ("f", "d", "i")), "nanvl(d, d2)", "nanvl(f, 1)", "nanvl(d, 1D/0)", "isnan(sqrt(d))",
    "i + i2 * 2 - 1", "(i + 1) % 3", "1 - -1", "2 * 3 + i", "-i * 2", "- 1", "-(1)", "i - -i2", "l * 1000 + i",
    "dec * dec2 * 2",
    "dec * 1.1 + 0.5", "dec / 3", "1 / dec", "dec * 100 div 1", "0.1 + 0.2", "1.0 / 3", "by + 1", "by + 1Y",
    "100Y + by",
    "i + 1.5", "1.5 * l", "i / 2", "i / i2", "d / d2", "1L - i", "sh * sh", "cast(i as decimal(20,2)) * dec",
]  # fmt: skip
COMPARISONS = [
    *(f"{a} {op} {b}" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>") for a, b in (
        ("i", "i2"), ("i", "l2"), ("d", "d2"), ("f", "d2"), ("f", "f2"), ("dec", "dec2"), ("dec", "i"), ("s", "s2"),
        ("dt", "dt2"), ("dt", "ts"), ("b", "b2"), ("bin", "bin"), ("i + 1", "i2"), ("upper(s)", "s2"), ("i", "'1'"),
        ("sn", "1.5D"),
        ("ts", "tn"), ("dt", "'2020-01-01'"), ("ts", "sd"), ("dt", "sd"), ("NULL", "i"), ("i", "d2"), ("sn", "i"),
        ("dec", "dfr"),
        ("dt", "tn"), ("cast(d as float)", "f2"), ("1", "i"), ("'a'", "s"), ("d", "1"), ("l", "1.5"), ("sn", "dec"),
        ("1", "2"),
        ("ts", "TIMESTAMP '2020-01-01 00:00:00'"), ("NULL", "NULL"), ("sn", "l"), ("b", "'true'"), ("b", "sn"),
    )),
    *(f"{a} {word} {b}" for word in ("AND", "OR") for a, b in (
        ("b", "b2"), ("b", "i > 1"), ("i > 1", "b"), ("b", "i / i2 > 1"), ("i2 <> 0", "i / i2 > 1"), ("b", "NULL"),
        ("NULL", "b"),
        ("i2 = 0", "i / i2 > 1"), ("i / i2 > 1", "i2 = 0"))),
    "NOT b", "NOT (i = i2)", "NOT (b AND b2)", "!b", "NOT NOT b", "b IS TRUE", "b IS NOT TRUE", "b IS FALSE",
    "(i > 1) IS UNKNOWN",
    "(i > 1) IS NOT TRUE", "i IS NULL", "i + 1 IS NOT NULL", "s IS NULL", "ar IS NULL", "m IS NOT NULL",
    "st IS NULL", "st.x IS NULL",
    "st.in.y IS NULL", "i IS DISTINCT FROM i2", "i IS NOT DISTINCT FROM i2", "isnull(i)", "isnotnull(s)",
    "equal_null(i, i2)",
    "i BETWEEN i2 AND 10", "d NOT BETWEEN d2 AND 3", "dt BETWEEN '2020-01-01' AND dt2", "s BETWEEN 'a' AND s2",
    "i IN (1, i2)", "i IN (1, 2, 3)", "i IN (1, NULL)", "i NOT IN (i2, NULL, 3)", "d IN (d2, 0.0D)",
    "d IN (0.0D, 1.5D)",
    "f IN (f2, cast('NaN' as float))", "s IN (s2, 'a')", "s IN ('a', 'b', NULL)", "i IN (i2 / 1)", "i IN (1, 10 / i2)",
    "i + 1 IN (2, 3)", "dec IN (1.5, dec2)", "i IN (l2, 3)", "dt IN (dt2, DATE '2020-01-01')", "dec IN (1, 2.50)",
    "b IN (b2)",
    "1 IN (i, i2)", "NULL IN (i)", "i IN (NULL)", "upper(s) IN ('A', 'AB')", "bin IN (X'00', X'61')", "ts IN (tn, ts)",
    "sn IN ('1', '5')", "i IN ('1', 2)", "ts IN ('2020-01-01', ts)",
]  # fmt: skip
CONDITIONALS = [
    "CASE WHEN b THEN 1 ELSE 2 END", "CASE WHEN b THEN i WHEN b2 THEN l2 END",
    "CASE i WHEN 1 THEN 'one' WHEN i2 THEN s ELSE s2 END",
    "CASE WHEN i2 <> 0 THEN i / i2 ELSE 0 END", "CASE WHEN i2 = 0 THEN NULL ELSE l % i2 END", "IF(b, i, 2.5)",
    "IF(b, 1, 'x')",
    "IF(i2 = 0, 0, i div i2)", "IF(b, NULL, dec)", "IF(b, dt, ts)", "IF(i > 0, ar, array(1))", "IF(b, st, NULL)",
    "IF(NULL, 1, 2)",
    "COALESCE(i, i2)", "COALESCE(i, l2, 7)", "COALESCE(i, 1 / i2)", "COALESCE(dec, i)", "COALESCE(s, s2, 'none')",
    "COALESCE(NULL, i)",
    "COALESCE(i, 'x')", "COALESCE(i, '7')", "COALESCE(dt, '2020-01-01')", "COALESCE(ar, array())", "IFNULL(i, 0)",
    "NVL(s, '')",
    "NVL2(i, s, s2)", "NVL2(b, 1, 2.5)", "NULLIF(i, i2)", "NULLIF(s, '')", "NULLIF(i, 1.0)", "NULLIF(d, d2)",
    "nullifzero(i)",
    "zeroifnull(i)", "zeroifnull(dec)", "COALESCE(d, f)", "COALESCE(i, d)", "COALESCE(f, i)", "COALESCE(f, l)",
    "f = i", "f < l", "i >= f", "f IN (i, 1)", "f IN (l)", "COALESCE(b, b2, true)",
    "CASE WHEN s LIKE 'a%' THEN upper(s) WHEN length(s) > 2 THEN left(s, 2) ELSE 'other' END",
    "CASE WHEN true THEN 1 ELSE 1 / 0 END",
    "CASE WHEN i IS NULL THEN 'null' WHEN i > 0 AND 10 / i > 1 THEN 'small' ELSE concat('v', i) END",
    "IF(try_cast(sn AS INT) IS NULL, -1, cast(sn AS INT))", "CASE WHEN b THEN cast(sn AS INT) END",
    "COALESCE(bin, X'00')",
    "COALESCE(ts, dt)", "COALESCE(tn, dt)", "IF(b, by, sh)", "IF(b, dec, d38)", "IF(b, dec, dfr)", "COALESCE(s, i)",
    "COALESCE(st.x, i)",
    "IF(b, 1.5, 2)", "IF(b, NULL, NULL)", "CASE b WHEN true THEN 1 WHEN false THEN 0 ELSE -1 END",
    "COALESCE(m, map('z', 0))",
    "CASE d WHEN 0 THEN 'zero' WHEN d2 THEN 'same' END", "IF(b, i, d)", "IF(b, f, d)", "IF(b, f, i)", "IF(b, l, f)",
    "IF(b, dec, d)",
    "CASE WHEN b THEN 1 / i2 WHEN b2 THEN 2 / i2 ELSE 3 END", "i + COALESCE(i2, 1 / 0)", "i2 + IF(b, 1, 1 / 0)",
]  # fmt: skip
CASTS = [
    *(f"{form}({c} AS {t})" for form in ("cast", "try_cast") for c in (
        "b", "by", "sh", "i", "l", "f", "d", "dec", "d38", "dfr") for t in (
        "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,18)",
        "decimal(3,1)",
        "decimal(38,0)", "string", "timestamp")),
    *(f"{form}(sn AS {t})" for form in ("cast", "try_cast") for t in (
        "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,18)",
        "decimal(3,1)",
        "binary", "date", "timestamp", "timestamp_ntz")),
    "cast(bin AS string)", "cast(s AS binary)", "i::string", "i::bigint::double", "cast(NULL AS int)",
    "cast(NULL AS string)",
    "cast(i AS string) || 'x'", "cast(i + 1 AS tinyint)", "int(sn)", "string(i)", "cast('5' AS int) + i",
    "cast(' 7 ' AS bigint)",
    "cast(cast(dec AS string) AS decimal(10,2))", "cast(cast(l AS string) AS bigint)", "cast('abc' AS int)",
    "cast(i AS void)",
]  # fmt: skip
TEXTS = [
    *(f"{f}({c})" for f in ("upper", "lower", "ucase", "lcase", "length", "char_length", "character_length",
    "octet_length",
                           "bit_length", "trim", "ltrim", "rtrim", "btrim", "reverse", "ascii", "md5", "sha1",
                           "sha", "crc32", "hex")
      for c in ("s", "s2")),
    *(f"{f}(bin)" for f in ("length", "octet_length", "md5", "sha1", "crc32", "hex", "bit_length")),
    *(f"sha2(s, {n})" for n in (0, 224, 256, 384, 512)), "len(s)", "sha2(bin, 256)",
    *(f"{f}(s, {p})" for f in ("substring", "substr") for p in (
        "1", "0", "2", "-1", "-2", "-100", "100", "1, 1", "0, 2", "2, 1", "-2, 1", "-3, 2", "-100, 3", "-5, 4",
        "1, 0", "1, -1", "i", "i, 2",
        "2, i", "-2, 5", "1, 2147483647", "2147483647, 1", "-2147483648, 5", "-1, 2147483647")),
    "substring(s FROM 2)", "substring(s FROM 2 FOR 1)", "substr(s, i, i2)",
    *(f"{f}(s, {n})" for f in ("left", "right") for n in ("0", "1", "2", "100", "-1", "i", "by")),
    *(f"{f}(s, {n})" for f in ("lpad", "rpad") for n in (
        "0", "3", "5, '*'", "5, 'xy'", "-1", "4, ''", "i % 10, '0'", "6, '日'", "3, s2", "2, '0'", "by, 'ab'", "NULL")),
    "trim(BOTH 'a' FROM s)", "trim(LEADING 'a' FROM s)", "trim(TRAILING 'c' FROM s)", "trim('ac' FROM s)",
    "btrim(s, 'abc')",
    "trim(BOTH FROM s)", "trim(LEADING FROM s)", "trim(TRAILING FROM s)", "trim('' FROM s)", "btrim(s, '日')",
    "concat(s, s2)", "concat(s)", "concat(s, '-', s2, '-', i)", "s || s2", "s || i || dec", "concat(bin, bin)",
    "concat()", "concat(s, NULL)",
    "concat(s, dt)", "concat(b, l)", "concat_ws(',', s, s2)", "concat_ws(s, 'a', s2, 'b')", "concat_ws('-')",
    "concat_ws('-', i, s)",
    "concat_ws(NULL, s)", "concat_ws('', s, s2)", "repeat(s, 3)", "repeat(s, 0)", "repeat(s, -1)",
    "replace(s, 'a', 'x')", "replace(s, 'abc')", "replace(s, '', 'x')", "replace(s, 'b', '')",
    "replace(s, s2, 'R')", "replace(s, '日', 'n')",
    "instr(s, 'c')", "instr(s, '')", "instr(s, '語')", "instr(s, s2)", "locate('c', s)", "position('b' IN s)",
    "position('b', s)",
    "split_part(s, '-', 1)", "split_part(s, '-', 2)", "split_part(s, '-', -1)", "split_part(s, '-', 9)",
    "split_part(s, '', 1)",
    "split_part(s, 'b', 2)", "split_part(s, s2, 1)", "split_part(s, '.', 2)",
    *(f"s {word} {p}" for word in ("LIKE", "NOT LIKE", "ILIKE") for p in (
        "'a%'", "'%c'", "'%b%'", "'a_c'", "'A%'", "'%'", "''", "'_'", "'a!%c' ESCAPE '!'", "'a%C'", "NULL", "'%i%'",
        "'ab'", "'%\\n%'")),
    *(f"s RLIKE {p}" for p in (
        "'a'", "'^a'", "'c$'", "'^a.c$'", "'^[a-c]+$'", "'[0-9]+'", "r'\\d'", "r'^\\w+$'", "r'\\s'", "r'^\\S*$'",
        "'a|b'", "'^(ab)+$'",
        "'a{2}'", "'^.{3}$'", "'^.$'", "'.'", "''", "r'a\\.c'", "'foo$'", "'^[^a]'", "'(a|b)c'", "'x?y*z'",
        "r'\\D\\d'", "'é'", "'^[A-Z]'",
        "r'^[\\w.-]+$'", "r'[^\\s]'", "r'\\W'", "NULL")),
    "regexp_like(s, '^a')", "regexp(s, 'b')", "regexp_replace(s, '[abc]', 'X')", "regexp_replace(s, 'a+', '')",
    r"regexp_replace(s, r'\d+', '#')", r"regexp_replace(s, r'\s', '_')", "regexp_replace(s, '(a|ab)', '<>')",
    "regexp_replace(s, '.', '.')",
    "startswith(s, 'a')", "endswith(s, 'c')", "contains(s, 'b')", "contains(s, '')", "startswith(upper(s), 'A')",
    "upper(concat(s, s2))", "length(trim(s)) > 0", "s LIKE concat('a', '%')", "lower(s) = 'abc'", "upper(i)",
    "length(i)", "trim(dec)",
]  # fmt: skip
DATES = [
    *(f"{f}({c})" for f in ("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "weekday", "dayofyear",
    "weekofyear")
      for c in ("dt", "ts", "tn", "sd")),
    *(f"{f}({c})" for f in ("hour", "minute", "second") for c in ("ts", "tn", "dt", "sd")),
    *(f"extract({f} FROM {c})" for f in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "DOY", "HOUR", "MINUTE",
    "dayofweek")
      for c in ("ts", "dt", "tn") if not (c == "dt" and f in ("HOUR", "MINUTE"))),
    "date_part('year', ts)",
    *(f"date_trunc('{u}', {c})" for u in (
        "year", "yyyy", "quarter", "MONTH", "mm", "week", "day", "DD", "hour", "minute", "second", "millisecond",
        "microsecond", "nope")
      for c in ("ts", "dt")), "date_trunc('hour', tn)", "date_trunc('day', sd)",
    *(f"trunc({c}, '{u}')" for u in ("year", "yy", "quarter", "MON", "week", "day", "nope") for c in ("dt", "ts")),
    "trunc(sd, 'month')",
    *(f"{f}(dt, {n})" for f in ("date_add", "date_sub", "add_months") for n in ("0", "1", "-1", "31", "by", "i",
    "400", "NULL", "12S")),
    "date_add(ts, 1)", "dt + 1", "dt - 1", "1 + dt", "dt + by", "date_add(sd, 1)", "add_months(ts, 1)",
    "add_months(dt, -13)",
    "datediff(dt, dt2)", "date_diff(dt, dt2)", "datediff(ts, dt)", "datediff(sd, '2020-01-01')", "last_day(dt)",
    "last_day(ts)",
    "last_day(sd)", "to_date(sd)", "to_date(ts)", "date(sd)", "date(ts)", "to_timestamp(sd)", "timestamp(sd)",
    "to_timestamp(dt)",
    "timestamp(dt)", "to_timestamp_ntz(sd)", "to_timestamp(tn)",
    *(f"date_format({c}, '{p}')" for c in ("ts", "dt", "tn") for p in (
        "yyyy-MM-dd", "yyyyMMdd", "yyyy-MM-dd HH:mm:ss", "HH:mm", "yyyy/MM", "''yyyy''", "dd.MM.yyyy",
        "yyyy-MM-dd''T''HH:mm:ss")),
    "date_format(ts, \"yyyy-MM-dd'T'HH:mm:ss'Z'\")", "date_format(ts, '-')",
    "unix_timestamp(ts)", "unix_timestamp(dt)", "unix_timestamp(tn)", "to_unix_timestamp(ts)", "unix_seconds(ts)",
    "unix_millis(ts)",
    "unix_micros(ts)", "unix_date(dt)", "timestamp_seconds(i)", "timestamp_seconds(l)", "timestamp_millis(l)",
    "timestamp_micros(l)",
    "date_from_unix_date(i % 1000000)", "from_unixtime(i)", "from_unixtime(l)", "from_unixtime(i, 'yyyy-MM')",
    "make_date(2020, by, 15)", "make_date(i, 2, 29)", "make_date(year(dt), month(dt), day(dt))",
    "make_date(1900 + by, 12, by2)",
    *(f"cast({c} AS {t})" for c in ("dt", "ts", "tn", "sd") for t in ("string", "date", "timestamp", "timestamp_ntz")),
    *(f"try_cast({c} AS {t})" for c in ("sd", "ts") for t in ("date", "timestamp", "timestamp_ntz", "string")),
    *(f"cast(ts AS {t})" for t in ("bigint", "int", "smallint", "tinyint")), "cast(i AS timestamp)",
    "cast(l AS timestamp)",
    *(f"{c} {op} INTERVAL {n}" for c in ("dt", "ts", "tn") for op in ("+", "-") for n in (
        "1 DAY", "'1' DAY", "2 DAYS", "1 WEEK", "1 MONTH", "1 YEAR", "13 MONTHS", "1 HOUR", "90 MINUTES",
        "1 DAY 2 HOURS", "30 SECONDS",
        "1 YEAR 1 MONTH", "-1 DAY", "5 MILLISECONDS", "0 DAYS")),
    "INTERVAL 1 DAY + ts", "INTERVAL 1 MONTH + dt", "ts + INTERVAL 1 DAY > ts", "cast(ts AS date) = dt", "ts >= dt",
    "dt = cast(ts AS date)",
    "year(ts) * 100 + month(ts)", "cast(date_format(ts, 'yyyyMM') AS int)", "date_trunc('day', ts) = ts",
    "hour(ts) BETWEEN 1 AND 12",
    "cast(cast(ts AS string) AS timestamp)", "cast(cast(dt AS string) AS date)", "DATE '2020-01-01' + i % 100",
    "coalesce(ts, TIMESTAMP '2020-03-08 02:30:00')",
    "year(dt) = year(ts)", "concat(year(dt), '-', lpad(month(dt), 2, '0'))", "concat(ts, '')", "ts || tn",
]  # fmt: skip
CONTAINERS = [
    "size(ar)", "size(m)", "cardinality(ar)", "cardinality(m)", "array_size(ar)", "ar[0]", "ar[1]", "ar[-1]",
    "ar[i]", "ar[by]", "m['k']", "m['zz']",
    "m[s]", "element_at(ar, 1)", "element_at(ar, -1)", "element_at(m, 'k')", "st.x", "st.in.y", "st.in", "(st).x",
    "st.x + 1", "st['x']",
    "array(1, 2)", "array(i, l)", "array(i, NULL)", "array(s, 'a')[0]", "map('a', 1)", "map('a', i, 'b', l)",
    "map('a', i)['a']",
    "named_struct('p', i, 'q', s)", "named_struct('p', i).p", "struct(i, s)", "array_contains(ar, 1)",
    "array_contains(ar, 8)",
    "size(array(i, i2)) = 2", "array(array(i))", "ar[0] + ar[1]", "IF(size(ar) > 0, ar[0], -1)", "m['k'] IS NULL",
    "array(dt, dt2)", "map(1, 'x')[i]",
    "coalesce(ar[0], 0)", "ar[i2]", "element_at(ar, i2)", "array(named_struct('a', i))", "ar", "st", "m",
]  # fmt: skip
# what is refused although Spark has it: it depends on the version of Java, or nobody needs it
REFUSED = frozenset((
    *(f"{form}({c} AS {t})" for form in ("cast", "try_cast") for c in ("f", "d") for t in (
        "decimal(10,2)", "decimal(38,18)", "decimal(3,1)", "decimal(38,0)", "string")),
    *(f"{form}({c} AS timestamp)" for form in ("cast", "try_cast") for c in ("b", "f", "d", "dec", "d38", "dfr")),
    *(form.format(c) for form in ("-{}", "abs({})", "- -{}", "negative({})") for c in ("d38", "dfr")),
    "cast(i AS void)", "s LIKE concat('a', '%')", "COALESCE(ar, array())", "dec * 100 div 1", "round(d, 2)",
    "concat(d, s)",
    "pow(d, 2)", "exp(d)", "rand()", "uuid()", "hash(i)", "xxhash64(i)", "i & 1", "~i", "i << 1", "array_sort(ar)",
    "explode(ar)",
    "sum(i)", "row_number() OVER (ORDER BY i)", "(SELECT 1)", "s COLLATE UTF8_LCASE", "transform(ar, x -> x + 1)",
    "ts - ts",
    "date_format(ts, 'EEE')", "to_date(s, 'yyyy')", "s RLIKE '(?i)a'", "s RLIKE 'a++'", "s RLIKE 'a$b'",
    "s RLIKE '[a&&b]'",
    r"s RLIKE r'\bx'", "regexp_replace(s, 'a*', 'x')", "regexp_replace(s, '(a)', '$1$1')", "INTERVAL 1 DAY",
    "ar = ar", "st = st",
    "to_json(st)", "s LIKE s2", "nosuch(i)", "i:x", "count(*)", "monotonically_increasing_id()",
    "input_file_name()", "current_user()",
))  # fmt: skip
FAMILIES = {
    name: [text for text in texts if text not in REFUSED]
    for name, texts in {
        "arithmetic": ARITHMETIC, "comparisons": COMPARISONS, "conditionals": CONDITIONALS, "casts": CASTS,
        "texts": TEXTS,
        "dates": DATES, "containers": CONTAINERS,
    }.items()
}  # fmt: skip


def table() -> pa.Table:
    """Every value of every column at least once, next to ever different values of the other columns."""
    columns = {
        name: pa.array([values[row % len(values)] for row in range(ROWS)], kind)
        for name, (_, kind, values) in COLUMNS.items()
    }
    return pa.table(columns)
