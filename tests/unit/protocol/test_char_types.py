from __future__ import annotations

import pytest

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE, TextLimit, TextLimits, declared_type, text_limits
from delta_pyds.protocol.schema import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)


def declared(data_type: DataType, text: str) -> StructField:
    return StructField("c", data_type, metadata={CHAR_VARCHAR_TYPE: text})


def test_a_plain_column_has_no_limit() -> None:
    assert text_limits(StructField("c", STRING)) is None


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("char(5)", TextLimit(5, True)),
        ("varchar(12)", TextLimit(12, False)),
        ("VARCHAR( 3 )", TextLimit(3, False)),
        ("varchar(3) collate UTF8_LCASE", TextLimit(3, False)),
    ],
)
def test_a_declared_text_has_its_length(text: str, limit: TextLimit) -> None:
    assert text_limits(declared(STRING, text)) == limit


def test_limits_stand_where_the_types_stand() -> None:
    kind = StructType(
        (
            StructField("a", STRING),
            StructField("odd:name,<>", ArrayType(STRING)),
            StructField("d", DecimalType(10, 2)),
            StructField("m", MapType(STRING, StructType((StructField("x", STRING), StructField("i", INTEGER))))),
        )
    )
    text = "struct<a:string,odd:name,<>:array<varchar(3)>,d:decimal(10,2),m:map<char(2),struct<x:varchar(4),i:int>>>"
    assert text_limits(declared(kind, text)) == TextLimits(
        (
            None,
            TextLimits((TextLimit(3, False),)),
            None,
            TextLimits((TextLimit(2, True), TextLimits((TextLimit(4, False), None)))),
        )
    )


def test_quoted_names_are_names() -> None:
    kind = StructType((StructField("a b", STRING),))
    assert text_limits(declared(kind, "struct<`a b`:char(1)>")) == TextLimits((TextLimit(1, True),))


def test_a_nested_field_can_carry_its_own_length() -> None:
    kind = StructType((StructField("x", INTEGER), declared(STRING, "varchar(2)")))
    assert text_limits(StructField("s", kind)) == TextLimits((None, TextLimit(2, False)))
    assert text_limits(StructField("a", ArrayType(kind))) == TextLimits((TextLimits((None, TextLimit(2, False))),))


def test_a_declared_type_without_texts_limits_nothing() -> None:
    assert text_limits(declared(ArrayType(INTEGER), "array<int>")) is None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (STRING, "varchar"),
        (STRING, "varchar(3) and more"),
        (INTEGER, "varchar(3)"),
        (STRING, "array<varchar(3)>"),
        (ArrayType(STRING), "varchar(3)"),
        (ArrayType(STRING), "array<varchar(3)"),
        (StructType((StructField("a", STRING),)), "struct<b:varchar(3)>"),
        (MapType(STRING, STRING), "map<varchar(3)>"),
    ],
)
def test_a_declaration_that_is_not_the_columns_type_is_refused(kind: DataType, text: str) -> None:
    with pytest.raises(ProtocolError, match=r"declared type .* of the column 'c' does not match"):
        text_limits(declared(kind, text))


@pytest.mark.parametrize(
    "text",
    [
        "struct<x:varchar(3),`a b`:int,`q``<`:array<char(2)>,m:map<varchar(2),struct<z:decimal(10,2),v:bigint>>>",
        "struct<x:varchar(3) collate U,`a b`:int,`q``<`:array<string>,m:map<string,struct<z:decimal(10,2),v:bigint>>>",
    ],
)
def test_a_declared_type_is_written_as_it_was_read(text: str) -> None:
    value = StructType((StructField("z", DecimalType(10, 2)), StructField("v", LONG)))
    kind = StructType(
        (
            StructField("x", STRING),
            StructField("a b", INTEGER),
            StructField("q`<", ArrayType(STRING)),
            StructField("m", MapType(STRING, value)),
        )
    )
    assert declared_type(kind, text_limits(declared(kind, text))) == text
