"""Statistics as JSON and as a struct say the same, whichever a checkpoint has."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.log.checkpoint_schema import statistics_type
from delta_pyds.log.checkpoint_statistics import StatisticsConverter, to_json
from delta_pyds.protocol.schema import parse_schema

UTC = dt.timezone.utc


def field(name: str, kind: Any, physical: str | None = None) -> dict[str, Any]:
    metadata = {"delta.columnMapping.physicalName": physical} if physical else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def struct_type(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def target(kind: Any, physical: str | None = None) -> pa.StructType:
    """The type of the statistics of a table whose one column is ``c``."""
    return statistics_type(parse_schema(json.dumps(struct_type(field("c", kind, physical)))), (), [("c",)])


def parse(kind: Any, *values: Any) -> list[Any]:
    """Minima in JSON as the struct has them."""
    texts = [None if v is ... else json.dumps({"numRecords": 1, "minValues": {"c": v}}) for v in values]
    rows = StatisticsConverter(target(kind)).to_struct(pa.array(texts, pa.string())).to_pylist()
    return [None if row is None else row["minValues"]["c"] for row in rows]


def write(kind: Any, *values: Any) -> list[Any]:
    """Minima in a struct as their JSON has them, text for text."""
    wanted = target(kind)
    parsed = pa.array([{"numRecords": 1, "minValues": {"c": v}} for v in values], wanted)
    texts = to_json(pa.nulls(len(values), pa.string()), parsed).to_pylist()
    out = []
    for text in texts:
        assert json.loads(text)["numRecords"] == 1
        prefix = '{"numRecords":1,"minValues":{"c":'
        out.append(text[len(prefix) : -2] if text.startswith(prefix) else None)
    return out


@pytest.mark.parametrize(
    ("kind", "in_json", "in_struct"),
    [
        ("long", 2**63 - 1, 2**63 - 1),
        ("byte", -128, -128),
        ("short", 300, 300),
        ("integer", -(2**31), -(2**31)),
        ("double", 0.1, 0.1),
        ("double", 5e-324, 5e-324),
        ("double", 1e22, 1e22),
        ("string", 'a"\\\n\x00\x1fé😀', 'a"\\\n\x00\x1fé😀'),
        ("string", "", ""),
        ("date", "0001-01-01", dt.date(1, 1, 1)),
        ("date", "9999-12-31", dt.date(9999, 12, 31)),
        ("timestamp", "2024-02-29T23:59:59.999Z", dt.datetime(2024, 2, 29, 23, 59, 59, 999000, UTC)),
        ("timestamp", "0001-01-01T00:00:00.000Z", dt.datetime(1, 1, 1, tzinfo=UTC)),
        ("timestamp_ntz", "9999-12-31T23:59:59.999", dt.datetime(9999, 12, 31, 23, 59, 59, 999000)),
    ],
)
def test_values_survive_in_both_directions(kind: str, in_json: Any, in_struct: Any) -> None:
    assert parse(kind, in_json, ..., None) == [in_struct, None, None]
    (text,) = write(kind, in_struct)
    assert json.loads(text) == in_json


def test_floats_and_decimals_are_exact() -> None:
    assert parse("float", 0.7) == [pa.scalar(0.7, pa.float32()).as_py()]
    assert write("float", 0.7) == ["0.7"]
    values = [Decimal("12345678901234567890.1234567891"), Decimal("0.0000000001"), Decimal("-1.5000000000")]
    assert [Decimal(text) for text in write("decimal(38,10)", *values)] == values
    texts = pa.array(
        ['{"numRecords":1,"minValues":{"c":12345678901234567890.1234567891}}', '{"minValues":{"c":1E-10}}']
    )
    rows = StatisticsConverter(target("decimal(38,10)")).to_struct(texts).to_pylist()
    assert [row["minValues"]["c"] for row in rows] == values[:2]


def test_infinities_and_nan_are_strings_in_json_as_the_reference_writes_them() -> None:
    inf = float("inf")
    assert write("double", inf, -inf, float("nan"), 1.5) == ['"Infinity"', '"-Infinity"', '"NaN"', "1.5"]
    plus, minus, nan, plain = parse("double", "Infinity", "-Infinity", "NaN", 1.5)
    assert (plus, minus, plain) == (inf, -inf, 1.5) and nan != nan


def test_timestamps_are_cut_to_milliseconds_towards_the_past() -> None:
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    assert write("timestamp", before) == ['"1969-12-31T23:59:59.999Z"']
    assert write("timestamp", dt.datetime(1960, 1, 1, 0, 0, 0, 1, UTC)) == ['"1960-01-01T00:00:00.000Z"']


def test_years_of_five_digits_are_written_so_that_java_reads_them() -> None:
    wanted = target("timestamp_ntz")
    micros = 253_402_300_800_000_000
    bound = wanted.field("minValues").type
    low = pa.StructArray.from_arrays([pa.array([micros]).cast(pa.timestamp("us"))], fields=list(bound))
    parsed = pa.StructArray.from_arrays([pa.array([1]), low], names=["numRecords", "minValues"])
    (text,) = to_json(pa.nulls(1, pa.string()), parsed).to_pylist()
    assert json.loads(text)["minValues"] == {"c": "+10000-01-01T00:00:00.000"}
    again = StatisticsConverter(wanted).to_struct(pa.array([text]))
    assert again.field(1).field(0).cast(pa.int64()).to_pylist() == [micros]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("byte", 128),
        ("integer", 2**31),
        ("long", 2**63),
        ("long", "1"),
        ("double", "x"),
        ("string", 5),
        ("string", {"a": 1}),
        ("date", "yesterday"),
        ("timestamp", "2024-01-01T00:00:00.000"),
        ("decimal(4,2)", 1.234),
        ("decimal(4,2)", 1000),
    ],
)
def test_what_is_no_value_of_the_type_is_unknown_and_harms_no_other_file(kind: str, value: Any) -> None:
    good = {"byte": 1, "integer": 1, "long": 1, "double": 1.0, "string": "s", "decimal(4,2)": 1}.get(kind)
    assert parse(kind, value, ...) == [None, None]
    if good is not None:
        assert parse(kind, good, value, good) == [good, None, good]


@pytest.mark.parametrize("text", ["null", "[]", "{", "x", '{"numRecords":1}{"numRecords":2}', '{"minValues":[1]}'])
def test_damaged_text_is_unknown(text: str) -> None:
    texts = pa.array(['{"numRecords":3}', text, None, '{"numRecords":4}'])
    rows = StatisticsConverter(target("long")).to_struct(texts).to_pylist()
    assert [row and row["numRecords"] for row in rows] == [3, None, None, 4]


def test_half_a_surrogate_pair_is_unknown() -> None:
    texts = pa.array(
        [r'{"numRecords":1,"minValues":{"c":"\ud800"},"maxValues":{"c":"x"}}', r'{"minValues":{"c":"\ud83d\ude00"}}']
    )
    first, second = StatisticsConverter(target("string")).to_struct(texts).to_pylist()
    assert (first["numRecords"], first["minValues"]["c"], first["maxValues"]["c"]) == (1, None, "x")
    assert second["minValues"]["c"] == "😀"


def test_a_file_without_statistics_has_none_in_either_form() -> None:
    converter = StatisticsConverter(target("long"))
    nulls = pa.nulls(2, pa.string())
    parsed = pa.array([None, {"numRecords": None, "minValues": {"c": None}}], converter.target)
    assert converter.to_struct(nulls).to_pylist() == [None, None]
    assert to_json(nulls, parsed).to_pylist() == [None, None]
    assert to_json(nulls, None).to_pylist() == [None, None]


def test_rows_without_any_member_keep_their_place_in_the_json() -> None:
    wanted = target("long")
    rows = [{"numRecords": 1}, None, {"numRecords": 2, "minValues": {"c": 1}}, {"minValues": {"c": None}}]
    texts = to_json(pa.nulls(4, pa.string()), pa.array(rows, wanted)).to_pylist()
    assert texts == ['{"numRecords":1}', None, '{"numRecords":2,"minValues":{"c":1}}', None]
    assert to_json(pa.nulls(4, pa.string()).slice(1), pa.array(rows, wanted).slice(1)).to_pylist() == texts[1:]


def test_an_own_text_is_kept_letter_by_letter_and_only_missing_ones_are_made() -> None:
    wanted = target("long")
    parsed = pa.array([{"numRecords": 1}, {"numRecords": 2}, None], wanted)
    own = ' {"numRecords" : 1, "extra": [1]} '
    assert to_json(pa.array([own, None, None]), parsed).to_pylist() == [own, '{"numRecords":2}', None]


def test_a_struct_of_nulls_gives_way_to_the_text() -> None:
    converter = StatisticsConverter(target("long"))
    parsed = pa.array([{"numRecords": None}, {"numRecords": 7, "minValues": {"c": 7}}, None], converter.target)
    texts = pa.array(['{"numRecords":1,"minValues":{"c":1}}', '{"numRecords":8}', '{"numRecords":3}'])
    rows = converter.to_struct(texts, parsed).to_pylist()
    assert [(r["numRecords"], (r["minValues"] or {}).get("c")) for r in rows] == [(1, 1), (7, 7), (3, None)]


def test_a_struct_that_lacks_a_column_gives_way_to_the_text() -> None:
    older = pa.struct([("numRecords", pa.int64()), ("minValues", pa.struct([("other", pa.int64())]))])
    parsed = pa.array([{"numRecords": 5}, {"numRecords": 6}], older)
    texts = pa.array(['{"numRecords":5,"minValues":{"c":9}}', None])
    rows = StatisticsConverter(target("long")).to_struct(texts, parsed).to_pylist()
    assert [(r["numRecords"], (r["minValues"] or {}).get("c")) for r in rows] == [(5, 9), (6, None)]


def test_a_struct_of_narrower_types_is_widened() -> None:
    older = pa.struct(
        [
            ("numRecords", pa.int32()),
            ("minValues", pa.struct([("c", pa.int8())])),
            ("maxValues", pa.struct([("c", pa.int16())])),
            ("nullCount", pa.struct([("c", pa.int64())])),
        ]
    )
    parsed = pa.array(
        [{"numRecords": 5, "minValues": {"c": -1}, "maxValues": {"c": 300}, "nullCount": {"c": 0}}], older
    )
    (row,) = StatisticsConverter(target("long")).to_struct(pa.nulls(1, pa.string()), parsed).to_pylist()
    assert row == {
        "numRecords": 5, "minValues": {"c": -1}, "maxValues": {"c": 300}, "nullCount": {"c": 0}, "tightBounds": None,
    }  # fmt: skip


def test_the_struct_has_physical_names_and_leaves_out_partitions_and_types_without_bounds() -> None:
    inner = struct_type(field("x", "integer", "col-x"), field("b", "binary", "col-b"))
    schema = struct_type(
        field("p", "string", "col-p"),
        field("s", inner, "col-s"),
        field("v", "variant", "col-v"),
        field("flag", "boolean", "col-f"),
        field("l", {"type": "array", "elementType": "long", "containsNull": True}, "col-l"),
        field("unwanted", "long", "col-u"),
        field("nothing", "void", "col-n"),
        field("d", "decimal(5,1)", "col.d"),
    )
    columns = [("s", "x"), ("s", "b"), ("v",), ("flag",), ("l",), ("d",), ("p",), ("nothing",)]
    found = statistics_type(parse_schema(json.dumps(schema)), ["p"], columns)
    bounds = pa.struct([("col-s", pa.struct([("col-x", pa.int32())])), ("col.d", pa.decimal128(5, 1))])
    nulls = pa.struct(
        [
            ("col-s", pa.struct([("col-x", pa.int64()), ("col-b", pa.int64())])),
            ("col-v", pa.int64()),
            ("col-f", pa.int64()),
            ("col-l", pa.int64()),
            ("col.d", pa.int64()),
        ]
    )
    assert found == pa.struct(
        [
            ("numRecords", pa.int64()),
            ("minValues", bounds),
            ("maxValues", bounds),
            ("nullCount", nulls),
            ("tightBounds", pa.bool_()),
        ]
    )
    assert statistics_type(parse_schema(json.dumps(schema)), ["p"], [("s",)]).field("minValues").type == pa.struct(
        [bounds.field("col-s")]
    )
    assert statistics_type(parse_schema(json.dumps(schema)), ["p"], []) == pa.struct(
        [("numRecords", pa.int64()), ("tightBounds", pa.bool_())]
    )


def test_nested_names_with_quotes_and_dots_survive() -> None:
    inner = struct_type(field('a"b', "long"), field("c.d", "long"))
    schema = parse_schema(json.dumps(struct_type(field("s", inner))))
    converter = StatisticsConverter(statistics_type(schema, (), [("s",)]))
    text = json.dumps({"numRecords": 1, "minValues": {"s": {'a"b': 1, "c.d": 2}}})
    parsed = converter.to_struct(pa.array([text]))
    (again,) = to_json(pa.nulls(1, pa.string()), parsed).to_pylist()
    assert json.loads(again) == json.loads(text)
