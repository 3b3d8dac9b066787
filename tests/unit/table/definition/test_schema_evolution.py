from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from delta_pyds.errors import DeltaError, UnsupportedOperationError
from delta_pyds.protocol.schema import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    StructField,
    StructType,
    parse_schema,
)
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.definition.create import TableDefinition, new_table
from delta_pyds.table.definition.protocol_upgrade import upgrade_protocol
from delta_pyds.table.definition.schema_enforcement import enforce_schema
from delta_pyds.table.definition.schema_evolution import evolve_metadata, replace_schema
from tests.support.scans import struct_of


def define(schema: StructType, properties: dict[str, str] | None = None, **options: Any) -> TableDefinition:
    return new_table("/t", schema, properties=properties or {}, **{"partition_columns": (), **options})


def configuration_of(definition: TableDefinition, version: int = 0) -> TableConfiguration:
    return load_configuration("/t", version, definition.protocol, definition.metadata)


MAPPED = {"delta.columnMapping.mode": "name", "delta.checkpointInterval": "5"}


def test_an_unchanged_schema_leaves_the_metadata_alone() -> None:
    configuration = configuration_of(define(struct_of(id=LONG), MAPPED))
    schema = enforce_schema(configuration, struct_of(id=LONG), merge_schema=True)
    assert evolve_metadata(configuration, schema) is configuration.metadata


@pytest.mark.parametrize("properties", [{}, MAPPED, {"delta.enableIcebergCompatV2": "true"}])
def test_evolution_changes_the_schema_and_nothing_else(properties: dict[str, str]) -> None:
    configuration = configuration_of(
        define(struct_of(id=LONG, p=STRING), properties, partition_columns=["p"], name="n")
    )
    schema = enforce_schema(configuration, struct_of(id=LONG, p=STRING, a=ArrayType(LONG)), merge_schema=True)
    metadata = evolve_metadata(configuration, schema)
    assert parse_schema(metadata.schema_string or "") == schema
    old, new = (dict(m.configuration or {}) for m in (configuration.metadata, metadata))
    max_id = new.pop("delta.columnMapping.maxColumnId", None)
    old.pop("delta.columnMapping.maxColumnId", None)
    assert old == new
    same = msgspec.structs.replace(
        metadata, schema_string=configuration.metadata.schema_string, configuration=configuration.metadata.configuration
    )
    assert same == configuration.metadata
    again = load_configuration("/t", 1, configuration.protocol, metadata)
    assert again.schema == schema
    assert max_id == {0: None, 2: "3", 1: "4"}[len(properties)]
    assert upgrade_protocol(configuration.protocol, metadata) is configuration.protocol


def test_the_highest_id_never_falls() -> None:
    configuration = configuration_of(define(struct_of(id=LONG), MAPPED))
    ahead = dict(configuration.configuration, **{"delta.columnMapping.maxColumnId": "41"})
    metadata = msgspec.structs.replace(configuration.metadata, configuration=ahead)
    configuration = load_configuration("/t", 1, configuration.protocol, metadata)
    evolved = evolve_metadata(configuration, enforce_schema(configuration, struct_of(new=LONG), merge_schema=True))
    assert (evolved.configuration or {})["delta.columnMapping.maxColumnId"] == "42"
    replaced = replace_schema(configuration, struct_of(id=LONG))
    assert (replaced.configuration or {})["delta.columnMapping.maxColumnId"] == "41"


def test_ids_that_nothing_honours_are_left_where_they_are() -> None:
    definition = define(struct_of(id=LONG, s=struct_of(x=LONG)))
    stray = {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "odd"}
    stored = json.loads(definition.metadata.schema_string or "")
    stored["fields"][0]["metadata"] = stray
    stored["fields"][1]["type"]["fields"][0]["metadata"] = stray
    metadata = msgspec.structs.replace(definition.metadata, schema_string=json.dumps(stored))
    configuration = load_configuration("/t", 1, definition.protocol, metadata)
    schema = enforce_schema(configuration, struct_of(s=struct_of(y=LONG), new=DATE), merge_schema=True)
    fields = json.loads(evolve_metadata(configuration, schema).schema_string or "")["fields"]
    assert fields[0]["metadata"] == stray
    assert fields[1]["type"]["fields"][0]["metadata"] == stray
    assert (fields[1]["type"]["fields"][1]["metadata"], fields[2]["metadata"]) == ({}, {})


@pytest.mark.parametrize(
    "stored_type",
    [
        {"type": "udt", "sqlType": "long", "pyClass": "x.Y"},
        "varchar(10)",
        "string collate UTF8_LCASE",
        {"type": "array", "elementType": "char(3)", "containsNull": True},
    ],
)
def test_a_schema_that_would_lose_something_is_not_written_again(stored_type: Any) -> None:
    definition = define(struct_of(id=LONG))
    fields: list[dict[str, Any]] = [
        {"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("id", "long"), ("u", stored_type))
    ]
    metadata = msgspec.structs.replace(
        definition.metadata, schema_string=json.dumps({"type": "struct", "fields": fields})
    )
    configuration = load_configuration("/t", 1, definition.protocol, metadata)
    schema = enforce_schema(configuration, struct_of(id=LONG, new=LONG), merge_schema=True)
    with pytest.raises(UnsupportedOperationError, match="/t"):
        evolve_metadata(configuration, schema)


# replacing


def test_a_replaced_schema_keeps_id_properties_and_the_mapping_of_columns_that_stay() -> None:
    configuration = configuration_of(define(struct_of(id=LONG, v=LONG, p=STRING), MAPPED, partition_columns=["p"]))
    old = configuration.schema
    incoming = StructType((StructField("p", STRING), StructField("ID", LONG, False), StructField("v", STRING)))
    metadata = replace_schema(configuration, incoming, ["P"])
    new = load_configuration("/t", 1, configuration.protocol, metadata)
    assert (metadata.id, metadata.created_time) == (configuration.metadata.id, configuration.metadata.created_time)
    assert new.partition_columns == ("p",)
    p, number, v = new.schema
    assert (number.name, number.nullable, number.data_type) == ("ID", True, LONG)
    assert (p.physical_name, number.physical_name) == (old.fields[2].physical_name, old.fields[0].physical_name)
    assert (p.field_id, number.field_id, v.field_id) == (3, 1, 4)
    assert v.physical_name != old.fields[1].physical_name
    assert (metadata.configuration or {}) == {**MAPPED, "delta.columnMapping.maxColumnId": "4"}


def test_without_partition_columns_the_replaced_table_has_none() -> None:
    configuration = configuration_of(define(struct_of(id=LONG, p=STRING), partition_columns=["p"]))
    assert replace_schema(configuration, struct_of(id=DATE)).partition_columns == []
    assert replace_schema(configuration, struct_of(id=DATE, q=INTEGER), ["Q"]).partition_columns == ["q"]


@pytest.mark.parametrize(
    ("properties", "incoming", "partitions", "code"),
    [
        ({}, struct_of(**{"a b": LONG}), (), "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        ({}, struct_of(id=LONG, ID=LONG), (), "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"),
        ({}, struct_of(id=LONG), ("q",), "DELTA_PARTITION_COLUMN_NOT_FOUND"),
        ({}, struct_of(id=LONG), ("id",), "DELTA_NON_PARTITION_COLUMN_ABSENT.ALL_PARTITION_COLUMNS"),
        ({}, StructType(()), (), "DELTA_EMPTY_DATA"),
        (
            {"delta.enableChangeDataFeed": "true"},
            struct_of(_change_type=LONG),
            (),
            "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
        ),
        (
            {},
            StructType((StructField("id", LONG, True, {"CURRENT_DEFAULT": "1"}),)),
            (),
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
        ),
        (
            {"delta.enableIcebergCompatV1": "true"},
            struct_of(id=LONG, p=STRING),
            ("id",),
            "DELTA_ICEBERG_COMPAT_VIOLATION.REPLACE_TABLE_CHANGE_PARTITION_NAMES",
        ),
        (
            {"delta.enableIcebergCompatV1": "true"},
            struct_of(a=ArrayType(LONG), p=STRING),
            ("p",),
            "DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_DATA_TYPE",
        ),
    ],
)
def test_a_schema_that_the_table_cannot_have_does_not_replace_its_own(
    properties: dict[str, str], incoming: StructType, partitions: tuple[str, ...], code: str
) -> None:
    configuration = configuration_of(define(struct_of(id=LONG, p=STRING), properties, partition_columns=["p"]))
    with pytest.raises(DeltaError) as error:
        replace_schema(configuration, incoming, partitions)
    assert error.value.code == code


@pytest.mark.parametrize("properties", [{}, MAPPED])
def test_a_clustered_table_keeps_its_clustering_columns(properties: dict[str, str]) -> None:
    definition = define(struct_of(id=LONG, s=struct_of(x=LONG)), properties, clustering_columns=["s.x"])
    configuration = configuration_of(definition)
    [path] = json.loads(definition.domains[0].configuration)["clusteringColumns"]
    kept = replace_schema(configuration, struct_of(s=struct_of(x=LONG), n=LONG), clustering_columns=[tuple(path)])
    assert parse_schema(kept.schema_string or "").names == ("s", "n")
    with pytest.raises(DeltaError) as error:
        replace_schema(configuration, struct_of(n=LONG), clustering_columns=[tuple(path)])
    assert error.value.code == "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
    with pytest.raises(DeltaError) as error:
        replace_schema(configuration, struct_of(s=struct_of(x=LONG), n=LONG), ["n"])
    assert error.value.code == "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"
