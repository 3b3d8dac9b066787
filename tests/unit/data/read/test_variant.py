from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.errors import CorruptDataFileError, DeltaError, SchemaMismatchError, UnsupportedFeatureError
from delta_pyds.protocol.schema import STRING, VARIANT, ArrayType, DataType, MapType
from tests.support.scans import scan, state_of, struct, write
from tests.support.variants import decode, encode, metadata, shredded_array

ONE = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}


def _read(tmp_path: Path, array: pa.Array, data_type: DataType = VARIANT) -> list[Any]:
    return (
        scan(state_of(tmp_path, struct(("v", data_type))), write(tmp_path / "part-2", pa.table({"v": array})))
        .column("v")
        .to_pylist()
    )


def _group(rows: list[Any], *fields: tuple[str, pa.DataType]) -> pa.Array:
    return pa.array(rows, pa.struct([pa.field(n, t) for n, t in fields]))


BINARIES = (("metadata", pa.binary()), ("value", pa.binary()))


def test_plain_variants_in_either_order_and_anywhere(tmp_path: Path) -> None:
    assert _read(tmp_path, _group([ONE, None], *BINARIES)) == [ONE, None]
    assert _read(tmp_path, _group([ONE, None], *reversed(BINARIES))) == [ONE, None]
    group = pa.struct([pa.field(n, t) for n, t in BINARIES])
    assert _read(tmp_path, pa.array([[ONE, None], None], pa.list_(group)), ArrayType(VARIANT)) == [[ONE, None], None]
    in_map = pa.array([[("k", ONE), ("n", None)]], pa.map_(pa.string(), group))
    assert _read(tmp_path, in_map, MapType(STRING, VARIANT)) == [[("k", ONE), ("n", None)]]


def test_value_that_is_missing_where_one_has_to_be_is_the_variant_null(tmp_path: Path) -> None:
    row = {"metadata": b"\x01\x00\x00", "value": None}
    assert _read(tmp_path, _group([row, None], *BINARIES)) == [row | {"value": b"\x00"}, None]
    shredded = _group([row | {"typed_value": None}], *BINARIES, ("typed_value", pa.int64()))
    assert _read(tmp_path, shredded) == [row | {"value": b"\x00"}]


SHREDDED: list[tuple[pa.DataType, Any, Any]] = [
    (pa.bool_(), True, True),
    (pa.int8(), -128, -128),
    (pa.int16(), -32768, -32768),
    (pa.int32(), -(2**31), -(2**31)),
    (pa.int64(), 2**63 - 1, 2**63 - 1),
    (pa.float32(), 0.5, 0.5),
    (pa.float64(), 0.1, 0.1),
    (pa.string(), "short", "short"),
    (pa.string(), "ü" * 40, "ü" * 40),
    (pa.binary(), b"\x00\xff", b"\x00\xff"),
    (pa.date32(), dt.date(1, 1, 1), (11, -719162)),
    (pa.timestamp("us", tz="UTC"), dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.timezone.utc), (12, 1_000_000)),
    (pa.timestamp("us"), dt.datetime(9999, 1, 1), (13, 253_370_764_800_000_000)),
    (pa.time64("us"), dt.time(0, 0, 1), (17, 1_000_000)),
    (pa.decimal128(9, 2), Decimal("-1.23"), Decimal("-1.23")),
    (pa.decimal128(18, 0), Decimal(10**17), Decimal(10**17)),
    (
        pa.decimal128(38, 3),
        Decimal("-12345678901234567890123456789.012"),
        Decimal("-12345678901234567890123456789.012"),
    ),
    (pa.binary(16), b"0123456789abcdef", (20, b"0123456789abcdef")),
]


@pytest.mark.parametrize(("data_type", "value", "expected"), SHREDDED, ids=lambda v: str(v)[:30])
def test_shredded_values_of_every_type(tmp_path: Path, data_type: pa.DataType, value: Any, expected: Any) -> None:
    row = {"metadata": metadata([]), "value": None}
    rows = [row | {"typed_value": value}, None, row | {"value": encode("x", []), "typed_value": None}]
    got = _read(tmp_path, _group(rows, *BINARIES, ("typed_value", data_type)))
    assert got[1] is None
    assert [decode(r["value"], r["metadata"]) for r in (got[0], got[2])] == [expected, "x"]


def test_large_objects_and_arrays(tmp_path: Path) -> None:
    keys = [f"key{i:05}" for i in range(700)]
    value = {k: [k * 30] * 3 for k in keys}
    (got,) = _read(tmp_path, shredded_array([value], {k: [pa.string()] for k in keys}))
    assert decode(got["value"], got["metadata"]) == value
    numbers = list(range(70_000))
    (got,) = _read(tmp_path, shredded_array([numbers], [pa.int64()]))
    assert decode(got["value"], got["metadata"]) == numbers


def test_shredded_variants_inside_lists(tmp_path: Path) -> None:
    inner = shredded_array([{"a": 1, "b": "x"}, 5, {"a": "no number"}], {"a": pa.int64()})
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), inner)
    got = [[decode(v["value"], v["metadata"]) for v in row] for row in _read(tmp_path, lists, ArrayType(VARIANT))]
    assert got == [[{"a": 1, "b": "x"}, 5], [], [{"a": "no number"}]]


def test_variant_without_the_plain_value_column(tmp_path: Path) -> None:
    rows = [{"metadata": metadata([]), "typed_value": 5}, {"metadata": metadata([]), "typed_value": None}]
    got = _read(tmp_path, _group(rows, ("metadata", pa.binary()), ("typed_value", pa.int64())))
    assert [decode(r["value"], r["metadata"]) for r in got] == [5, None]


@pytest.mark.parametrize(
    "data_type", [pa.uint8(), pa.binary(5), pa.map_(pa.string(), pa.string()), pa.timestamp("ms")], ids=str
)
def test_shredding_into_a_type_that_variants_do_not_have_is_refused(tmp_path: Path, data_type: pa.DataType) -> None:
    rows = [{"metadata": metadata([]), "value": b"\x00", "typed_value": None}]
    with pytest.raises(UnsupportedFeatureError, match="part-2") as caught:
        _read(tmp_path, _group(rows, *BINARIES, ("typed_value", data_type)))
    assert caught.value.parameters["feature"] == "variantShredding"


def test_group_that_is_no_variant_is_refused(tmp_path: Path) -> None:
    for array in (
        pa.array([{"a": 1}]),
        pa.array([{"metadata": b""}]),
        pa.array([1]),
        pa.array([{"metadata": 1, "value": 2}]),
    ):
        with pytest.raises(SchemaMismatchError, match="part-2"):
            _read(tmp_path, array)


def _object(name: str, value: bytes | None, rest: bytes | None, keys: list[str]) -> pa.Array:
    inner = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
    row = {"metadata": metadata(keys), "value": rest, "typed_value": {name: {"value": value, "typed_value": None}}}
    return _group([row], *BINARIES, ("typed_value", pa.struct([(name, inner)])))


def test_contradictions_and_damage_are_refused(tmp_path: Path) -> None:
    both = {"metadata": metadata([]), "value": b"\x00", "typed_value": 5}
    null = encode(None, [])
    cases = [
        _group([both], *BINARIES, ("typed_value", pa.int64())),
        _object("a", null, encode({"a": 1}, ["a"]), ["a"]),
        _object("a", null, encode(7, []), ["a"]),
        _object("a", null, None, ["b"]),
        _object("a", null, encode({"b": 1, "c": 2}, ["b", "c"])[:9], ["a", "b", "c"]),
        _object("a", null, encode({"b": 1}, ["", "", "", "b"]), ["a", "b"]),
        _group([both | {"metadata": b"\x02"}], *BINARIES, ("typed_value", pa.int64())),
        _group([both | {"metadata": None}], *BINARIES, ("typed_value", pa.int64())),
        _group([both | {"metadata": metadata(["abc"])[:-1]}], *BINARIES, ("typed_value", pa.int64())),
    ]
    for array in cases:
        with pytest.raises(DeltaError, match="part-2") as caught:
            _read(tmp_path, array)
        assert isinstance(caught.value, CorruptDataFileError)
        assert caught.value.code == "MALFORMED_VARIANT"
