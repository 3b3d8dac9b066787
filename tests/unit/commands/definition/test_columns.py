"""Columns and nested fields added, renamed, moved, retyped and dropped; what depends on them forbids it by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.definition.alter_column import ColumnChange, alter_column, alter_columns
from delta_pyds.commands.definition.change import DefinitionOptions, commit_change
from delta_pyds.commands.definition.columns import NewColumn, add_columns, drop_columns, rename_column
from delta_pyds.commands.definition.constraints import drop_constraint
from delta_pyds.commands.definition.properties import set_properties
from delta_pyds.commands.layout.cluster_by import cluster_by
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.errors import ConflictError, ConstraintViolationError
from delta_pyds.protocol.schema import (
    BYTE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
    parse_schema,
)
from delta_pyds.table.definition.schema_paths import Position, field_at, one_path
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.definitions import alter, commit_info, define, refusal
from tests.support.table_writes import read_rows, write_rows

INNER = StructType((StructField("x", INTEGER), StructField("y", STRING)))
COLUMNS = StructType(
    (
        StructField("id", INTEGER),
        StructField("s", INNER),
        StructField("a", ArrayType(INNER)),
        StructField("m", MapType(STRING, INNER)),
        StructField("p", STRING),
    )
)
MAPPED = {"delta.columnMapping.mode": "name"}
ROW = {"id": 1, "s": {"x": 1, "y": "one"}, "a": [{"x": 2, "y": "two"}], "m": [("k", {"x": 3, "y": "three"})], "p": "q"}


def table(path: Path, properties: dict[str, str] | None = None, **more: Any) -> None:
    define(path, COLUMNS, properties=properties or {}, **more)
    write_rows(path, COLUMNS, [ROW])


def new(text: str, data_type: Any = LONG, position: Position | None = None, **field: Any) -> NewColumn:
    *parent, name = one_path(text)
    return NewColumn(StructField(name, data_type, **field), tuple(parent), position)


# --- added


def test_columns_are_added_anywhere_and_are_null(tmp_path: Path) -> None:
    table(tmp_path)

    after = alter(
        tmp_path,
        lambda s: add_columns(
            s,
            [
                new("first", position=Position()),
                new("behind", position=Position("ID")),
                new("S.w", position=Position("x")),
                new("a.element.v"),
                new("m.value.v", STRING, Position()),
            ],
        ),
    )

    assert after.schema.names == ("first", "id", "behind", "s", "a", "m", "p")
    assert [f.name for f in field_at(after.schema, ("s",)).data_type] == ["x", "w", "y"]  # type: ignore[union-attr]
    [row] = read_rows(tmp_path)
    assert row["first"] is None and row["behind"] is None
    assert row["s"] == {"x": 1, "w": None, "y": "one"}
    assert row["a"] == [{"x": 2, "y": "two", "v": None}]
    assert row["m"] == [("k", {"v": None, "x": 3, "y": "three"})]
    assert commit_info(tmp_path)["operation"] == "ADD COLUMNS"


def test_an_added_column_of_a_mapped_table_gets_the_next_id(tmp_path: Path) -> None:
    table(tmp_path, MAPPED)
    before = int(str(load_snapshot(tmp_path).configuration.configuration["delta.columnMapping.maxColumnId"]))

    after = alter(tmp_path, lambda s: add_columns(s, [new("`any name, at all`")]))

    added = after.schema.fields[-1]
    assert added.field_id == before + 1
    assert added.physical_name.startswith("col-")
    write_rows(tmp_path, after.schema, [{**ROW, "any name, at all": 7}])
    assert [row["any name, at all"] for row in read_rows(tmp_path)] in ([7, None], [None, 7])


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (new("ID"), "FIELD_ALREADY_EXISTS"),
        (new("s.X"), "FIELD_ALREADY_EXISTS"),
        (new("id.x"), "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"),
        (new("a.v"), "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"),
        (new("q.v"), "DELTA_COLUMN_NOT_FOUND"),
        (new("n", position=Position("nobody")), "DELTA_COLUMN_NOT_FOUND"),
        (new("`a b`"), "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (new("n", nullable=False), "DELTA_OPERATION_NOT_ALLOWED"),
        (new("n", metadata={"delta.generationExpression": "1"}), "DELTA_OPERATION_NOT_ALLOWED"),
        (
            new("n", metadata={"CURRENT_DEFAULT": "1"}),
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
        ),
    ],
)
def test_columns_that_are_not_added(tmp_path: Path, column: NewColumn, code: str) -> None:
    table(tmp_path)
    assert refusal(tmp_path, lambda s: add_columns(s, [column])).code == code


# --- renamed and dropped


def test_a_renamed_column_is_the_same_column(tmp_path: Path) -> None:
    table(tmp_path, {**MAPPED, "delta.dataSkippingStatsColumns": "id,s"}, partition_columns=("p",))

    for old, name in (("id", "a b"), ("p", "part"), ("s.x", "ex"), ("a.element.x", "ex"), ("s", "t")):
        alter(tmp_path, lambda s, old=old, name=name: rename_column(s, one_path(old), name))

    after = load_snapshot(tmp_path)
    assert after.configuration.partition_columns == ("part",)
    assert after.configuration.properties.stats_columns == "`a b`,t"
    [row] = read_rows(tmp_path)
    assert row == {
        "a b": 1, "t": {"ex": 1, "y": "one"}, "a": [{"ex": 2, "y": "two"}], "m": ROW["m"], "part": "q",
    }  # fmt: skip
    assert commit_info(tmp_path)["operationParameters"] == {"oldColumnPath": "s", "newColumnPath": "t"}


def test_dropped_columns_do_not_come_back(tmp_path: Path) -> None:
    table(tmp_path, MAPPED)

    alter(tmp_path, lambda s: drop_columns(s, [("id",), ("s", "x"), ("a", "element", "x")]))
    alter(tmp_path, lambda s: add_columns(s, [new("id", INTEGER), new("s.x", INTEGER)]))

    [row] = read_rows(tmp_path)
    assert row["id"] is None
    assert row["s"] == {"y": "one", "x": None}
    assert row["a"] == [{"y": "two"}]


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        (lambda s: rename_column(s, ("id",), "P"), "FIELD_ALREADY_EXISTS"),
        (lambda s: rename_column(s, ("nobody",), "P"), "DELTA_COLUMN_NOT_FOUND"),
        (lambda s: rename_column(s, ("a", "element"), "P"), "DELTA_COLUMN_NOT_FOUND"),
        (lambda s: rename_column(s, ("s", "x"), "z"), "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        (lambda s: rename_column(s, ("s",), "z"), "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        (lambda s: drop_columns(s, [("s",)]), "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"),
        (lambda s: drop_columns(s, [("p",)]), "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"),
        (
            lambda s: drop_columns(s, [("m", "value", "x"), ("m", "value", "y")]),
            "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
        ),
    ],
)
def test_what_depends_on_a_column_forbids_it(tmp_path: Path, plan: Any, code: str) -> None:
    table(tmp_path, {**MAPPED, "delta.constraints.c": "s.x > 0 or s.y = 'id'"}, partition_columns=("p",))
    assert refusal(tmp_path, plan).code == code
    alter(tmp_path, lambda s: rename_column(s, ("id",), "new"))


def test_a_clustering_column_is_not_dropped(tmp_path: Path) -> None:
    table(tmp_path, MAPPED, clustering_columns=("s.x",))
    for path in (("s", "x"), ("s",)):
        error = refusal(tmp_path, lambda s, path=path: drop_columns(s, [path]))
        assert error.code == "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
    alter(tmp_path, lambda s: rename_column(s, ("s", "x"), "z"))


def test_a_generated_column_names_itself(tmp_path: Path) -> None:
    columns = StructType(
        (StructField("id", INTEGER), StructField("g", INTEGER, True, {"delta.generationExpression": "id + 1"}))
    )
    define(tmp_path, columns, properties={**MAPPED, "delta.enableTypeWidening": "true"})
    wider = ColumnChange(StructField("c", LONG))
    for plan in (
        lambda s: rename_column(s, ("id",), "z"),
        lambda s: drop_columns(s, [("id",)]),
        lambda s: alter_column(s, ("id",), wider),
    ):
        error = refusal(tmp_path, plan)
        assert error.code == "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"
        assert "generated column g" in error.message


@pytest.mark.parametrize("plan", [lambda s: rename_column(s, ("id",), "z"), lambda s: drop_columns(s, [("id",)])])
def test_without_column_mapping_names_are_those_of_files(tmp_path: Path, plan: Any) -> None:
    table(tmp_path)
    assert refusal(tmp_path, plan).code in ("DELTA_UNSUPPORTED_RENAME_COLUMN", "DELTA_UNSUPPORTED_DROP_COLUMN")


# --- altered


def test_types_widen_where_the_table_allows_it(tmp_path: Path) -> None:
    table(tmp_path, {"delta.enableTypeWidening": "true"})

    for path, wider in ((("id",), DOUBLE), (("s", "x"), LONG), (("a", "element", "x"), LONG)):
        alter(tmp_path, lambda s, path=path, w=wider: alter_column(s, path, ColumnChange(StructField("c", w))))

    after = load_snapshot(tmp_path)
    changes = parse_schema(after.metadata.schema_string or "").fields[0].metadata["delta.typeChanges"]
    assert changes == [{"fromType": "integer", "toType": "double"}]
    [row] = read_rows(tmp_path)
    assert (row["id"], row["s"]["x"]) == (1.0, 1)
    for path, data_type in ((("id",), STRING), (("id",), BYTE), (("p",), LONG)):
        change = ColumnChange(StructField("c", data_type))
        error = refusal(tmp_path, lambda s, path=path, change=change: alter_column(s, path, change))
        assert error.code == "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"


def test_several_columns_change_in_one_version(tmp_path: Path) -> None:
    table(tmp_path, {"delta.enableTypeWidening": "true"})
    before = load_snapshot(tmp_path).version
    changes = [
        (("s", "x"), ColumnChange(StructField("c", LONG), comment="wide")),
        (("id",), ColumnChange(position=Position("p"))),
        (("m",), ColumnChange(comment="pairs", position=Position())),
    ]

    after = alter(tmp_path, lambda s: alter_columns(s, changes))

    assert after.version == before + 1 and after.schema.names == ("m", "s", "a", "p", "id")
    assert after.schema.fields[0].metadata["comment"] == "pairs"
    assert field_at(after.schema, ("s", "x")).data_type == LONG
    said = commit_info(tmp_path)
    assert said["operation"] == "CHANGE COLUMNS"
    columns = json.loads(said["operationParameters"]["columns"])
    assert [(one["name"], one.get("position")) for one in columns] == [("s.x", None), ("id", "AFTER p"), ("m", "FIRST")]
    for other in (("ID",), ("s",)):
        twice = [(("id",), ColumnChange(comment="a")), (("s", "x"), ColumnChange(comment="b"))]
        twice.append((other, ColumnChange(comment="c")))
        error = refusal(tmp_path, lambda s, twice=twice: alter_columns(s, twice))
        assert error.code == "NOT_SUPPORTED_CHANGE_SAME_COLUMN"


def test_what_is_in_arrays_and_maps_widens_too(tmp_path: Path) -> None:
    columns = StructType((StructField("l", ArrayType(INTEGER)), StructField("m", MapType(INTEGER, INTEGER))))
    define(tmp_path, columns, properties={"delta.enableTypeWidening": "true"})
    write_rows(tmp_path, columns, [{"l": [1], "m": [(1, 2)]}])

    alter(tmp_path, lambda s: alter_column(s, ("l",), ColumnChange(StructField("c", ArrayType(LONG)))))
    after = alter(tmp_path, lambda s: alter_column(s, ("m",), ColumnChange(StructField("c", MapType(LONG, DOUBLE)))))

    assert [f.metadata["delta.typeChanges"] for f in after.schema] == [
        [{"fromType": "integer", "toType": "long", "fieldPath": "element"}],
        [
            {"fromType": "integer", "toType": "long", "fieldPath": "key"},
            {"fromType": "integer", "toType": "double", "fieldPath": "value"},
        ],
    ]
    assert read_rows(tmp_path) == [{"l": [1], "m": [(1, 2.0)]}]


DECLARED = "__CHAR_VARCHAR_TYPE_STRING"


def text(name: str, declared: str | None = None) -> StructField:
    return StructField(name, STRING, True, {} if declared is None else {DECLARED: declared})


def test_texts_may_only_become_longer(tmp_path: Path) -> None:
    """To the protocol they are of one type: a change must not pass for none."""
    inside = StructField("n", StructType((text("x"),)), True, {DECLARED: "struct<x:varchar(3)>"})
    several = StructField("a", ArrayType(STRING), True, {DECLARED: "array<varchar(3)>"})
    columns = StructType((text("v", "varchar(3)"), text("c", "char(3)"), text("s"), inside, several))
    define(tmp_path, columns, properties={"delta.constraints.k": "c <> 'x'"})
    row = {"v": "abc", "c": "abc", "s": "", "n": {"x": "abc"}, "a": ["abc"]}
    write_rows(tmp_path, columns, [row])

    for path, declared in (
        ("v", "varchar(2)"), ("v", "char(9)"), ("c", "char(5)"), ("c", "varchar(2)"), ("s", "varchar(9)"),
        ("n.x", "varchar(9)"), ("n.x", None),
    ):  # fmt: skip
        change = ColumnChange(text("t", declared))
        error = refusal(tmp_path, lambda s, path=path, change=change: alter_column(s, one_path(path), change))
        assert error.code == "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
    same = ColumnChange(text("t", "varchar(3)"), comment="no other length")
    alter(tmp_path, lambda s: alter_column(s, ("n", "x"), same))
    longer = ColumnChange(text("t", "varchar(4)"))
    error = refusal(tmp_path, lambda s: alter_column(s, ("c",), longer))
    assert error.code == "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"  # it compares texts without their spaces

    alter(tmp_path, lambda s: drop_constraint(s, "k", if_exists=False))
    alter(tmp_path, lambda s: alter_column(s, ("v",), longer))
    assert json.loads(commit_info(tmp_path)["operationParameters"]["column"])["metadata"] == {DECLARED: "varchar(4)"}
    alter(tmp_path, lambda s: alter_column(s, ("c",), longer))
    several = replace(several, metadata={DECLARED: "array<varchar(4)>"})
    alter(tmp_path, lambda s: alter_column(s, ("a",), ColumnChange(several)))
    wider = {**row, "v": "abcd", "c": "abcd", "a": ["abcd"]}
    write_rows(tmp_path, columns, [wider])
    assert sorted(read_rows(tmp_path), key=str) == sorted([row, wider], key=str)
    for name in ("v", "c", "a"):
        with pytest.raises(ConstraintViolationError):
            write_rows(tmp_path, columns, [{**row, name: ["abcde"] if name == "a" else "abcde"}])
    after = alter(tmp_path, lambda s: alter_column(s, ("v",), ColumnChange(text("t"))))
    assert after.schema.fields[0].metadata == {}
    write_rows(tmp_path, columns, [{**row, "v": "as long as one likes"}])


@pytest.mark.parametrize(
    ("change", "declared"),
    [
        (lambda s: rename_column(s, ("s", "x"), "a b"), "struct<`a b`:varchar(3),y:int>"),
        (lambda s: add_columns(s, [new("s.w", INTEGER, Position())]), "struct<w:int,x:varchar(3),y:int>"),
        (
            lambda s: add_columns(s, [new("s.w", STRING, metadata={DECLARED: "char(2)"})]),
            "struct<x:varchar(3),y:int,w:char(2)>",
        ),
        (lambda s: drop_columns(s, [("s", "y")]), "struct<x:varchar(3)>"),
        (lambda s: drop_columns(s, [("s", "x")]), None),
        (lambda s: alter_column(s, ("s", "y"), ColumnChange(StructField("t", LONG))), "struct<x:varchar(3),y:bigint>"),
        (lambda s: alter_column(s, ("s", "y"), ColumnChange(position=Position())), "struct<y:int,x:varchar(3)>"),
    ],
)
def test_a_changed_struct_keeps_its_lengths(tmp_path: Path, change: Any, declared: str | None) -> None:
    struct = StructType((StructField("x", STRING), StructField("y", INTEGER)))
    columns = StructType((StructField("s", struct, True, {DECLARED: "struct<x:varchar(3),y:int>"}),))
    define(tmp_path, columns, properties={**MAPPED, "delta.enableTypeWidening": "true"})
    write_rows(tmp_path, columns, [{"s": {"x": "abc", "y": 1}}])

    [column] = alter(tmp_path, change).schema.fields

    assert column.metadata.get(DECLARED) == declared
    assert isinstance(column.data_type, StructType)
    assert not any(DECLARED in f.metadata for f in column.data_type)
    made = StructType((StructField("s", column.data_type),))
    row = {f.name: "ab" if f.data_type == STRING else 5 for f in column.data_type}
    write_rows(tmp_path, made, [{"s": row}])
    assert {"s": row} in read_rows(tmp_path)
    for name in (f.name for f in column.data_type if f.data_type == STRING):
        with pytest.raises(ConstraintViolationError):
            write_rows(tmp_path, made, [{"s": {**row, name: "abcd"}}])


def test_a_field_of_the_old_name_has_no_length_of_the_old_field(tmp_path: Path) -> None:
    inner = StructType((StructField("x", STRING), StructField("y", INTEGER)))
    declared = {DECLARED: "array<struct<x:varchar(3),y:int>>"}
    columns = StructType((StructField("s", ArrayType(inner), True, declared),))
    define(tmp_path, columns)
    alter(tmp_path, lambda s: set_properties(s, MAPPED))  # physical names are now those that the columns had
    alter(tmp_path, lambda s: rename_column(s, ("s", "element", "x"), "z"))
    after = alter(tmp_path, lambda s: add_columns(s, [new("s.element.x", STRING)]))
    assert after.schema.fields[0].metadata[DECLARED] == "array<struct<z:varchar(3),y:int,x:string>>"


def test_a_new_length_in_a_struct_is_said_where_the_reference_looks(tmp_path: Path) -> None:
    table(tmp_path)
    varchar = {DECLARED: "varchar(2)"}
    columns = [new(name, STRING, metadata=varchar) for name in ("s.w", "m.value.w", "v")]
    after = alter(tmp_path, lambda s: add_columns(s, columns))
    assert {f.name: f.metadata[DECLARED] for f in after.schema if DECLARED in f.metadata} == {
        "s": "struct<x:int,y:string,w:varchar(2)>",
        "m": "map<string,struct<x:int,y:string,w:varchar(2)>>",
        "v": "varchar(2)",
    }
    logged = json.loads(commit_info(tmp_path)["operationParameters"]["columns"])
    assert [(c["column"]["type"], c["column"]["metadata"]) for c in logged] == [("varchar(2)", {})] * 3


def test_rows_that_bring_fields_leave_the_lengths_of_others(tmp_path: Path) -> None:
    struct = StructType((StructField("x", STRING),))
    define(tmp_path, StructType((StructField("s", struct, True, {DECLARED: "struct<x:varchar(3)>"}),)))
    wider = StructType((StructField("s", StructType((*struct, StructField("w", LONG)))),))
    write_rows(tmp_path, wider, [{"s": {"x": "abc", "w": 1}}], merge_schema=True)
    assert load_snapshot(tmp_path).schema.fields[0].metadata[DECLARED] == "struct<x:varchar(3),w:bigint>"
    with pytest.raises(ConstraintViolationError):
        write_rows(tmp_path, wider, [{"s": {"x": "abcd", "w": 1}}])


def test_a_declared_type_that_nobody_understands_stays(tmp_path: Path) -> None:
    struct = StructType((StructField("x", STRING), StructField("y", INTEGER)))
    define(tmp_path, StructType((StructField("s", struct, True, {DECLARED: "struct<old:varchar(3)>"}),)))
    after = alter(tmp_path, lambda s: add_columns(s, [new("s.w"), new("i")]))
    assert after.schema.fields[0].metadata[DECLARED] == "struct<old:varchar(3)>"


def test_a_column_does_not_go_while_it_becomes_a_clustering_column(tmp_path: Path) -> None:
    table(tmp_path, MAPPED, clustering_columns=("id",))
    stale = load_snapshot(tmp_path)
    cluster_by(load_snapshot(tmp_path), ["p"], CommandOptions())

    with pytest.raises(ConflictError, match="clustering columns"):
        commit_change(stale, drop_columns(stale, [("p",)]), DefinitionOptions())
    commit_change(stale, rename_column(stale, ("p",), "q"), DefinitionOptions())
    assert not verify(str(tmp_path)).findings


def test_types_stay_where_the_table_does_not_allow_it(tmp_path: Path) -> None:
    table(tmp_path)
    error = refusal(tmp_path, lambda s: alter_column(s, ("id",), ColumnChange(StructField("c", LONG))))
    assert "delta.enableTypeWidening" in error.message


def test_comment_place_and_nullability(tmp_path: Path) -> None:
    table(tmp_path)

    alter(tmp_path, lambda s: alter_column(s, ("P",), ColumnChange(comment="the part", position=Position())))
    alter(tmp_path, lambda s: alter_column(s, ("s", "y"), ColumnChange(position=Position())))
    after = alter(tmp_path, lambda s: alter_column(s, ("id",), ColumnChange(nullable=False)))

    assert after.schema.names[0] == "p"
    assert after.schema.fields[0].metadata["comment"] == "the part"
    assert not field_at(after.schema, ("id",)).nullable
    [row] = read_rows(tmp_path)
    assert row["s"] == {"y": "one", "x": 1}
    after = alter(tmp_path, lambda s: alter_column(s, ("id",), ColumnChange(nullable=True)))
    assert field_at(after.schema, ("id",)).nullable


def test_a_field_in_an_array_cannot_be_not_null(tmp_path: Path) -> None:
    table(tmp_path)
    error = refusal(tmp_path, lambda s: alter_column(s, ("a", "element", "x"), ColumnChange(nullable=False)))
    assert error.code == "DELTA_NESTED_NOT_NULL_CONSTRAINT"


def test_defaults_need_the_feature(tmp_path: Path) -> None:
    table(tmp_path)
    change = ColumnChange(default="5")
    error = refusal(tmp_path, lambda s: alter_column(s, ("id",), change))
    assert error.code == "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"


def test_defaults_set_and_dropped(tmp_path: Path) -> None:
    table(tmp_path, {"delta.feature.allowColumnDefaults": "supported"})

    alter(tmp_path, lambda s: alter_column(s, ("id",), ColumnChange(default="5")))
    others = StructType(COLUMNS.fields[1:])
    write_rows(tmp_path, others, [{k: v for k, v in ROW.items() if k != "id"}])
    assert sorted(row["id"] for row in read_rows(tmp_path)) == [1, 5]
    after = alter(tmp_path, lambda s: alter_column(s, ("id",), ColumnChange(drop_default=True)))

    assert "CURRENT_DEFAULT" not in after.schema.fields[0].metadata
