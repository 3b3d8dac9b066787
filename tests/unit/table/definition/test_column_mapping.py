from __future__ import annotations

import re

import pytest

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_ID,
    COLUMN_MAPPING_PHYSICAL_NAME,
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_pyds.protocol.schema import COLUMN_MAPPING_NESTED_IDS as NESTED_IDS
from delta_pyds.table.definition.column_mapping import assign_columns, check_columns, keep_mapping, max_column_id
from tests.support.scans import struct_of


def mapped(name: str, number: int, physical: str, data_type: DataType = LONG) -> StructField:
    return StructField(name, data_type, True, {COLUMN_MAPPING_ID: number, COLUMN_MAPPING_PHYSICAL_NAME: physical})


def test_fields_are_numbered_before_those_inside_them() -> None:
    schema, max_id = assign_columns(struct_of(a=LONG, s=struct_of(x=LONG, y=ArrayType(struct_of(z=LONG))), b=LONG), 0)
    a, s, b = schema
    assert isinstance(s.data_type, StructType)
    x, y = s.data_type
    assert isinstance(y.data_type, ArrayType)
    assert isinstance(y.data_type.element_type, StructType)
    [z] = y.data_type.element_type
    assert [f.field_id for f in (a, s, x, y, z, b)] == [1, 2, 3, 4, 5, 6]
    assert max_id == 6
    assert all(re.fullmatch(r"col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", f.physical_name) for f in (a, x, z))


def test_what_a_field_has_stays_and_new_ids_are_above_all_that_ever_were() -> None:
    schema = StructType((mapped("a", 3, "old"), StructField("b", LONG)))
    assigned, max_id = assign_columns(schema, 9)
    assert assigned.fields[0] == schema.fields[0]
    assert assigned.fields[0].metadata == schema.fields[0].metadata
    assert (assigned.fields[1].field_id, max_id) == (10, 10)
    assert assign_columns(assigned, max_id) == (assigned, max_id)
    # a property that lags behind the schema does not lead to an id that is taken
    assert assign_columns(schema, 0)[1] == 4


def test_elements_keys_and_values_get_ids_after_all_fields() -> None:
    schema = struct_of(
        col1=ArrayType(ArrayType(INTEGER)),
        col2=MapType(INTEGER, ArrayType(INTEGER)),
        col3=MapType(INTEGER, struct_of(subcol1=ArrayType(INTEGER))),
        col4=LONG,
    )
    assigned, max_id = assign_columns(schema, 0, nested_ids=True)
    one, two, three, four = assigned
    p1, p2, p3 = one.physical_name, two.physical_name, three.physical_name
    assert one.metadata[NESTED_IDS] == {f"{p1}.element": 6, f"{p1}.element.element": 7}
    assert two.metadata[NESTED_IDS] == {f"{p2}.key": 8, f"{p2}.value": 9, f"{p2}.value.element": 10}
    assert set(three.metadata[NESTED_IDS]) == {f"{p3}.key", f"{p3}.value"}
    assert four.metadata[NESTED_IDS] == {}
    assert isinstance(three.data_type, MapType)
    assert isinstance(three.data_type.value_type, StructType)
    [inner] = three.data_type.value_type
    assert set(inner.metadata[NESTED_IDS]) == {f"{inner.physical_name}.element"}
    assert max_id == max_column_id(assigned) == 13
    assert assign_columns(assigned, max_id, nested_ids=True) == (assigned, max_id)


@pytest.mark.parametrize(
    ("schema", "max_id", "code"),
    [
        ((mapped("a", 1, "x"), mapped("b", 1, "y")), 2, "DELTA_DUPLICATED_COLUMN_ID"),
        ((mapped("a", 1, "x"), mapped("b", 2, "x")), 2, "DELTA_DUPLICATED_PHYSICAL_NAME"),
        ((mapped("a", 1, "x"), mapped("b", 3, "y")), 2, "DELTA_COLUMN_MAPPING_MAX_COLUMN_ID_NOT_SET_CORRECTLY"),
        (
            (mapped("a", 1, "x", StructType((mapped("i", 1, "y"),))),),
            2,
            "DELTA_DUPLICATED_COLUMN_ID",
        ),
        (
            (StructField("a", ArrayType(LONG), True, {COLUMN_MAPPING_ID: 1, NESTED_IDS: {"a.element": 1}}),),
            2,
            "DELTA_DUPLICATED_COLUMN_ID",
        ),
    ],
)
def test_a_broken_mapping_is_refused(schema: tuple[StructField, ...], max_id: int, code: str) -> None:
    with pytest.raises(ProtocolError) as error:
        check_columns(StructType(schema), max_id)
    assert error.value.code == code


def test_equal_physical_names_in_different_structs_are_no_conflict() -> None:
    inner = StructType((mapped("x", 2, "c"),))
    check_columns(StructType((mapped("c", 1, "c", inner), mapped("d", 3, "d"))), 3)
    for one_struct in (
        (mapped("c", 1, "c", inner), mapped("d", 3, "c")),
        (mapped("c", 1, "c", StructType((mapped("x", 2, "x"), mapped("y", 3, "x")))),),
    ):
        with pytest.raises(ProtocolError) as error:
            check_columns(StructType(one_struct), 3)
        assert error.value.code == "DELTA_DUPLICATED_PHYSICAL_NAME"


def test_columns_of_the_same_name_and_type_keep_their_mapping() -> None:
    inner = StructType((mapped("x", 3, "c3"), mapped("y", 4, "c4", STRING)))
    existing = StructType((mapped("a", 1, "c1"), mapped("S", 2, "c2", inner), mapped("b", 5, "c5")))
    new = StructType(
        (
            StructField("A", LONG, False),
            StructField("b", STRING),
            StructField("s", struct_of(x=LONG, y=LONG)),
            StructField("c", LONG),
        )
    )
    a, b, s, c = keep_mapping(new, existing)
    assert (a.name, a.field_id, a.physical_name, a.nullable) == ("A", 1, "c1", False)
    assert b.field_id is None  # another type is another column
    assert s.field_id is None  # so is a struct with a field of another type
    assert isinstance(s.data_type, StructType)
    assert [f.field_id for f in s.data_type] == [3, None]
    assert c.field_id is None
    kept_b = keep_mapping(new, existing, any_type=True).fields[1]
    assert (kept_b.field_id, kept_b.data_type) == (5, STRING)


def test_nullability_does_not_make_another_type() -> None:
    old = StructType((StructField("a", LONG, False),))
    existing = StructType((mapped("s", 1, "c1", ArrayType(old, False)),))
    [s] = keep_mapping(struct_of(s=ArrayType(struct_of(a=LONG))), existing)
    assert (s.field_id, s.data_type) == (1, ArrayType(struct_of(a=LONG)))
