"""Elements, keys, values and partition columns with a wider type; places and types that say nothing new."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from delta_pyds.commands.definition.alter_column import ColumnChange, alter_column, alter_columns
from delta_pyds.commands.definition.change import DefinitionChange
from delta_pyds.errors import UserError
from delta_pyds.protocol.schema import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_pyds.table.definition.schema_paths import Position, one_path
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.support.definitions import alter, commit_info, define
from tests.support.table_writes import read_rows, write_rows

COLUMNS = StructType(
    (
        StructField("id", INTEGER),
        StructField("a", ArrayType(INTEGER)),
        StructField("m", MapType(SHORT, INTEGER)),
        StructField("n", ArrayType(ArrayType(INTEGER))),
        StructField("s", StructType((StructField("x", INTEGER), StructField("a", MapType(STRING, ArrayType(SHORT)))))),
    )
)
ROW = {"id": 1, "a": [1], "m": [(2, 3)], "n": [[4]], "s": {"x": 5, "a": [("k", [6])]}}
WIDENING = {"delta.enableTypeWidening": "true"}
CHANGE = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"


def table(path: Path) -> None:
    define(path, COLUMNS, properties=WIDENING)
    write_rows(path, COLUMNS, [ROW])


def wider(text: str, data_type: DataType) -> Callable[[Snapshot], DefinitionChange]:
    return lambda snapshot: alter_column(snapshot, one_path(text), ColumnChange(StructField("c", data_type)))


def refusal(path: Path, plan: Callable[[Snapshot], DefinitionChange]) -> UserError:
    with pytest.raises(UserError) as caught:
        alter(path, plan)
    return caught.value


@pytest.mark.parametrize(
    ("named", "data_type", "column", "record"),
    [
        ("a.element", LONG, "a", {"fromType": "integer", "toType": "long", "fieldPath": "element"}),
        ("M.KEY", INTEGER, "m", {"fromType": "short", "toType": "integer", "fieldPath": "key"}),
        ("m.value", DOUBLE, "m", {"fromType": "integer", "toType": "double", "fieldPath": "value"}),
        ("n.element.element", LONG, "n", {"fromType": "integer", "toType": "long", "fieldPath": "element.element"}),
        ("s.a.value.element", LONG, "s.a", {"fromType": "short", "toType": "long", "fieldPath": "value.element"}),
    ],
)
def test_a_part_named_by_its_path_widens(
    tmp_path: Path, named: str, data_type: DataType, column: str, record: dict[str, str]
) -> None:
    """The field around it keeps the record. Protocol: "Type Change Metadata"."""
    table(tmp_path)

    after = alter(tmp_path, wider(named, data_type))

    [(name, changes)] = _recorded(after.schema)
    assert (name, changes) == (column, [record])
    said = commit_info(tmp_path)
    assert said["operation"] == "CHANGE COLUMN"
    told = json.loads(said["operationParameters"]["column"])
    assert (told["name"], told["metadata"]) == (named.lower(), {})
    assert read_rows(tmp_path) == [ROW]
    write_rows(tmp_path, after.schema, [ROW])
    assert read_rows(tmp_path) == [ROW, ROW]


def test_two_parts_of_one_column_widen_in_one_version(tmp_path: Path) -> None:
    table(tmp_path)
    changes = [
        (("m", "key"), ColumnChange(StructField("c", INTEGER))),
        (("m", "value"), ColumnChange(StructField("c", LONG))),
    ]

    after = alter(tmp_path, lambda s: alter_columns(s, changes))

    [(_, record)] = _recorded(after.schema)
    assert [change["fieldPath"] for change in record] == ["key", "value"]
    twice = [(("a", "element"), ColumnChange(StructField("c", LONG))), (("a",), ColumnChange(comment="x"))]
    assert refusal(tmp_path, lambda s: alter_columns(s, twice)).code == "NOT_SUPPORTED_CHANGE_SAME_COLUMN"


@pytest.mark.parametrize(
    ("named", "change", "code"),
    [
        ("a.element", ColumnChange(comment="x"), "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY"),
        ("m.key", ColumnChange(nullable=True), CHANGE),
        ("a.element", ColumnChange(nullable=False), CHANGE),
        ("a.element", ColumnChange(default="1"), CHANGE),
        ("m.value", ColumnChange(position=Position("key")), CHANGE),
        ("a.element", ColumnChange(StructField("c", SHORT)), CHANGE),
        ("a.element", ColumnChange(StructField("c", STRING)), CHANGE),
        ("m.element", ColumnChange(StructField("c", LONG)), "DELTA_COLUMN_NOT_FOUND"),
    ],
)
def test_nothing_but_the_type_of_a_part_changes(tmp_path: Path, named: str, change: ColumnChange, code: str) -> None:
    table(tmp_path)
    assert refusal(tmp_path, lambda s: alter_column(s, one_path(named), change)).code == code


def test_a_part_does_not_widen_where_the_table_does_not_allow_it(tmp_path: Path) -> None:
    define(tmp_path, COLUMNS)
    error = refusal(tmp_path, wider("a.element", LONG))
    assert error.code == CHANGE and "delta.enableTypeWidening" in error.message


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        (SHORT, INTEGER, 7, 7),
        (INTEGER, DOUBLE, 7, 7.0),
        (FLOAT, DOUBLE, 1.5, 1.5),
        (DecimalType(5, 2), DecimalType(10, 4), "1.50", "1.5000"),
        (DATE, TIMESTAMP_NTZ, "2020-01-02", "2020-01-02 00:00:00"),
    ],
    ids=str,
)
def test_a_partition_column_widens(tmp_path: Path, old: DataType, new: DataType, before: object, after: object) -> None:
    """Its values stay texts of the old type, which are values of the new one."""
    columns = StructType((StructField("id", LONG), StructField("p", old)))
    properties = {**WIDENING, "delta.feature.timestampNtz": "supported"}
    define(tmp_path, columns, properties=properties, partition_columns=("p",))
    write_rows(tmp_path, columns, [{"id": 1, "p": _value(old, before)}, {"id": 2, "p": None}])

    altered = alter(tmp_path, wider("p", new))

    assert [name for name, _ in _recorded(altered.schema)] == ["p"]
    assert _by_id(tmp_path) == {1: _value(new, after), 2: None}
    write_rows(tmp_path, altered.schema, [{"id": 3, "p": _value(new, after)}])
    assert _by_id(tmp_path) == {1: _value(new, after), 2: None, 3: _value(new, after)}


@pytest.mark.parametrize(
    "change",
    [ColumnChange(StructField("c", DOUBLE)), ColumnChange(nullable=False), ColumnChange(default="1")],
    ids=["type", "nullability", "default"],
)
def test_an_identity_column_stays_what_it_is(tmp_path: Path, change: ColumnChange) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    columns = StructType((StructField("id", LONG, metadata=identity), StructField("v", STRING)))
    define(tmp_path, columns, properties=WIDENING)
    error = refusal(tmp_path, lambda s: alter_column(s, ("id",), change))
    assert error.code == "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED"
    alter(tmp_path, lambda s: alter_column(s, ("id",), ColumnChange(comment="the number")))


def test_a_column_stays_after_itself(tmp_path: Path) -> None:
    """A version that changes nothing, as the reference makes one."""
    table(tmp_path)
    before = load_snapshot(tmp_path)
    for path in (("m",), ("s", "x")):
        after = alter(tmp_path, lambda s, p=path: alter_column(s, p, ColumnChange(position=Position(p[-1].upper()))))
        assert after.schema == before.schema
        assert commit_info(tmp_path)["operationParameters"]["position"] == f"AFTER {path[-1]}"
    assert after.version == before.version + 2


def test_the_type_that_a_column_has_makes_no_version(tmp_path: Path) -> None:
    table(tmp_path)
    before = load_snapshot(tmp_path).version
    for named, data_type in (("id", INTEGER), ("a.element", INTEGER), ("s.x", INTEGER)):
        assert alter(tmp_path, wider(named, data_type)).version == before


def _recorded(schema: StructType, within: str = "") -> list[tuple[str, list[dict[str, str]]]]:
    """Of each field in structs that has a record of its types: its path, and the record."""
    found = []
    for f in schema:
        if "delta.typeChanges" in f.metadata:
            found.append((within + f.name, f.metadata["delta.typeChanges"]))
        if isinstance(f.data_type, StructType):
            found += _recorded(f.data_type, f"{within}{f.name}.")
    return found


def _by_id(path: Path) -> dict[int, object]:
    return {row["id"]: row["p"] for row in read_rows(path)}


def _value(data_type: DataType, shown: object) -> object:
    if isinstance(data_type, DecimalType):
        return Decimal(str(shown))
    if data_type == DATE:
        return date.fromisoformat(str(shown))
    return datetime.fromisoformat(str(shown)) if data_type == TIMESTAMP_NTZ else shown
