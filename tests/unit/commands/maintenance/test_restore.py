"""Restore: files, metadata and protocol of an earlier version, and what must never go back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from delta_pyds.commands.definition.change import DefinitionOptions
from delta_pyds.commands.definition.drop_feature import drop_feature
from delta_pyds.commands.definition.feature_artifacts import Dropping
from delta_pyds.commands.definition.properties import set_properties
from delta_pyds.commands.definition.row_tracking import backfill
from delta_pyds.commands.maintenance.restore import RestoreOptions, RestoreResult, restore
from delta_pyds.errors import ConcurrentAppendError, OptionError, TimeTravelError, UnsupportedOperationError, UserError
from delta_pyds.table.snapshot import load_snapshot
from tests.support.definitions import alter
from tests.support.table_builder import BASE_TIME_MS, TableBuilder
from tests.support.table_writes import read_rows, write_rows

FEATURES = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """1: ids 1 to 3; 2: two of them marked as deleted; 3: a second file, 10; 4: the first file removed."""
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties=FEATURES)
    table.create()
    [add] = table.append([{"id": n} for n in (1, 2, 3)])
    marked = table.delete(add, [0, 1])
    table.append([{"id": 10}])
    table.commit([table.remove(marked)])
    return table


def run(table: TableBuilder | Path, **options: Any) -> RestoreResult:
    path = table.path if isinstance(table, TableBuilder) else table
    result = restore(load_snapshot(str(path)), RestoreOptions(**options))
    assert result is not None
    return result


def ids(table: TableBuilder | Path) -> list[int]:
    return sorted(row["id"] for row in read_rows(table.path if isinstance(table, TableBuilder) else table))


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    ("version", "rows", "removed", "restored"),
    [(0, [], 1, 0), (1, [1, 2, 3], 1, 1), (2, [3], 1, 1), (3, [3, 10], 0, 1)],
)
def test_each_version_comes_back(
    table: TableBuilder, version: int, rows: list[int], removed: int, restored: int, checkpoint: bool
) -> None:
    if checkpoint:
        table.checkpoint()
    result = run(table, version=version)
    assert result.version == 5
    assert ids(table) == rows
    assert (result.num_removed_files, result.num_restored_files) == (removed, restored)
    snapshot = load_snapshot(str(table.path))
    totals = snapshot.totals
    assert (totals.num_files, totals.size_bytes) == (result.num_of_files_after_restore, result.table_size_after_restore)
    assert not delta_pyds.verify(str(table.path)).errors


def test_the_version_that_the_table_has_is_not_restored(table: TableBuilder) -> None:
    """As in the reference there is nothing to say, and no version."""
    assert restore(load_snapshot(str(table.path)), RestoreOptions(version=4)) is None
    assert load_snapshot(str(table.path)).version == 4
    assert ids(table) == [10]


def test_only_the_vector_changes_where_the_file_stays(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties=FEATURES)
    table.create()
    [add] = table.append([{"id": n} for n in (1, 2, 3)])
    table.delete(add, [0])
    result = run(table, version=1)
    assert ids(table) == [1, 2, 3]
    assert (result.num_removed_files, result.num_restored_files) == (1, 1)


def test_the_log_says_what_was_asked(table: TableBuilder) -> None:
    run(table, version=1)
    first = json.loads(table.commit_file(5).read_text().splitlines()[0])["commitInfo"]
    assert first["operation"] == "RESTORE"
    assert first["operationParameters"] == {"version": 1, "timestamp": None}
    assert set(first["operationMetrics"]) == {
        "tableSizeAfterRestore", "numOfFilesAfterRestore", "numRemovedFiles", "numRestoredFiles", "removedFilesSize",
        "restoredFilesSize",
    }  # fmt: skip


def test_a_time_is_the_version_of_then(table: TableBuilder) -> None:
    moment = "2023-11-14 22:15:20"  # 2 of these minutes after BASE_TIME_MS, 22:13:20 UTC
    assert BASE_TIME_MS == 1_700_000_000_000
    run(table, timestamp=moment)
    assert ids(table) == [3]
    with pytest.raises(TimeTravelError) as early:
        run(table, timestamp="2001-01-01")
    assert early.value.code == "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"
    with pytest.raises(TimeTravelError) as late:
        run(table, timestamp="2999-01-01")
    assert late.value.code == "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"
    with pytest.raises(OptionError, match="cannot be converted to a valid timestamp"):
        run(table, timestamp="yesterday")


@pytest.mark.parametrize("version", [-1, 5])
def test_a_version_that_is_none_is_refused(table: TableBuilder, version: int) -> None:
    with pytest.raises(UserError) as caught:
        run(table, version=version)
    assert caught.value.code == "DELTA_CANNOT_RESTORE_TABLE_VERSION"


@pytest.mark.parametrize("what", ["data", "vector"])
def test_files_that_are_gone_are_named_and_nothing_is_committed(table: TableBuilder, what: str) -> None:
    [add] = table.active(2)
    gone = table.data_file(add) if what == "data" else table.vector_file(add)
    gone.unlink()
    with pytest.raises(UserError, match=gone.name) as caught:
        run(table, version=2)
    assert caught.value.code == "DELTA_RESTORE_MISSING_FILES"
    assert load_snapshot(str(table.path)).version == 4
    assert run(table, version=2, ignore_missing_files=True).num_restored_files == 1


def test_many_files_of_one_directory_are_looked_for_in_its_listing(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "p": "string"}, ["p"])
    table.create()
    adds = table.append([{"id": n, "p": "a b"} for n in range(1)])
    adds += [table.write_file([{"id": n}], {"p": "a b"}) for n in range(40)]
    table.commit(adds[1:])
    table.commit([table.remove(add) for add in adds])
    run(table, version=2)
    assert len(ids(table)) == 41
    table.commit([table.remove(add) for add in adds], version=4)
    table.data_file(adds[7]).unlink()
    with pytest.raises(UserError, match=r": 1 of its files"):
        run(table, version=2)


def test_metadata_comes_back_and_the_protocol_only_grows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_rows(path, {"id": "long"}, [{"id": 1}], mode="error", properties={"delta.appendOnly": "false"})
    before = load_snapshot(str(path))
    write_rows(path, {"id": "long", "n": "string"}, [{"id": 2, "n": "x"}], merge_schema=True)
    table = TableBuilder(tmp_path / "u", {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    table.commit(
        [
            {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
                          "writerFeatures": ["deletionVectors", "appendOnly", "invariants"]}},
            table.metadata({"id": "long", "m": "string"}, {"delta.enableDeletionVectors": "true"}),
        ]
    )  # fmt: skip
    run(path, version=0)
    run(table, version=1)
    assert load_snapshot(str(path)).schema == before.schema
    after = load_snapshot(str(table.path))
    assert list(after.schema.names) == ["id"]
    assert after.configuration.configuration == {}
    assert after.protocol.writer_features is not None
    assert "deletionVectors" in after.protocol.writer_features
    assert after.metadata.id == table.table_id


def test_row_ids_come_back_with_their_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    tracked = {"delta.enableRowTracking": "true"}
    write_rows(path, {"id": "long"}, [{"id": 1}, {"id": 2}], mode="error", properties=tracked)
    before = sorted((row["id"], row["row_id"]) for row in rows_with_ids(path))
    write_rows(path, {"id": "long"}, [{"id": 9}], mode="overwrite")
    run(path, version=0)
    assert sorted((row["id"], row["row_id"]) for row in rows_with_ids(path)) == before
    write_rows(path, {"id": "long"}, [{"id": 3}])
    assert [row["row_id"] for row in rows_with_ids(path) if row["id"] == 3] == [3]
    assert not delta_pyds.verify(str(path)).errors


def rows_with_ids(path: Path) -> list[dict[str, Any]]:
    return [{"id": row["id"], "row_id": row["_row_id"]} for row in read_rows(path, row_ids=True)]


def test_identity_columns_go_on_where_they_were(tmp_path: Path) -> None:
    table = TableBuilder(
        tmp_path / "t",
        {"type": "struct", "fields": [identity(0)]},
        protocol=(1, 6),
    )
    table.create()
    table.append([{"id": 1}])
    table.commit([table.metadata({"type": "struct", "fields": [identity(7)]})])
    run(table, version=1)
    [field] = load_snapshot(str(table.path)).schema
    assert field.metadata["delta.identity.highWaterMark"] == 7


def test_what_a_version_between_has_given_is_not_given_again(tmp_path: Path) -> None:
    """Over a version without the identity column, and one where column mapping was not on."""
    mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    plain = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}

    def mapped(mark: int) -> dict[str, Any]:
        field = identity(mark)
        named = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
        return {"type": "struct", "fields": [{**field, "metadata": field["metadata"] | named}]}

    table = TableBuilder(tmp_path / "t", mapped(5), properties=mapping, protocol=(2, 6))
    table.create()
    table.commit([table.metadata(mapped(50), mapping | {"delta.columnMapping.maxColumnId": "9"})])
    table.commit([table.metadata(plain, {})])
    table.commit([table.metadata(mapped(2), mapping)])
    run(table, version=0)
    snapshot = load_snapshot(str(table.path))
    [field] = snapshot.schema
    assert field.metadata["delta.identity.highWaterMark"] == 50
    assert snapshot.configuration.configuration["delta.columnMapping.maxColumnId"] == "9"
    run(table, version=2)
    [field] = load_snapshot(str(table.path)).schema
    assert "delta.identity.highWaterMark" not in field.metadata


def identity(mark: int) -> dict[str, Any]:
    metadata = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    return {
        "name": "id", "type": "long", "nullable": True, "metadata": metadata | {"delta.identity.highWaterMark": mark}
    }  # fmt: skip


def test_rows_that_others_append_meanwhile_are_a_conflict(table: TableBuilder) -> None:
    """They would stay beside a version that never had them, where the table is to be serializable."""
    snapshot = load_snapshot(str(table.path))
    table.append([{"id": 11}])
    with pytest.raises(ConcurrentAppendError):
        restore(snapshot, RestoreOptions(version=1))


def test_they_are_one_for_a_version_whose_rows_are_there_already(tmp_path: Path) -> None:
    """This restore changes no file, and the appended rows would stay."""
    path, schema = tmp_path / "t", {"id": "long"}
    for number in range(2):
        write_rows(path, schema, [{"id": number}])
    restore(load_snapshot(str(path)), RestoreOptions(version=0))
    snapshot = load_snapshot(str(path))
    write_rows(path, schema, [{"id": 99}])
    with pytest.raises(ConcurrentAppendError):
        restore(snapshot, RestoreOptions(version=0))


def test_a_blind_append_is_one_too_whatever_the_tables_isolation(tmp_path: Path) -> None:
    path, schema = tmp_path / "t", {"id": "long"}
    for number in range(2):
        write_rows(path, schema, [{"id": number}], properties={"delta.isolationLevel": "WriteSerializable"})
    snapshot = load_snapshot(str(path))
    write_rows(path, schema, [{"id": 99}])
    with pytest.raises(ConcurrentAppendError):
        restore(snapshot, RestoreOptions(version=0))


def test_an_append_only_table_is_not_restored(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, properties={"delta.appendOnly": "true"}, protocol=(1, 2))
    table.create()
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    with pytest.raises(delta_pyds.DeltaError) as caught:
        run(table, version=1)
    assert caught.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


def test_row_ids_that_were_dropped_do_not_come_back(tmp_path: Path) -> None:
    """Tracked again, the second file has the ids that the first had before."""
    path = tmp_path / "t"
    tracked = {"delta.enableRowTracking": "true"}
    write_rows(path, {"id": "long"}, [[{"id": 1}], [{"id": 2}]], properties=tracked)
    write_rows(path, {"id": "long"}, [], mode="overwrite", replace_where="id = 1")
    drop_feature(Dropping(lambda: load_snapshot(str(path))), "rowTracking")
    dropped = load_snapshot(str(path)).version
    for _ in range(2):
        with pytest.raises(UnsupportedOperationError, match="rowTracking was dropped") as caught:
            run(path, version=0)
        assert caught.value.code == "DELTA_ROW_TRACKING_NOT_READY"
        backfill(lambda: load_snapshot(str(path)), DefinitionOptions())
        alter(path, lambda snapshot: set_properties(snapshot, tracked))
    run(path, version=dropped)
    assert ids(path) == [2]
    assert delta_pyds.verify(str(path)).findings == ()
