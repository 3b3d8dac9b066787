from __future__ import annotations

import pytest

from delta_pyds.errors import OptionError
from delta_pyds.protocol.properties import TableProperties
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    COLUMN_MAPPING_PHYSICAL_NAME,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from delta_pyds.table.definition.statistics_columns import (
    check_statistics_columns,
    parse_columns,
    show_path,
    statistics_columns,
)

INNER = StructType((StructField("x", LONG), StructField("Y", STRING), StructField("z", ArrayType(LONG))))
SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("p", STRING),
        StructField("s", INNER),
        StructField("m", MapType(STRING, INNER)),
        StructField("b", BOOLEAN),
        StructField("d.e", BINARY),
    )
)
ALL = (("id",), ("s", "x"), ("s", "Y"), ("s", "z"), ("m",), ("b",), ("d.e",))


@pytest.mark.parametrize("count", [0, 1, 2, 4, 5, 7, 32])
def test_the_first_leaves_are_counted_through_structs_without_partition_columns(count: int) -> None:
    assert statistics_columns(SCHEMA, TableProperties(num_indexed_columns=count), ["p"]) == ALL[:count]


def test_minus_one_is_all_leaves() -> None:
    wide = StructType(tuple(StructField(f"c{i}", LONG) for i in range(40)))
    assert len(statistics_columns(wide, TableProperties(num_indexed_columns=-1), [])) == 40
    assert len(statistics_columns(wide, TableProperties(), [])) == 32


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", ()),
        ("B , id", (("id",), ("b",))),  # in the table's order and spelling
        ("s", (("s", "x"), ("s", "Y"), ("s", "z"))),
        ("s.y", (("s", "Y"),)),
        ("`d.e`,gone,s.gone,id.gone", (("d.e",),)),
        ("m", (("m",),)),
        ("p", ()),
    ],
)
def test_named_columns_win_over_the_number(text: str, columns: tuple[tuple[str, ...], ...]) -> None:
    properties = TableProperties(stats_columns=text, num_indexed_columns=1)
    assert statistics_columns(SCHEMA, properties, ["p"]) == columns


def test_clustering_columns_always_have_statistics() -> None:
    few = TableProperties(num_indexed_columns=1)
    assert statistics_columns(SCHEMA, few, [], [("b",), ("s", "x"), ("id",)]) == (("id",), ("s", "x"), ("b",))
    named = TableProperties(stats_columns="b")
    assert statistics_columns(SCHEMA, named, [], [("id",)]) == (("b",), ("id",))


def test_clustering_columns_are_given_by_physical_names() -> None:
    inner = StructType((StructField("x", LONG, True, {COLUMN_MAPPING_PHYSICAL_NAME: "c2"}),))
    schema = StructType(
        (
            StructField("id", LONG, True, {COLUMN_MAPPING_PHYSICAL_NAME: "c0"}),
            StructField("s", inner, True, {COLUMN_MAPPING_PHYSICAL_NAME: "c1"}),
        )
    )
    none = TableProperties(num_indexed_columns=0)
    assert statistics_columns(schema, none, [], [("c1", "c2")]) == (("s", "x"),)
    assert statistics_columns(schema, none, [], [("s", "x")]) == ()


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("a", (("a",),)),
        (" a , b.c ", (("a",), ("b", "c"))),
        ("`a,b`.`c``d`, e", (("a,b", "c`d"), ("e",))),
        ("straße.größe", (("straße", "größe"),)),
        ("  ", ()),
    ],
)
def test_lists_of_columns_are_read_with_backticks(text: str, paths: tuple[tuple[str, ...], ...]) -> None:
    assert parse_columns(text) == paths
    assert parse_columns(", ".join(map(show_path, paths))) == paths


@pytest.mark.parametrize("text", [",", "a,", ",a", "a b", "a..b", "a.", "`a", "``", "a,,b"])
def test_what_is_no_list_of_columns_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="list of columns") as error:
        parse_columns(text)
    assert error.value.code == "DELTA_INVALID_TABLE_PROPERTY"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("gone", "DELTA_COLUMN_NOT_FOUND"),
        ("s.gone", "DELTA_COLUMN_NOT_FOUND"),
        ("P", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"),
        ("m", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("`d.e`", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("id,ID", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
        ("s,s.x", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
    ],
)
def test_a_new_table_names_columns_that_can_have_statistics(text: str, code: str) -> None:
    with pytest.raises(OptionError) as error:
        check_statistics_columns(SCHEMA, text, ["p"])
    assert error.value.code == code


def test_columns_that_can_have_statistics_are_accepted() -> None:
    for text in (None, "", "id, s", "s.x, s.z"):
        check_statistics_columns(SCHEMA, text, ["p"])
        # each of them is looked at: one more that is not there is found
        with pytest.raises(OptionError) as error:
            check_statistics_columns(SCHEMA, f"{text}, gone" if text else "gone", ["p"])
        assert (error.value.code, error.value.parameters["column"]) == ("DELTA_COLUMN_NOT_FOUND", "gone")
