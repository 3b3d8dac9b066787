"""Shallow clones: the source's rows by absolute paths, a life of their own, and nothing of the source touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from delta_pyds.commands.maintenance.clone import CloneOptions, CloneResult, shallow_clone
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum
from delta_pyds.commands.row_changes.commit_rows import local_runner
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.errors import OptionError, StorageError, UserError
from delta_pyds.storage.local import LocalStorage
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.snapshot import load_snapshot
from tests.support.planned_changes import planned_update
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, write_rows

SCHEMA = {"id": "long", "p": "string"}


@pytest.fixture
def source(tmp_path: Path) -> TableBuilder:
    """In a directory with a space; partitions that are encoded twice; a vector in a file, and one inline."""
    table = TableBuilder(
        tmp_path / "so urce",
        SCHEMA,
        ["p"],
        {"delta.enableDeletionVectors": "true", "x": "y", "delta.enableInCommitTimestamps": "true"},
    )
    table.create()
    adds = table.append([{"id": n, "p": p} for n, p in ((1, "a b"), (2, "a b"), (3, "c%20"), (4, "c%20"))])
    table.delete(adds[0], [0])
    table.delete(adds[1], [1], storage="i")
    return table


def clone(source: Path, target: Path, version: int | None = None, **options: Any) -> CloneResult:
    snapshot = load_snapshot(str(source), version=version)
    return shallow_clone(snapshot, LocalStorage(), str(target), CloneOptions(**options))


def ids(path: Path) -> list[int]:
    return sorted(row["id"] for row in read_rows(path))


def test_a_clone_reads_the_same_and_copies_nothing(source: TableBuilder, tmp_path: Path) -> None:
    target = tmp_path / "deep er" / "target"
    result = clone(source.path, target)
    assert ids(target) == ids(source.path) == [2, 3]
    assert [path for path in target.rglob("*") if path.is_file() and "_delta_log" not in path.parts] == []
    snapshot, original = load_snapshot(str(target)), load_snapshot(str(source.path))
    assert result == CloneResult(0, original.totals.size_bytes, 2, 0, 0, 0, 0)
    assert snapshot.schema == original.schema
    assert snapshot.protocol == original.protocol
    assert snapshot.metadata.id != original.metadata.id
    assert snapshot.configuration.configuration["x"] == "y"
    assert not delta_pyds.verify(str(target)).errors
    line = json.loads((target / "_delta_log" / f"{0:020}.json").read_text().splitlines()[0])["commitInfo"]
    assert line["operation"] == "CLONE"
    assert line["operationParameters"] == {"source": f"delta.`file:{source.path}`", "sourceVersion": 3}


def test_what_the_clone_does_is_its_own(source: TableBuilder, tmp_path: Path) -> None:
    target = tmp_path / "t"
    clone(source.path, target, version=1)
    assert ids(target) == [1, 2, 3, 4]
    write_rows(target, SCHEMA, [{"id": 9, "p": "c"}])
    write_rows(target, SCHEMA, [{"id": 3, "p": "c"}], mode="overwrite", replace_where="id < 5")
    assert ids(target) == [3, 9]
    assert ids(source.path) == [2, 3]
    found = plan_vacuum(
        LocalStorage(), str(target), VacuumOptions(retention_hours=0, check_retention=False), now_ms=1 << 50
    )
    assert all(path.startswith("p=") for path in found.files.column("path").to_pylist())
    assert ids(source.path) == [2, 3]


def test_a_clone_of_a_clone_names_the_first_tables_files(source: TableBuilder, tmp_path: Path) -> None:
    clone(source.path, tmp_path / "one")
    clone(tmp_path / "one", tmp_path / "two")
    one, two = (
        [add["path"] for line in (tmp_path / name / "_delta_log" / f"{0:020}.json").read_text().splitlines()
         if (add := json.loads(line).get("add"))]
        for name in ("one", "two")
    )  # fmt: skip
    assert sorted(one) == sorted(two)
    assert ids(tmp_path / "two") == [2, 3]


def test_a_table_that_is_there_is_replaced_only_where_that_is_said(source: TableBuilder, tmp_path: Path) -> None:
    target = tmp_path / "t"
    write_rows(target, {"z": "string"}, [{"z": "old"}], mode="error")
    before = load_snapshot(str(target))
    with pytest.raises(UserError) as caught:
        clone(source.path, target)
    assert caught.value.code == "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"
    result = clone(source.path, target, replace=True, properties={"delta.appendOnly": "true", "x": "z"})
    assert (result.version, result.num_removed_files) == (1, 1)
    assert ids(target) == [2, 3]
    after = load_snapshot(str(target))
    assert after.metadata.id == before.metadata.id
    assert after.configuration.properties.append_only
    assert after.configuration.configuration["x"] == "z"
    assert read_rows(target, version=0) == [{"z": "old"}]
    assert not delta_pyds.verify(str(target)).errors


def test_the_same_clone_again_changes_only_what_changed(source: TableBuilder, tmp_path: Path) -> None:
    target = tmp_path / "t"
    clone(source.path, target)
    [kept, other] = source.active()
    source.commit([source.remove(other)])
    clone(source.path, target, replace=True)
    assert ids(target) == ids(source.path)
    lines = (target / "_delta_log" / f"{1:020}.json").read_text().splitlines()
    kinds = [key for line in lines for key in json.loads(line) if key in ("add", "remove")]
    assert kinds == ["remove"]
    assert kept


def test_row_ids_are_the_sources_and_new_ones_come_after_them(tmp_path: Path) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    tracked = {"delta.enableRowTracking": "true"}
    write_rows(source, SCHEMA, [{"id": 1, "p": "a"}], mode="error", properties=tracked)
    write_rows(source, SCHEMA, [{"id": 2, "p": "a"}], mode="overwrite")
    clone(source, target)
    write_rows(target, SCHEMA, [{"id": 3, "p": "a"}])
    rows = {row["id"]: row["_row_id"] for row in read_rows(target, row_ids=True)}
    assert rows == {2: 1, 3: 2}
    assert not delta_pyds.verify(str(target)).errors


def test_a_clone_that_has_given_row_ids_gives_none_of_them_again(tmp_path: Path) -> None:
    """Ids of rows that an update moved stand in columns of the files, and must not come with them either."""
    source, target = tmp_path / "s", tmp_path / "t"
    tracked = {"delta.enableRowTracking": "true"}
    write_rows(source, SCHEMA, [{"id": n, "p": "a"} for n in (1, 2)], mode="error", properties=tracked)
    clone(source, target)
    write_rows(target, SCHEMA, [{"id": 70, "p": "a"}])
    given = {row["_row_id"]: row["id"] for row in read_rows(target, row_ids=True)}
    write_rows(source, SCHEMA, [{"id": n, "p": "b"} for n in (3, 4)])
    plan = planned_update(load_snapshot(str(source)), "id IN (2, 3)", {"p": "'c'"}, CommandOptions())
    run_update(plan, Place("process", "a test says so"), local_runner(plan.change, 1))
    moved = {row["id"]: row["_row_id"] for row in read_rows(source, row_ids=True)}
    assert moved == {1: 0, 2: 1, 3: 2, 4: 3}
    for _ in range(2):
        clone(source, target, replace=True)
        rows = {row["_row_id"]: row["id"] for row in read_rows(target, row_ids=True)}
        assert sorted(rows.values()) == [1, 2, 3, 4]
        assert not delta_pyds.verify(str(target)).errors
        # a file that stays, stays as it is
        assert all(rows[row_id] == given[row_id] for row_id in rows.keys() & given.keys())
        write_rows(target, SCHEMA, [{"id": 71, "p": "a"}])
        given |= {row["_row_id"]: row["id"] for row in read_rows(target, row_ids=True)}
        assert not delta_pyds.verify(str(target)).errors


def test_ids_that_a_source_no_longer_gives_are_not_taken_over(tmp_path: Path) -> None:
    source, target = TableBuilder(tmp_path / "s", {"id": "long"}), tmp_path / "t"
    source.create()
    source.append([{"id": 1}], baseRowId=0, defaultRowCommitVersion=0)
    write_rows(target, {"id": "long"}, [{"id": 7}], properties={"delta.enableRowTracking": "true"})
    clone(source.path, target, replace=True)
    assert ids(target) == [1]
    assert not delta_pyds.verify(str(target)).errors


@pytest.mark.parametrize("what", ["data", "vector"])
def test_a_version_whose_files_are_gone_is_refused(source: TableBuilder, tmp_path: Path, what: str) -> None:
    target = tmp_path / "t"
    [old] = [add for add in source.active(2) if (add["add"].get("deletionVector") or {}).get("storageType") == "u"]
    source.commit([source.remove(old)])
    gone = source.data_file(old) if what == "data" else source.vector_file(old)
    gone.unlink()
    with pytest.raises(UserError, match=gone.name) as caught:
        clone(source.path, target, version=3)
    assert caught.value.code == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert not target.exists()
    clone(source.path, target)
    assert ids(target) == ids(source.path) == [3]


def test_a_target_that_may_not_read_the_source_is_left_alone(source: TableBuilder, tmp_path: Path) -> None:
    target = tmp_path / "t"
    write_rows(target, SCHEMA, [{"id": 7, "p": "b"}], mode="error")
    snapshot = load_snapshot(str(source.path))
    own_files_only = resolve_storage(str(target), {"allowed_roots": []})
    with pytest.raises(StorageError, match="allowed_roots"):
        shallow_clone(snapshot, own_files_only, str(target), CloneOptions(replace=True))
    assert load_snapshot(str(target)).version == 0
    with_source = resolve_storage(str(target), {"allowed_roots": [str(source.path)]})
    shallow_clone(snapshot, with_source, str(target), CloneOptions(replace=True))
    assert ids(target) == [2, 3]


def test_row_tracking_by_a_property_of_the_clone_numbers_its_rows(source: TableBuilder, tmp_path: Path) -> None:
    with pytest.raises(delta_pyds.DeltaError):
        # the names of its columns would be made up by a new table alone
        clone(source.path, tmp_path / "t", properties={"delta.enableRowTracking": "true"})
    assert not (tmp_path / "t" / "_delta_log").exists()


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    ("mode", "properties", "code"),
    [
        ("name", {"delta.columnMapping.mode": "none"}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
        ("name", {"delta.columnMapping.mode": "id"}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
        ("none", {"DELTA.columnmapping.MODE": "Name"}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
        (
            "name",
            {"delta.enableIcebergCompatV2": "true"},
            "DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE",
        ),
        ("none", {"Delta.constraints.c": "id > 100"}, "DELTA_ADD_CONSTRAINTS"),
        (
            "none",
            {"delta.feature.clustering": "supported"},
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        ),
        ("none", {"delta.dataSkippingStatsColumns": "nowhere"}, "DELTA_COLUMN_NOT_FOUND"),
        ("none", {"delta.logRetentionDuration": "interval 1 hour"}, "DELTA_INVALID_TABLE_PROPERTY"),
    ],
)
def test_properties_that_the_files_do_not_bear_are_refused_before_anything_is_written(
    tmp_path: Path, mode: str, properties: dict[str, str], code: str, replace: bool
) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    mapping = {"delta.columnMapping.mode": mode}
    write_rows(source, SCHEMA, [{"id": 1, "p": "a"}], mode="error", properties=mapping)
    if replace:
        write_rows(target, SCHEMA, [{"id": 7, "p": "b"}], mode="error")
    with pytest.raises(UserError) as caught:
        clone(source, target, replace=replace, properties=properties)
    assert caught.value.code == code
    if replace:
        assert ids(target) == [7]
        assert load_snapshot(str(target)).version == 0
    else:
        assert not target.exists()


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_the_column_mapping_of_the_source_may_be_said_again(tmp_path: Path, mode: str) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    mapping = {"delta.columnMapping.mode": mode}
    write_rows(source, SCHEMA, [{"id": 1, "p": "a"}], mode="error", properties=mapping)
    clone(source, target, properties={**mapping, "delta.enableChangeDataFeed": "true"})
    write_rows(target, SCHEMA, [{"id": 2, "p": "a"}])
    assert ids(target) == [1, 2]
    assert not delta_pyds.verify(str(target)).errors


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("so urce", "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE"),
        ("other", "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"),
    ],
)
def test_other_data_is_not_touched(source: TableBuilder, tmp_path: Path, target: str, code: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.csv").write_text("x")
    with pytest.raises(UserError) as caught:
        clone(source.path, tmp_path / target, replace=True)
    assert caught.value.code == code


def test_another_store_is_refused(source: TableBuilder) -> None:
    with pytest.raises(OptionError, match="another store") as caught:
        shallow_clone(load_snapshot(str(source.path)), LocalStorage(), "s3://b/t", CloneOptions())
    assert caught.value.code == "DELTA_INVALID_CLONE_PATH"
