"""Statistics that nobody sane would write: unknown in bounded time, and no harm to those of other files."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.statistics_json import StatisticsReader

KINDS = {
    "long": pa.int64(), "double": pa.float64(), "decimal": pa.decimal128(10, 2), "wide": pa.decimal128(38, 10),
    "string": pa.string(), "boolean": pa.bool_(),
}  # fmt: skip
SANE = {
    "long": ("7", 7), "double": ("7.5", 7.5), "decimal": ("7.5", Decimal("7.50")), "wide": ("7.5", Decimal("7.5")),
    "string": ('"7"', "7"), "boolean": ("true", True),
}  # fmt: skip
ABSURD = [
    "1e999999999", "-1e999999999", "1e99999999999999999999", "1e-99999999999999999999", "1" * 5000,
    '"\\ud800"', "[]", "{}",
    "[" * 900 + "]" * 900, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000, "9" * 30 + "e30",
]  # fmt: skip


def read(texts: list[Any], kind: str) -> list[Any]:
    wanted = pa.struct([("numRecords", pa.int64()), ("minValues", pa.struct([("c", KINDS[kind])]))])
    rows = StatisticsReader(wanted).read(pa.array(texts, pa.binary()).cast(pa.string(), safe=False)).to_pylist()
    return [None if row is None or row["minValues"] is None else row["minValues"]["c"] for row in rows]


@pytest.mark.parametrize("absurd", ABSURD, ids=lambda text: text[:12])
@pytest.mark.parametrize("kind", KINDS)
def test_an_absurd_bound_is_unknown_and_others_are_known(kind: str, absurd: str) -> None:
    text, value = SANE[kind]
    texts = [f'{{"numRecords":1,"minValues":{{"c":{bound}}}}}'.encode() for bound in (text, absurd, text)]
    found = read(texts, kind)
    # what is a number of the type, however it is spelled, is known
    double = kind == "double" and absurd in ("1e-99999999999999999999", "9" * 30 + "e30")
    assert found[0] == found[2] == value and (found[1] is None or double)


@pytest.mark.parametrize("absurd", [*ABSURD, '"\xff'], ids=lambda text: text[:12])
def test_what_is_not_asked_for_may_be_absurd(absurd: str) -> None:
    odd = f'{{"other":{absurd},"minValues":{{"c":7}}}}'.encode("latin-1")
    rows = read([b'{"minValues":{"c":7}}', odd, None], "long")
    assert rows[0] == 7 and rows[1] in (7, None) and rows[2] is None


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("long", "1e2", 100), ("long", "1.5", None), ("long", '"1"', None), ("long", "9223372036854775808", None),
        ("long", "true", None), ("long", "NaN", None), ("long", "Infinity", None), ("long", "0e999999999", None),
        ("double", '"Infinity"', float("inf")), ("double", "1e400", None), ("double", "[1]", None),
        ("decimal", "NaN", None), ("decimal", '"NaN"', None), ("decimal", '"sNaN"', None),
        ("decimal", "Infinity", None),
        ("decimal", "123456789.5", None), ("decimal", '"1e999999999"', None), ("wide", "1e-999999999", None),
    ],
)  # fmt: skip
def test_numbers_spelled_in_odd_ways(kind: str, text: str, value: Any) -> None:
    assert read([f'{{"minValues":{{"c":{text}}}}}'.encode()], kind) == [value]
