"""Merges in this process: which files they read, the table's rules, and what is left after an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.commands.row_changes.commit_rows import commit_rows
from delta_pyds.commands.row_changes.merge import MergePlan, run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.errors import (
    ConcurrentAppendError,
    ConflictError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
)
from delta_pyds.table.snapshot import load_snapshot
from tests.support.change_feed import ENABLED as CHANGES
from tests.support.change_feed import change_rows
from tests.support.planned_changes import planned_merge
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, struct, write_rows

SCHEMA = {"id": "long", "v": "integer"}
UPDATE = MergeClause("matched", "update")
DELETE = MergeClause("matched", "delete")
INSERT = MergeClause("not_matched", "insert")


def planned(
    path: Path,
    source: Sequence[Mapping[str, Any]],
    *clauses: MergeClause[str],
    on: str = "t.id = s.id",
    schema: Any = None,
) -> MergePlan:
    columns = struct(schema or SCHEMA)
    rows = pa.Table.from_pylist(list(source), arrow_schema(columns))
    parameters = {"predicate": '["(id = id)"]'}
    return planned_merge(load_snapshot(str(path)), on, clauses, rows, columns, CommandOptions(), parameters=parameters)


def run(plan: MergePlan) -> RowChangeResult:
    return run_merge(plan, Place("process", "a test"))


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in read_rows(path)), key=repr)


def numbered(first: int, count: int = 10) -> list[dict[str, Any]]:
    return [{"id": n, "v": 0} for n in range(first, first + count)]


def test_only_files_are_read_that_the_keys_may_be_in(tmp_path: Path) -> None:
    write_rows(tmp_path / "t", SCHEMA, [numbered(10 * n) for n in range(20)])

    assert planned(tmp_path / "t", [{"id": 55, "v": 1}, {"id": 57, "v": 1}], UPDATE).num_files == 1
    assert planned(tmp_path / "t", [{"id": 55, "v": 1}, {"id": 159, "v": 1}], UPDATE).num_files == 2
    assert planned(tmp_path / "t", [{"id": None, "v": 1}], UPDATE).num_files == 0
    assert planned(tmp_path / "t", [], UPDATE).num_files == 0
    by_source = MergeClause("not_matched_by_source", "delete", "t.v > 3")
    assert planned(tmp_path / "t", [{"id": 55, "v": 1}], UPDATE, by_source).num_files == 20


def test_many_keys_are_held_against_files_as_ranges(tmp_path: Path) -> None:
    write_rows(tmp_path / "t", SCHEMA, [numbered(1000 * n, 5) for n in range(20)])
    source = [{"id": n, "v": 1} for n in [*range(1100, 1900), *range(7000, 7800)]]

    plan = planned(tmp_path / "t", source, UPDATE, INSERT)

    assert plan.num_files == 1
    assert run(plan).num_updated_rows == 5


@pytest.mark.parametrize("kind", ["integer", "short", "long", "decimal(20,0)"])
def test_keys_of_another_type_prune_where_they_can(tmp_path: Path, kind: str) -> None:
    write_rows(tmp_path / "t", {"id": "integer", "v": "integer"}, [numbered(10 * n) for n in range(3)])
    schema = {"id": kind, "v": "integer"}

    plan = planned(tmp_path / "t", [{"id": 15, "v": 1}, {"id": 99, "v": 1}], UPDATE, schema=schema)

    assert plan.num_files <= (3 if "decimal" in kind else 1)
    assert run(plan).num_updated_rows == 1


def test_keys_beyond_the_columns_type_meet_nothing(tmp_path: Path) -> None:
    write_rows(tmp_path / "t", {"id": "integer", "v": "integer"}, numbered(0))
    update = MergeClause("matched", "update", None, {"v": "s.v"})

    result = run(planned(tmp_path / "t", [{"id": 1 << 32, "v": 1}, {"id": 3, "v": 1}], update))

    assert result.num_updated_rows == 1
    assert (3, 1) in rows_of(tmp_path / "t")


def test_partitions_are_pruned_and_a_row_may_move_to_another(tmp_path: Path) -> None:
    schema = {"id": "long", "p": "string"}
    write_rows(tmp_path / "t", schema, [{"id": n, "p": "ab"[n % 2]} for n in range(4)], partition_by=(("p",),))
    source = [{"id": 1, "p": "b"}, {"id": 9, "p": "b"}]
    update = MergeClause("matched", "update", None, {"p": "'c'"})

    plan = planned(tmp_path / "t", source, update, INSERT, on="t.id = s.id AND t.p = s.p", schema=schema)

    assert plan.num_files == 1
    assert run(plan).num_affected_rows == 2
    assert rows_of(tmp_path / "t") == [(0, "a"), (1, "c"), (2, "a"), (3, "b"), (9, "b")]


def test_a_merge_that_changes_nothing_makes_no_version(tmp_path: Path) -> None:
    write_rows(tmp_path / "t", SCHEMA, numbered(0))

    assert run(planned(tmp_path / "t", [{"id": 70, "v": 1}], UPDATE)).version is None
    assert load_snapshot(str(tmp_path / "t")).version == 0


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_an_error_leaves_the_table_and_its_folder_as_they_were(tmp_path: Path, vectors: str) -> None:
    path = tmp_path / "t"
    properties = {"delta.enableDeletionVectors": vectors, "delta.constraints.small": "v < 5"}
    write_rows(path, SCHEMA, [numbered(0), numbered(10)], properties=properties)
    before = sorted(path.rglob("*"))

    with pytest.raises(ConstraintViolationError, match="small"):
        run(planned(path, [{"id": 1, "v": 1}, {"id": 11, "v": 4}, {"id": 50, "v": 5}], UPDATE, INSERT))
    with pytest.raises(DeltaError, match="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"):
        run(planned(path, [{"id": 1, "v": 1}, {"id": 11, "v": 1}, {"id": 11, "v": 2}], UPDATE))

    assert sorted(path.rglob("*")) == before


def test_a_condition_over_both_tables_may_refuse_a_row(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_rows(path, SCHEMA, numbered(0, 3))
    refusing = "CASE WHEN s.v > t.v THEN true ELSE raise_error(concat('id ', CAST(s.id AS STRING))) END"
    update = MergeClause("matched", "update", refusing)

    assert run(planned(path, [{"id": 1, "v": 5}, {"id": 9, "v": -1}], update)).num_updated_rows == 1
    with pytest.raises(ExpressionError, match=r"USER_RAISED_EXCEPTION.*id 2"):
        run(planned(path, [{"id": 0, "v": 1}, {"id": 2, "v": 0}], update))
    assert rows_of(path) == [(0, 0), (1, 5), (2, 0)]


def test_no_expression_over_one_table_may_raise_its_text(tmp_path: Path) -> None:
    generated = {"delta.generationExpression": "raise_error('text of the table')"}
    own = MergeClause("not_matched", "insert", "raise_error('no') IS NULL")
    table = TableBuilder(tmp_path / "g", SCHEMA)
    table.create()
    with pytest.raises(ExpressionError, match="raise_error is not supported"):
        run(planned(tmp_path / "g", [{"id": 1, "v": 0}], own))
    schema = {"type": "struct", "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "v", "type": "integer", "nullable": True, "metadata": generated},
    ]}  # fmt: skip
    features = ([], ["generatedColumns"])
    TableBuilder(tmp_path / "h", schema, features=features).create()
    with pytest.raises(ExpressionError, match="raise_error is not supported"):
        run(planned(tmp_path / "h", [{"id": 1}], MergeClause("not_matched", "insert", None, {"id": "s.id"})))


def test_several_rows_on_one_only_delete_it_or_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_rows(path, SCHEMA, numbered(0, 3))
    twice = [{"id": 1, "v": 1}, {"id": 1, "v": 2}, {"id": 7, "v": 1}, {"id": 7, "v": 2}]

    assert run(planned(path, twice, INSERT)).num_inserted_rows == 2
    assert run(planned(path, twice, DELETE)).num_deleted_rows == 3
    assert rows_of(path) == [(0, 0), (2, 0)]


def test_made_columns_are_made_and_identity_values_stay(tmp_path: Path) -> None:
    path = tmp_path / "t"
    identity = {"delta.identity.start": 100, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    made = {"n": identity, "twice": {"delta.generationExpression": "id * 2"}, "d": {"CURRENT_DEFAULT": "'new'"}}
    types = {"id": "long", "n": "long", "twice": "long", "d": "string"}
    fields = [{"name": n, "type": t, "nullable": True, "metadata": made.get(n, {})} for n, t in types.items()]
    features = ["identityColumns", "generatedColumns", "allowColumnDefaults"]
    table = TableBuilder(path, {"type": "struct", "fields": fields}, protocol=(3, 7), features=([], features))
    table.create()
    write_rows(path, {"id": "long"}, [{"id": 1}, {"id": 2}])
    first = {row["id"]: row["n"] for row in read_rows(path)}
    update = MergeClause("matched", "update", None, {"id": "t.id + 10", "d": "'old'"})
    insert = MergeClause("not_matched", "insert", None, {"id": "s.id"})

    result = run(planned(path, [{"id": 2, "v": 0}, {"id": 3, "v": 0}], update, insert))

    rows = {row["id"]: row for row in read_rows(path)}
    assert (result.num_updated_rows, result.num_inserted_rows) == (1, 1)
    assert rows[12] == {"id": 12, "n": first[2], "twice": 24, "d": "old"}
    assert rows[3]["n"] not in first.values()
    assert (rows[3]["twice"], rows[3]["d"]) == (6, "new")


def test_an_append_only_table_takes_new_rows_alone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_rows(path, SCHEMA, numbered(0, 3), properties={"delta.appendOnly": "true"})

    assert run(planned(path, [{"id": 1, "v": 1}, {"id": 9, "v": 1}], INSERT)).num_inserted_rows == 1
    with pytest.raises(DeltaError, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        planned(path, [{"id": 1, "v": 1}], UPDATE)


@pytest.mark.parametrize("mended", [True, False])
def test_rows_that_others_appended_meanwhile_may_have_met_the_source(tmp_path: Path, mended: bool) -> None:
    path = tmp_path / "t"
    write_rows(path, SCHEMA, numbered(0, 3))
    plan = planned(path, [{"id": 9, "v": 1}], UPDATE, INSERT)
    plan = replace(
        plan, change=replace(plan.change, options=replace(plan.change.options, row_level_concurrency=mended))
    )
    write_rows(path, SCHEMA, [{"id": 9, "v": 0}])

    if mended:
        result = run(plan)
        assert (result.num_updated_rows, result.num_inserted_rows) == (1, 0)
        assert rows_of(path) == [(0, 0), (1, 0), (2, 0), (9, 1)]
        return
    with pytest.raises(ConcurrentAppendError):
        run(plan)
    assert rows_of(path) == [(0, 0), (1, 0), (2, 0), (9, 0)]


def test_a_file_that_a_vacuum_deleted_after_a_winner_replaced_it_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    write_rows(path, SCHEMA, numbered(0, 3), properties={"delta.enableDeletionVectors": "true"})
    plan = planned(path, [{"id": 1, "v": 7}, {"id": 9, "v": 1}], UPDATE, INSERT)
    before = list(path.glob("*.parquet"))

    def late(*given: Any, **more: Any) -> RowChangeResult:
        write_rows(path, SCHEMA, [{"id": 1, "v": 5}], mode="overwrite")
        for file in before:
            file.unlink()
        return commit_rows(*given, **more)

    monkeypatch.setattr("delta_pyds.commands.row_changes.merge.commit_rows", late)
    with pytest.raises(ConflictError):
        run(plan)
    assert rows_of(path) == [(1, 5)]


def test_the_commit_says_what_the_merge_did(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_rows(path, SCHEMA, [numbered(0), numbered(10)], properties={"delta.enableDeletionVectors": "true"})
    delete = MergeClause("matched", "delete", "s.v < 0")

    result = run(planned(path, [{"id": 1, "v": -1}, {"id": 11, "v": 1}, {"id": 50, "v": 5}], delete, UPDATE, INSERT))

    commit = json.loads((path / "_delta_log" / f"{result.version:020}.json").read_text().splitlines()[0])["commitInfo"]
    assert commit["operation"] == "MERGE"
    metrics = {k: int(v) for k, v in commit["operationMetrics"].items()}
    assert metrics["numSourceRows"] == 3
    assert metrics["numTargetRowsMatchedUpdated"] == metrics["numTargetRowsMatchedDeleted"] == 1
    assert metrics["numTargetRowsInserted"] == 1
    assert metrics["numTargetDeletionVectorsAdded"] == 2


@pytest.mark.parametrize("key", [70, 3], ids=["nothing is met", "a row is met and kept"])
def test_rows_that_only_came_need_no_change_file(tmp_path: Path, key: int) -> None:
    path = tmp_path / "t"
    write_rows(path, SCHEMA, numbered(0), properties=CHANGES)
    update = MergeClause("matched", "update", "s.v > 5")

    result = run(planned(path, [{"id": key, "v": 1}, {"id": 71, "v": 1}], update, INSERT))

    assert not list(path.rglob("cdc-*"))
    changes = [(row["_change_type"], row["id"]) for row in change_rows(path, result.version or 0)]
    assert sorted(changes) == [("insert", n) for n in sorted({key, 71} - {3})]
