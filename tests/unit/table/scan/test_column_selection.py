from __future__ import annotations

import pytest

from delta_pyds.errors import ColumnNotFoundError, OptionError, UserError
from delta_pyds.protocol.schema import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from delta_pyds.table.scan.column_selection import match_user_schema, parse_column_list, select_columns

INNER = StructType((StructField("x", LONG), StructField("y", STRING), StructField("Z", INTEGER, nullable=False)))
SCHEMA = StructType(
    (
        StructField("id", LONG, nullable=False),
        StructField("s", INNER),
        StructField("a.b", STRING),
        StructField("list", ArrayType(INNER)),
        StructField("map", MapType(STRING, LONG)),
    )
)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("a", [("a",)]),
        (" a , b.c ", [("a",), ("b", "c")]),
        ("`a.b`,c", [("a.b",), ("c",)]),
        ("s.`x``y`", [("s", "x`y")]),
        ("`a,b` ", [("a,b",)]),
    ],
)
def test_column_lists_are_read_like_spark_names(text: str, paths: list[tuple[str, ...]]) -> None:
    assert parse_column_list(text) == tuple(paths)


@pytest.mark.parametrize("text", ["", "a,,b", "a.", "`a", ","])
def test_a_malformed_column_list_is_refused(text: str) -> None:
    with pytest.raises(OptionError) as error:
        parse_column_list(text)
    assert error.value.code == "DELTA_ILLEGAL_OPTION"


def test_columns_keep_the_asked_order_and_the_tables_spelling() -> None:
    assert select_columns(SCHEMA, [("S",), ("ID",)], "t").names == ("s", "id")


def test_several_fields_of_one_struct_become_one_column_in_table_order() -> None:
    chosen = select_columns(SCHEMA, [("s", "z"), ("s", "x")], "t")
    assert chosen.names == ("s",)
    inner = chosen.fields[0].data_type
    assert isinstance(inner, StructType)
    assert inner.names == ("x", "Z")


def test_a_whole_struct_wins_over_one_of_its_fields() -> None:
    assert select_columns(SCHEMA, [("s", "x"), ("s",)], "t").fields[0] == SCHEMA.fields[1]


@pytest.mark.parametrize("path", [("nope",), ("s", "nope"), ("id", "x"), ("list", "x"), ("a", "b")])
def test_an_unknown_column_is_named(path: tuple[str, ...]) -> None:
    with pytest.raises(ColumnNotFoundError, match=path[-1]) as error:
        select_columns(SCHEMA, [path], "some/table")
    assert "some/table" in str(error.value)


def test_a_user_schema_renames_by_case_and_keeps_the_physical_name() -> None:
    asked = StructType((StructField("S", StructType((StructField("Y", STRING),))), StructField("ID", LONG)))
    chosen = match_user_schema(SCHEMA, asked, "t")
    assert chosen.names == ("S", "ID")
    assert [f.physical_name for f in chosen] == ["s", "id"]
    assert chosen.fields[1].nullable


@pytest.mark.parametrize(
    "asked",
    [
        StructField("id", STRING),
        StructField("s", StructType((StructField("x", INTEGER),))),
        StructField("list", ArrayType(STRING)),
        StructField("map", MapType(STRING, LONG, False)),
        StructField("a.b", STRING, nullable=False),
    ],
)
def test_a_user_schema_with_another_type_or_nullability_is_refused(asked: StructField) -> None:
    with pytest.raises(UserError) as error:
        match_user_schema(SCHEMA, StructType((asked,)), "t")
    assert error.value.code == "DELTA_READ_SCHEMA_CONFLICT"


def test_a_user_schema_with_an_unknown_column_is_refused() -> None:
    with pytest.raises(ColumnNotFoundError):
        match_user_schema(SCHEMA, StructType((StructField("other", LONG),)), "t")
