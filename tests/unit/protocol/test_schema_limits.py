"""A schema that another engine wrote is read, or refused with a sentence: never a bare exception, never for ever."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delta_pyds.columnar.schema import arrow_type
from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.schema import (
    MAX_TYPE_DEPTH,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
    change_fields,
    display,
    holds,
    nullable_throughout,
    parse_schema,
    schema_to_string,
    type_to_json,
)

KINDS = ("array", "map", "struct", "udt")


def _nest(kind: str, inner: Any) -> Any:
    if kind == "array":
        return {"type": "array", "elementType": inner, "containsNull": False}
    if kind == "map":
        return {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": False}
    if kind == "udt":
        return {"type": "udt", "sqlType": inner}
    return {"type": "struct", "fields": [{"name": "a", "type": inner, "nullable": False, "metadata": {}}]}


def _schema(kind: str, depth: int) -> str:
    """Text by hand: Python's encoder does not go as deep."""
    before, after = json.dumps(_nest(kind, "HERE")).split('"HERE"')
    column = before * depth + '"string"' + after * depth
    return '{"type":"struct","fields":[{"name":"c","type":' + column + ',"nullable":true,"metadata":{}}]}'


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [MAX_TYPE_DEPTH, 5_000, 50_000])
def test_types_nested_too_deeply_are_refused(kind: str, depth: int) -> None:
    with pytest.raises(ProtocolError) as failure:
        parse_schema(_schema(kind, depth))
    assert failure.value.code == "DELTA_INVALID_SCHEMA"
    assert len(str(failure.value)) < 600


@pytest.mark.parametrize("kind", KINDS)
def test_the_deepest_types_are_read_and_walked(kind: str) -> None:
    schema = parse_schema(_schema(kind, MAX_TYPE_DEPTH - 1))
    assert parse_schema(schema_to_string(schema)) == schema
    assert change_fields(schema, lambda f: f) == schema
    assert display(schema).count("string") >= 1
    assert holds(nullable_throughout(schema), STRING)
    assert arrow_type(schema).num_fields == 1


def test_all_is_nullable_at_every_level() -> None:
    field = StructField("a", ArrayType(StructType((StructField("b", STRING, False),)), False), False)
    expected = StructField("a", ArrayType(StructType((StructField("b", STRING),))))
    assert nullable_throughout(StructType((field,))) == StructType((expected,))


def test_a_key_is_never_null_and_its_fields_may_be() -> None:
    key, value = (StructType((StructField("x", STRING, nullable),)) for nullable in (False, True))
    assert nullable_throughout(MapType(key, key, False)) == MapType(value, value, True)


ODD = {
    "a number": "7",
    "a list": "[]",
    "null": "null",
    "nothing": "",
    "cut": '{"type":"struct","fields":[',
    "a schema of 5,000 lists": "[" * 5_000 + "]" * 5_000,
    "fields are not a list": '{"type":"struct","fields":7}',
    "a field is not an object": '{"type":"struct","fields":[7]}',
    "a type is a number": '{"type":"struct","fields":[{"name":"a","type":7}]}',
    "metadata is a list": '{"type":"struct","fields":[{"name":"a","type":"long","metadata":[1]}]}',
    "metadata is text": '{"type":"struct","fields":[{"name":"a","type":"long","metadata":"x"}]}',
    "digits without end": '{"type":"struct","fields":[{"name":"a","type":"decimal(' + "9" * 5_000 + ',2)"}]}',
    "a name without end": '{"type":"struct","fields":[{"name":"a","type":"' + "x" * 100_000 + '"}]}',
    "half of a surrogate pair": '{"type":"struct","fields":[{"name":"\\ud800","type":"long"}]}',
    "deep metadata": '{"type":"struct","fields":[{"name":"a","type":"long","metadata":{"m":'
    + "[" * 900
    + "]" * 900
    + "}}]}",
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_schema_is_refused_with_a_short_sentence(name: str) -> None:
    with pytest.raises(ProtocolError) as failure:
        parse_schema(ODD[name])
    assert failure.value.code in ("DELTA_INVALID_SCHEMA", "DELTA_UNSUPPORTED_DATA_TYPES")
    assert len(str(failure.value)) < 600


@pytest.mark.parametrize("value", ["x", 2**31, -(2**40), 1.5, True, [1], {}, "9" * 5_000])
def test_a_column_id_is_a_number_of_32_bits(value: object) -> None:
    field = StructField("a", STRING, metadata={"delta.columnMapping.id": value})
    with pytest.raises(ProtocolError, match="columnMapping"):
        _ = field.field_id


@pytest.mark.parametrize(("value", "expected"), [(7, 7), ("7", 7), (None, None), (2**31 - 1, 2**31 - 1)])
def test_column_ids(value: object, expected: int | None) -> None:
    assert StructField("a", STRING, metadata={"delta.columnMapping.id": value}).field_id == expected


def test_a_type_is_written_as_it_was_read() -> None:
    schema = parse_schema(_schema("struct", 5))
    assert json.loads(schema_to_string(schema)) == type_to_json(schema)
