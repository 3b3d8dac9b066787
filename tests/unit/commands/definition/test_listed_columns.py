"""Columns as a list says them, and the marks of identity columns set by values: without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.definition.replace_columns import replace_columns
from delta_pyds.commands.definition.sync_identity import sync_identity
from delta_pyds.errors import DeltaError
from delta_pyds.protocol.schema import INTEGER, LONG, STRING, ArrayType, StructField, StructType
from delta_pyds.table.definition.schema_paths import field_at
from delta_pyds.table.snapshot import load_snapshot
from tests.support.definitions import alter, commit_info, define
from tests.support.table_writes import read_rows, write_rows

INNER = StructType((StructField("x", INTEGER), StructField("y", STRING)))
COLUMNS = StructType((StructField("id", INTEGER), StructField("s", ArrayType(INNER)), StructField("p", STRING)))
MAPPED = {"delta.columnMapping.mode": "name"}
ROW = {"id": 1, "s": [{"x": 2, "y": "two"}], "p": "q"}


def table(path: Path, properties: dict[str, str] | None = None, **more: Any) -> None:
    define(path, COLUMNS, properties=properties or {}, **more)
    write_rows(path, COLUMNS, [ROW])


def refused(path: Path, plan: Any) -> str:
    version = load_snapshot(path).version
    with pytest.raises(DeltaError) as error:
        alter(path, plan)
    assert load_snapshot(path).version == version
    return error.value.code


def test_columns_are_moved_and_added_and_keep_their_rows(tmp_path: Path) -> None:
    table(tmp_path)
    inner = StructType((StructField("Y", STRING), StructField("new", LONG), StructField("x", INTEGER)))
    wanted = [
        StructField("P", STRING, metadata={"comment": "where"}),
        StructField("s", ArrayType(inner)),
        StructField("id", INTEGER),
        StructField("more", LONG),
    ]
    after = alter(tmp_path, lambda snapshot: replace_columns(snapshot, wanted))
    assert after.schema.names == ("p", "s", "id", "more")
    assert field_at(after.schema, ("p",)).metadata["comment"] == "where"
    assert read_rows(tmp_path) == [{"p": "q", "s": [{"y": "two", "new": None, "x": 2}], "id": 1, "more": None}]
    assert commit_info(tmp_path)["operation"] == "REPLACE COLUMNS"


def test_columns_are_left_out_of_a_mapped_table(tmp_path: Path) -> None:
    table(tmp_path, {**MAPPED, "delta.dataSkippingStatsColumns": "id,p"})
    inner = ArrayType(StructType((StructField("y", STRING),)))
    after = alter(tmp_path, lambda s: replace_columns(s, [StructField("s", inner), StructField("id", INTEGER)]))
    assert read_rows(tmp_path) == [{"s": [{"y": "two"}], "id": 1}]
    assert after.configuration.configuration["delta.dataSkippingStatsColumns"] == "id"
    # what comes again is another column
    again = [StructField("s", inner), StructField("id", INTEGER), StructField("p", STRING)]
    alter(tmp_path, lambda s: replace_columns(s, again))
    assert read_rows(tmp_path) == [{"s": [{"y": "two"}], "id": 1, "p": None}]


_REFUSED = "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"


@pytest.mark.parametrize(
    ("properties", "wanted", "code"),
    [
        ({}, [StructField("id", INTEGER)], _REFUSED),
        (MAPPED, [StructField("id", INTEGER), StructField("n", LONG)], _REFUSED),
        ({}, [*COLUMNS.fields[1:], StructField("id", LONG)], _REFUSED),
        ({}, [*COLUMNS.fields[1:], StructField("id", INTEGER, nullable=False)], _REFUSED),
        ({}, [*COLUMNS.fields[1:], StructField("id", INTEGER, metadata={"CURRENT_DEFAULT": "4"})], _REFUSED),
        ({}, [*COLUMNS.fields, StructField("ID", INTEGER)], "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ({}, [*COLUMNS.fields, StructField("n", LONG, nullable=False)], "DELTA_OPERATION_NOT_ALLOWED"),
        ({}, [*COLUMNS.fields, StructField("a b", LONG)], "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (
            {**MAPPED, "delta.constraints.c": "id > 0"},
            COLUMNS.fields[1:],
            "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        ),
    ],
)
def test_lists_that_no_table_becomes(
    tmp_path: Path, properties: dict[str, str], wanted: list[StructField], code: str
) -> None:
    table(tmp_path, properties)
    assert refused(tmp_path, lambda snapshot: replace_columns(snapshot, wanted)) == code


def test_a_partition_column_is_not_left_out(tmp_path: Path) -> None:
    table(tmp_path, MAPPED, partition_columns=("p",))
    code = refused(tmp_path, lambda s: replace_columns(s, COLUMNS.fields[:2]))
    assert code == "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN"


@pytest.mark.parametrize(("step", "values", "kind", "mark"), [(3, [2, 8], "max", 10), (-3, [9, -4], "min", -5)])
def test_a_mark_is_set_by_the_log_or_by_the_rows(
    tmp_path: Path, step: int, values: list[int], kind: str, mark: int
) -> None:
    given = {"start": 1, "step": step, "allowExplicitInsert": True}
    field = StructField("id", LONG, metadata={f"delta.identity.{k}": v for k, v in given.items()})
    schema = StructType((field, StructField("v", LONG)))
    define(tmp_path, schema)
    write_rows(tmp_path, schema, [{"id": value, "v": 0} for value in values])

    def nothing(*_: object) -> int:
        raise AssertionError("the log says it")

    after = alter(tmp_path, lambda snapshot: sync_identity(snapshot, ("ID",), nothing))
    assert after.schema.fields[0].metadata["delta.identity.highWaterMark"] == mark
    asked: list[tuple[str, str]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("delta_pyds.commands.definition.sync_identity.log_answers", lambda *_: None)
        alter(tmp_path, lambda s: sync_identity(s, ("id",), lambda *found: asked.append(found) or values[0]))
    assert asked == [(kind, "id")]
    assert refused(tmp_path, lambda s: sync_identity(s, ("v",), nothing)) == (
        "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN"
    )
    assert refused(tmp_path, lambda s: replace_columns(s, schema.fields)) == (
        "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED"
    )
