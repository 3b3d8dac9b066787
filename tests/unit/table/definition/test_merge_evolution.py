"""What a merge adds to a table: only what a clause assigns, or covers with ``*``; all else stays as it is."""

from __future__ import annotations

from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.features import lowest_protocol
from delta_pyds.protocol.schema import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    StructField,
    StructType,
    display,
    schema_to_string,
)
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.definition.merge_evolution import merged_schema
from tests.support.scans import struct_of


def table(schema: StructType, *features: str, **configuration: str) -> TableConfiguration:
    metadata = Metadata(
        id="t", schema_string=schema_to_string(schema), partition_columns=["p"], configuration=configuration
    )
    return load_configuration("/t", 3, lowest_protocol({"appendOnly", "invariants", *features}), metadata)


TABLE = StructType((StructField("id", INTEGER, nullable=False), *struct_of(st=struct_of(a=INTEGER), p=INTEGER)))
SOURCE = struct_of(ID=LONG, st=struct_of(A=LONG, b=STRING), new=ArrayType(struct_of(x=INTEGER)), p=LONG)


def test_star_adds_all_that_is_new() -> None:
    schema = merged_schema(table(TABLE), SOURCE, star=True)

    assert display(schema) == "struct<id:int,st:struct<a:int,b:string>,p:int,new:array<struct<x:int>>>"
    assert [field.nullable for field in schema] == [False, True, True, True]


def test_names_add_themselves_alone() -> None:
    def added(*paths: tuple[str, ...]) -> str:
        return display(merged_schema(table(TABLE), SOURCE, star=False, assigned=paths))

    same = display(TABLE)
    assert added() == added(("id",)) == added(("nowhere",)) == added(("st", "a")) == added(("st", "nowhere")) == same
    assert added(("st", "B")) == added(("ST",)) == "struct<id:int,st:struct<a:int,b:string>,p:int>"
    assert added(("new",), ("st", "a")) == "struct<id:int,st:struct<a:int>,p:int,new:array<struct<x:int>>>"
    assert merged_schema(table(TABLE), struct_of(id=STRING, p=STRING), star=True) == TABLE


def test_columns_become_wider_where_the_table_allows_it() -> None:
    widening = table(TABLE, "typeWidening", **{"delta.enableTypeWidening": "true"})

    schema = merged_schema(widening, SOURCE, star=True)

    assert display(schema) == "struct<id:bigint,st:struct<a:bigint,b:string>,p:bigint,new:array<struct<x:int>>>"
    assert merged_schema(widening, struct_of(id=STRING), star=True) == TABLE
