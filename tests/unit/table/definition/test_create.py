from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from delta_pyds.errors import DeltaError, OptionError, UnsupportedFeatureError, UserError
from delta_pyds.protocol.actions import Protocol
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    parse_schema,
)
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.definition.create import TableDefinition, new_table

SCHEMA = StructType((StructField("id", LONG), StructField("P", STRING)))
INNER = StructType((StructField("x", LONG),))
TWICE = StructType((StructField("x", LONG), StructField("X", LONG)))
ABSENT = "DELTA_NON_PARTITION_COLUMN_ABSENT"


def one(name: str, data_type: DataType = LONG, metadata: dict[str, Any] | None = None) -> StructType:
    return StructType((StructField(name, data_type, True, metadata or {}), StructField("other", LONG)))


def create(schema: StructType = SCHEMA, properties: dict[str, str] | None = None, **options: Any) -> TableDefinition:
    return new_table("/t", schema, properties=properties or {}, **{"partition_columns": (), **options})


def configuration_of(table: TableDefinition) -> TableConfiguration:
    return load_configuration("/t", 0, table.protocol, table.metadata)


def refusal(schema: StructType = SCHEMA, properties: dict[str, str] | None = None, **options: Any) -> DeltaError:
    with pytest.raises(DeltaError) as error:
        create(schema, properties, **options)
    return error.value


def test_a_plain_table_is_as_the_reference_makes_it() -> None:
    before = time.time_ns() // 1_000_000
    table = create(description="what it is", name="t", partition_columns=["p"])
    m = table.metadata
    assert table.protocol == Protocol(1, 2)
    assert table.domains == ()
    assert (m.name, m.description, m.partition_columns, m.configuration) == ("t", "what it is", ["P"], {})
    assert re.fullmatch(r"[0-9a-f-]{36}", m.id)
    assert m.created_time is not None
    assert before <= m.created_time <= time.time_ns() // 1_000_000
    assert m.format is not None
    assert (m.format.provider, m.format.options) == ("parquet", {})
    assert json.loads(m.schema_string or "") == {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "P", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
    assert create().metadata.id != m.id


@pytest.mark.parametrize(
    ("properties", "schema"),
    [
        ({}, SCHEMA),
        ({"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"}, one("a b", INNER)),
        ({"delta.enableRowTracking": "true", "delta.checkpointPolicy": "v2"}, SCHEMA),
        ({"delta.enableIcebergCompatV2": "true"}, one("m", MapType(STRING, ArrayType(INNER)))),
        ({"delta.enableIcebergCompatV1": "true"}, SCHEMA),
        ({"delta.minReaderVersion": "2", "delta.minWriterVersion": "6"}, SCHEMA),
        ({"delta.enableInCommitTimestamps": "true", "delta.feature.vacuumProtocolCheck": "supported"}, SCHEMA),
        ({"delta.enableChangeDataFeed": "true", "delta.constraints.c": "id > 0"}, one("t", TIMESTAMP_NTZ)),
        ({"delta.feature.allowColumnDefaults": "supported"}, one("d", LONG, {"CURRENT_DEFAULT": "1"})),
        ({"delta.enableVariantShredding": "true"}, one("v", VARIANT)),
    ],
)
def test_a_new_table_can_be_read_and_written_by_this_software(properties: dict[str, str], schema: StructType) -> None:
    table = create(schema, properties)
    configuration = configuration_of(table)
    configuration.check_writable()
    assert configuration.schema.names == schema.names
    assert not any(key.startswith(("delta.feature.", "delta.min")) for key in configuration.configuration)


def test_incoming_columns_become_nullable_unless_told_otherwise() -> None:
    inner = StructType((StructField("x", LONG, False),))
    schema = StructType(
        (StructField("id", LONG, False), StructField("a", ArrayType(inner, False), False), StructField("s", inner))
    )
    table = configuration_of(create(schema)).schema
    nullable = StructType((StructField("x", LONG),))
    assert [f.nullable for f in table] == [True, True, True]
    assert [f.data_type for f in table] == [LONG, ArrayType(nullable), nullable]
    kept = create(StructType((StructField("id", LONG, False),)), keep_nullability=True)
    assert configuration_of(kept).schema.fields[0].nullable is False
    assert kept.protocol == Protocol(1, 2)


@pytest.mark.parametrize("outer", [ArrayType, lambda t: MapType(t, LONG), lambda t: MapType(LONG, t)])
def test_not_null_within_an_array_or_a_map_is_refused(outer: Any) -> None:
    schema = one("a", outer(StructType((StructField("x", LONG, False),))))
    assert refusal(schema, keep_nullability=True).code == "DELTA_NESTED_NOT_NULL_CONSTRAINT"


def test_what_queries_and_other_tables_left_in_the_metadata_is_dropped() -> None:
    left = {
        "comment": "kept",
        "__CHAR_VARCHAR_TYPE_STRING": "varchar(3)",
        "__autoGeneratedAlias": "true",
        "delta.columnMapping.id": 7,
        "delta.columnMapping.physicalName": "col-7",
        "parquet.field.id": 7,
        "delta.typeChanges": [],
        "EXISTS_DEFAULT": "1",
        "delta.identity.highWaterMark": 12,
    }
    table = create(one("a", STRING, left))
    column = configuration_of(table).schema.fields[0]
    assert column.metadata == {"comment": "kept", "__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    assert table.protocol == Protocol(1, 2)


IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}


@pytest.mark.parametrize(
    ("schema", "options", "code"),
    [
        (StructType(()), {}, "DELTA_EMPTY_DATA"),
        (one("OTHER"), {}, "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"),
        (one("s", TWICE), {}, "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"),
        (one("a b"), {}, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (one("s", StructType((StructField("x=1", LONG),))), {}, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (one("a b"), {"partition_columns": ["a b"]}, "DELTA_INVALID_PARTITION_COLUMN_NAME"),
        (SCHEMA, {"partition_columns": ["q"]}, "DELTA_PARTITION_COLUMN_NOT_FOUND"),
        (SCHEMA, {"partition_columns": ["p", "P"]}, "DELTA_DUPLICATE_COLUMNS_FOUND.PARTITION_COLUMNS"),
        (SCHEMA, {"partition_columns": ["p", "id"]}, f"{ABSENT}.ALL_PARTITION_COLUMNS"),
        (one("v", VOID), {"partition_columns": ["other"]}, f"{ABSENT}.NULL_TYPE_COLUMNS_DROPPED"),
        (one("a", INNER), {"partition_columns": ["a"]}, "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        (one("a", VARIANT), {"partition_columns": ["a"]}, "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        (one("a", ArrayType(VOID)), {}, "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        (one("a", MapType(LONG, VOID)), {}, "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        (one("a", StructType((StructField("x", VOID),))), {}, "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        (one("a", LONG, {"CURRENT_DEFAULT": "1"}), {}, "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"),
        (one("a", STRING, {"__COLLATIONS": {"a": "UTF8_LCASE"}}), {}, "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"),
        (one("i", LONG, {**IDENTITY, "delta.identity.step": 0}), {}, "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP"),
        (one("i", STRING, IDENTITY), {}, "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE"),
        (one("i", LONG, IDENTITY), {"partition_columns": ["i"]}, "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED"),
        (one("i", LONG, {"delta.identity.start": 1}), {}, "DELTA_IDENTITY_COLUMN_INCONSISTENT_METADATA"),
        (
            one("i", LONG, {**IDENTITY, "delta.generationExpression": "1"}),
            {},
            "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION",
        ),
    ],
)  # fmt: skip
def test_a_schema_that_no_table_can_have_is_refused(schema: StructType, options: dict[str, Any], code: str) -> None:
    assert refusal(schema, **options).code == code


def test_column_mapping_allows_any_name() -> None:
    table = create(one("a b=;{}"), {"delta.columnMapping.mode": "name"})
    assert table.protocol == Protocol(2, 7, None, ["appendOnly", "columnMapping", "invariants"])
    assert (table.metadata.configuration or {})["delta.columnMapping.maxColumnId"] == "2"
    assert [f.field_id for f in configuration_of(table).schema] == [1, 2]


def test_column_names_of_the_change_data_feed_are_reserved() -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    assert refusal(one("_Commit_Version"), feed).code == "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"
    assert create(one("_commit_version")).protocol == Protocol(1, 2)


def test_identity_columns_need_their_feature() -> None:
    table = create(one("i", LONG, IDENTITY))
    assert table.protocol == Protocol(1, 7, None, ["appendOnly", "identityColumns", "invariants"])


def test_row_tracking_names_its_columns() -> None:
    table = create(properties={"delta.enableRowTracking": "true"})
    configuration = table.metadata.configuration or {}
    assert (configuration["delta.rowTracking.materializedRowIdColumnName"] or "").startswith("_row-id-col-")
    assert (configuration["delta.rowTracking.materializedRowCommitVersionColumnName"] or "").startswith(
        "_row-commit-version-col-"
    )
    assert configuration_of(table).has_row_tracking
    supported = create(properties={"delta.feature.rowTracking": "supported"})
    assert "delta.rowTracking.materializedRowIdColumnName" in (supported.metadata.configuration or {})
    assert not create().metadata.configuration


# clustering


def test_clustering_columns_are_stored_by_physical_name() -> None:
    schema = StructType((StructField("Id", LONG), StructField("s", INNER), StructField("a.b", LONG)))
    table = create(schema, clustering_columns=["ID", ("s", "X"), "`a.b`"])
    [domain] = table.domains
    assert domain.domain == "delta.clustering"
    assert domain.configuration == ('{"clusteringColumns":[["Id"],["s","x"],["a.b"]],"domainName":"delta.clustering"}')
    assert table.protocol == Protocol(1, 7, None, ["appendOnly", "clustering", "domainMetadata", "invariants"])
    mapped = create(schema, {"delta.columnMapping.mode": "name"}, clustering_columns=["s.x"])
    [s_and_x] = json.loads(mapped.domains[0].configuration)["clusteringColumns"]
    s = configuration_of(mapped).schema.fields[1]
    assert isinstance(s.data_type, StructType)
    assert s_and_x == [s.physical_name, s.data_type.fields[0].physical_name]


@pytest.mark.parametrize(
    ("columns", "options", "code"),
    [
        (["id"], {"partition_columns": ["P"]}, "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"),
        (["id"] * 5, {}, "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
        (["id", "ID"], {}, "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY"),
        (["gone"], {}, "DELTA_COLUMN_NOT_FOUND"),
        (["id, P"], {}, "DELTA_COLUMN_NOT_FOUND"),
        (["P"], {"properties": {"delta.dataSkippingNumIndexedCols": "1"}}, "DELTA_CLUSTERING_COLUMN_MISSING_STATS"),
        (["P"], {"properties": {"delta.dataSkippingStatsColumns": "id"}}, "DELTA_CLUSTERING_COLUMN_MISSING_STATS"),
    ],
)
def test_a_clustering_that_no_table_can_have_is_refused(columns: list[str], options: dict[str, Any], code: str) -> None:
    assert refusal(clustering_columns=columns, **options).code == code


@pytest.mark.parametrize("data_type", [BOOLEAN, BINARY, INNER, ArrayType(LONG), VARIANT])
def test_clustering_columns_need_a_smallest_and_a_greatest_value(data_type: DataType) -> None:
    error = refusal(one("c", data_type), clustering_columns=["c"])
    assert error.code == "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"


def test_clustering_is_asked_for_by_columns_only() -> None:
    error = refusal(properties={"delta.feature.clustering": "supported"})
    assert error.code == "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"


# Iceberg compatibility


def test_iceberg_compatibility_brings_column_mapping() -> None:
    table = create(properties={"delta.enableIcebergCompatV1": "true"})
    assert (table.metadata.configuration or {})["delta.columnMapping.mode"] == "name"
    assert table.protocol.writer_features == ["appendOnly", "columnMapping", "icebergCompatV1", "invariants"]
    by_id = create(properties={"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "id"})
    configuration = by_id.metadata.configuration or {}
    assert configuration["delta.columnMapping.mode"] == "id"
    assert all(
        f.metadata["delta.columnMapping.nested.ids"] == {} for f in parse_schema(by_id.metadata.schema_string or "")
    )


@pytest.mark.parametrize(
    ("version", "schema", "properties", "kind"),
    [
        (1, SCHEMA, {"delta.enableIcebergCompatV2": "true"}, "VERSION_MUTUAL_EXCLUSIVE"),
        (1, SCHEMA, {"delta.columnMapping.mode": "none"}, "WRONG_REQUIRED_TABLE_PROPERTY"),
        (2, SCHEMA, {"delta.enableDeletionVectors": "true"}, "DELETION_VECTORS_SHOULD_BE_DISABLED"),
        (1, SCHEMA, {"delta.feature.deletionVectors": "supported"}, "DELETION_VECTORS_SHOULD_BE_DISABLED"),
        (1, one("a", ArrayType(LONG)), {}, "UNSUPPORTED_DATA_TYPE"),
        (1, one("a", MapType(LONG, LONG)), {}, "UNSUPPORTED_DATA_TYPE"),
        (1, one("a", VOID), {}, "UNSUPPORTED_DATA_TYPE"),
        (2, one("a", VARIANT), {}, "UNSUPPORTED_DATA_TYPE"),
        (2, one("s", StructType((StructField("v", ArrayType(VARIANT)),))), {}, "UNSUPPORTED_DATA_TYPE"),
    ],
)
def test_iceberg_compatibility_excludes(
    version: int, schema: StructType, properties: dict[str, str], kind: str
) -> None:
    error = refusal(schema, {f"delta.enableIcebergCompatV{version}": "true", **properties})
    assert error.code == f"DELTA_ICEBERG_COMPAT_VIOLATION.{kind}"
    assert isinstance(error, UserError)


def test_iceberg_v2_allows_that_deletion_vectors_are_supported_but_not_written() -> None:
    table = create(properties={"delta.enableIcebergCompatV2": "true", "delta.feature.deletionVectors": "supported"})
    assert "deletionVectors" in (table.protocol.reader_features or [])


def test_iceberg_v3_is_not_written() -> None:
    assert isinstance(refusal(properties={"delta.enableIcebergCompatV3": "true"}), UnsupportedFeatureError)


def test_a_bad_property_is_refused_before_anything_is_made_of_it() -> None:
    assert isinstance(refusal(properties={"delta.nope": "1"}), OptionError)
    assert refusal(properties={"delta.dataSkippingStatsColumns": "gone"}).code == "DELTA_COLUMN_NOT_FOUND"
