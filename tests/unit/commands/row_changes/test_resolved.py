"""Names of a command: what they are of the table's, and which commands are refused before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_pyds.commands.row_changes.resolve import resolve_merge, resolve_update
from delta_pyds.commands.row_changes.resolved import MergeClause, ResolvedCommand
from delta_pyds.errors import ColumnNotFoundError, OptionError, UserError
from delta_pyds.protocol.schema import INTEGER, LONG, STRING, StructField, StructType
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import write_rows

SCHEMA = {
    "id": "long",
    "name": "string",
    "inner": {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]},
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    TableBuilder(tmp_path / "t", SCHEMA).create()
    return tmp_path / "t"


def merged(path: Path, *clauses: MergeClause[str], source: Any = ("id", "name"), **more: Any) -> ResolvedCommand[str]:
    return resolve_merge(load_snapshot(str(path)), "t.id = s.id", clauses, source=source, target_alias="t", **more)


def test_names_are_the_tables_own_whatever_qualifies_them(table: Path) -> None:
    update = resolve_update(load_snapshot(str(table)), None, {"T.ID": "1", "`Name`": "'a'", "Inner.X": "2"}, alias="t")
    merge = merged(table, MergeClause("matched", "update", None, {"t.INNER.x": "1", "ID": "2"}))

    assert [(one.path, one.data_type) for one in update.clauses[0].assignments] == [
        (("id",), LONG),
        (("name",), STRING),
        (("inner", "x"), INTEGER),
    ]
    assert [one.path for one in merge.clauses[0].assignments] == [("inner", "x"), ("id",)]


def test_a_star_is_the_sources_columns_by_position_in_the_table(table: Path) -> None:
    source = StructType((StructField("more", LONG), StructField("Name", STRING)))
    command = merged(table, MergeClause("not_matched", "insert"), source=source.names, evolved_by=source)

    assert command.clauses[0].star == (None, "Name", None, "more")
    assert command.schema.names == ("id", "name", "inner", "more")
    assert command.after.metadata is not None


@pytest.mark.parametrize(
    ("assignments", "error", "code"),
    [
        ({"nope": "1"}, ColumnNotFoundError, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ({"inner.y": "1"}, ColumnNotFoundError, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ({"name.x": "1"}, UserError, "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE"),
        ({"id": "1", "ID": "2"}, UserError, "DELTA_CONFLICT_SET_COLUMN"),
        ({"inner.x": "1", "inner": "NULL"}, UserError, "DELTA_CONFLICT_SET_COLUMN"),
        ({"id, name": "1"}, OptionError, None),
        ({"": "1"}, OptionError, None),
    ],
)
def test_an_update_of_invalid_names_is_refused(
    table: Path, assignments: dict[str, str], error: type[UserError], code: str | None
) -> None:
    with pytest.raises(error) as caught:
        resolve_update(load_snapshot(str(table)), None, assignments)
    assert code is None or caught.value.code == code


@pytest.mark.parametrize(
    ("clauses", "code"),
    [
        ([], "DELTA_MERGE_MISSING_WHEN"),
        ([MergeClause("matched", "insert")], None),
        ([MergeClause("not_matched_by_source", "update")], None),
        (
            [MergeClause("matched", "delete"), MergeClause("matched", "update")],
            "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
        ),
        ([MergeClause("not_matched", "insert")], "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        ([MergeClause("matched", "update", None, {"s.id": "1"})], "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (
            [MergeClause("not_matched", "insert", None, {"inner.x": "1"})],
            "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
        ),
        ([MergeClause("matched", "update", None, {"id": "1", "t.id": "2"})], "DELTA_CONFLICT_SET_COLUMN"),
    ],
)
def test_a_merge_of_invalid_clauses_is_refused(table: Path, clauses: list[MergeClause[str]], code: str | None) -> None:
    with pytest.raises(UserError) as caught:
        merged(table, *clauses)
    assert code is None or caught.value.code == code


def test_a_star_needs_one_column_of_each_name(table: Path) -> None:
    with pytest.raises(UserError) as caught:
        merged(table, MergeClause("matched", "update"), source=("id", "ID", "name", "inner"))
    assert caught.value.code == "AMBIGUOUS_REFERENCE"


def test_an_append_only_table_takes_a_merge_that_only_inserts(tmp_path: Path) -> None:
    write_rows(tmp_path / "t", {"id": "long"}, [{"id": 1}], properties={"delta.appendOnly": "true"})
    insert: MergeClause[str] = MergeClause("not_matched", "insert")

    assert merged(tmp_path / "t", insert).kind == "MERGE"
    with pytest.raises(UserError) as caught:
        merged(tmp_path / "t", insert, MergeClause("matched", "delete"))
    assert caught.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
