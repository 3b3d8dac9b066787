"""Rows on their way: positions, new files, change files, and what may not be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.columnar.roaring import deserialize
from delta_pyds.columnar.row_origins import source_rows, table_rows, unpack
from delta_pyds.data.row_changes.changed_rows import ChangedRows
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import ConstraintViolationError, DeltaError, OptionError, UserError
from delta_pyds.expr.nodes import Column, Comparison, Literal
from delta_pyds.protocol.schema import LONG, STRING, StructField, StructType
from delta_pyds.tasks.changed_rows import (
    ACTION_COLUMN,
    CHECK_PREFIX,
    FILE_COLUMN,
    NEW_PREFIX,
    OLD_PREFIX,
    POSITION_COLUMN,
    ROW_ID_COLUMN,
    SOURCE_ROW_COLUMN,
    Action,
    ChangeState,
)
from delta_pyds.tasks.scan_state import RowIdColumns
from delta_pyds.tasks.write_state import Check, ColumnSource, IdentityColumn, SessionExpression, TaskOutput
from tests.support.writes import on_disk, read_back, write_state

SCHEMA = StructType((StructField("id", LONG), StructField("v", STRING)))
UPDATE, DELETE, INSERT, KEEP = Action.UPDATE, Action.DELETE, Action.INSERT, Action.KEEP
LATER = Action.UPDATE_NOT_MATCHED_BY_SOURCE
Row = tuple[Any, ...]


def rows(*some: Row, **more: pa.Array) -> pa.RecordBatch:
    """Rows of (file, position, action, new id, new v, old id, old v); what comes last may be left out."""
    full = [(*row, *[None] * (7 - len(row))) for row in some]
    columns = list(zip(*full, strict=True))
    kind = pa.string() if any(isinstance(f, str) for f in columns[0]) else pa.int32()
    types = [kind, pa.int64(), pa.int8(), pa.int64(), pa.string(), pa.int64(), pa.string()]
    names = [FILE_COLUMN, POSITION_COLUMN, ACTION_COLUMN]
    names += [f"{NEW_PREFIX}0", f"{NEW_PREFIX}1", f"{OLD_PREFIX}0", f"{OLD_PREFIX}1"]
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays([*arrays, *more.values()], names=[*names, *more])


def done(state: ChangeState, *batches: pa.RecordBatch, partition: int = 0) -> TaskOutput:
    changed = ChangedRows(state, TaskSession(partition))
    for batch in batches:
        changed.take(batch)
    return changed.close()


def found(output: TaskOutput) -> dict[int | str, list[int]]:
    return {one.file: list(deserialize(one.positions)) for one in output.found}


def kept(output: TaskOutput) -> dict[int | str, list[int]]:
    return {one.file: list(deserialize(one.kept)) for one in output.found if one.kept is not None}


def plain(root: Path, **more: Any) -> ChangeState:
    return ChangeState(write_state(root, SCHEMA), **more)


def test_deletes_are_positions_and_no_files(tmp_path: Path) -> None:
    output = done(plain(tmp_path), rows((1, 7, DELETE), (0, 2, DELETE), (1, 3, DELETE)), rows((0, 1, DELETE)))

    assert found(output) == {1: [3, 7], 0: [1, 2]}
    assert output.counts == {DELETE: 4}
    assert output.files == output.change_files == ()
    assert list(tmp_path.iterdir()) == []


def test_updates_and_inserts_are_written_and_a_kept_row_is_not(tmp_path: Path) -> None:
    state = plain(tmp_path, one_match=True)
    output = done(
        state,
        rows(("a.parquet", 0, UPDATE, 1, "new"), (None, None, INSERT, 9, "i"), ("b.parquet", 5, KEEP, 0, "not")),
        rows(("b.parquet", 4, LATER, 2, "by source")),
    )

    assert read_back(state.write, *output.files).to_pylist() == [
        {"id": 1, "v": "new"},
        {"id": 9, "v": "i"},
        {"id": 2, "v": "by source"},
    ]
    assert found(output) == {"a.parquet": [0], "b.parquet": [4]}
    assert kept(output) == {"b.parquet": [5]}
    assert output.counts == {UPDATE: 1, INSERT: 1, KEEP: 1, LATER: 1}


@pytest.mark.parametrize("second", [(0, 3, KEEP), (0, 3, DELETE), (0, 3, UPDATE, 1, "b")])
@pytest.mark.parametrize("in_one_batch", [True, False])
def test_a_row_that_is_matched_twice_is_an_error(tmp_path: Path, second: Row, in_one_batch: bool) -> None:
    first = (0, 3, UPDATE, 1, "a")
    batches = [rows(first, second)] if in_one_batch else [rows(first), rows(second)]
    with pytest.raises(UserError) as caught:
        done(plain(tmp_path, one_match=True), *batches)
    assert caught.value.code == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"


def test_a_row_that_is_kept_and_then_changed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        done(plain(tmp_path, one_match=True), rows((0, 3, KEEP)), rows((0, 3, DELETE)))


def test_where_it_is_no_error_a_row_leaves_once(tmp_path: Path) -> None:
    state = plain(tmp_path, change_data=True)
    twice = (0, 3, DELETE, None, None, 7, "old")
    output = done(state, rows(twice, twice), rows(twice, (0, 4, DELETE, None, None, 8, "old")))

    assert found(output) == {0: [3, 4]}
    assert output.counts == {DELETE: 2}
    assert [file.num_records for file in output.change_files] == [2]


def test_a_row_that_gets_two_values_is_an_error_always(tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match="was given twice"):
        done(plain(tmp_path), rows((0, 3, UPDATE, 1, "a"), (0, 3, UPDATE, 1, "b")))


@pytest.mark.parametrize("bad", [(None, 3, DELETE), (0, None, DELETE), (0, -1, DELETE), (0, 3, None)])
def test_a_row_that_does_not_say_which_it_is_is_an_error(tmp_path: Path, bad: Row) -> None:
    with pytest.raises(DeltaError, match=r"has no (file|action)"):
        done(plain(tmp_path), rows(bad))


def test_change_files_have_the_values_before_and_after(tmp_path: Path) -> None:
    state = plain(tmp_path, change_data=True)
    output = done(
        state,
        rows(
            (0, 0, UPDATE, 1, "new", 1, "old"),
            (0, 1, DELETE, None, None, 2, "gone"),
            (None, None, INSERT, 3, "i"),
        ),
    )

    [file] = output.change_files
    assert file.path.startswith("_change_data/")
    assert sorted(pq.read_table(on_disk(state.write, file)).to_pylist(), key=lambda r: (r["id"], r["v"])) == [
        {"id": 1, "v": "new", "_change_type": "update_postimage"},
        {"id": 1, "v": "old", "_change_type": "update_preimage"},
        {"id": 2, "v": "gone", "_change_type": "delete"},
        {"id": 3, "v": "i", "_change_type": "insert"},
    ]


def test_a_column_that_the_table_did_not_have_was_null(tmp_path: Path) -> None:
    state = plain(tmp_path, change_data=True)
    batch = rows((0, 0, UPDATE, 1, "new", 1, None)).drop_columns([f"{OLD_PREFIX}1"])
    [file] = done(state, batch).change_files
    assert pq.read_table(on_disk(state.write, file)).column("v").to_pylist() == [None, "new"]


def test_updated_rows_keep_their_ids(tmp_path: Path) -> None:
    state = plain(tmp_path, row_id_columns=RowIdColumns("_id", "_version"), base_row_ids={"0": 100, "1": 200})
    ids = pa.array([None, 55, None], pa.int64())
    batch = rows((0, 3, UPDATE, 1, "a"), (1, 4, UPDATE, 2, "b"), (None, None, INSERT, 3, "c"), **{ROW_ID_COLUMN: ids})
    files = done(state, batch).files

    tables = [pq.read_table(on_disk(state.write, file)) for file in files]
    assert sorted(pa.concat_tables(tables).to_pylist(), key=lambda r: r["id"]) == [
        {"id": 1, "v": "a", "_id": 103, "_version": None},
        {"id": 2, "v": "b", "_id": 55, "_version": None},
        {"id": 3, "v": "c", "_id": None, "_version": None},
    ]
    without = batch.drop_columns([ROW_ID_COLUMN]).slice(0, 1)
    [file] = done(state, without).files
    assert pq.read_table(on_disk(state.write, file)).column("_id").to_pylist() == [103]


def test_a_row_without_an_id_is_an_error(tmp_path: Path) -> None:
    state = plain(tmp_path, row_id_columns=RowIdColumns("_id", "_version"))
    with pytest.raises(DeltaError, match="row id"):
        done(state, rows((0, 3, UPDATE, 1, "a")))


POSITIVE = Comparison(">", Column(("id",), LONG), Literal(0, LONG))


def checked(root: Path) -> ChangeState:
    check = Check("check", "positive", SessionExpression("id > 0", POSITIVE, POSITIVE))
    return ChangeState(replace(write_state(root, SCHEMA), checks=(check,)))


def test_constraints_hold_for_written_rows_alone(tmp_path: Path) -> None:
    done(checked(tmp_path), rows((0, 1, DELETE, -1, None)))
    with pytest.raises(ConstraintViolationError, match="id : -1"):
        done(checked(tmp_path), rows((0, 1, UPDATE, -1, None)))


@pytest.mark.parametrize("passed", [False, None])
def test_what_spark_has_evaluated_is_believed(tmp_path: Path, passed: bool | None) -> None:
    def with_verdict(verdict: bool | None) -> pa.RecordBatch:
        column = pa.array([verdict, False], pa.bool_())
        # our own evaluator would refuse the updated row
        return rows((0, 1, UPDATE, -1, "u"), (0, 2, DELETE), **{f"{CHECK_PREFIX}0": column})

    assert done(checked(tmp_path), with_verdict(True)).counts == {UPDATE: 1, DELETE: 1}
    with pytest.raises(ConstraintViolationError, match="positive") as caught:
        done(checked(tmp_path), with_verdict(passed))
    assert str(caught.value).endswith("values:\n - id : -1")


def test_inserted_rows_get_identity_values_and_updated_ones_keep_theirs(tmp_path: Path) -> None:
    write = write_state(tmp_path, SCHEMA)
    identity = IdentityColumn(start=10, step=1, high_water_mark=None, allow_explicit_insert=False)
    columns = (ColumnSource(SCHEMA.fields[0], "identity", identity=identity), write.columns[1])
    state = ChangeState(write, insert_columns=columns)
    output = done(state, rows((0, 1, UPDATE, 3, "u"), (None, None, INSERT, None, "i"), (None, None, INSERT, 77, "j")))

    assert read_back(write, *output.files).to_pylist() == [
        {"id": 3, "v": "u"},
        {"id": 10, "v": "i"},
        {"id": 11, "v": "j"},
    ]
    assert output.identity_marks == {"id": 11}


def test_a_column_that_should_come_and_does_not_is_an_error(tmp_path: Path) -> None:
    batch = rows((0, 1, UPDATE, 3, "u")).drop_columns([f"{NEW_PREFIX}1"])
    with pytest.raises(DeltaError, match="'v'"):
        done(plain(tmp_path), batch)


def test_the_rows_of_the_source_that_matched_are_gathered(tmp_path: Path) -> None:
    numbers = pa.array([4, 5, 6, 7], pa.int64())
    batch = rows(
        (0, 1, DELETE), (0, 2, KEEP), (None, None, INSERT, 1, "i"), (0, 3, UPDATE, 1, "u"),
        **{SOURCE_ROW_COLUMN: numbers},
    )  # fmt: skip
    output = done(plain(tmp_path, one_match=True), batch)
    assert output.matched_source_rows is not None
    assert list(deserialize(output.matched_source_rows)) == [4, 5, 7]


def test_discarding_leaves_no_file(tmp_path: Path) -> None:
    changed = ChangedRows(plain(tmp_path, change_data=True), TaskSession(0))
    changed.take(rows((0, 0, UPDATE, 1, "new", 1, "old")))
    changed.close()
    assert [p for p in tmp_path.rglob("*") if p.is_file()]
    changed.discard()
    changed.discard()
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_no_rows_are_no_work(tmp_path: Path) -> None:
    assert done(plain(tmp_path), rows((0, 0, DELETE)).slice(0, 0)) == TaskOutput()


def test_written_rows_have_origins_unless_they_are_too_large(tmp_path: Path) -> None:
    """Rows of the table by file and position, inserted rows by the source's number."""
    batch = rows(
        ("b", 5, UPDATE, 1, "x"),
        ("a", 3, UPDATE, 2, "y"),
        (None, None, INSERT, 9, "i"),
        **{SOURCE_ROW_COLUMN: pa.array([None, None, 7], pa.int64())},
    )
    output = done(plain(tmp_path, with_origins=True), batch)

    [file] = output.files
    assert file.origins is not None
    origins = unpack(file.origins)
    by_file = {output.origin_files[i]: table_rows(origins, i)[1].to_pylist() for i in range(len(output.origin_files))}
    assert {name: by_file[name] for name in ("a", "b")} == {"a": [3], "b": [5]}
    assert source_rows(origins)[1].to_pylist() == [7]
    # no matched row had a number
    assert output.matched_source_rows is None

    limited = plain(tmp_path, with_origins=True, most_origin_bytes=len(file.origins) - 1)
    assert [file.origins for file in done(limited, batch).files] == [None]


def test_another_time_zone_than_at_the_start_of_the_command(tmp_path: Path) -> None:
    """A merge has no option for it."""
    check = Check("check", "c", SessionExpression("v > 0", Column("v", STRING), None, uses_time_zone=True))
    state = ChangeState(write_state(tmp_path, SCHEMA, checks=(check,), time_zone="UTC"))
    with pytest.raises(OptionError, match="was UTC when this command began, and is Asia/Tokyo now") as caught:
        ChangedRows(state, TaskSession(0, time_zone="Asia/Tokyo"))
    assert ".option(" not in str(caught.value) and caught.value.parameters["option"] == "timeZone"
    ChangedRows(state, TaskSession(0, time_zone="Etc/UTC")).close()
