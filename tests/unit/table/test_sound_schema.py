"""Definitions of tables that no writer should have written: each is refused with a sentence, or harms nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_pyds import verify
from delta_pyds.commands.maintain import checkpoint
from delta_pyds.errors import DeltaError, ProtocolError
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.snapshot import load_snapshot
from tests.support.schema_json import field, struct
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, write_rows
from tests.support.verification import messages, rules

ID, NAME, NESTED = "delta.columnMapping.id", "delta.columnMapping.physicalName", "delta.columnMapping.nested.ids"


def mapped(name: str, number: Any, physical: Any, data_type: Any = "long") -> dict[str, Any]:
    return field(name, data_type, **{k: v for k, v in ((ID, number), (NAME, physical)) if v is not None})


def load(*fields: dict[str, Any], mode: str = "none", partitions: Any = ()) -> TableConfiguration:
    metadata = Metadata(
        schema_string=json.dumps(struct(*fields)),
        partition_columns=list(partitions),
        configuration={"delta.columnMapping.mode": mode},
    )
    return load_configuration("/t", 7, Protocol(2, 5), metadata)


ARRAY = {"type": "array", "elementType": "long", "containsNull": True}


@pytest.mark.parametrize(
    ("fields", "options", "code"),
    [
        ([field("a"), field("a")], {}, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ([field("s", struct(field("a"), field("a")))], {}, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ([field("s", {**ARRAY, "elementType": struct(field("a"), field("a"))})], {}, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ([field("a"), field("b")], {"partitions": ["a", "a"]}, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ([field("a"), field("b")], {"partitions": ["A"]}, "DELTA_MISSING_PARTITION_COLUMN"),
        ([field("a"), field("s", struct())], {"partitions": ["s"]}, "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        ([field("a"), field("s", ARRAY)], {"partitions": ["s"]}, "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        ([mapped("a", 1, "x"), mapped("b", 2, "x")], {"mode": "name"}, "DELTA_DUPLICATED_PHYSICAL_NAME"),
        ([mapped("a", 1, "x"), mapped("b", 2, "x")], {"mode": "id"}, "DELTA_DUPLICATED_PHYSICAL_NAME"),
        ([mapped("a", 1, "x"), mapped("b", 1, "y")], {"mode": "id"}, "DELTA_DUPLICATED_COLUMN_ID"),
        ([mapped("a", 1, "x"), mapped("s", 2, "y", struct(mapped("b", 1, "z")))], {"mode": "id"},
         "DELTA_DUPLICATED_COLUMN_ID"),
        ([mapped("a", 1, None)], {"mode": "name"}, "DELTA_MISSING_PHYSICAL_NAME"),
        ([mapped("a", 1, "")], {"mode": "name"}, "DELTA_MISSING_PHYSICAL_NAME"),
        ([mapped("a", 1, 5)], {"mode": "name"}, "DELTA_MISSING_PHYSICAL_NAME"),
        ([mapped("a", "one", "x")], {"mode": "name"}, "DELTA_INVALID_SCHEMA"),
        ([mapped("a", [1], "x")], {"mode": "id"}, "DELTA_INVALID_SCHEMA"),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_told_apart_are_refused(fields: Any, options: dict[str, Any], code: str) -> None:
    with pytest.raises(ProtocolError) as error:
        load(*fields, **options)
    assert error.value.code == code
    assert "/t, version 7" in error.value.message


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ([field("a"), field("A")], {}),  # deltalake makes such tables
        ([field("a"), field("s", struct(field("a")))], {}),
        ([mapped("a", 1, "x"), mapped("b", 1, "x")], {}),  # mapping is off
        ([mapped("a", 1, "x"), mapped("b", 1, "y")], {"mode": "name"}),  # ids are not looked at
        ([mapped("a", 1, "x"), mapped("s", 2, "y", struct(mapped("a", 3, "x")))], {"mode": "id"}),
        ([mapped("a", None, "x"), mapped("b", None, "y")], {"mode": "id"}),
    ],
)
def test_columns_that_can_be_told_apart_are_read(fields: Any, options: dict[str, Any]) -> None:
    assert list(load(*fields, **options).schema.names) == [f["name"] for f in fields]


# --- what only writers need stops writers only, and verify names it


def table(path: Path, **metadata: Any) -> TableBuilder:
    builder = TableBuilder(path, {"id": "long"}, features=(["columnMapping"], ["columnMapping", "clustering"]))
    builder.create()
    builder.append([{"id": 1}])
    action = builder.metadata()
    action["metaData"]["configuration"].update(metadata.pop("configuration", {}))
    action["metaData"].update(metadata)
    builder.commit([action])
    return builder


MAPPING_ON = {"delta.columnMapping.mode": "name"}


@pytest.mark.parametrize("largest", ["x", "-1", str(10**30), "1" * 5000, "\u0663"])
def test_a_largest_column_id_that_is_none_stops_new_columns(tmp_path: Path, largest: str) -> None:
    schema = json.dumps(struct(mapped("id", 1, "id")))
    configuration = {**MAPPING_ON, "delta.columnMapping.maxColumnId": largest}
    table(tmp_path, schemaString=schema, configuration=configuration)
    assert read_rows(tmp_path) == [{"id": 1}]
    for options in ({"merge_schema": True}, {"mode": "overwrite", "overwrite_schema": True}):
        with pytest.raises(DeltaError, match="maxColumnId") as error:
            write_rows(tmp_path, {"id": "long", "b": "long"}, [{"id": 2, "b": 3}], **options)
        assert error.value.code == "DELTA_COLUMN_MAPPING_MAX_COLUMN_ID_NOT_SET_CORRECTLY"


@pytest.mark.parametrize("nested", [-1, "x", [1], {"id.element": None}, {"id.element": "7"}])
def test_ids_of_parts_that_are_none_stop_new_columns(tmp_path: Path, nested: Any) -> None:
    column = mapped("id", 1, "id")
    column["metadata"][NESTED] = nested
    configuration = {**MAPPING_ON, "delta.columnMapping.maxColumnId": "1"}
    table(tmp_path, schemaString=json.dumps(struct(column)), configuration=configuration)
    assert read_rows(tmp_path) == [{"id": 1}]
    with pytest.raises(ProtocolError, match=r"nested\.ids of the column 'id'"):
        write_rows(tmp_path, {"id": "long", "b": "long"}, [{"id": 2, "b": 3}], merge_schema=True)


@pytest.mark.parametrize("changes", [-1, "x", {}, [1], [{}], [{"fromType": 1}], [None]])
def test_a_history_of_types_that_is_none_says_nothing(tmp_path: Path, changes: Any) -> None:
    table(tmp_path, schemaString=json.dumps(struct(field("id", **{"delta.typeChanges": changes}))))
    assert read_rows(tmp_path, where="id = 1") == [{"id": 1}]
    write_rows(tmp_path, {"id": "long"}, [{"id": 2}])
    checkpoint(str(tmp_path))
    assert len(read_rows(tmp_path, where="id < 3")) == 2


@pytest.mark.parametrize("columns", [1, "id", [1], [[1]], [None], [["id"], 5], {"a": 1}])
def test_verify_names_clustering_columns_that_cannot_be_read(tmp_path: Path, columns: Any) -> None:
    builder = table(tmp_path)
    text = json.dumps({"clusteringColumns": columns})
    builder.commit([{"domainMetadata": {"domain": "delta.clustering", "configuration": text, "removed": False}}])
    assert "error clustering.domain" in rules(tmp_path)
    assert "cannot be read" in messages(tmp_path)
    assert not verify(str(tmp_path)).ok


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.logRetentionDuration", f"interval {'9' * 400} days"),
        ("delta.logRetentionDuration", "interval 9999999999999999999 weeks"),
        ("delta.deletedFileRetentionDuration", f"interval {10**30} days"),
        ("delta.targetFileSize", "1" * 400),
        ("delta.targetFileSize", "1" * 5000),
        ("delta.targetFileSize", "9999999999tb"),
        ("delta.checkpointInterval", str(10**30)),
        ("delta.dataSkippingNumIndexedCols", "1" * 5000),
    ],
)
def test_numbers_beyond_all_measure_stop_writers_only(tmp_path: Path, name: str, value: str) -> None:
    table(tmp_path, configuration={name: value})
    assert read_rows(tmp_path) == [{"id": 1}]
    with pytest.raises(ProtocolError, match=name) as error:
        write_rows(tmp_path, {"id": "long"}, [{"id": 2}])
    assert error.value.code == "DELTA_INVALID_TABLE_PROPERTY"
    assert load_snapshot(str(tmp_path)).version == 2
