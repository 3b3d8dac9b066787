"""The meaning of the texts of a merge, and those that are left to Spark."""

from __future__ import annotations

import json
from tempfile import TemporaryDirectory

import pytest

from delta_pyds.commands.row_changes.merge_binding import bind_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolve import resolve_merge
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.errors import DeltaError
from delta_pyds.expr.nodes import Column, Expr, to_sql
from delta_pyds.protocol.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_START,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    StructField,
    StructType,
    schema_to_string,
)
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.merge import MergeRules
from tests.support.table_builder import TableBuilder

INNER = StructType((StructField("x", INTEGER),))
TARGET = StructType(
    (
        StructField("id", LONG),
        StructField("name", STRING),
        StructField("small", SHORT),
        StructField("twice", LONG, True, {GENERATION_EXPRESSION: "id * 2"}),
        StructField("d", STRING, True, {CURRENT_DEFAULT: "'new'"}),
        StructField("inner", INNER),
    )
)
SOURCE = StructType((StructField("ID", INTEGER), StructField("name", STRING), StructField("other", LONG)))
FEATURES = ["generatedColumns", "allowColumnDefaults", "identityColumns"]
NOTHING: MergeClause[str] = MergeClause("matched", "delete")


def bound(
    condition: str,
    *clauses: MergeClause[str],
    target: StructType = TARGET,
    source: StructType = SOURCE,
    target_alias: str | None = "t",
    source_alias: str | None = "s",
) -> MergeRules:
    with TemporaryDirectory() as path:
        TableBuilder(path, json.loads(schema_to_string(target)), features=([], FEATURES)).create()
        command = resolve_merge(
            load_snapshot(path),
            condition,
            clauses or (NOTHING,),
            source=source.names,
            target_alias=target_alias,
            source_alias=source_alias,
        )
        return bind_merge(command, source, CommandOptions(now_micros=0))


def shown(*values: Expr | None) -> list[str | None]:
    return [None if value is None else to_sql(value) for value in values]


def test_equalities_between_both_sides_are_keys_whichever_way_they_are_written() -> None:
    on = bound("t.id = s.id AND s.name <=> t.name AND t.small > 1 AND s.other < 5 AND t.id < s.other").on

    assert [(to_sql(k.target), to_sql(k.source), k.null_safe) for k in on.keys] == [
        ("target.id", "CAST(source.ID AS BIGINT)", False),
        ("target.name", "source.name", True),
    ]
    assert [len(on.target), len(on.source), len(on.both)] == [1, 1, 1]
    assert shown(*on.target, *on.source, *on.both) == [
        "CAST(target.small AS INT) > 1",
        "source.other < 5",
        "target.id < source.other",
    ]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("t.id > s.id", "no equality"),
        ("true", "no equality"),
        ("id = other", "either table"),
        ("t.id = s.nope", "no column 's.nope'"),
        ("t.id = s.other AND my_function(t.id)", "my_function"),
        ("t.id = s.other AND t.id", "BOOLEAN"),
    ],
)
def test_a_condition_that_is_left_to_spark_says_why(condition: str, reason: str) -> None:
    with pytest.raises(DeltaError, match=reason):
        bound(condition)


def test_a_name_is_an_alias_before_it_is_a_column() -> None:
    on = bound("inner.id = s.other", target_alias="inner").on

    assert on.keys[0].target == Column(("target", "id"), LONG)
    assert to_sql(bound("t.inner.x = s.id").on.keys[0].target) == "target.inner.x"


def test_a_name_that_one_table_has_needs_no_alias() -> None:
    assert shown(*(k.source for k in bound("small = other", target_alias=None, source_alias=None).on.keys)) == [
        "source.other"
    ]


def test_an_update_keeps_what_it_does_not_assign_and_computes_what_depends_on_it() -> None:
    clause = MergeClause("matched", "update", "s.other > 1", {"ID": "s.other", "t.name": "upper(s.name)"})

    (found,) = bound("t.id = s.id", clause).matched

    assert found.action == Action.UPDATE
    assert found.condition is not None
    assert shown(*found.values) == [
        "source.other", "upper(source.name)", "target.small", "source.other * 2", "target.d",
        "target.inner",
    ]  # fmt: skip


def test_a_generated_column_stays_where_nothing_changes_that_it_depends_on() -> None:
    (found,) = bound("t.id = s.id", MergeClause("matched", "update", None, {"name": "'x'"})).matched

    assert shown(found.values[3]) == ["target.twice"]


def test_an_insert_makes_what_it_does_not_name() -> None:
    clause = MergeClause("not_matched", "insert", None, {"id": "s.other"})

    (found,) = bound("t.id = s.id", clause).not_matched

    assert shown(*found.values)[:3] == ["source.other", "NULL", "NULL"]
    assert shown(*found.values)[4:] == ["'new'", "NULL"]
    assert "source.other" in to_sql(found.values[3])  # type: ignore[arg-type]


def test_identity_values_are_left_to_the_writer() -> None:
    numbered = StructType((StructField("id", LONG), StructField("n", LONG, True, {IDENTITY_START: 1})))
    insert = MergeClause("not_matched", "insert", None, {"id": "s.other"})

    assert bound("t.id = s.id", insert, target=numbered).not_matched[0].values[1] is None
    with pytest.raises(DeltaError, match="identity"):
        bound("t.id = s.id", MergeClause("matched", "update", None, {"n": "1"}), target=numbered)


def test_a_star_takes_the_columns_of_the_same_names() -> None:
    plain = StructType((StructField("name", STRING), StructField("id", LONG)))
    (found,) = bound("t.id = s.id", MergeClause("matched", "update"), target=plain).matched

    assert shown(*found.values) == ["source.name", "CAST(source.ID AS BIGINT)"]
    with pytest.raises(DeltaError, match="Cannot resolve small in UPDATE clause"):
        bound("t.id = s.id", MergeClause("matched", "update"))


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("inner", "s.name", "a cast of"),
        ("inner.x", "1", "left to Spark"),
        ("nope", "1", "Cannot resolve nope"),
        ("name", "t.inner", "a cast of"),
    ],
)
def test_an_assignment_that_is_left_to_spark_says_why(key: str, value: str, reason: str) -> None:
    with pytest.raises(DeltaError, match=reason):
        bound("t.id = s.id", MergeClause("matched", "update", None, {key: value}))


def test_clauses_see_the_rows_that_they_have() -> None:
    with pytest.raises(DeltaError, match=r"no column 't\.id'"):
        bound("t.id = s.id", MergeClause("not_matched", "insert", "t.id > 1", {"id": "s.id"}))
    with pytest.raises(DeltaError, match=r"no column 's\.id'"):
        bound("t.id = s.id", MergeClause("not_matched_by_source", "update", None, {"id": "s.id"}))


def test_names_of_a_source_must_differ_in_more_than_case() -> None:
    twice = StructType((StructField("id", LONG), StructField("ID", LONG)))
    with pytest.raises(DeltaError, match="more than one column"):
        bound("t.id = s.id", source=twice)


_DELETE = MergeClause("matched", "delete")
_UPDATE = MergeClause("matched", "update", None, {"name": "'x'"})
_INSERT = MergeClause("not_matched", "insert", None, {"id": "s.id"})


@pytest.mark.parametrize(
    ("clauses", "counted"),
    [
        ([_DELETE], False),
        ([_DELETE, _INSERT], False),
        ([_INSERT], False),
        ([MergeClause("matched", "delete", "s.id > 1")], True),
        ([_UPDATE], True),
        ([MergeClause("not_matched_by_source", "delete"), _INSERT], True),
    ],
)
def test_when_several_rows_on_one_are_an_error(clauses: list[MergeClause], counted: bool) -> None:
    assert bound("t.id = s.id", *clauses).one_match is counted
