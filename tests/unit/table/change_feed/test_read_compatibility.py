"""Which rows can be read under which schema. Protocol: "Column Mapping", "Type Widening"."""

from __future__ import annotations

from typing import Any

import pytest

from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.schema import (
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    schema_to_string,
)
from delta_pyds.table.change_feed.read_compatibility import incompatibility, table_incompatibility
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from tests.support.scans import struct


def mapped(name: str, data_type: DataType, physical: str, field_id: int = 1) -> StructField:
    metadata = {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": field_id}
    return StructField(name, data_type, True, metadata)


NESTINGS = [
    lambda t: struct(("c", t)),
    lambda t: struct(("s", struct(("c", t)))),
    lambda t: struct(("a", ArrayType(struct(("c", t))))),
    lambda t: struct(("m", MapType(STRING, ArrayType(t)))),
    lambda t: struct(("m", MapType(t, LONG))),
]


@pytest.mark.parametrize("nested", NESTINGS)
def test_a_schema_holds_its_own_rows(nested: Any) -> None:
    assert incompatibility(nested(LONG), nested(LONG), widening=False) is None


@pytest.mark.parametrize("nested", NESTINGS)
def test_another_type_does_not(nested: Any) -> None:
    found = incompatibility(nested(LONG), nested(STRING), widening=True)
    assert found is not None and "bigint" in found and "string" in found


@pytest.mark.parametrize("nested", NESTINGS)
def test_a_wider_type_does_where_the_table_may_widen(nested: Any) -> None:
    assert incompatibility(nested(INTEGER), nested(LONG), widening=True) is None
    assert incompatibility(nested(INTEGER), nested(LONG), widening=False) is not None
    assert incompatibility(nested(LONG), nested(INTEGER), widening=True) is not None


@pytest.mark.parametrize(
    ("data", "read"), [(INTEGER, DOUBLE), (DATE, TIMESTAMP_NTZ), (DecimalType(5, 2), DecimalType(7, 3))]
)
def test_types_that_widening_knows(data: DataType, read: DataType) -> None:
    assert incompatibility(struct(("c", data)), struct(("c", read)), widening=True) is None


def test_a_column_of_nothing_may_become_anything() -> None:
    assert incompatibility(struct(("c", VOID)), struct(("c", LONG)), widening=False) is None


@pytest.mark.parametrize("inside", [lambda s: s, lambda s: struct(("o", s)), lambda s: struct(("o", ArrayType(s)))])
def test_columns_may_come_and_not_go(inside: Any) -> None:
    one, two = inside(struct(("a", LONG))), inside(struct(("a", LONG), ("b", LONG)))
    assert incompatibility(one, two, widening=False) is None
    found = incompatibility(two, one, widening=False)
    assert found is not None and "b'" in found and "dropped" in found


def test_a_column_that_comes_must_be_nullable() -> None:
    found = incompatibility(struct(), struct(StructField("b", LONG, nullable=False)), widening=False)
    assert found is not None and "'b'" in found


@pytest.mark.parametrize(
    ("strict", "loose"),
    [
        (struct(StructField("c", LONG, nullable=False)), struct(("c", LONG))),
        (struct(("c", ArrayType(LONG, False))), struct(("c", ArrayType(LONG, True)))),
        (struct(("c", MapType(LONG, LONG, False))), struct(("c", MapType(LONG, LONG, True)))),
        (struct(("c", struct(StructField("d", LONG, nullable=False)))), struct(("c", struct(("d", LONG))))),
    ],
)
def test_nulls_may_be_allowed_later_and_not_forbidden(strict: StructType, loose: StructType) -> None:
    assert incompatibility(strict, loose, widening=False) is None
    found = incompatibility(loose, strict, widening=False)
    assert found is not None and "'c" in found


def test_the_order_of_columns_says_nothing() -> None:
    assert (
        incompatibility(struct(("a", LONG), ("b", STRING)), struct(("b", STRING), ("a", LONG)), widening=False) is None
    )


def test_a_name_in_another_case_is_another_name() -> None:
    assert incompatibility(struct(("a", LONG)), struct(("A", LONG)), widening=False) is not None


def test_columns_are_the_same_by_physical_name() -> None:
    old, new = struct(mapped("a", LONG, "p1")), struct(mapped("b", LONG, "p1"))
    assert incompatibility(old, old, widening=False) is None
    renamed = incompatibility(old, new, widening=False)
    assert renamed is not None and "renamed to 'b'" in renamed
    again = incompatibility(old, struct(mapped("a", LONG, "p2", 2)), widening=False)
    assert again is not None and "dropped and another one" in again
    other_id = incompatibility(old, struct(mapped("a", LONG, "p1", 2)), widening=False)
    assert other_id is not None and "id" in other_id


def test_a_table_that_got_column_mapping_holds_its_older_rows() -> None:
    assert incompatibility(struct(("a", LONG)), struct(mapped("a", LONG, "a")), widening=False) is None


# --- of two versions


def configuration(
    schema: StructType, partition_columns: list[str] | None = None, mode: str = "none", features: tuple[str, ...] = ()
) -> TableConfiguration:
    named = [*features, *(["columnMapping"] if mode != "none" else [])]
    metadata = Metadata(
        schema_string=schema_to_string(schema),
        partition_columns=partition_columns,
        configuration={"delta.columnMapping.mode": mode},
    )
    return load_configuration("/t", 1, Protocol(3, 7, named, named), metadata)


def test_widening_is_the_read_tables_to_allow() -> None:
    narrow, wide = struct(("c", INTEGER)), struct(("c", LONG))
    allowed = configuration(wide, features=("typeWidening",))
    assert table_incompatibility(configuration(narrow), allowed) is None
    assert table_incompatibility(configuration(narrow), configuration(wide)) is not None


def test_integers_that_early_writers_made_decimals_of_few_digits() -> None:
    for source, target in ((BYTE, DecimalType(4, 1)), (SHORT, DecimalType(5, 0)), (LONG, DecimalType(19, 0))):
        allowed = configuration(struct(("c", target)), features=("typeWidening",))
        assert table_incompatibility(configuration(struct(("c", source))), allowed) is None
        less = configuration(struct(("c", DecimalType(target.precision - 1, target.scale))), features=("typeWidening",))
        assert table_incompatibility(configuration(struct(("c", source))), less) is not None


def test_partitioning_must_be_the_same_in_any_order() -> None:
    schema = struct(("a", LONG), ("b", LONG), ("c", LONG))
    both, turned = configuration(schema, ["a", "b"]), configuration(schema, ["b", "a"])
    assert table_incompatibility(both, turned) is None
    found = table_incompatibility(both, configuration(schema, ["a"]))
    assert found is not None and "a, b" in found
    assert table_incompatibility(configuration(schema), both) is not None


def test_files_without_ids_are_not_read_by_ids() -> None:
    plain, ids = configuration(struct(("a", LONG))), configuration(struct(mapped("a", LONG, "a")), mode="id")
    names = configuration(struct(mapped("a", LONG, "a")), mode="name")
    assert table_incompatibility(plain, ids) is not None
    assert table_incompatibility(plain, names) is None
    assert table_incompatibility(ids, ids) is None
