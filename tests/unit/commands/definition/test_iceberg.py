"""Iceberg compatibility of tables that exist: what replaces them, what turns it on, what must stay out.

Protocol: "Iceberg Compatibility V1", "Iceberg Compatibility V2".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.commands.definition.change import DefinitionOptions, commit_change
from delta_pyds.commands.definition.properties import set_properties
from delta_pyds.commands.definition.unmapping import remove_mapping
from delta_pyds.commands.maintenance.clone import CloneOptions, shallow_clone
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.errors import ConflictError, DeltaError
from delta_pyds.protocol.features import supported_features
from delta_pyds.protocol.schema import COLUMN_MAPPING_NESTED_IDS, INTEGER, ArrayType, MapType, StructField, StructType
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Transaction
from delta_pyds.verification.verify import verify
from tests.support.definitions import alter, define
from tests.support.planned_changes import planned_delete
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, write_rows
from tests.support.verification import clean

COLUMNS = {"id": "integer", "p": "integer", "q": "integer"}
ROWS = [{"id": 1, "p": 2, "q": 3}]
MAPPED = {"delta.columnMapping.mode": "name"}
V1, V2 = {"delta.enableIcebergCompatV1": "true"}, {"delta.enableIcebergCompatV2": "true"}
ON = {1: V1, 2: V2}
BY_NAME = {"delta.feature.deletionVectors": "supported"}
PARTITIONS = "DELTA_ICEBERG_COMPAT_VIOLATION.REPLACE_TABLE_CHANGE_PARTITION_NAMES"
VECTORS = "DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_SHOULD_BE_DISABLED"
REWRITE = "DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE"


def refused(path: Path, action: Callable[[], object]) -> str:
    """The code; nothing was committed, and no file is left that the table does not name."""
    before, files = load_snapshot(path).version, sorted(path.rglob("*.parquet"))
    with pytest.raises(DeltaError) as caught:
        action()
    assert load_snapshot(path).version == before
    assert sorted(path.rglob("*.parquet")) == files
    return str(caught.value.code)


# --- replaced


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("partitions", [("q",), (), ("p", "q")], ids=str)
@pytest.mark.parametrize("mode", ["replace", "create_or_replace"])
def test_another_partition_spec_does_not_take_its_place(
    tmp_path: Path, version: int, partitions: tuple[str, ...], mode: Any
) -> None:
    define(tmp_path, COLUMNS, properties=ON[version], partition_columns=("p",))
    write_rows(tmp_path, COLUMNS, ROWS)
    again = {"properties": ON[version], "partition_columns": partitions}
    assert refused(tmp_path, lambda: define(tmp_path, COLUMNS, mode, **again)) == PARTITIONS
    written = {"mode": "overwrite", "create_mode": "replace", "properties": ON[version], "partition_by": partitions}
    assert refused(tmp_path, lambda: write_rows(tmp_path, COLUMNS, ROWS, **written)) == PARTITIONS
    # of another type, and by a table that is no longer for Iceberg
    define(tmp_path, {**COLUMNS, "p": "long"}, mode, properties=ON[version], partition_columns=("p",))
    define(tmp_path, COLUMNS, mode, partition_columns=partitions)
    clean(tmp_path)


def test_a_table_without_partitions_may_get_some(tmp_path: Path) -> None:
    define(tmp_path, COLUMNS, properties=V2)
    define(tmp_path, COLUMNS, "replace", properties=V2, partition_columns=("p",))
    clean(tmp_path)


def test_a_restore_does_not_bring_another_partition_spec_back(tmp_path: Path) -> None:
    define(tmp_path, COLUMNS, properties=V2, partition_columns=("p",))
    define(tmp_path, COLUMNS, "replace", partition_columns=("q",))
    assert refused(tmp_path, lambda: restore(load_snapshot(tmp_path), RestoreOptions(version=0))) == PARTITIONS


def test_a_clone_does_not_put_another_partition_spec_in_place(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    define(source, COLUMNS, properties=V2, partition_columns=("p",))
    define(target, COLUMNS, properties=V2, partition_columns=("q",))
    assert refused(target, lambda: _clone(source, target)) == PARTITIONS


def _clone(source: Path, target: Path) -> None:
    shallow_clone(load_snapshot(source), LocalStorage(), str(target), CloneOptions(replace=True))


# --- deletion vectors


def test_v1_is_not_given_the_feature_by_its_name(tmp_path: Path) -> None:
    define(tmp_path, COLUMNS, properties=V1)
    assert refused(tmp_path, lambda: alter(tmp_path, lambda s: set_properties(s, BY_NAME))) == VECTORS
    assert "deletionVectors" not in supported_features(load_snapshot(tmp_path).protocol)


def test_v2_may_support_what_it_does_not_use(tmp_path: Path) -> None:
    define(tmp_path, COLUMNS, properties=V2)
    alter(tmp_path, lambda s: set_properties(s, BY_NAME))
    on = {"delta.enableDeletionVectors": "true"}
    assert refused(tmp_path, lambda: alter(tmp_path, lambda s: set_properties(s, on))) == VECTORS


def test_v1_does_not_take_the_place_of_a_table_with_the_feature(tmp_path: Path) -> None:
    define(tmp_path, COLUMNS, properties={**MAPPED, **BY_NAME})
    assert refused(tmp_path, lambda: define(tmp_path, COLUMNS, "replace", properties=V1)) == VECTORS
    define(tmp_path, COLUMNS, "replace", properties=V2)
    clean(tmp_path)


# --- turned on


def on(path: Path, version: int, **more: str) -> StructType:
    return alter(path, lambda s: set_properties(s, {**ON[version], **more})).schema


def test_v2_is_turned_on_where_the_files_fit(tmp_path: Path) -> None:
    struct = StructType((StructField("x", INTEGER),))
    columns = StructType((StructField("id", INTEGER), StructField("s", struct), StructField("p", INTEGER)))
    define(tmp_path, columns, properties=MAPPED)
    write_rows(tmp_path, columns, [{"id": 1, "s": {"x": 2}, "p": 3}])
    on(tmp_path, 2)
    snapshot = load_snapshot(tmp_path)
    assert snapshot.protocol.min_writer_version == 7
    assert {"icebergCompatV2", "columnMapping"} <= supported_features(snapshot.protocol)
    write_rows(tmp_path, columns, [{"id": 4, "s": None, "p": None}])
    assert sorted(row["id"] for row in read_rows(tmp_path)) == [1, 4]
    clean(tmp_path)
    # from one version to the other, in one change
    off = {"delta.enableIcebergCompatV2": "false"}
    both = refused(tmp_path, lambda: alter(tmp_path, lambda s: set_properties(s, V1)))
    assert both == "DELTA_ICEBERG_COMPAT_VIOLATION.VERSION_MUTUAL_EXCLUSIVE"
    on(tmp_path, 1, **off)


def test_nested_parts_get_ids_where_no_file_lacks_them(tmp_path: Path) -> None:
    columns = StructType((StructField("a", ArrayType(INTEGER)), StructField("m", MapType(INTEGER, ArrayType(INTEGER)))))
    define(tmp_path, columns, properties=MAPPED)
    schema = on(tmp_path, 2)
    ids = [set(f.metadata[COLUMN_MAPPING_NESTED_IDS].values()) for f in schema]
    assert [len(found) for found in ids] == [1, 3]
    write_rows(tmp_path, columns, [{"a": [1], "m": [(1, [2])]}])
    # its files have them, and stay fit for it
    alter(tmp_path, lambda s: set_properties(s, {"delta.enableIcebergCompatV2": "false"}))
    assert on(tmp_path, 2) == schema
    alter(tmp_path, lambda s: set_properties(s, {"delta.enableIcebergCompatV2": "false"}))
    path = tmp_path / "other"
    define(path, columns, properties=MAPPED)
    write_rows(path, columns, [{"a": [1], "m": None}])
    assert refused(path, lambda: on(path, 2)) == REWRITE


def test_files_from_before_column_mapping_do_not_fit(tmp_path: Path) -> None:
    define(tmp_path, COLUMNS)
    write_rows(tmp_path, COLUMNS, ROWS)
    code = refused(tmp_path, lambda: on(tmp_path, 2))
    assert code == "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY"
    assert refused(tmp_path, lambda: on(tmp_path, 2, **MAPPED)) == REWRITE
    alter(tmp_path, lambda s: set_properties(s, MAPPED))
    write_rows(tmp_path, COLUMNS, ROWS)
    assert refused(tmp_path, lambda: on(tmp_path, 2)) == REWRITE
    write_rows(tmp_path, COLUMNS, ROWS, mode="overwrite")
    on(tmp_path, 2)


def test_timestamps_of_96_bits_do_not_fit(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"t": "timestamp"}, properties=MAPPED)
    table.create()
    [action] = table.append([{"t": 0}])
    file = tmp_path / action["add"]["path"]
    rows = pq.read_table(file)
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True)
    add = {**action["add"], "size": file.stat().st_size}
    table.commit([{"add": {**add, "dataChange": False}}])
    assert pa.types.is_timestamp(rows.schema[0].type)
    assert refused(tmp_path, lambda: on(tmp_path, 2)) == REWRITE


def test_rows_in_deletion_vectors_do_not_fit(tmp_path: Path) -> None:
    define(tmp_path, COLUMNS, properties={**MAPPED, "delta.enableDeletionVectors": "true"})
    write_rows(tmp_path, COLUMNS, [*ROWS, {"id": 9, "p": 9, "q": 9}])
    run_delete(
        planned_delete(load_snapshot(tmp_path), "id = 9", CommandOptions()), Place("process", "a test"), LocalRunner()
    )
    alter(tmp_path, lambda s: set_properties(s, {"delta.enableDeletionVectors": "false"}))
    assert refused(tmp_path, lambda: on(tmp_path, 2)) == VECTORS


def test_v1_wants_partition_columns_in_every_file(tmp_path: Path) -> None:
    define(tmp_path, COLUMNS, properties=MAPPED, partition_columns=("p",))
    write_rows(tmp_path, COLUMNS, ROWS)
    assert refused(tmp_path, lambda: on(tmp_path, 1)) == REWRITE
    # V2 asks that of new files only
    alter_without_warnings = set_properties(load_snapshot(tmp_path), V2)
    commit_change(load_snapshot(tmp_path), alter_without_warnings, DefinitionOptions())
    assert [finding.rule for finding in verify(str(tmp_path)).findings] == ["iceberg.partition-column"]


def test_a_file_that_was_not_looked_at_is_a_conflict(tmp_path: Path) -> None:
    define(tmp_path, COLUMNS, properties=MAPPED)
    snapshot = load_snapshot(tmp_path)
    change = set_properties(snapshot, V2)
    write_rows(tmp_path, COLUMNS, ROWS)
    with pytest.raises(ConflictError):
        commit_change(snapshot, change, DefinitionOptions())


# --- column mapping stays


class Untouched(LocalRunner):
    """Runs nothing: what is refused is refused before a file is rewritten."""

    def run(self, *_: Any) -> Any:
        raise AssertionError("files were rewritten")


@pytest.mark.parametrize("version", [1, 2])
def test_column_mapping_stays_while_iceberg_needs_it(tmp_path: Path, version: int) -> None:
    define(tmp_path, COLUMNS, properties=ON[version])
    write_rows(tmp_path, COLUMNS, ROWS)

    def unmap(runner: LocalRunner) -> None:
        remove_mapping(load_snapshot(tmp_path), runner, DefinitionOptions(), CommandOptions())

    code = refused(tmp_path, lambda: unmap(Untouched()))
    assert code == "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY"
    alter(tmp_path, lambda s: set_properties(s, {f"delta.enableIcebergCompatV{version}": "false"}))
    unmap(LocalRunner())
    assert read_rows(tmp_path) == ROWS
    clean(tmp_path)


def test_the_transaction_itself_refuses(tmp_path: Path) -> None:
    """Whatever makes a commit, its metadata and protocol are checked against the rules."""
    define(tmp_path, COLUMNS, properties=V2, partition_columns=("p",))
    snapshot = load_snapshot(tmp_path)
    transaction = Transaction(snapshot)
    configuration = {**snapshot.configuration.configuration, "delta.columnMapping.mode": "none"}
    transaction.set_metadata(msgspec.structs.replace(snapshot.metadata, configuration=configuration))
    code = refused(tmp_path, lambda: transaction.commit(Operation("SET TBLPROPERTIES")))
    assert code == "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY"
