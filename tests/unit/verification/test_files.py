"""Each rule of data files and their rows, broken alone."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds import verify
from delta_pyds.errors import ExpressionError
from tests.support.schema_json import field, struct
from tests.support.table_builder import Action, TableBuilder
from tests.support.verification import make as make_table
from tests.support.verification import messages, rules


def make(path: Path, schema: Any = None, rows: Any = ({"id": 1}, {"id": 2}), **options: Any) -> TableBuilder:
    return make_table(path, schema, rows, **options)


def live(t: TableBuilder) -> Path:
    return t.data_file(t.active()[0])


# --- the file


def test_a_missing_file(tmp_path: Path) -> None:
    t = make(tmp_path)
    live(t).unlink()
    assert rules(t) == ["error file.missing"]


def test_a_file_of_another_size_is_read_all_the_same(tmp_path: Path) -> None:
    t = make(tmp_path, rows=())
    t.append([{"id": 1}], size=5)
    report = verify(str(tmp_path))
    assert [f.rule for f in report.findings] == ["file.size"]
    assert report.checked.rows == 1


def test_a_file_that_is_no_parquet(tmp_path: Path) -> None:
    t = make(tmp_path)
    size = live(t).stat().st_size
    live(t).write_bytes(b"x" * size)
    t.append([{"id": 3}])
    report = verify(str(tmp_path))
    assert [f.rule for f in report.findings] == ["file.unreadable"]
    assert (report.checked.files, report.checked.rows) == (2, 1)


@pytest.mark.parametrize("size", [0, 3, 100])
def test_a_file_that_was_cut_short(tmp_path: Path, size: int) -> None:
    t = make(tmp_path)
    t.truncate(live(t), size)
    assert rules(t) == ["error file.size", "error file.unreadable"]


@pytest.mark.parametrize("position", range(-150, 0, 13))
def test_a_damaged_footer_never_ends_the_process(tmp_path: Path, position: int) -> None:
    t = make(tmp_path)
    t.flip_byte(live(t), position)
    found = [r for r in rules(t) if not r.startswith(("error file.", "error statistics.", "warning file."))]
    assert found == []


def test_a_column_of_a_type_that_cannot_be_the_tables(tmp_path: Path) -> None:
    t = make(tmp_path, rows=())
    t.commit([t.write_file([{"id": "text"}], file_types={"id": "string"}, stats={"numRecords": 1})])
    assert rules(t) == ["error file.schema"]


def test_a_narrower_type_than_the_tables(tmp_path: Path) -> None:
    t = make(tmp_path, rows=())
    t.commit([t.write_file([{"id": 1}], file_types={"id": "integer"})])
    assert rules(t) == ["warning file.type"]
    schema = struct(field("id", **{"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}))
    t = make(tmp_path / "widened", schema, rows=(), features=(["typeWidening"], []))
    t.commit([t.write_file([{"id": 1}], file_types={"id": "integer"})])
    assert rules(t) == []


def test_columns_that_the_table_does_not_have(tmp_path: Path) -> None:
    t = make(tmp_path, rows=())
    t.commit([t.write_file([{"id": 1}], extra_columns={"more": [1]})])
    assert rules(t) == ["warning file.unknown-column"]
    t = make(tmp_path / "allowed", rows=())
    # ids of moved rows, which DROP FEATURE rowTracking leaves in the files
    left = "_row-id-col-0f4ed1b2-76b4-4a2b-9c0d-21f3a9a2f8ae"
    t.commit([t.write_file([{"id": 1}], extra_columns={"_change_type": ["insert"], left: [7]})])
    assert rules(t) == []


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    t = make(tmp_path, rows=())
    t.commit([t.write_file([{"id": 1}], extra_columns={"id": [1]})])
    assert "error file.duplicate-column" in rules(t)


@pytest.mark.parametrize(
    ("mode", "ids", "expected"),
    [
        ("name", True, []),
        ("name", False, []),
        ("name", {"id": 9, "s": 2, "s.x": 3}, ["error file.field-id"]),
        ("id", {"id": 1, "s": 2, "s.x": 9}, ["error file.field-id"]),
        ("id", False, ["error file.field-id", "error file.schema"]),
    ],
)
def test_field_ids(tmp_path: Path, mode: str, ids: Any, expected: list[str]) -> None:
    schema = {"id": "long", "s": {"x": "long"}}
    t = make(tmp_path, schema, rows=(), properties={"delta.columnMapping.mode": mode})
    t.commit([t.write_file([{"id": 1, "s": {"x": 2}}], field_ids=ids, stats={"numRecords": 1})])
    assert rules(t) == expected


def test_iceberg_compatibility_asks_for_partition_columns_in_files_and_no_int96(tmp_path: Path) -> None:
    properties = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
    t = TableBuilder(
        tmp_path,
        {"id": "long", "at": "timestamp", "p": "string"},
        partition_columns=["p"],
        properties=properties,
        physical_names={"p": "p", "id": "id", "at": "at"},
        features=(["columnMapping"], ["icebergCompatV2"]),
    )
    t.create()
    row = {"id": 1, "at": dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)}
    t.commit([t.write_file([row], {"p": "x"}, extra_columns={"p": ["x"]})])
    assert rules(t) == []
    t.commit([t.write_file([row], {"p": "x"})])
    assert rules(t) == ["warning iceberg.partition-column"]
    t.commit([t.write_file([row], {"p": "x"}, parquet={"use_deprecated_int96_timestamps": True})])
    assert "warning iceberg.timestamp" in rules(t)


def test_files_without_partition_columns_where_they_should_have_them(tmp_path: Path) -> None:
    features: Any = ([], ["materializePartitionColumns"])
    t = make(tmp_path, {"id": "long", "p": "string"}, rows=(), partition_columns=["p"], features=features)
    t.commit([t.write_file([{"id": 1}], {"p": "x"}, extra_columns={"p": ["x"]})])
    assert rules(t) == []
    t.commit([t.write_file([{"id": 1}], {"p": "x"})])
    assert rules(t) == ["warning file.partition-column"]


@pytest.mark.parametrize(
    ("kind", "text", "stored", "clean"),
    [
        ("string", "x", ["x", "x"], True),
        ("string", "x", ["x", "y"], False),
        ("string", "x", ["x", None], False),
        ("string", None, [None, None], True),
        ("string", None, ["", ""], True),
        ("binary", None, [b"", None], True),
        ("binary", None, [b"x", None], False),
        ("date", "2024-01-02", [dt.date(2024, 1, 2)] * 2, True),
        ("date", "2024-01-02", [dt.date(2024, 1, 3)] * 2, False),
        ("double", "NaN", [float("nan")] * 2, True),
        ("timestamp", "2024-01-02 03:04:05", [dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc)] * 2, True),
        ("timestamp", "2024-01-02T03:04:05Z", [dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc)] * 2, False),
    ],
)
def test_partition_columns_in_a_file_have_the_logs_value(
    tmp_path: Path, kind: str, text: str | None, stored: list[Any], clean: bool
) -> None:
    t = make(tmp_path, {"id": "long", "p": kind}, rows=(), partition_columns=["p"])
    t.commit([t.write_file([{"id": 1}, {"id": 2}], {"p": text}, extra_columns={"p": stored})])
    assert rules(t) == ([] if clean else ["error file.partition-value"])


@pytest.mark.parametrize(("stored", "clean"), [(1.1, True), (1.2, False)])
def test_a_partition_column_that_was_a_float_is_the_nearest_one_in_the_files(
    tmp_path: Path, stored: float, clean: bool
) -> None:
    """The log's text is read as the new type, and no double of the text is in a file of floats."""
    features: Any = (["typeWidening"], ["typeWidening"])
    change = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    schema = struct(field("id"), field("p", "double", **change))
    t = make(tmp_path, schema, rows=(), partition_columns=["p"], features=features)
    column = pa.array([stored, stored], pa.float32())
    t.commit([t.write_file([{"id": 1}, {"id": 2}], {"p": "1.1"}, extra_columns={"p": column})])
    assert rules(t) == ([] if clean else ["error file.partition-value"])


# --- deletion vectors


@pytest.fixture
def deleted(tmp_path: Path) -> TableBuilder:
    t = make(tmp_path, rows=[{"id": i} for i in range(5)], properties={"delta.enableDeletionVectors": "true"})
    t.delete(t.active()[0], [1, 3])
    return t


def test_a_deletion_vector_that_is_missing(deleted: TableBuilder) -> None:
    deleted.vector_file(deleted.active()[0]).unlink()
    assert rules(deleted) == ["error file.deletion-vector"]


@pytest.mark.parametrize("offset", [2, 8, -1])
def test_a_deletion_vector_that_is_damaged(deleted: TableBuilder, offset: int) -> None:
    deleted.flip_byte(deleted.vector_file(deleted.active()[0]), offset)
    assert rules(deleted) == ["error file.deletion-vector"]


def test_a_deletion_vector_of_another_cardinality(tmp_path: Path) -> None:
    t = make(tmp_path, rows=[{"id": i} for i in range(5)], properties={"delta.enableDeletionVectors": "true"})
    remove, add = t.delete_rows(t.active()[0], [1, 3])
    add["add"]["deletionVector"]["cardinality"] = 1
    t.commit([remove, add])
    assert rules(t) == ["error file.deletion-vector"]


def test_a_deletion_vector_beyond_the_last_row(tmp_path: Path) -> None:
    t = make(tmp_path, rows=[{"id": i} for i in range(5)], properties={"delta.enableDeletionVectors": "true"})
    t.commit(t.delete_rows(t.active()[0], [1, 5]))
    assert rules(t) == ["error file.deletion-vector"]


# --- rows


@pytest.mark.parametrize(
    ("schema", "row", "clean"),
    [
        (struct(field("id", nullable=False)), {"id": 1}, True),
        (struct(field("id", nullable=False)), {"id": None}, False),
        (struct(field("s", struct(field("x", nullable=False)))), {"s": None}, True),
        (struct(field("s", struct(field("x", nullable=False)))), {"s": {"x": None}}, False),
        (struct(field("a", {"type": "array", "elementType": "long", "containsNull": False})), {"a": [1]}, True),
        (struct(field("a", {"type": "array", "elementType": "long", "containsNull": False})), {"a": [None]}, False),
        (struct(field("m", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False})),
         {"m": {"k": 1}}, True),
        (struct(field("m", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False})),
         {"m": {"k": None}}, False),
        (struct(field("a", {"type": "array", "containsNull": True, "elementType": struct(field("x", nullable=False))})),
         {"a": [None, {"x": None}]}, False),
    ],
)  # fmt: skip
def test_not_null(tmp_path: Path, schema: Action, row: dict[str, Any], clean: bool) -> None:
    relaxed = json_relaxed(schema)
    t = TableBuilder(tmp_path, relaxed)
    t.create()
    t.append([row])
    t.commit([t.metadata(schema)])
    assert rules(t) == ([] if clean else ["error rows.null"])


def json_relaxed(value: Any) -> Any:
    """The same schema without NOT NULL, so that the builder writes the row."""
    if isinstance(value, dict):
        flags = ("nullable", "containsNull", "valueContainsNull")
        return {k: True if k in flags else json_relaxed(v) for k, v in value.items()}
    return [json_relaxed(v) for v in value] if isinstance(value, list) else value


def test_a_not_null_column_that_the_file_lacks(tmp_path: Path) -> None:
    t = make(tmp_path, struct(field("id"), field("must", nullable=False)), rows=())
    t.commit([t.write_file([{"id": 1}], columns=["id"])])
    assert rules(t) == ["error rows.null"]


@pytest.mark.parametrize("kind", ["varchar(3)", "char(3)"])
def test_lengths_of_text(tmp_path: Path, kind: str) -> None:
    declared = {"__CHAR_VARCHAR_TYPE_STRING": kind}
    schema = struct(field("a", "string", **declared), field("s", struct(field("b", "string", **declared))))
    t = make(tmp_path, schema, rows=[{"a": "äöü", "s": {"b": None}}])
    assert rules(t) == []
    t.append([{"a": None, "s": {"b": "four"}}])
    assert rules(t) == ["error rows.length"]


def constrained(path: Path, rows: list[Any], **options: Any) -> list[str]:
    return rules(make(path, rows=rows, **options))


@pytest.mark.parametrize(("value", "clean"), [(1, True), (-1, False), (None, False)])
def test_check_constraints_must_be_true(tmp_path: Path, value: int | None, clean: bool) -> None:
    found = constrained(tmp_path, [{"id": value}], properties={"delta.constraints.positive": "id > 0"}, protocol=(1, 3))
    assert found == ([] if clean else ["error rows.constraint"])


def test_constraints_without_the_feature_are_no_constraints(tmp_path: Path) -> None:
    properties = {"delta.constraints.positive": "id > 0"}
    assert constrained(tmp_path, [{"id": -1}], properties=properties) == ["warning feature.missing"]


def test_deleted_rows_need_not_satisfy_constraints(tmp_path: Path) -> None:
    properties = {"delta.constraints.positive": "id > 0", "delta.enableDeletionVectors": "true"}
    features = (["deletionVectors"], ["checkConstraints"])
    t = make(tmp_path, rows=[{"id": 1}, {"id": -1}], properties=properties, features=features)
    assert rules(t) == ["error rows.constraint"]
    t.delete(t.active()[0], [1])
    assert rules(t) == []


def test_constraints_on_partition_columns(tmp_path: Path) -> None:
    t = TableBuilder(
        tmp_path,
        {"id": "long", "p": "long"},
        partition_columns=["p"],
        properties={"delta.constraints.c": "id < p"},
        protocol=(1, 3),
    )
    t.create()
    t.append([{"id": 1, "p": 2}])
    assert rules(t) == []
    t.append([{"id": 1, "p": 1}])
    assert rules(t) == ["error rows.constraint"]


@pytest.mark.parametrize(
    "text", ["no_such_function(id) > 0", "id >", "missing > 1", "current_date() > date '2020-01-01'"]
)
def test_what_cannot_be_evaluated_is_said_once(tmp_path: Path, text: str) -> None:
    t = make(tmp_path, properties={"delta.constraints.c": text}, protocol=(1, 3))
    t.append([{"id": 1}])
    report = verify(str(tmp_path))
    assert [str(f).split(":")[0] for f in report.findings] == ["warning rows.not-checked at the constraint c"]


def test_an_expression_that_is_no_condition(tmp_path: Path) -> None:
    assert constrained(tmp_path, [{"id": 1}], properties={"delta.constraints.c": "id"}, protocol=(1, 3)) in (
        ["error rows.invariant"],
        ["warning rows.not-checked"],
    )


def test_invariants(tmp_path: Path) -> None:
    schema = struct(field("id", **{"delta.invariants": '{"expression":{"expression":"id > 3"}}'}))
    t = make(tmp_path, schema, rows=[{"id": 4}])
    assert rules(t) == []
    t.append([{"id": 3}])
    assert rules(t) == ["error rows.constraint"]
    broken = make(tmp_path / "broken", struct(field("id", **{"delta.invariants": "{"})))
    assert rules(broken) == ["error rows.invariant"]


def test_generated_columns(tmp_path: Path) -> None:
    schema = struct(field("id"), field("odd one", "boolean", **{"delta.generationExpression": "id % 2 = 1"}))
    t = make(tmp_path, schema, rows=[{"id": 1, "odd one": True}, {"id": None, "odd one": None}], protocol=(1, 4))
    assert rules(t) == ["warning schema.column-name"]
    t.append([{"id": 1, "odd one": None}])
    assert rules(t) == ["error rows.constraint", "warning schema.column-name"]


def dated(path: Path, rows: list[Any], text: str = "CAST(ts AS DATE)", kind: str = "date") -> TableBuilder:
    schema = struct(field("ts", "timestamp"), field("g", kind, **{"delta.generationExpression": text}))
    return make(path, schema, rows=rows, protocol=(1, 4))


EVENING, MORNING = (
    dt.datetime(2020, 6, 1, 23, 30, tzinfo=dt.timezone.utc),
    dt.datetime(2020, 6, 1, 3, tzinfo=dt.timezone.utc),
)


@pytest.mark.parametrize(
    ("moment", "day", "clean"),
    [(EVENING, 1, True), (EVENING, 2, True), (EVENING, 3, False), (MORNING, 1, True), (MORNING, 2, False),
     (EVENING, None, False)],
)  # fmt: skip
def test_a_day_is_right_if_it_is_so_in_some_time_zone(
    tmp_path: Path, moment: dt.datetime, day: int | None, clean: bool
) -> None:
    dated(tmp_path, [{"ts": moment, "g": None if day is None else dt.date(2020, 6, day)}])
    assert rules(tmp_path) == ([] if clean else ["error rows.constraint"])


def test_the_day_before_is_right_west_of_greenwich_and_no_further_west_than_people_live(tmp_path: Path) -> None:
    dated(tmp_path / "near", [{"ts": MORNING, "g": dt.date(2020, 5, 31)}])
    assert rules(tmp_path / "near") == []
    dated(tmp_path / "far", [{"ts": EVENING, "g": dt.date(2020, 5, 31)}])
    assert rules(tmp_path / "far") == ["error rows.constraint"]


def test_a_time_zone_that_is_told_is_the_only_one(tmp_path: Path) -> None:
    dated(tmp_path, [{"ts": EVENING, "g": dt.date(2020, 6, 2)}, {"ts": MORNING, "g": dt.date(2020, 6, 1)}])
    assert rules(tmp_path, time_zone="Europe/Berlin") == []
    assert rules(tmp_path, time_zone="UTC") == ["error rows.constraint"]
    with pytest.raises(ExpressionError, match="Mars"):
        verify(str(tmp_path), time_zone="Mars/Olympus")


def test_months_of_a_region_are_right_though_no_offset_explains_them(tmp_path: Path) -> None:
    # on 1 June 00:00 in Berlin, and on 1 November too, when the clocks are set back in between
    rows = [
        {
            "ts": dt.datetime(2020, 10, 20, 12, tzinfo=dt.timezone.utc),
            "g": dt.datetime(2020, 9, 30, 22, tzinfo=dt.timezone.utc),
        },
        {
            "ts": dt.datetime(2020, 10, 31, 12, tzinfo=dt.timezone.utc),
            "g": dt.datetime(2020, 9, 30, 22, tzinfo=dt.timezone.utc),
        },
    ]
    dated(tmp_path / "right", rows, "date_trunc('MONTH', ts)", "timestamp")
    assert rules(tmp_path / "right") == []
    rows[1]["g"] = dt.datetime(2020, 9, 30, 22, 7, tzinfo=dt.timezone.utc)
    t = dated(tmp_path / "wrong", rows, "date_trunc('MONTH', ts)", "timestamp")
    assert rules(t) == ["error rows.constraint"] and "1 rows break" in messages(t)


def test_rows_of_several_zones_and_a_broken_one_among_them(tmp_path: Path) -> None:
    rows = [{"ts": EVENING, "g": dt.date(2020, 6, 2)}, {"ts": MORNING, "g": dt.date(2020, 5, 31)},
            {"ts": EVENING, "g": dt.date(2020, 6, 1)}, {"ts": EVENING, "g": dt.date(2020, 7, 1)}]  # fmt: skip
    t = dated(tmp_path, rows)
    assert rules(t) == ["error rows.constraint"] and "1 rows break" in messages(t)


IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1}


def identity(path: Path, rows: list[Any], **metadata: Any) -> list[str]:
    schema = struct(field("id", **{**IDENTITY, **{f"delta.identity.{k}": v for k, v in metadata.items()}}))
    return rules(make(path, schema, rows=rows, protocol=(1, 6)))


def test_identity_columns(tmp_path: Path) -> None:
    rows = [{"id": 1}, {"id": 2}]
    explicit = {"allowExplicitInsert": True}
    assert identity(tmp_path / "1", rows, highWaterMark=2) == []
    assert identity(tmp_path / "2", rows, highWaterMark=1) == ["error identity.high-water-mark"]
    assert identity(tmp_path / "3", rows) == ["error identity.high-water-mark"]
    assert identity(tmp_path / "4", [*rows, {"id": 99}], highWaterMark=2, **explicit) == []
    assert identity(tmp_path / "5", [*rows, {"id": 2}], highWaterMark=2) == ["warning identity.duplicate"]


def test_identity_columns_that_count_down(tmp_path: Path) -> None:
    rows = [{"id": -1}, {"id": -3}]
    down = {"start": 1, "step": -2}
    assert identity(tmp_path / "1", rows, **down, highWaterMark=-3) == []
    assert identity(tmp_path / "2", rows, **down, highWaterMark=-5) == []
    assert identity(tmp_path / "3", rows, **down, highWaterMark=-1) == ["error identity.high-water-mark"]
    assert identity(tmp_path / "4", rows, **down, highWaterMark=1) == ["error identity.high-water-mark"]
    assert identity(tmp_path / "5", rows, **down) == ["error identity.high-water-mark"]


def test_every_column_type_is_read_from_files_of_other_layouts(tmp_path: Path) -> None:
    t = make(tmp_path, {"t": "string", "at": "timestamp"}, rows=())
    add = t.write_file([{"t": "x", "at": dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)}])
    file = t.data_file(add)
    content = pq.read_table(file)
    content = content.set_column(0, "t", content["t"].cast(pa.large_string()))
    pq.write_table(content, file, use_deprecated_int96_timestamps=True)
    t.commit([{"add": {**add["add"], "size": file.stat().st_size}}])
    assert messages(t) == ""
