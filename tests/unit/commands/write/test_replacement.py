"""A table that takes the place of another one, with its rows, as one version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from delta_pyds.commands.write.write import commit_write, plan_write
from delta_pyds.errors import ConflictError, OptionError, TableNotFoundError, UserError
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_writes import WriteRequest, read_rows, struct, write_rows

REPLACE: dict[str, Any] = {"mode": "overwrite", "create_mode": "createOrReplace"}


def test_another_table_takes_the_place_of_the_one_that_is_there(tmp_path: Path) -> None:
    write_rows(
        tmp_path,
        {"id": "long", "p": "string"},
        [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}],
        partition_by=(("p",),),
        properties={"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name", "own": "1"},
        table_comment="before",
    )
    before = load_snapshot(tmp_path)
    write_rows(
        tmp_path,
        {"id": "string", "q": "int"},
        [{"id": "x", "q": 1}],
        partition_by=(("q",),),
        properties={"delta.columnMapping.mode": "name", "other": "2"},
        **REPLACE,
    )
    after = load_snapshot(tmp_path)
    assert after.version == 1 and read_rows(tmp_path) == [{"id": "x", "q": 1}]
    assert after.configuration.partition_columns == ("q",) and after.metadata.description is None
    configuration = after.metadata.configuration or {}
    assert configuration["other"] == "2" and "own" not in configuration
    # the reference leaves these on
    assert configuration["delta.enableDeletionVectors"] == "true"
    assert after.configuration.features >= before.configuration.features
    # ids are never given twice, and a column of another type is another one
    assert configuration["delta.columnMapping.maxColumnId"] == "4"
    assert len(read_rows(tmp_path, version=0)) == 2
    entry = json.loads((tmp_path / "_delta_log" / f"{1:020}.json").read_text().splitlines()[0])["commitInfo"]
    assert entry["operation"] == "CREATE OR REPLACE TABLE AS SELECT"
    parameters, metrics = entry["operationParameters"], entry["operationMetrics"]
    assert (
        parameters["partitionBy"] == '["q"]' and metrics["numOutputRows"] == "1" and metrics["numRemovedFiles"] == "2"
    )
    delta_pyds.verify(tmp_path).raise_for_errors()


def test_clustering_comes_and_goes(tmp_path: Path) -> None:
    rows = [{"id": 1, "name": "a"}]
    columns = {"id": "long", "name": "string"}
    write_rows(tmp_path, columns, rows, cluster_by=(("id",),))
    write_rows(tmp_path, columns, rows, cluster_by=(("name",),), **REPLACE)
    assert load_snapshot(tmp_path).domain_metadata["delta.clustering"].configuration.count("name") >= 1
    write_rows(tmp_path, columns, rows, **REPLACE)
    assert '"clusteringColumns":[]' in load_snapshot(tmp_path).domain_metadata[
        "delta.clustering"
    ].configuration.replace(" ", "")
    with pytest.raises(UserError, match="clustered") as found:
        write_rows(tmp_path, columns, rows, partition_by=(("name",),), **REPLACE)
    assert found.value.code == "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"
    assert load_snapshot(tmp_path).version == 2
    delta_pyds.verify(tmp_path).raise_for_errors()


def test_where_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match=r"there is no table at .* to replace") as found:
        write_rows(tmp_path / "t", {"id": "long"}, [{"id": 1}], mode="overwrite", create_mode="replace")
    assert found.value.code == "TABLE_OR_VIEW_NOT_FOUND" and not (tmp_path / "t").exists()
    write_rows(tmp_path / "t", {"id": "long"}, [{"id": 1}], **REPLACE)
    write_rows(tmp_path / "t", {"n": "long"}, [{"n": 2}], mode="overwrite", create_mode="replace")
    assert read_rows(tmp_path / "t") == [{"n": 2}]


def test_rows_of_a_table_that_only_grows_stay(tmp_path: Path) -> None:
    write_rows(tmp_path, {"id": "long"}, [{"id": 1}], properties={"delta.appendOnly": "true"})
    with pytest.raises(UserError, match="append-only") as found:
        write_rows(tmp_path, {"id": "long"}, [{"id": 2}], **REPLACE)
    assert found.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY" and read_rows(tmp_path) == [{"id": 1}]


def test_whatever_another_writer_did_meanwhile_is_not_lost(tmp_path: Path) -> None:
    write_rows(tmp_path, {"id": "long"}, [{"id": 1}])
    plan = plan_write(WriteRequest(str(tmp_path), struct({"n": "long"}), **REPLACE))
    write_rows(tmp_path, {"id": "long"}, [{"id": 2}])
    with pytest.raises(ConflictError):
        commit_write(plan, [])
    assert len(read_rows(tmp_path)) == 2


@pytest.mark.parametrize(
    "given",
    [
        {"mode": "append"},
        {"replace_where": "id = 1"},
        {"merge_schema": True},
        {"data_change": False},
        {"partition_overwrite": "dynamic"},
    ],
)
def test_what_contradicts_it_is_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="createMode=createOrReplace"):
        write_rows(tmp_path, {"id": "long"}, [{"id": 1}], **{**REPLACE, **given})
