from __future__ import annotations

import itertools

import pytest

from delta_pyds.protocol.schema import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TYPE_CHANGES,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    display,
)
from delta_pyds.protocol.type_changes import can_widen, is_checked_narrowing, is_lossless, record_type_changes

D = DecimalType
LOSSLESS = {
    (BYTE, SHORT), (BYTE, INTEGER), (BYTE, LONG), (SHORT, INTEGER), (SHORT, LONG), (INTEGER, LONG),
    (BYTE, FLOAT), (SHORT, FLOAT), (BYTE, DOUBLE), (SHORT, DOUBLE), (INTEGER, DOUBLE), (FLOAT, DOUBLE),
    (BYTE, D(10, 0)), (SHORT, D(10, 0)), (INTEGER, D(10, 0)), (BYTE, D(12, 7)), (SHORT, D(12, 7)),
    (BYTE, D(19, 0)), (SHORT, D(19, 0)), (INTEGER, D(19, 0)), (LONG, D(19, 0)), (D(10, 0), D(19, 0)),
}  # fmt: skip
ATOMS: list[DataType] = [
    BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ, D(10, 0), D(12, 7), D(19, 0),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(ATOMS, 2)), ids=display)
def test_exactly_these_types_hold_all_values_of_another(source: DataType, target: DataType) -> None:
    assert is_lossless(source, target) == ((source, target) in LOSSLESS)


@pytest.mark.parametrize("target", ATOMS, ids=display)
def test_every_type_holds_its_own_values_and_null(target: DataType) -> None:
    assert is_lossless(target, target)
    assert is_lossless(VOID, target)
    assert not is_lossless(target, VOID)


@pytest.mark.parametrize(
    ("source", "target", "lossless"),
    [
        (D(5, 2), D(6, 3), True),
        (D(5, 2), D(5, 3), False),  # one digit less before the point
        (D(5, 2), D(7, 1), False),
        (D(5, 2), D(38, 2), True),
        (LONG, D(20, 1), True),
        (LONG, D(19, 1), False),
        (ArrayType(INTEGER), ArrayType(LONG), False),
    ],
)
def test_decimals_keep_the_digits_on_both_sides_of_the_point(
    source: DataType, target: DataType, lossless: bool
) -> None:
    assert is_lossless(source, target) == lossless


def test_only_integers_that_parquet_stores_alike_may_be_narrowed_with_a_check() -> None:
    small = [BYTE, SHORT, INTEGER]
    for source, target in itertools.product(ATOMS, repeat=2):
        assert is_checked_narrowing(source, target) == (source in small and target in small)


@pytest.mark.parametrize(
    ("source", "target", "widens", "for_iceberg"),
    [
        (BYTE, SHORT, True, True),
        (INTEGER, LONG, True, True),
        (LONG, INTEGER, False, False),
        (FLOAT, DOUBLE, True, True),
        (INTEGER, DOUBLE, True, False),
        (LONG, DOUBLE, False, False),
        (BYTE, FLOAT, False, False),
        (DATE, TIMESTAMP_NTZ, True, False),
        (DATE, TIMESTAMP, False, False),
        (D(6, 2), D(10, 2), True, True),
        (D(6, 2), D(10, 4), True, False),
        (D(6, 2), D(7, 4), False, False),
        (D(6, 2), D(6, 2), False, False),
        (BYTE, D(10, 0), True, False),
        (BYTE, D(9, 0), False, False),
        (INTEGER, D(12, 2), True, False),
        (INTEGER, D(11, 2), False, False),
        (LONG, D(20, 0), True, False),
        (LONG, D(19, 0), False, False),
        (INTEGER, INTEGER, False, False),
        (STRING, DATE, False, False),
    ],
)
def test_a_column_widens_as_the_protocol_lists(
    source: DataType, target: DataType, widens: bool, for_iceberg: bool
) -> None:
    assert can_widen(source, target) == widens
    assert can_widen(source, target, for_iceberg=True) == for_iceberg


def test_a_change_of_type_is_appended_to_the_history() -> None:
    once = record_type_changes(StructField("e", INTEGER), SHORT)
    twice = record_type_changes(StructField("e", LONG, True, once.metadata), INTEGER)
    assert twice.metadata[TYPE_CHANGES] == [
        {"fromType": "short", "toType": "integer"},
        {"fromType": "integer", "toType": "long"},
    ]


def test_changes_within_maps_and_arrays_name_their_path() -> None:
    new = ArrayType(MapType(DOUBLE, D(10, 4)))
    old = ArrayType(MapType(FLOAT, D(6, 2)))
    assert record_type_changes(StructField("e", new), old).metadata[TYPE_CHANGES] == [
        {"fromType": "float", "toType": "double", "fieldPath": "element.key"},
        {"fromType": "decimal(6,2)", "toType": "decimal(10,4)", "fieldPath": "element.value"},
    ]


def test_fields_of_structs_keep_their_own_history() -> None:
    new, old = (StructType((StructField("x", t),)) for t in (LONG, INTEGER))
    assert record_type_changes(StructField("s", ArrayType(new)), ArrayType(old)).metadata == {}
    assert record_type_changes(StructField("s", LONG), VOID).metadata == {}
