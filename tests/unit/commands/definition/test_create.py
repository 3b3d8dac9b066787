"""Tables created and replaced: what is in the log, what stays, what is refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.errors import DeltaError, TableNotFoundError, UserError
from delta_pyds.protocol.schema import LONG, STRING, StructField, StructType
from delta_pyds.table.definition.clustering import clustering_columns
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.definitions import commit_info, define
from tests.support.table_writes import read_rows, write_rows

TWO = {"id": "long", "p": "string"}


def test_a_new_table_says_what_was_asked_for(tmp_path: Path) -> None:
    columns = StructType((StructField("id", LONG, False, {"comment": "the id"}), StructField("p", STRING)))

    define(
        tmp_path, columns, partition_columns=("P",), properties={"delta.appendOnly": "TRUE", "my": "x"}, description="d"
    )

    table = load_snapshot(tmp_path)
    assert table.schema == columns
    assert table.configuration.partition_columns == ("p",)
    assert dict(table.configuration.configuration) == {"delta.appendOnly": "true", "my": "x"}
    assert table.metadata.description == "d"
    assert commit_info(tmp_path)["operation"] == "CREATE TABLE"
    assert commit_info(tmp_path)["operationParameters"] == {
        "isManaged": "false",
        "description": "d",
        "partitionBy": '["p"]',
        "clusterBy": "[]",
        "properties": '{"delta.appendOnly":"true","my":"x"}',
    }
    assert not verify(str(tmp_path)).findings


def test_a_table_that_is_there(tmp_path: Path) -> None:
    define(tmp_path, TWO)
    write_rows(tmp_path, TWO, [{"id": 1, "p": "a"}])

    with pytest.raises(UserError) as error:
        define(tmp_path, TWO)
    assert error.value.code == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert define(tmp_path, {"other": "long"}, "create_if_not_exists") is None

    assert load_snapshot(tmp_path).version == 1
    assert read_rows(tmp_path) == [{"id": 1, "p": "a"}]


def test_a_replaced_table_has_other_columns_no_rows_and_its_history(tmp_path: Path) -> None:
    define(tmp_path, TWO, partition_columns=("p",), properties={"my": "x"}, description="d")
    write_rows(tmp_path, TWO, [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}])

    committed = define(tmp_path, {"id": "string"}, "replace", properties={"your": "y"})

    assert committed is not None and committed.version == 2
    assert committed.info.operation == "REPLACE TABLE"
    table = load_snapshot(tmp_path)
    assert table.schema.names == ("id",)
    assert not table.configuration.partition_columns
    assert dict(table.configuration.configuration) == {"your": "y"}
    assert table.metadata.description is None
    assert read_rows(tmp_path) == []
    assert len(read_rows(tmp_path, version=1)) == 2
    assert not verify(str(tmp_path)).findings


def test_nothing_to_replace(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as error:
        define(tmp_path, TWO, "replace")
    assert error.value.code == "TABLE_OR_VIEW_NOT_FOUND"

    define(tmp_path, TWO, "create_or_replace")
    assert commit_info(tmp_path)["operation"] == "CREATE OR REPLACE TABLE"


def test_a_replaced_table_keeps_features_and_never_gives_an_id_twice(tmp_path: Path) -> None:
    by_name = {"delta.columnMapping.mode": "name"}
    define(tmp_path, TWO, properties={**by_name, "delta.enableDeletionVectors": "true"})
    first = load_snapshot(tmp_path)

    define(tmp_path, {"id": "long", "q": "string"}, "replace", properties=by_name)

    table = load_snapshot(tmp_path)
    fields = {f.name: f for f in table.schema}
    assert fields["id"].field_id == 1
    assert fields["id"].physical_name == first.schema.fields[0].physical_name
    assert fields["q"].field_id == 3
    assert table.configuration.configuration["delta.columnMapping.maxColumnId"] == "3"
    assert table.configuration.supports("deletionVectors")
    assert table.configuration.properties.deletion_vectors
    assert not verify(str(tmp_path)).findings


def test_a_replaced_table_that_tracks_rows(tmp_path: Path) -> None:
    tracked = {"delta.enableRowTracking": "true"}
    define(tmp_path, {"id": "long"}, properties=tracked)
    write_rows(tmp_path, {"id": "long"}, [{"id": 1}, {"id": 2}])
    before = load_snapshot(tmp_path).configuration.hidden_columns

    define(tmp_path, {"id": "long"}, "replace", properties=tracked)
    write_rows(tmp_path, {"id": "long"}, [{"id": 3}])

    table = load_snapshot(tmp_path)
    assert table.configuration.hidden_columns == before
    [batch] = table.replay.adds(_request())
    assert batch.files.column("baseRowId").to_pylist() == [2]
    assert not verify(str(tmp_path)).findings


@pytest.mark.parametrize("mapping", [{}, {"delta.columnMapping.mode": "name"}], ids=["plain", "mapped"])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("spelled", [str, str.upper])
def test_no_column_of_a_replaced_table_has_a_hidden_columns_name(
    tmp_path: Path, mapping: dict[str, str], number: int, spelled: Callable[[str], str]
) -> None:
    """Files from before keep row ids in a column of that name, and a restore brings them back."""
    define(tmp_path, {"id": "long"}, properties={"delta.enableRowTracking": "true", **mapping})
    write_rows(tmp_path, {"id": "long"}, [{"id": 1}])
    columns = {"id": "long", spelled(load_snapshot(tmp_path).configuration.hidden_columns[number]): "long"}
    for replace in (
        lambda: define(tmp_path, columns, "replace", properties=mapping),
        lambda: define(tmp_path, columns, "create_or_replace", properties=mapping),
        lambda: write_rows(tmp_path, columns, [], mode="overwrite", create_mode="replace", properties=mapping),
    ):
        with pytest.raises(UserError) as caught:
            replace()
        assert caught.value.code == "DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED"
    assert load_snapshot(tmp_path).version == 1


def _request() -> Any:
    from delta_pyds.log.adds import AddRequest

    return AddRequest(columns=("path", "baseRowId"))


def test_clustering_is_replaced_too(tmp_path: Path) -> None:
    by_name = {"delta.columnMapping.mode": "name"}
    define(tmp_path, TWO, clustering_columns=("id",), properties=by_name)

    define(tmp_path, {"p": "string", "z": "long"}, "replace", clustering_columns=("z",), properties=by_name)
    table = load_snapshot(tmp_path)
    assert clustering_columns(table.domain_metadata) == ((table.schema.fields[1].physical_name,),)

    with pytest.raises(UserError) as error:
        define(tmp_path, TWO, "replace", partition_columns=("p",), properties=by_name)
    assert error.value.code == "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"
    define(tmp_path, {"p": "string"}, "replace", properties=by_name)
    assert clustering_columns(load_snapshot(tmp_path).domain_metadata) == ()
    assert not verify(str(tmp_path)).findings


@pytest.mark.parametrize(
    ("columns", "more", "code"),
    [
        ({}, {}, "DELTA_EMPTY_DATA"),
        (TWO, {"partition_columns": ("q",)}, "DELTA_PARTITION_COLUMN_NOT_FOUND"),
        (TWO, {"partition_columns": ("id", "p")}, "DELTA_NON_PARTITION_COLUMN_ABSENT.ALL_PARTITION_COLUMNS"),
        (TWO, {"partition_columns": ("p",), "clustering_columns": ("id",)}, "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"),
        (TWO, {"properties": {"delta.bad": "1"}}, "DELTA_UNKNOWN_CONFIGURATION"),
        ({"a b": "long"}, {}, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
    ],
)
def test_what_no_table_can_be(tmp_path: Path, columns: Any, more: dict[str, Any], code: str) -> None:
    with pytest.raises(DeltaError) as error:
        define(tmp_path, columns, **more)
    assert error.value.code == code
    assert not (tmp_path / "_delta_log").exists()


def test_an_append_only_table_is_not_replaced(tmp_path: Path) -> None:
    define(tmp_path, TWO, properties={"delta.appendOnly": "true"})
    write_rows(tmp_path, TWO, [{"id": 1, "p": "a"}])
    with pytest.raises(DeltaError) as error:
        define(tmp_path, TWO, "replace")
    assert error.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    assert load_snapshot(tmp_path).version == 1
