"""The report, whole tables without fault, and tables of another writer."""

from __future__ import annotations

import datetime as dt
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import delta_pyds
from delta_pyds import verify
from delta_pyds.errors import TableNotFoundError, VerificationError
from tests.support.table_builder import TableBuilder
from tests.support.verification import messages, rules

SCHEMA = {"id": "long", "name": "string", "p": "string"}


def table(path: Path, **options: Any) -> TableBuilder:
    t = TableBuilder(path, SCHEMA, partition_columns=["p"], **options)
    t.create()
    t.append([{"id": 1, "name": "a", "p": "x"}, {"id": 2, "name": None, "p": "y"}])
    return t


# --- the report


def test_a_clean_table_has_no_findings_and_everything_is_counted(tmp_path: Path) -> None:
    t = table(tmp_path)
    t.checkpoint()
    t.checksum()
    t.append([{"id": 3, "name": "c", "p": "x"}])
    t.compact_log(0, 2)
    report = verify(str(tmp_path))
    assert report.findings == ()
    assert report.ok
    assert (report.table_root, report.version) == (str(tmp_path), 2)
    assert report.checked == type(report.checked)(commits=3, checkpoints=1, compactions=1, checksums=1, files=3, rows=3)
    report.raise_for_errors()
    assert "version 2: ok, 0 errors, 0 warnings" in str(report)


def test_an_error_makes_the_report_not_ok_and_raises_with_the_findings(tmp_path: Path) -> None:
    t = table(tmp_path)
    t.data_file(t.active()[0]).unlink()
    report = verify(str(tmp_path))
    assert not report.ok
    with pytest.raises(VerificationError, match=r"file\.missing") as caught:
        report.raise_for_errors()
    assert caught.value.code == "DELTA_VERIFICATION_FAILED"
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.parameters["findings"] == report.errors
    assert "BROKEN, 1 errors" in str(report)
    assert str(report.findings[0]) in str(report)


def test_a_warning_leaves_the_report_ok(tmp_path: Path) -> None:
    t = table(tmp_path)
    t.last_checkpoint("not json")
    report = verify(str(tmp_path))
    assert [f.severity for f in report.findings] == ["warning"]
    assert report.ok
    report.raise_for_errors()


def test_without_data_no_data_file_is_looked_at(tmp_path: Path) -> None:
    t = table(tmp_path)
    t.data_file(t.active()[0]).unlink()
    report = verify(str(tmp_path), data=False)
    assert report.findings == ()
    assert (report.checked.files, report.checked.rows) == (0, 0)


def test_findings_beyond_the_limit_are_counted_and_still_make_it_not_ok(tmp_path: Path) -> None:
    t = table(tmp_path)
    for add in t.active():
        t.data_file(add).unlink()
    report = verify(str(tmp_path), max_findings=1)
    assert [f.rule for f in report.findings] == ["file.missing", "verify.truncated"]
    assert "1 more errors" in report.findings[-1].message
    only_count = verify(str(tmp_path), max_findings=0)
    assert [f.rule for f in only_count.findings] == ["verify.truncated"]
    assert not only_count.ok


@pytest.mark.parametrize("name", ["nothing", "no-log", "empty-log"])
def test_where_there_is_no_table_it_raises(tmp_path: Path, name: str) -> None:
    if name != "nothing":
        (tmp_path / name).mkdir()
    if name == "empty-log":
        (tmp_path / name / "_delta_log").mkdir()
    with pytest.raises(TableNotFoundError):
        verify(str(tmp_path / name))


def test_a_log_that_cannot_be_listed_is_a_finding(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    log = table.commit_file(0).parent
    log.rename(tmp_path / "moved")
    log.symlink_to(log)
    report = verify(str(table.path))
    assert [f.rule for f in report.errors] == ["log.unreadable"]
    assert log.name in str(report)


def test_importing_the_package_does_not_import_the_checker() -> None:
    code = "import delta_pyds, sys; assert not any('verify' in m or m == 'pyarrow' for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert delta_pyds.verify is verify
    assert "verify" in dir(delta_pyds)


def test_nothing_is_written(tmp_path: Path) -> None:
    t = table(tmp_path)
    t.checkpoint()
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    verify(str(tmp_path))
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before


# --- tables without fault


def test_a_table_with_every_type_is_clean(tmp_path: Path) -> None:
    schema = {
        "l": "long", "i": "integer", "s": "short", "b": "byte", "f": "float", "d": "double", "t": "string",
        "y": "binary", "o": "boolean", "dt": "date", "ts": "timestamp", "n": "timestamp_ntz", "x": "decimal(38,10)",
        "st": {"a": "long", "b": "string"},
        "ar": {"type": "array", "elementType": "long", "containsNull": True},
        "mp": {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
    }  # fmt: skip
    t = TableBuilder(tmp_path, schema)
    t.create()
    row = {
        "l": 1 << 60, "i": 7, "s": 3, "b": -1, "f": 0.7, "d": float("nan"), "t": "x" * 40, "y": b"\0\xff", "o": True,
        "dt": dt.date(1500, 2, 28), "ts": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.timezone.utc),
        "n": dt.datetime(2024, 1, 1, 0, 0, 0, 123_456), "x": Decimal("123456789012345678.0123456789"),
        "st": {"a": 1, "b": None}, "ar": [1, None], "mp": {"k": None},
    }  # fmt: skip
    t.append([row, {**dict.fromkeys(row), "st": None}, {**row, "t": "x" * 31 + "\U0001f600" + "y", "f": -0.0}])
    t.append([dict.fromkeys(row)])
    for version in (1, 2):
        t.checkpoint(version, stats_struct=True, stats_json=version == 1)
    assert messages(t) == ""


@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-json", "v2-parquet", "v2-classic"])
@pytest.mark.parametrize("sidecars", [0, 2])
def test_checkpoints_of_every_kind_are_clean(tmp_path: Path, kind: str, sidecars: int) -> None:
    t = table(tmp_path, properties={"delta.checkpointPolicy": "v2"} if kind.startswith("v2") else {})
    t.commit([t.remove(t.active()[0]), {"txn": {"appId": "a", "version": 3, "lastUpdated": 1}}])
    t.checkpoint(kind=kind, sidecars=sidecars, stats_struct=True, partition_values_struct=True)
    t.append([{"id": 9, "name": "z", "p": "%/= "}])
    assert messages(t) == ""


def test_a_cleaned_log_is_clean(tmp_path: Path) -> None:
    t = table(tmp_path)
    t.commit([{"txn": {"appId": "a", "version": 3}}])
    t.checkpoint(2, stats_json=False, stats_struct=True)
    t.append([{"id": 9, "name": "z", "p": "x"}])
    t.checksum()
    t.checkpoint(3, write_hint=False)
    t.cleanup_log(2)
    t.last_checkpoint({"version": 3})
    report = verify(str(tmp_path))
    assert report.findings == ()
    assert (report.checked.commits, report.checked.rows) == (2, 3)
    t.commit_file(2).unlink()
    assert messages(t) == ""


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_with_dropped_and_renamed_columns_is_clean(tmp_path: Path, mode: str) -> None:
    t = TableBuilder(
        tmp_path,
        {"a b": "long", "s": {"x": "long", "y": "string"}, "p": "date", "gone": "long"},
        partition_columns=["p"],
        properties={"delta.columnMapping.mode": mode},
        physical_names={"a b": "col-1", "p": "col-p"},
    )
    t.create()
    t.append([{"a b": 1, "s": {"x": 1, "y": "q"}, "p": "2024-01-01", "gone": 4}])
    t.commit([t.metadata({"a b": "long", "s": {"x": "long", "y": "string"}, "p": "date", "new": "string"})])
    t.append([{"a b": 2, "s": None, "p": None, "new": "n"}])
    t.checkpoint(stats_struct=True, partition_values_struct=True)
    assert messages(t) == ""


def test_deletion_vectors_of_every_storage_are_clean(tmp_path: Path) -> None:
    t = TableBuilder(tmp_path, {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    t.create()
    adds = [t.append([{"id": 10 * f + i} for i in range(5)])[0] for f in range(3)]
    for add, storage in zip(adds, "uip", strict=True):
        add = t.delete(add, [0], storage)
        t.delete(add, [3, 4], storage, prefix="ab" if storage == "u" else "")
    t.checksum()
    t.checkpoint()
    report = verify(str(tmp_path))
    assert report.findings == ()
    assert report.checked.rows == 6


def test_a_table_on_a_store_without_directories_is_checked_the_same() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.mkdirs("/verified/_delta_log", exist_ok=True)
    actions = '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'
    memory.pipe("/verified/_delta_log/00000000000000000000.json", actions.encode())
    report = verify("memory://verified")
    assert [f.rule for f in report.errors] == ["commit.first"]


# --- deltalake's tables


def _arrow_rows() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(200), pa.int64()),
            "name": pa.array([f"name {i}" * 9 if i % 3 else None for i in range(200)]),
            "price": pa.array([i / 7 for i in range(200)]),
            "day": pa.array([dt.date(2024, 1, 1 + i % 4) for i in range(200)]),
            "at": pa.array([dt.datetime(2024, 1, 1, 0, 0, i % 60, i, dt.timezone.utc) for i in range(200)]),
            "amount": pa.array([Decimal(i) / 100 for i in range(200)], pa.decimal128(10, 2)),
            "ok": pa.array([i % 2 == 0 for i in range(200)]),
            "nested": pa.array([{"a": i, "b": str(i)} for i in range(200)]),
            "list": pa.array([[i, None] for i in range(200)]),
        }
    )


@pytest.mark.parametrize("partition_by", [None, ["day"]])
def test_what_deltalake_writes_and_changes_has_no_errors(tmp_path: Path, partition_by: list[str] | None) -> None:
    path = str(tmp_path)
    rows = _arrow_rows()
    write_deltalake(path, rows, partition_by=partition_by)
    write_deltalake(path, rows, mode="append")
    other = DeltaTable(path)
    other.delete("id < 10")
    other.update(updates={"price": "price + 1"}, predicate="id > 190")
    other.merge(
        rows.slice(0, 20), "t.id = s.id", source_alias="s", target_alias="t"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    other.create_checkpoint()
    other.optimize.compact()
    other.optimize.z_order(["id"])
    before = verify(path)
    assert [str(f) for f in before.errors] == []
    assert before.checked.rows >= 390
    write_deltalake(path, rows.slice(0, 5), mode="overwrite")
    DeltaTable(path).create_checkpoint()
    report = verify(path)
    assert [str(f) for f in report.errors] == []
    assert report.checked.checkpoints == 2


def test_properties_constraints_and_new_columns_of_deltalake_have_no_errors(tmp_path: Path) -> None:
    path = str(tmp_path)
    rows = _arrow_rows().select(["id", "name"])
    write_deltalake(path, rows, configuration={"delta.appendOnly": "true", "delta.checkpointInterval": "2"})
    DeltaTable(path).alter.add_constraint({"positive": "id >= 0"})
    wider = rows.append_column("more", pa.array([1.5] * 200))
    write_deltalake(path, wider, mode="append", schema_mode="merge")
    report = verify(path)
    assert [str(f) for f in report.errors] == []
    assert report.checked.rows == 400
    assert "warning rows.not-checked" not in rules(path)
