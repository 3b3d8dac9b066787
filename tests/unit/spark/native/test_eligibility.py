"""Reasons against Spark's own Parquet reader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.log.adds import AddRequest, FileBatch
from delta_pyds.log.file_table import DELETION_VECTOR
from delta_pyds.spark.native.eligibility import (
    REQUIRED_SETTINGS,
    SessionDescription,
    reasons_against,
)
from delta_pyds.spark.native.files import NativeFiles, list_files, reasons_against_files
from delta_pyds.spark.native.uris import spark_uris
from delta_pyds.spark.settings import TIME_ZONE, V1_SOURCES
from delta_pyds.storage.resolve import hadoop_path
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder, build


def plan(table: TableBuilder, **options: Any) -> Scan:
    return plan_scan(load_snapshot(str(table.path)), **options)


def against(scan: Scan, session: SessionDescription | None = None, sure: bool = False) -> tuple[str, ...]:
    return reasons_against(
        scan.state, session or SessionDescription(), uses_time_zone=scan.uses_time_zone, sure_of_files=sure
    )


def files_of(scan: Scan) -> NativeFiles:
    return list_files(scan)


def hive(scan: Scan) -> tuple[str, ...] | None:
    return files_of(scan).hive_columns


# --- schema


def test_plain_columns_of_every_common_type_are_eligible(tmp_path: Path) -> None:
    names = ["string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp",
             "timestamp_ntz", "decimal(38,10)", "void"]  # fmt: skip
    schema = {f"c{i}": name for i, name in enumerate(names)} | {"s": {"x": "long", "y": {"z": "string"}}}
    assert against(plan(build(tmp_path / "t", schema))) == ()


def test_variants_are_not_even_inside_others_unless_they_are_not_read(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "s": {"v": "variant", "x": "long"}})
    assert against(plan(table)) == ("the column 's.v' is of type variant",)
    assert against(plan(table, columns="id,s.x")) == ()


@pytest.mark.parametrize(
    ("declared", "reasons"), [("char(3)", 1), ("CHAR (3)", 1), ("array<char(3)>", 1), ("varchar(3)", 0)]
)
@pytest.mark.parametrize("partitioned", [False, True])
def test_char_is_not_and_varchar_is(tmp_path: Path, declared: str, reasons: int, partitioned: bool) -> None:
    metadata = {"__CHAR_VARCHAR_TYPE_STRING": declared}
    fields = [
        {"name": "c", "type": "string", "nullable": True, "metadata": metadata},
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    ]
    table = build(tmp_path / "t", {"type": "struct", "fields": fields}, partition_columns=["c"] if partitioned else [])
    assert len(against(plan(table))) == reasons
    assert against(plan(table, columns="id")) == ()


def test_collations_are_not_even_inside_others(tmp_path: Path) -> None:
    collated = {"__COLLATIONS": {"c": "spark.UTF8_LCASE"}}
    inner = {"name": "c", "type": "string", "nullable": True, "metadata": collated}
    fields = [
        {**inner, "name": "s", "type": {"type": "struct", "fields": [inner]}, "metadata": {}},
        {**inner, "name": "a", "type": {"type": "array", "elementType": "string", "containsNull": True}},
        {**inner, "name": "id", "type": "long", "metadata": {}},
    ]
    table = build(tmp_path / "t", {"type": "struct", "fields": fields})
    assert against(plan(table)) == ("the column 's.c' has a collation", "the column 'a' has a collation")
    assert against(plan(table, columns="id")) == ()


def test_columns_mapped_by_id_are_not_and_by_name_are(tmp_path: Path) -> None:
    for mode, reasons in (("id", 1), ("name", 0)):
        table = build(tmp_path / mode, {"a": "long"}, properties={"delta.columnMapping.mode": mode})
        assert len(against(plan(table))) == reasons


@pytest.mark.parametrize("name", ["_metadata", "_METADATA", "_tmp_metadata_row_index", "_deltapy_file"])
def test_names_that_are_taken_are_not(tmp_path: Path, name: str) -> None:
    table = build(tmp_path / "t", {"id": "long", name: "long"})
    assert f"'{name}'" in against(plan(table))[0]
    assert against(plan(table, columns="id")) == ()


def test_physical_names_that_differ_in_case_are_not(tmp_path: Path) -> None:
    table = build(
        tmp_path / "t",
        {"one": "long", "two": "long"},
        properties={"delta.columnMapping.mode": "name"},
        physical_names={"one": "col", "two": "COL"},
    )
    assert against(plan(table)) == ("the columns 'one' and 'two' differ in case only",)


def test_row_positions_and_ids_are_not(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"}, properties={"delta.enableRowTracking": "true"})
    assert against(plan(table, row_position=True)) == ("row positions are requested",)
    assert against(plan(table, row_ids=True)) == ("row ids are requested",)


# --- session


@pytest.mark.parametrize("key", sorted(REQUIRED_SETTINGS))
def test_each_setting_that_would_change_a_result_is_a_reason(tmp_path: Path, key: str) -> None:
    scan = plan(build(tmp_path / "t", {"id": "long"}))
    other = "false" if REQUIRED_SETTINGS[key] == "true" else "true"
    assert against(scan, SessionDescription({key: other})) == (f"{key} is {other}",)
    assert against(scan, SessionDescription({key: REQUIRED_SETTINGS[key].upper()})) == ()


def test_parquet_has_to_be_the_reader_that_knows_row_numbers(tmp_path: Path) -> None:
    scan = plan(build(tmp_path / "t", {"id": "long"}))
    assert against(scan, SessionDescription({V1_SOURCES: "csv,orc"})) == (f"{V1_SOURCES} does not list parquet",)
    assert against(scan, SessionDescription({V1_SOURCES: "csv, Parquet"})) == ()
    assert against(scan, SessionDescription({V1_SOURCES: ""})) == (f"{V1_SOURCES} does not list parquet",)


def test_another_time_zone_matters_only_to_a_predicate_that_depends_on_it(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"ts": "timestamp"})
    tokyo = SessionDescription({TIME_ZONE: "Asia/Tokyo"})
    where = "ts > '2024-01-01 00:00:00'"
    assert "Asia/Tokyo" in against(plan(table, where=where, time_zone="UTC"), tokyo)[0]
    assert against(plan(table, where=where, time_zone="Asia/Tokyo"), tokyo) == ()
    assert against(plan(table, where="ts > '2024-01-01T00:00:00Z'", time_zone="UTC"), tokyo) == ()


def test_a_remote_session_may_see_another_disk(tmp_path: Path) -> None:
    scan = plan(build(tmp_path / "t", {"id": "long"}))
    remote = SessionDescription(remote=True)
    assert len(against(scan, remote)) == 1
    assert against(scan, remote, sure=True) == ()


# --- files


def test_a_vector_in_a_table_without_the_feature_leaves_the_number_of_rows_unknown(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    [add] = table.append([{"id": 1}, {"id": 2}])
    table.delete(add, [0], "i")
    found = files_of(plan(table))
    assert [f.deletion_vector is None for f in found.files] == [False]
    assert found.num_records == {}


@pytest.mark.parametrize("count", [-1, 10**400, "2", None])
def test_an_absurd_number_of_rows_is_unknown(tmp_path: Path, count: Any) -> None:
    table = build(tmp_path / "t", {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    [add] = table.append([{"id": 1}, {"id": 2}], stats={"numRecords": count})
    table.delete(add, [0], "i")
    assert files_of(plan(table)).num_records == {}


def test_where_leaves_only_the_files_that_may_match(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    for i in range(3):
        table.append([{"id": i}])
    assert len(files_of(plan(table)).files) == 3
    assert len(files_of(plan(table, where="id = 1")).files) == 1


@pytest.mark.parametrize("name", ["_hidden.parquet", ".hidden.parquet", "x._COPYING_", "dir/_x.parquet"])
def test_files_that_spark_would_ignore_are_a_reason(tmp_path: Path, name: str) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    table.commit([table.add(name, size=1)])
    scan = plan(table)
    assert "Spark ignores the file" in next(reasons_against_files(files_of(scan), scan.state))


def test_a_directory_with_an_underscore_is_none(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    table.commit([table.add("_dir/x.parquet", size=1)])
    scan = plan(table)
    assert list(reasons_against_files(files_of(scan), scan.state)) == []


def test_the_same_file_under_two_names_is_a_reason(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    table.commit([table.add("x.parquet", size=1), table.add(f"file://{table.path}/x.parquet", size=1)])
    scan = plan(table)
    assert list(reasons_against_files(files_of(scan), scan.state)) == [
        f"the file '{table.path}/x.parquet' is in the table twice"
    ]


def test_a_file_elsewhere_is_a_reason_only_in_another_file_system(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    table.commit([table.add(f"file:{tmp_path}/elsewhere/x.parquet", size=1)])
    scan = plan(table)
    assert list(reasons_against_files(files_of(scan), scan.state)) == []
    table.commit([table.add("s3://bucket/x.parquet", size=1)])
    scan = plan(table)
    assert "another file system" in next(reasons_against_files(files_of(scan), scan.state))


def test_a_file_in_another_bucket_is_a_reason_because_its_connector_was_not_looked_at(tmp_path: Path) -> None:
    state = replace(plan(build(tmp_path, {"id": "long"})).state, table_root="s3://bucket/t")
    for path, reasons in (
        ("s3://bucket/elsewhere/x.parquet", 0),
        ("s3a://bucket/x.parquet", 0),
        ("s3n://bucket/x.parquet", 0),
        ("x.parquet", 0),
        ("s3://bucket2/t/x.parquet", 1),
    ):
        found = list(reasons_against_files(files_named(state.table_root, path), state))
        assert len(found) == reasons and all("another bucket" in reason for reason in found)


def files_named(root: str, *paths: str) -> NativeFiles:
    """Files of one byte, as the log names them."""
    names = pa.array(paths, pa.string())
    rows = {
        "path": names,
        "size": pa.array([1] * len(paths), pa.int64()),
        "deletionVector": pa.nulls(len(paths), DELETION_VECTOR),
        "modificationTime": pa.array([0] * len(paths), pa.int64()),
        "uri": spark_uris(root, names),
    }
    return NativeFiles(pa.table(rows), root)


def test_a_colon_in_a_local_name_is_a_reason_because_hadoop_cannot_open_it(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"})
    table.commit([table.add("a:b.parquet", size=1)])
    scan = plan(table)
    assert "colon" in next(reasons_against_files(files_of(scan), scan.state))


def test_deletions_in_a_file_of_unknown_length_are_a_reason(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long"}, features=(["deletionVectors"], ["deletionVectors"]))
    table.append([{"id": i} for i in range(5)])
    add, *_ = table.active()
    table.commit(table.delete_rows(add, [1]))
    scan = plan(table)
    assert list(reasons_against_files(files_of(scan), scan.state)) == []
    assert files_of(scan).num_records == {0: 5}
    bare = {"add": {k: v for k, v in table.active()[0]["add"].items() if k != "stats"}}
    table.commit([bare])
    scan = plan(table)
    assert "does not record the number of rows" in next(reasons_against_files(files_of(scan), scan.state))


@pytest.mark.parametrize("checkpoint", [False, True])
def test_statistics_are_read_for_a_predicate_and_where_files_have_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: bool
) -> None:
    table = build(tmp_path / "t", {"id": "long"}, features=(["deletionVectors"], ["deletionVectors"]))
    for i in range(3):
        table.append([{"id": i}, {"id": 10 + i}])
    if checkpoint:
        table.checkpoint()
    requests: list[AddRequest] = []
    adds = Scan.adds

    def recorded(self: Scan, request: AddRequest) -> Iterator[FileBatch]:
        requests.append(request)
        return adds(self, request)

    monkeypatch.setattr(Scan, "adds", recorded)
    assert files_of(plan(table)).num_records == {}
    assert [set(r.columns) & {"stats"} for r in requests] == [set()]
    # the checkpoint above has no vector, perhaps no such column
    table.delete(table.active()[1], [0])
    for again in (False, True):
        requests.clear()
        files = files_of(plan(table))
        assert [files.num_records[n] for n in files.with_deletions] == [2]
        assert [r.keep is not None for r in requests if "stats" in r.columns] == [True]
        if checkpoint and not again:
            table.checkpoint()


def test_paths_are_spelled_as_hadoop_spells_them() -> None:
    assert hadoop_path("/a b/%41{x}.parquet") == "file:/a b/%41{x}.parquet"
    assert hadoop_path("file:///a/b") == "file:/a/b"
    assert hadoop_path("s3://bucket/a b") == "s3a://bucket/a b"
    assert hadoop_path("gs://bucket/x") == "gs://bucket/x"


# --- the Hive layout


def partitioned(tmp_path: Path, kind: str, path: str, value: str | None) -> Scan:
    table = build(tmp_path / "t", {"id": "long", "p": kind}, partition_columns=["p"])
    add = table.add(path, size=1)
    add["add"]["partitionValues"] = {"p": value}
    table.commit([add])
    return plan(table)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("string", "p=a/x.parquet", "a"),
        ("string", "p=a%2520b/x.parquet", "a b"),  # the directory is p=a%20b
        ("string", "p=a%20b/x.parquet", "a b"),
        ("string", "p=%253D/x.parquet", "="),
        ("string", "p=__HIVE_DEFAULT_PARTITION__/x.parquet", None),
        ("string", "p=__HIVE_DEFAULT_PARTITION__/x.parquet", ""),
        ("integer", "p=-12/x.parquet", "-12"),
        ("date", "p=2024-02-29/x.parquet", "2024-02-29"),
        ("boolean", "p=true/x.parquet", "true"),
    ],
)
def test_directories_that_say_what_the_log_says_are_the_hive_layout(
    tmp_path: Path, kind: str, path: str, value: str | None
) -> None:
    assert hive(partitioned(tmp_path, kind, path, value)) == ("p",)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("string", "p=a/x.parquet", "b"),
        ("string", "p=a/x.parquet", "A"),
        ("string", "P=a/x.parquet", "a"),
        ("string", "x.parquet", "a"),
        ("string", "q=1/p=a/x.parquet", "a"),
        ("string", "p=a/q=1/x.parquet", "a"),
        ("string", "dir/p=a/x.parquet", "a"),
        ("string", "p=/x.parquet", ""),
        ("string", "p=__HIVE_DEFAULT_PARTITION__/x.parquet", "__HIVE_DEFAULT_PARTITION__"),
        ("string", "p=a/x.parquet", None),
        ("integer", "p=012/x.parquet", "012"),
        ("integer", "p=+1/x.parquet", "+1"),
        ("double", "p=1.5/x.parquet", "1.5"),
        ("decimal(5,2)", "p=1.50/x.parquet", "1.50"),
        ("timestamp", "p=2024-01-01 00%3A00%3A00/x.parquet", "2024-01-01 00:00:00"),
        ("boolean", "p=TRUE/x.parquet", "TRUE"),
    ],
)
def test_anything_else_is_not(tmp_path: Path, kind: str, path: str, value: str | None) -> None:
    assert hive(partitioned(tmp_path, kind, path, value)) is None


def test_one_file_elsewhere_spoils_the_layout_for_all(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "p": "string"}, partition_columns=["p"])
    table.append([{"id": 1, "p": "a"}, {"id": 2, "p": "b"}])
    assert hive(plan(table)) == ("p",)
    add = table.add("elsewhere.parquet", size=1)
    add["add"]["partitionValues"] = {"p": "a"}
    table.commit([add])
    assert hive(plan(table)) is None


def test_values_that_are_not_read_need_not_agree(tmp_path: Path) -> None:
    table = build(tmp_path / "t", {"id": "long", "p": "string"}, partition_columns=["p"])
    add = table.add("p=a/x.parquet", size=1)
    add["add"]["partitionValues"] = {"p": "b"}
    table.commit([add])
    assert hive(plan(table)) is None
    assert hive(plan(table, columns="id")) == ("p",)
