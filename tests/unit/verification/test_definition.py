"""Each rule of protocol and metadata, and of what may change in them, broken alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.schema_json import field, struct
from tests.support.table_builder import Action, TableBuilder
from tests.support.verification import make, messages, rules

MAPPED = {"delta.columnMapping.mode": "name"}


# --- the protocol


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": []}, []),
        ({"minReaderVersion": 2, "minWriterVersion": 7, "writerFeatures": ["columnMapping"]}, []),
        ({"minReaderVersion": 4, "minWriterVersion": 7}, ["error protocol.version"]),
        ({"minReaderVersion": 1, "minWriterVersion": 8}, ["error protocol.version"]),
        ({"minReaderVersion": 3, "minWriterVersion": 6, "readerFeatures": []}, ["error protocol.version"]),
        ({"minReaderVersion": 1, "minWriterVersion": 7}, ["error protocol.features"]),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": []}, ["error protocol.features"]),
        ({"minReaderVersion": 1, "minWriterVersion": 2, "writerFeatures": []}, ["error protocol.features"]),
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly"] * 2},
         ["error protocol.features"]),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": []},
         ["error protocol.features"]),
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["deletionVectors"]},
         ["error protocol.features"]),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["appendOnly"],
          "writerFeatures": ["appendOnly"]}, ["error protocol.features"]),
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]},
         ["error protocol.requires"]),
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inventedHere"]},
         ["warning protocol.unknown-feature"]),
        ({"minReaderVersion": "1", "minWriterVersion": 2}, ["error commit.field", "warning files.not-checked"]),
    ],
)  # fmt: skip
def test_protocol_actions(tmp_path: Path, protocol: Action, expected: list[str]) -> None:
    t = TableBuilder(tmp_path, {"id": "long"})
    t.commit([{"protocol": protocol}, t.metadata()])
    assert rules(t) == expected


def test_a_catalog_managed_table_is_checked_as_far_as_it_is_published(tmp_path: Path) -> None:
    features = (["catalogManaged", "vacuumProtocolCheck"], ["inCommitTimestamp"])
    t = make(tmp_path, features=features, properties={"delta.enableInCommitTimestamps": "true"})
    assert rules(t) == ["warning protocol.catalog-managed"]


def upgrade(t: TableBuilder, protocol: Action, operation: str = "UPGRADE PROTOCOL") -> list[str]:
    t.commit([{"protocol": protocol}], operation=operation)
    return rules(t)


def test_a_protocol_never_goes_back(tmp_path: Path) -> None:
    old = {"minReaderVersion": 1, "minWriterVersion": 2}
    assert upgrade(make(tmp_path / "versions", protocol=(1, 4)), old) == ["error protocol.downgrade"]
    t = make(tmp_path / "features", features=([], ["domainMetadata", "appendOnly"]))
    fewer = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly"]}
    assert upgrade(t, fewer) == ["error protocol.downgrade"]
    assert "no longer supports domainMetadata" in messages(t)


def test_a_dropped_feature_may_go(tmp_path: Path) -> None:
    t = make(tmp_path, features=([], ["domainMetadata", "appendOnly", "invariants"]))
    assert upgrade(t, {"minReaderVersion": 1, "minWriterVersion": 2}, "DROP FEATURE") == []


def test_an_upgrade_to_lists_may_leave_out_what_was_never_used(tmp_path: Path) -> None:
    t = make(tmp_path, protocol=(1, 4))
    assert upgrade(t, {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": []}) == []


# --- features that are needed

GENERATED = struct(field("id"), field("g", **{"delta.generationExpression": "id"}))
IDENTITY = struct(field("id", **{"delta.identity.start": 1, "delta.identity.step": 1}))
ON = "true"


@pytest.mark.parametrize(
    ("schema", "properties"),
    [
        (None, {"delta.appendOnly": ON}),
        (None, {"delta.enableChangeDataFeed": ON}),
        (None, {"delta.enableDeletionVectors": ON}),
        (None, {"delta.enableRowTracking": ON, "delta.rowTracking.materializedRowIdColumnName": "_i",
                "delta.rowTracking.materializedRowCommitVersionColumnName": "_v"}),
        (None, {"delta.enableInCommitTimestamps": ON}),
        (None, {"delta.enableTypeWidening": ON}),
        (None, {"delta.checkpointPolicy": "v2"}),
        (None, {"delta.constraints.c": "id > 0"}),
        (None, MAPPED),
        ({"n": "timestamp_ntz"}, {}),
        ({"v": "variant"}, {}),
        ({"a": {"type": "array", "elementType": "timestamp_ntz", "containsNull": True}}, {}),
        (struct(field("id", **{"delta.invariants": '{"expression":{"expression":"id > 0"}}'})), {}),
        (struct(field("id", CURRENT_DEFAULT="1")), {}),
        (struct(field("id", **{"delta.typeChanges": []})), {}),
        (GENERATED, {}),
        (IDENTITY, {}),
    ],
)  # fmt: skip
def test_what_the_table_uses_must_be_supported(tmp_path: Path, schema: Any, properties: dict[str, str]) -> None:
    t = make(tmp_path, schema, properties=properties, features=([], []))
    assert rules(t) == ["error feature.missing"]


@pytest.mark.parametrize("schema", [GENERATED, IDENTITY])
def test_before_there_were_features_unsupported_column_metadata_was_passed_over(tmp_path: Path, schema: Any) -> None:
    assert rules(make(tmp_path, schema, protocol=(1, 2))) == ["warning feature.missing"]


@pytest.mark.parametrize(
    ("schema", "properties", "protocol"),
    [
        (None, {"delta.appendOnly": ON}, (1, 2)),
        (None, {"delta.constraints.c": "id > 0"}, (1, 3)),
        (GENERATED, {"delta.enableChangeDataFeed": ON}, (1, 4)),
        (None, MAPPED, (2, 5)),
        (IDENTITY, {}, (2, 6)),
    ],
)
def test_old_versions_imply_features(tmp_path: Path, schema: Any, properties: dict[str, str], protocol: Any) -> None:
    assert rules(make(tmp_path, schema, properties=properties, protocol=protocol)) == []


# --- the metadata


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"id": ""}, ["error metadata.id"]),
        ({"format": {"provider": "orc", "options": {}}}, ["error metadata.format"]),
        ({"configuration": {"delta.checkpointInterval": "soon"}}, ["error metadata.property"]),
        ({"schemaString": "{"}, ["error schema.unreadable", "warning files.not-checked"]),
        ({"schemaString": '{"type":"struct","fields":[{"name":"a","type":"complex","nullable":true,"metadata":{}}]}'},
         ["error schema.unreadable", "warning files.not-checked"]),
        ({"partitionColumns": ["nope"]}, ["error schema.partition-column"]),
        ({"partitionColumns": ["id"]}, ["warning schema.partition-column"]),
    ],
)  # fmt: skip
def test_metadata_actions(tmp_path: Path, change: dict[str, Any], expected: list[str]) -> None:
    t = TableBuilder(tmp_path, {"id": "long"})
    t.commit([t.protocol(), {"metaData": {**t.metadata()["metaData"], **change}}])
    assert rules(t) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (struct(field("a"), field("A")), ["error schema.duplicate-column"]),
        (struct(field("s", struct(field("x"), field("X")))), ["error schema.duplicate-column"]),
        (struct(field("a b")), ["warning schema.column-name"]),
    ],
)
def test_schemas(tmp_path: Path, schema: Any, expected: list[str]) -> None:
    assert rules(make(tmp_path, schema)) == expected


def test_a_partition_column_whose_type_is_no_value(tmp_path: Path) -> None:
    t = make(tmp_path, struct(field("a"), field("s", struct(field("x")))), partition_columns=["s"])
    assert rules(t) == ["error schema.partition-column"]


def mapped(*fields: Action) -> Action:
    return struct(*fields)


def column(name: str, number: Any, physical: Any, kind: Any = "long") -> Action:
    found = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return field(name, kind, **{k: v for k, v in found.items() if v is not None})


@pytest.mark.parametrize(
    ("schema", "largest", "expected"),
    [
        (mapped(column("a", 1, "x"), column("b", 2, "y")), "2", []),
        (mapped(column("a", 1, "x"), column("b", 1, "y")), "2", ["error mapping.id"]),
        (mapped(column("a", None, "x")), "2", ["error mapping.id"]),
        (mapped(column("a", 1, "x"), column("b", 2, "x")), "2", ["error mapping.physical-name"]),
        (mapped(column("a", 1, None)), "2", ["error mapping.physical-name"]),
        (mapped(column("a", 3, "x")), "2", ["error mapping.max-id"]),
        (mapped(column("a", 1, "x")), None, ["error mapping.max-id"]),
        (mapped(column("a", 1, "x", struct(column("b", 1, "y")))), "2", ["error mapping.id"]),
    ],
)
def test_column_mapping(tmp_path: Path, schema: Any, largest: str | None, expected: list[str]) -> None:
    t = TableBuilder(tmp_path, {"id": "long"}, protocol=(2, 5))
    configuration = {**MAPPED, **({"delta.columnMapping.maxColumnId": largest} if largest else {})}
    metadata = {**t.metadata()["metaData"], "schemaString": json.dumps(schema), "configuration": configuration}
    t.commit([t.protocol(), {"metaData": metadata}])
    assert rules(t) == expected


@pytest.mark.parametrize(
    ("metadata", "kind", "expected"),
    [
        ({"start": 1, "step": 2, "highWaterMark": 5}, "long", []),
        ({"start": 1, "step": 0}, "long", ["error identity.definition"]),
        ({"start": 1, "step": 1}, "integer", ["error identity.definition"]),
        ({"start": 1, "step": 2, "highWaterMark": 4}, "long", ["error identity.high-water-mark"]),
        ({"start": 1, "step": 2, "highWaterMark": -1}, "long", ["error identity.high-water-mark"]),
        ({"start": 1, "step": 2, "highWaterMark": 4, "allowExplicitInsert": True}, "long", []),
        ({"start": 0, "step": -5, "highWaterMark": -10}, "long", []),
        ({"start": 0, "step": -5, "highWaterMark": 0}, "long", []),
        ({"start": 0, "step": -5, "highWaterMark": 5}, "long", ["error identity.high-water-mark"]),
        ({"start": 0, "step": -5, "highWaterMark": -7}, "long", ["error identity.high-water-mark"]),
        ({"start": 1, "step": 2, "highWaterMark": 1}, "long", []),
        ({"start": 1, "step": 2, "highWaterMark": "5"}, "long", ["error identity.high-water-mark"]),
        ({"start": 1}, "long", ["error identity.definition"]),
        ({"step": 1}, "long", ["error identity.definition"]),
    ],
)
def test_identity_columns(tmp_path: Path, metadata: dict[str, Any], kind: str, expected: list[str]) -> None:
    schema = struct(field("id", kind, **{f"delta.identity.{k}": v for k, v in metadata.items()}))
    assert rules(make(tmp_path, schema, protocol=(1, 6))) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("_row-id", "_row-version"), []),
        ((None, "_row-version"), ["error row-tracking.columns"]),
        (("id", "_row-version"), ["error row-tracking.columns"]),
        (("_same", "_same"), ["error row-tracking.columns"]),
    ],
)
def test_the_columns_of_row_tracking(tmp_path: Path, names: tuple[str | None, str], expected: list[str]) -> None:
    keys = ("materializedRowIdColumnName", "materializedRowCommitVersionColumnName")
    properties = {f"delta.rowTracking.{k}": n for k, n in zip(keys, names, strict=True) if n}
    t = make(tmp_path, properties={"delta.enableRowTracking": ON, **properties})
    assert rules(t) == expected


# --- Iceberg compatibility

ARRAY = {"type": "array", "elementType": "long", "containsNull": True}


def iceberg(path: Path, version: int, schema: Any = None, *features: str, **properties: str) -> TableBuilder:
    on = {f"delta.enableIcebergCompatV{version}": ON, **MAPPED, **properties}
    readers = ["columnMapping", *(f for f in features if f == "deletionVectors")]
    names = [f"icebergCompatV{version}", *features]
    return make(path, schema, properties=on, features=(readers, names))


@pytest.mark.parametrize("version", [1, 2])
def test_iceberg_compatibility_is_clean_where_its_rules_hold(tmp_path: Path, version: int) -> None:
    t = iceberg(tmp_path, version)
    t.append([{"id": 1}])
    assert rules(t) == []
    t.append([{"id": 1}], stats=False)
    assert rules(t) == ["error commit.statistics"]


def test_iceberg_compatibility_forbids(tmp_path: Path) -> None:
    broken = [
        iceberg(tmp_path / "1", 1, None, "deletionVectors"),
        iceberg(tmp_path / "2", 2, None, "deletionVectors", **{"delta.enableDeletionVectors": ON}),
        iceberg(tmp_path / "3", 1, {"a": ARRAY}),
        iceberg(tmp_path / "4", 2, {"a": ARRAY}),
        iceberg(tmp_path / "5", 2, {"v": "void"}),
        iceberg(tmp_path / "6", 2, None, "icebergCompatV1", **{"delta.enableIcebergCompatV1": ON}),
        iceberg(tmp_path / "7", 2, None, **{"delta.columnMapping.mode": "none"}),
    ]
    assert [rules(t) for t in broken] == [["error iceberg.compatibility"]] * len(broken)
    assert rules(iceberg(tmp_path / "8", 2, None, "deletionVectors")) == []


@pytest.mark.parametrize("key", ["parquet.field.nested.ids", "delta.columnMapping.nested.ids"])
@pytest.mark.parametrize("prefix", ["a", "col-a"])
def test_elements_have_ids_under_iceberg_compatibility_v2(tmp_path: Path, key: str, prefix: str) -> None:
    schema = struct(
        {**field("a", ARRAY), "metadata": {
            key: {f"{prefix}.element": 9},
            "delta.columnMapping.id": 1,
            "delta.columnMapping.physicalName": "col-a",
        }}
    )  # fmt: skip
    t = iceberg(tmp_path, 2, schema)
    assert "error iceberg.compatibility" not in rules(t)


# --- changes


def test_the_id_of_a_table_changes_only_with_all_that_it_has(tmp_path: Path) -> None:
    """REPLACE TABLE gives another id, and leaves no file of before."""
    t = make(tmp_path)
    t.append([{"id": 1}])
    t.commit([t.metadata(id="another")])
    assert rules(t) == ["error metadata.id-changed"]


def test_partition_columns_may_change_with_all_files_only(tmp_path: Path) -> None:
    t = make(tmp_path / "kept", {"id": "long", "p": "string"}, partition_columns=["p"])
    t.append([{"id": 1, "p": "x"}])
    t.commit([t.metadata(partition_columns=[])])
    assert rules(t, data=False) == ["error schema.partitioning-changed"]
    t = make(tmp_path / "replaced", {"id": "long", "p": "string"}, partition_columns=["p"])
    [add] = t.append([{"id": 1, "p": "x"}])
    t.commit(
        [
            t.metadata({"p": "long"}, partition_columns=[]),
            t.remove(add, partitionValues=None, extendedFileMetadata=None),
        ]
    )
    assert rules(t) == []


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ("integer", "long", True), ("long", "integer", False), ("float", "double", True), ("double", "float", False),
        ("byte", "decimal(10,0)", True), ("integer", "decimal(9,0)", False), ("date", "timestamp_ntz", True),
        ("date", "timestamp", False), ("decimal(5,2)", "decimal(7,3)", True), ("decimal(5,2)", "decimal(6,4)", False),
        ("string", "long", False), ("long", "double", False), ("long", "string", False),
    ],
)  # fmt: skip
def test_types_of_columns_only_widen(tmp_path: Path, before: str, after: str, allowed: bool) -> None:
    t = make(tmp_path, {"a": before}, features=(["typeWidening", "timestampNtz"], []))
    t.commit([t.write_file([{"a": None}])])
    change = {"fromType": before, "toType": after}
    t.commit([t.metadata(struct(field("a", after, **{"delta.typeChanges": [change]})))])
    assert rules(t, data=False) == ([] if allowed else ["error schema.type-changed"])


def test_widening_needs_the_feature_and_its_trace(tmp_path: Path) -> None:
    t = make(tmp_path / "feature", {"a": "integer"})
    t.append([{"a": 1}])
    t.commit([t.metadata({"a": "long"})])
    assert rules(t) == ["error schema.type-changed", "warning file.type"]
    t = make(tmp_path / "trace", {"a": "integer"}, features=(["typeWidening"], []))
    t.append([{"a": 1}])
    t.commit([t.metadata({"a": "long"})])
    assert "delta.typeChanges in its metadata does not record" in messages(t)
    t.commit(
        [t.metadata(struct(field("a", "double", **{"delta.typeChanges": [{"fromType": "byte", "toType": "long"}]})))]
    )
    assert rules(t, data=False) == ["error schema.type-changed"]


def test_widening_inside_of_arrays_and_maps_names_the_part(tmp_path: Path) -> None:
    wide = {
        "type": "map",
        "keyType": "string",
        "valueType": {**ARRAY, "elementType": "long"},
        "valueContainsNull": True,
    }
    narrow = {**wide, "valueType": {**ARRAY, "elementType": "integer"}}
    change = {"fromType": "integer", "toType": "long", "fieldPath": "value.element"}
    for number, (path, expected) in enumerate([("value.element", []), ("element", ["error schema.type-changed"])]):
        t = make(tmp_path / str(number), struct(field("m", narrow)), features=(["typeWidening"], []))
        t.append([{"m": None}])
        t.commit([t.metadata(struct(field("m", wide, **{"delta.typeChanges": [{**change, "fieldPath": path}]})))])
        assert rules(t, data=False) == expected


def test_a_void_column_may_become_anything(tmp_path: Path) -> None:
    t = make(tmp_path, {"id": "long", "v": "void"})
    t.append([{"id": 1}])
    t.commit([t.metadata({"id": "long", "v": "string"})])
    assert rules(t) == []


def test_types_inside_of_arrays_and_structs_are_watched(tmp_path: Path) -> None:
    for number, (before, after) in enumerate(
        [
            ({"type": "array", "elementType": "long", "containsNull": True}, ARRAY | {"elementType": "string"}),
            (struct(field("x")), struct(field("x", "string"))),
        ]
    ):
        t = make(tmp_path / str(number), struct(field("a", before)))
        t.append([{"a": None}])
        t.commit([t.metadata(struct(field("a", after)))])
        assert rules(t, data=False) == ["error schema.type-changed"]


def mapping_change(path: Path, before: Action, after: Action, largest: str, **options: Any) -> list[str]:
    t = TableBuilder(path, {"id": "long"}, protocol=(2, 5))
    base = t.metadata()["metaData"]
    for schema, number in ((before, "2"), (after, largest)):
        configuration = {**MAPPED, "delta.columnMapping.maxColumnId": number, **options}
        action = {"metaData": {**base, "schemaString": json.dumps(schema), "configuration": configuration}}
        t.commit([t.protocol(), action])
    return rules(t)


def test_ids_and_physical_names_belong_together_for_good(tmp_path: Path) -> None:
    before = mapped(column("a", 1, "x"), column("b", 2, "y"))
    cases = [
        (mapped(column("c", 1, "x"), column("new", 3, "z")), "3", []),
        (mapped(column("a", 1, "other")), "2", ["error mapping.changed"]),
        (mapped(column("a", 3, "x")), "3", ["error mapping.changed"]),
        (mapped(column("a", 1, "x")), "1", ["error mapping.max-id"]),
    ]
    for number, (after, largest, expected) in enumerate(cases):
        assert mapping_change(tmp_path / str(number), before, after, largest) == expected


def test_mapping_that_was_taken_away_begins_anew(tmp_path: Path) -> None:
    t = TableBuilder(tmp_path, {"id": "long"}, protocol=(2, 5))
    base = t.metadata()["metaData"]
    eras = [
        (mapped(column("a", 1, "x"), column("b", 2, "y")), MAPPED | {"delta.columnMapping.maxColumnId": "2"}),
        (struct(field("a"), field("b")), {"delta.columnMapping.mode": "none"}),
        (mapped(column("b", 1, "b"), column("a", 2, "a")), MAPPED | {"delta.columnMapping.maxColumnId": "2"}),
    ]
    for schema, configuration in eras:
        changed = {"metaData": {**base, "schemaString": json.dumps(schema), "configuration": configuration}}
        t.commit([t.protocol(), changed])
    assert rules(t) == []
    wrong = mapped(column("b", 1, "z"), column("a", 2, "a"))
    t.commit([{"metaData": {**base, "schemaString": json.dumps(wrong), "configuration": eras[2][1]}}])
    assert rules(t) == ["error mapping.changed"]


def test_a_new_column_gets_a_new_id(tmp_path: Path) -> None:
    before = mapped(column("a", 1, "x"))
    assert mapping_change(tmp_path, before, mapped(column("b", 2, "y")), "2") == ["error mapping.id-reused"]


@pytest.mark.parametrize("number", ["x", 1.5, 2**31, [1]])
def test_an_id_that_is_no_number_is_a_finding_of_each_version(tmp_path: Path, number: Any) -> None:
    sound, wrong = mapped(column("a", 1, "x")), mapped(column("a", number, "x"))
    assert mapping_change(tmp_path / "later", sound, wrong, "2") == ["error mapping.id"]
    assert mapping_change(tmp_path / "before", wrong, mapped(column("a", 3, "x")), "3") == ["error mapping.id"]


def test_the_mode_does_not_change_to_ids_later(tmp_path: Path) -> None:
    before = mapped(column("a", 1, "x"))
    change = mapping_change(tmp_path, before, before, "2")
    assert change == []
    t = make(tmp_path / "mode", protocol=(2, 5))
    t.commit([t.metadata(properties={"delta.columnMapping.mode": "id"})])
    assert rules(t) == ["warning mapping.mode-changed"]


def test_the_high_water_mark_of_an_identity_column_never_goes_back(tmp_path: Path) -> None:
    def schema(**changes: Any) -> Action:
        values = {"start": 0, "step": 5, "highWaterMark": 20, "allowExplicitInsert": False} | changes
        return struct(field("id", **{f"delta.identity.{k}": v for k, v in values.items() if v is not None}))

    down = {"step": -5, "highWaterMark": -20}
    for number, (first, change, expected) in enumerate(
        [
            ({}, {"highWaterMark": 25}, []),
            ({}, {"highWaterMark": 20}, []),
            ({}, {"highWaterMark": 15}, ["error identity.high-water-mark"]),
            ({}, {"step": 10}, ["error identity.definition"]),
            ({}, {"start": 5}, ["error identity.definition"]),
            ({}, {"allowExplicitInsert": True}, ["error identity.definition"]),
            (down, {**down, "highWaterMark": -25}, []),
            (down, {**down, "highWaterMark": -20}, []),
            (down, {**down, "highWaterMark": -15}, ["error identity.high-water-mark"]),
            (down, {**down, "highWaterMark": None}, ["error identity.high-water-mark"]),
        ]
    ):
        t = make(tmp_path / str(number), schema(**first), protocol=(1, 6))
        t.commit([t.metadata(schema(**change))])
        assert rules(t) == expected
