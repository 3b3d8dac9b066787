"""Merge with new columns, nested assignments, and columns that the table makes: as the reference was seen to do it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds.errors import DeltaError, UserError
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.merge import merge_rows
from delta_pyds.spark.row_changes.merge_clauses import MergeClause
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

UPDATE_ALL = MergeClause("matched", "update")
DELETE = MergeClause("matched", "delete")
INSERT_ALL = MergeClause("not_matched", "insert")
NESTED = "id int, st struct<a:int,b:struct<c:int,d:int>>, arr array<struct<x:int,y:int>>"
PROPERTIES = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(autouse=True)
def format_known(spark: SparkSession) -> None:
    delta_pyds.register(spark)


def made(spark: SparkSession, path: Path, schema: str = NESTED, rows: Any = None, **properties: str) -> Path:
    rows = [(1, (1, (2, 3)), [(1, 2)]), (2, None, None)] if rows is None else rows
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    delta_pyds.write(frame, path, properties={**PROPERTIES, **properties})
    return path


def merge(
    spark: SparkSession, path: Path, source: DataFrame | str, *clauses: MergeClause, evolve: bool = False
) -> tuple[int, int, int]:
    frame = spark.sql(source) if isinstance(source, str) else source
    handle = TableHandle(spark, str(path), alias="t", engine="spark")
    result = merge_rows(handle, frame.alias("s"), "t.id = s.id", list(clauses), schema_evolution=evolve)
    delta_pyds.verify(str(path)).raise_for_errors()
    return result.num_updated_rows, result.num_deleted_rows, result.num_inserted_rows


def update(condition: str | None = None, /, **assignments: str) -> MergeClause:
    return MergeClause("matched", "update", condition, {k.replace("__", "."): v for k, v in assignments.items()})


def rows_of(spark: SparkSession, path: Path) -> dict[int, dict[str, Any]]:
    rows = (row.asDict(recursive=True) for row in delta_pyds.read(spark, path).collect())
    return {row.pop("id"): row for row in rows}


def test_fields_of_structs_are_assigned(spark: SparkSession, tmp_path: Path) -> None:
    """A struct with a field that is set is not null afterwards, even if it was."""
    path = made(spark, tmp_path / "t")

    assert merge(spark, path, "SELECT explode(array(1, 2)) id, 7 n", update(t__st__b__c="s.n")) == (2, 0, 0)

    rows = rows_of(spark, path)
    assert rows[1] == {"st": {"a": 1, "b": {"c": 7, "d": 3}}, "arr": [{"x": 1, "y": 2}]}
    assert rows[2] == {"st": {"a": None, "b": {"c": 7, "d": None}}, "arr": None}
    for clause, code in (
        (update(st__b__c="s.n", st__b="null"), "DELTA_CONFLICT_SET_COLUMN"),
        (update(arr__x="s.n"), "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE"),
        (
            MergeClause("not_matched", "insert", None, {"st.a": "s.n"}),
            "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
        ),
    ):
        with pytest.raises(UserError, match=code):
            merge(spark, path, "SELECT 1 id, 7 n", clause)


def test_structs_are_assigned_by_the_names_of_their_fields(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")
    source = "SELECT 1 id, named_struct('b', named_struct('d', 7L, 'c', 8), 'a', '9') st"

    assert merge(spark, path, source, update(st="s.st")) == (1, 0, 0)

    assert rows_of(spark, path)[1]["st"] == {"a": 9, "b": {"c": 8, "d": 7}}
    for fields in ("'a', 99", "'a', 99, 'b', named_struct('d', 7, 'c', 8), 'z', 1"):
        with pytest.raises(UserError, match="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"):
            merge(spark, path, f"SELECT 1 id, named_struct({fields}) st", update(st="s.st"))
    with pytest.raises(UserError, match="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"):
        merge(spark, path, "SELECT 1 id, array(named_struct('y', 99)) arr", update(arr="s.arr"))
    merge(spark, path, "SELECT 1 id, array(named_struct('y', 99, 'x', 1L)) arr", update(arr="s.arr"))
    assert rows_of(spark, path)[1]["arr"] == [{"x": 1, "y": 99}]


def test_a_name_behind_the_targets_alias_brings_what_the_source_has_below_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Any value may be assigned; but no name that the target lacks may follow its alias."""
    path = made(spark, tmp_path / "t")
    source = "SELECT 1 id, named_struct('a', 7, 'n', 8) st, array(named_struct('x', 1, 'y', 2, 'n', 3)) arr, 5 z"

    value = "named_struct('a', 9, 'b', named_struct('c', 1, 'd', 2))"
    assert merge(spark, path, source, update(t__st=value), evolve=True) == (1, 0, 0)
    assert rows_of(spark, path)[1]["st"] == {"a": 9, "b": {"c": 1, "d": 2}, "n": None}
    assert merge(spark, path, source, update(T__arr="s.arr"), evolve=True) == (1, 0, 0)
    assert rows_of(spark, path)[1]["arr"] == [{"x": 1, "y": 2, "n": 3}]
    for absent in ("t__z", "t__st__z"):
        with pytest.raises(UserError, match="DELTA_MERGE_UNRESOLVED_EXPRESSION"):
            merge(spark, path, source, update(**{absent: "s.z"}), evolve=True)


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_star_adds_the_columns_of_the_source(spark: SparkSession, tmp_path: Path, mapping: str) -> None:
    """A field that the source lacks is null in new rows, and stays in updated ones, inside of structs too."""
    path = made(spark, tmp_path / "t", **{"delta.columnMapping.mode": mapping, "delta.enableChangeDataFeed": "true"})

    counts = merge(spark, path, "SELECT explode(array(1, 5)) id, 5 z", UPDATE_ALL, INSERT_ALL, evolve=True)

    assert counts == (1, 0, 1)
    rows = rows_of(spark, path)
    assert rows[1] == {"st": {"a": 1, "b": {"c": 2, "d": 3}}, "arr": [{"x": 1, "y": 2}], "z": 5}
    assert rows[5] == {"st": None, "arr": None, "z": 5}
    assert rows[2]["z"] is None

    source = "SELECT explode(array(1, 6)) id, named_struct('a', 77, 'q', 1) st"
    assert merge(spark, path, source, UPDATE_ALL, INSERT_ALL, evolve=True) == (1, 0, 1)
    rows = rows_of(spark, path)
    assert rows[1]["st"] == {"a": 77, "b": {"c": 2, "d": 3}, "q": 1}
    assert rows[1]["z"] == 5
    assert rows[6]["st"] == {"a": 77, "b": None, "q": 1}

    source = "SELECT 1 id, CAST(null AS struct<a: int>) st, array(named_struct('y', 9, 'w', 8)) arr"
    merge(spark, path, source, UPDATE_ALL, evolve=True)
    assert rows_of(spark, path)[1]["st"] == {"a": None, "b": {"c": 2, "d": 3}, "q": 1}
    assert rows_of(spark, path)[1]["arr"] == [{"x": None, "y": 9, "w": 8}]


def test_only_what_is_assigned_is_added(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t", "id int, v int", [(1, 1), (2, 2)])
    source = "SELECT 1 id, 5 w, 6 other, named_struct('p', 1, 'q', 2) st"

    merge(spark, path, source, update(w="s.w + 1"), evolve=True)
    merge(spark, path, source, update(st__q="s.st.q * 10"), evolve=True)
    insert = MergeClause("not_matched", "insert", None, {"id": "s.id", "other": "s.other"})
    merge(spark, path, "SELECT 9 id, 5 w, 7 other", insert, evolve=True)

    rows = rows_of(spark, path)
    assert rows[1] == {"v": 1, "w": 6, "st": {"q": 20}, "other": None}
    assert rows[9] == {"v": None, "w": None, "st": None, "other": 7}
    with pytest.raises(UserError, match="DELTA_MERGE_UNRESOLVED_EXPRESSION"):
        merge(spark, path, source, update(nope="s.w"), evolve=True)
    by_source = MergeClause("not_matched_by_source", "update", None, {"z": "1"})
    with pytest.raises(UserError, match="DELTA_MERGE_UNRESOLVED_EXPRESSION"):
        merge(spark, path, "SELECT 1 id, 5 z", by_source, evolve=True)
    assert merge(spark, path, "SELECT 1 id, 5 z", DELETE, evolve=True) == (0, 1, 0)
    assert load_snapshot(path).schema.names == ("id", "v", "w", "st", "other")


def test_a_schema_may_evolve_where_no_row_changes(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t", "id int, v int", [(1, 1)])

    assert merge(spark, path, "SELECT 99 id, 5 z", UPDATE_ALL, evolve=True) == (0, 0, 0)

    assert load_snapshot(path).schema.names == ("id", "v", "z")


def test_types_stay_where_columns_may_not_become_wider(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t", "id int, v int", [(1, 1)])
    merge(spark, path, "SELECT 1L id, 7L v", UPDATE_ALL, evolve=True)
    assert [str(f.data_type) for f in load_snapshot(path).schema] == [
        "PrimitiveType(name='integer')",
        "PrimitiveType(name='integer')",
    ]
    path = made(spark, tmp_path / "w", "id int, v int", [(1, 1), (2, 2)], **{"delta.enableTypeWidening": "true"})
    merge(spark, path, "SELECT 1 id, 3000000000L v", UPDATE_ALL, evolve=True)
    assert {i: row["v"] for i, row in rows_of(spark, path).items()} == {1: 3_000_000_000, 2: 2}


def with_made_columns(path: Path) -> Path:
    """A default, a generated column and an identity column."""
    table = TableBuilder(
        path,
        {
            "type": "struct",
            "fields": [
                {"name": "id", "type": "integer", "nullable": True, "metadata": {}},
                {"name": "v", "type": "integer", "nullable": True, "metadata": {"CURRENT_DEFAULT": "42"}},
                {
                    "name": "g",
                    "type": "integer",
                    "nullable": True,
                    "metadata": {"delta.generationExpression": "v * 2"},
                },
                {
                    "name": "i",
                    "type": "long",
                    "nullable": True,
                    "metadata": {
                        "delta.identity.start": 1,
                        "delta.identity.step": 1,
                        "delta.identity.highWaterMark": 2,
                        "delta.identity.allowExplicitInsert": True,
                    },
                },
            ],
        },
        properties={"delta.enableDeletionVectors": "true"},
        features=(
            ["deletionVectors"],
            ["deletionVectors", "allowColumnDefaults", "generatedColumns", "identityColumns"],
        ),
    )
    table.create()
    table.append([{"id": 1, "v": 1, "g": 2, "i": 1}, {"id": 2, "v": 2, "g": 4, "i": 2}])
    return path


def test_columns_that_the_table_makes(spark: SparkSession, tmp_path: Path) -> None:
    path = with_made_columns(tmp_path / "t")
    source = "SELECT explode(array(1, 10)) id, 100 n"

    insert = MergeClause("not_matched", "insert", None, {"id": "s.id"})
    assert merge(spark, path, source, update(v="s.n"), insert) == (1, 0, 1)

    rows = rows_of(spark, path)
    assert rows[1] == {"v": 100, "g": 200, "i": 1}
    assert rows[2] == {"v": 2, "g": 4, "i": 2}
    assert {k: rows[10][k] for k in ("v", "g")} == {"v": 42, "g": 84}
    assert rows[10]["i"] > 2

    assert merge(spark, path, source, update("s.id = 1", v="5", g="10"), update(v="6")) == (2, 0, 0)
    assert [rows_of(spark, path)[i]["g"] for i in (1, 10)] == [10, 12]
    with pytest.raises(DeltaError, match=r"DELTA_VIOLATE_CONSTRAINT_WITH_VALUES|generated column"):
        merge(spark, path, source, update(v="5", g="11"))
    with pytest.raises(UserError, match="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"):
        merge(spark, path, source, update(i="5"))
    with pytest.raises(UserError, match=r"DELTA_MERGE_UNRESOLVED_EXPRESSION.*Cannot resolve g"):
        merge(spark, path, "SELECT 1 id, 5 v", UPDATE_ALL)

    clauses = (
        MergeClause("not_matched", "insert", "s.id = 20", {"id": "s.id", "v": "1"}),
        MergeClause("not_matched", "insert", None, {"id": "s.id"}),
    )
    assert merge(spark, path, "SELECT explode(array(20, 21)) id", *clauses) == (0, 0, 2)
    rows = rows_of(spark, path)
    assert [(rows[i]["v"], rows[i]["g"]) for i in (20, 21)] == [(1, 2), (42, 84)]
    assert len({row["i"] for row in rows.values()}) == 5

    source = "SELECT explode(array(1, 30)) id, 3 v"
    assert merge(spark, path, source, UPDATE_ALL, INSERT_ALL, evolve=True) == (1, 0, 1)
    rows = rows_of(spark, path)
    assert [(rows[i]["v"], rows[i]["g"]) for i in (1, 30)] == [(3, 6), (3, 6)]
    assert rows[1]["i"] == 1
    # * assigns what the source has, an identity column too
    with pytest.raises(UserError, match="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"):
        merge(spark, path, "SELECT 1 id, 1 v, 2 g, 77L i", UPDATE_ALL)
