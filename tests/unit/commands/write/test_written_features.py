"""For every feature of a writer: what we write, deltalake and we read back the same, and ``verify`` finds no fault.

Tables are made by hand (TableBuilder), as another engine would have, and by our own writer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds import verify
from delta_pyds.errors import DeltaError
from delta_pyds.table.snapshot import load_snapshot
from tests.support.schema_json import field, struct
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, write_rows

IDS = {"id": "long", "p": "string"}
ROWS = [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}, {"id": None, "p": None}]


def canonical(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(dict(r), default=str, sort_keys=True) for r in rows)


def by_deltalake(path: Path) -> list[dict[str, Any]]:
    from deltalake import DeltaTable, QueryBuilder

    result = QueryBuilder().register("t", DeltaTable(str(path))).execute("SELECT * FROM t").read_all()
    return [dict(row) for row in pa.table(result).to_pylist()]


def agree(path: Path, rows: Sequence[Mapping[str, Any]], *, deltalake: bool = True) -> None:
    """Our reader, deltalake's and the model give the same rows; the table breaks no rule."""
    assert canonical(read_rows(path)) == canonical(rows)
    if deltalake:
        assert canonical(by_deltalake(path)) == canonical(rows)
    report = verify(str(path))
    # a rule that cannot be checked here is a warning; nothing else may be one
    assert [f for f in report.findings if f.rule != "rows.not-checked"] == [], str(report)


PROPERTIES: dict[str, dict[str, str]] = {
    "nothing special": {},
    "appendOnly": {"delta.appendOnly": "true"},
    "column mapping by name": {"delta.columnMapping.mode": "name"},
    "column mapping by id": {"delta.columnMapping.mode": "id"},
    "deletion vectors": {"delta.enableDeletionVectors": "true"},
    "row tracking": {"delta.enableRowTracking": "true"},
    "in-commit timestamps": {"delta.enableInCommitTimestamps": "true"},
    "V2 checkpoints": {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
    "classic checkpoints": {"delta.checkpointInterval": "2"},
    "checkpoints with struct statistics only": {
        "delta.checkpointInterval": "2",
        "delta.checkpoint.writeStatsAsJson": "false",
    },
    "checkpoints with JSON statistics only": {
        "delta.checkpointInterval": "2",
        "delta.checkpoint.writeStatsAsStruct": "false",
    },
    "change data feed": {"delta.enableChangeDataFeed": "true"},
    "type widening": {"delta.enableTypeWidening": "true"},
    "vacuumProtocolCheck": {"delta.feature.vacuumProtocolCheck": "supported"},
    "domain metadata": {"delta.feature.domainMetadata": "supported"},
    "Iceberg compatibility V1": {"delta.enableIcebergCompatV1": "true", "delta.columnMapping.mode": "name"},
    "Iceberg compatibility V2": {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"},
    "a constraint": {"delta.constraints.positive": "id > 0 OR id IS NULL"},
    "random prefixes": {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "4"},
    "partition columns in files": {"delta.writePartitionColumnsToParquet": "true"},
    "old versions": {"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"},
    "new versions": {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"},
    "all together": {
        "delta.columnMapping.mode": "name",
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpointPolicy": "v2",
        "delta.checkpointInterval": "2",
        "delta.enableTypeWidening": "true",
    },
}
# what deltalake 1.6 itself refuses to read
NOT_FOR_DELTALAKE = {"type widening", "vacuumProtocolCheck", "all together"}


@pytest.mark.parametrize("partition_by", [None, (("p",),)], ids=["whole", "partitioned"])
@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("name", PROPERTIES)
def test_a_table_with(tmp_path: Path, name: str, partition_by: Any) -> None:
    properties = PROPERTIES[name]
    append_only = "delta.appendOnly" in properties
    write_rows(tmp_path, IDS, ROWS, properties=properties, partition_by=partition_by)
    expected = list(ROWS)
    for n in range(10, 14):
        more = [{"id": n, "p": "a"}, {"id": n + 10, "p": "c"}]
        write_rows(tmp_path, IDS, more)
        expected += more
    agree(tmp_path, expected, deltalake=name not in NOT_FOR_DELTALAKE)
    if append_only:
        return
    write_rows(tmp_path, IDS, [{"id": 99, "p": "a"}], mode="overwrite", replace_where="p = 'a'")
    expected = [r for r in expected if r["p"] != "a"] + [{"id": 99, "p": "a"}]
    agree(tmp_path, expected, deltalake=name not in NOT_FOR_DELTALAKE)
    write_rows(tmp_path, IDS, ROWS, mode="overwrite")
    agree(tmp_path, ROWS, deltalake=name not in NOT_FOR_DELTALAKE)
    load_snapshot(str(tmp_path)).verify_checksum()


def test_every_type(tmp_path: Path) -> None:
    types = {
        "b": "byte", "s": "short", "i": "integer", "l": "long", "f": "float", "d": "double", "t": "string",
        "x": "binary", "y": "boolean", "day": "date", "ts": "timestamp", "ntz": "timestamp_ntz",
        "n": "decimal(38,18)", "m": "decimal(5,2)",
    }  # fmt: skip
    rows = [
        {"b": 1, "s": -2, "i": 3, "l": 1 << 60, "f": 1.5, "d": float("inf"), "t": "ü\U0001f600" * 40, "x": b"\0\xff",
         "y": True, "day": 19000, "ts": 1_700_000_000_123_456, "ntz": -1,
         "n": Decimal("12345678901234567890.123456789012345678"), "m": Decimal("-999.99")},
        dict.fromkeys(types),
    ]  # fmt: skip
    write_rows(tmp_path, types, rows)
    ours, theirs = read_rows(tmp_path), by_deltalake(tmp_path)
    assert canonical(ours) == canonical(theirs)
    assert [r["n"] for r in ours] == [r["n"] for r in rows]
    report = verify(str(tmp_path))
    assert report.ok, str(report)
    assert "timestampNtz" in (load_snapshot(str(tmp_path)).protocol.reader_features or ())


def made(path: Path, fields: dict[str, Any], features: Sequence[str] = (), **properties: str) -> TableBuilder:
    protocol: dict[str, Any] = {"protocol": (1, 6)} if not features else {"features": ((), tuple(features))}
    table = TableBuilder(path, fields, properties={f"delta.{k}": v for k, v in properties.items()}, **protocol)
    table.create()
    return table


def refused(path: Path, fields: dict[str, Any], rows: list[dict[str, Any]], code: str, **request: Any) -> DeltaError:
    before = sorted(path.rglob("*"))
    with pytest.raises(DeltaError) as caught:
        write_rows(path, fields, rows, **request)
    assert caught.value.code == code, caught.value
    assert sorted(path.rglob("*")) == before, "a refused write left files"
    return caught.value


def test_not_null(tmp_path: Path) -> None:
    made(tmp_path, struct(field("id", "long", nullable=False), field("p", "string")))
    write_rows(tmp_path, IDS, ROWS[:2])
    refused(tmp_path, IDS, ROWS, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED")
    agree(tmp_path, ROWS[:2])


def test_check_constraints_pass_only_rows_for_which_they_are_true(tmp_path: Path) -> None:
    made(tmp_path, IDS, **{"constraints.small": "id * 2 < 10 AND length(p) = 1"})
    write_rows(tmp_path, IDS, ROWS[:2])
    error = refused(tmp_path, IDS, [{"id": 7, "p": "a"}], "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    assert "small" in error.message and "7" in error.message
    refused(tmp_path, IDS, [{"id": None, "p": "a"}], "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    agree(tmp_path, ROWS[:2])


def test_invariants(tmp_path: Path) -> None:
    rule = json.dumps({"expression": {"expression": "id > 0"}})
    fields = struct(field("id", "long", **{"delta.invariants": rule}), field("p", "string"))
    made(tmp_path, fields)
    write_rows(tmp_path, IDS, ROWS[:2])
    refused(tmp_path, IDS, [{"id": 0, "p": "a"}], "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    agree(tmp_path, ROWS[:2])


def test_a_constraint_beyond_us_is_named_before_a_byte_is_written(tmp_path: Path) -> None:
    made(tmp_path, IDS, **{"constraints.odd": "soundex(p) = 'A000'"})
    with pytest.raises(DeltaError, match="soundex"):
        write_rows(tmp_path, IDS, ROWS)
    assert not list(tmp_path.glob("*.parquet"))


def test_generated_columns_are_computed_or_checked(tmp_path: Path) -> None:
    fields = struct(
        field("at", "timestamp"),
        field("day", "date", **{"delta.generationExpression": "CAST(at AS DATE)"}),
        field("year", "integer", **{"delta.generationExpression": "YEAR(at)"}),
    )
    made(tmp_path, fields)
    at = 1_719_792_000_000_000  # 2024-07-01T00:00:00Z
    write_rows(tmp_path, {"at": "timestamp"}, [{"at": at}, {"at": None}])
    given = {"at": "timestamp", "day": "date"}
    write_rows(tmp_path, given, [{"at": at, "day": 19905}])
    refused(tmp_path, given, [{"at": at, "day": 19906}], "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    found = read_rows(tmp_path)
    assert sorted((str(r["day"]), r["year"]) for r in found) == [("2024-07-01", 2024)] * 2 + [("None", None)]
    agree(tmp_path, found)


def test_default_columns(tmp_path: Path) -> None:
    fields = struct(
        field("id", "long"),
        field("n", "integer", CURRENT_DEFAULT="40 + 2"),
        field("t", "string", CURRENT_DEFAULT="'none'"),
        field("plain", "string"),
    )
    made(tmp_path, fields, features=["allowColumnDefaults"])
    write_rows(tmp_path, {"id": "long"}, [{"id": 1}])
    write_rows(tmp_path, {"id": "long", "t": "string"}, [{"id": 2, "t": None}])
    rows = [{"id": 1, "n": 42, "t": "none", "plain": None}, {"id": 2, "n": 42, "t": None, "plain": None}]
    agree(tmp_path, rows)


@pytest.mark.parametrize(("start", "step"), [(1, 1), (100, 10), (-5, -3)])
def test_identity_columns(tmp_path: Path, start: int, step: int) -> None:
    identity = {
        "delta.identity.start": start,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": False,
    }
    made(tmp_path, struct(field("id", "long", **identity), field("p", "string")))
    write_rows(tmp_path, {"p": "string"}, [[{"p": "a"}, {"p": "b"}], [{"p": "c"}]])
    write_rows(tmp_path, {"p": "string"}, [{"p": "d"}])
    rows = read_rows(tmp_path)
    values = [r["id"] for r in rows]
    assert len(set(values)) == 4
    assert all((v - start) % step == 0 and (v - start) * step >= 0 for v in values)
    by_p = {r["p"]: r["id"] for r in rows}
    assert (by_p["a"], by_p["b"]) == (start, start + step)
    marks = load_snapshot(str(tmp_path)).schema.fields[0].metadata["delta.identity.highWaterMark"]
    assert marks == max(values, key=lambda v: v * step)
    assert (by_p["d"] - max((by_p[p] for p in "abc"), key=lambda v: v * step)) * step > 0
    error = "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"
    refused(tmp_path, IDS, [{"id": 5, "p": "x"}], error)
    agree(tmp_path, rows)


IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}


def test_identity_values_change_nothing_of_the_schema_but_the_mark(tmp_path: Path) -> None:
    # stray ids and a type that is read as another one: another engine's, and its to keep
    stray = {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "col-7", "comment": "\u00e9"}
    table = made(tmp_path, struct(field("id", "long", **IDENTITY), field("p", "string", **stray)))
    stored = table.schema
    stored["fields"][1]["type"] = "char(3)"
    table.commit([table.metadata(stored)])
    write_rows(tmp_path, {"p": "string"}, [{"p": "abc"}])
    lines = (tmp_path / "_delta_log" / f"{2:020d}.json").read_text().splitlines()
    [text] = [a["metaData"]["schemaString"] for a in map(json.loads, lines) if "metaData" in a]
    stored["fields"][0]["metadata"]["delta.identity.highWaterMark"] = 1
    assert json.loads(text) == stored


@pytest.mark.parametrize(("step", "expected"), [(1, 3), (5, 1)], ids=["the same numbering", "another one"])
def test_a_replaced_schema_does_not_give_identity_values_again(tmp_path: Path, step: int, expected: int) -> None:
    made(tmp_path, struct(field("id", "long", **IDENTITY), field("p", "string")))
    write_rows(tmp_path, {"p": "string"}, [{"p": "a"}, {"p": "b"}])
    again = struct(field("id", "long", **{**IDENTITY, "delta.identity.step": step}), field("q", "string"))
    write_rows(tmp_path, again, [{"id": 100, "q": "c"}], "overwrite", overwrite_schema=True)
    write_rows(tmp_path, {"q": "string"}, [{"q": "d"}])
    assert {r["q"]: r["id"] for r in read_rows(tmp_path)} == {"c": 100, "d": expected}


def test_char_and_varchar_lengths(tmp_path: Path) -> None:
    fields = struct(
        field("v", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(3)"),
        field("c", "string", __CHAR_VARCHAR_TYPE_STRING="char(3)"),
    )
    made(tmp_path, fields)
    plain = {"v": "string", "c": "string"}
    write_rows(tmp_path, plain, [{"v": "äöü", "c": "ab "}, {"v": None, "c": None}])
    with pytest.raises(DeltaError, match=r"VARCHAR\(3\)"):
        write_rows(tmp_path, plain, [{"v": "abcd", "c": None}])
    with pytest.raises(DeltaError, match=r"CHAR\(3\)"):
        write_rows(tmp_path, plain, [{"v": None, "c": "abcd"}])
    agree(tmp_path, [{"v": "äöü", "c": "ab "}, {"v": None, "c": None}])


def test_clustered_tables(tmp_path: Path) -> None:
    wide = {f"c{i}": "long" for i in range(40)}
    rows = [{f"c{i}": i * n for i in range(40)} for n in range(3)]
    with pytest.raises(DeltaError, match="c39"):
        write_rows(tmp_path, wide, rows, cluster_by=(("c39",), ("c0",)))
    properties = {"delta.dataSkippingStatsColumns": "c39,c0"}
    write_rows(tmp_path, wide, rows, cluster_by=(("c39",), ("c0",)), properties=properties)
    snapshot = load_snapshot(str(tmp_path))
    domain = json.loads(snapshot.domain_metadata["delta.clustering"].configuration)
    assert domain["clusteringColumns"] == [["c39"], ["c0"]]
    line = next(x for x in (tmp_path / "_delta_log" / f"{0:020d}.json").read_text().splitlines() if '"add"' in x)
    statistics = json.loads(json.loads(line)["add"]["stats"])
    assert statistics["maxValues"]["c39"] == 78 and "c38" not in statistics["maxValues"]
    agree(tmp_path, rows)
    with pytest.raises(DeltaError, match="clustered"):
        write_rows(tmp_path, wide, rows, cluster_by=(("c1",),))


def test_a_replaced_schema_does_not_change_the_clustering_in_silence(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, ROWS)
    changed = {"id": "long", "p": "long"}
    overwrite: dict[str, Any] = {"mode": "overwrite", "overwrite_schema": True, "cluster_by": (("id",),)}
    refused(tmp_path, changed, [], "DELTA_CLUSTERING_COLUMNS_MISMATCH", **overwrite)
    write_rows(tmp_path / "clustered", IDS, ROWS, cluster_by=(("id",),))
    write_rows(tmp_path / "clustered", changed, [{"id": 1, "p": 2}], **overwrite)
    agree(tmp_path / "clustered", [{"id": 1, "p": 2}])


def test_statistics_columns_that_the_table_names(tmp_path: Path) -> None:
    nested = {"a": "long", "s": struct(field("x", "long"), field("y", "string")), "z": "string"}
    write_rows(tmp_path, nested, [{"a": 1, "s": {"x": 2, "y": "q"}, "z": "w"}],
               properties={"delta.dataSkippingStatsColumns": "s.y, z"})  # fmt: skip
    line = next(x for x in (tmp_path / "_delta_log" / f"{0:020d}.json").read_text().splitlines() if '"add"' in x)
    statistics = json.loads(json.loads(line)["add"]["stats"])
    assert statistics["minValues"] == {"s": {"y": "q"}, "z": "w"}
    assert statistics["nullCount"] == {"s": {"y": 0}, "z": 0}


def test_type_widening_by_a_merged_schema(tmp_path: Path) -> None:
    write_rows(tmp_path, {"n": "integer"}, [{"n": 1}], properties={"delta.enableTypeWidening": "true"})
    write_rows(tmp_path, {"n": "long"}, [{"n": 1 << 40}], merge_schema=True)
    agree(tmp_path, [{"n": 1}, {"n": 1 << 40}], deltalake=False)
    [changed] = load_snapshot(str(tmp_path)).schema.fields
    assert changed.metadata["delta.typeChanges"][0]["toType"] == "long"


def test_lossless_casts_only(tmp_path: Path) -> None:
    made(tmp_path, {"l": "long", "d": "double", "n": "decimal(12,2)", "s": "short"})
    write_rows(tmp_path, {"l": "integer", "d": "float", "n": "decimal(6,1)", "s": "integer"},
               [{"l": 1, "d": 0.5, "n": Decimal("1.5"), "s": 30000}])  # fmt: skip
    rows = [{"l": 1, "d": 0.5, "n": Decimal("1.50"), "s": 30000}]
    agree(tmp_path, rows)
    with pytest.raises(DeltaError, match="70000"):
        write_rows(tmp_path, {"s": "integer"}, [{"s": 70000}])
    for name, data_type, value in [("l", "double", 1.0), ("l", "string", "1"), ("n", "decimal(20,2)", None)]:
        error = refused(tmp_path, {name: data_type}, [{name: value}], "DELTA_FAILED_TO_MERGE_FIELDS")
        assert name in error.message
    agree(tmp_path, rows)


def test_rows_that_lack_a_variant_column(tmp_path: Path) -> None:
    write_rows(tmp_path, {"id": "long", "v": "variant", "s": struct(field("w", "variant"))}, [])
    write_rows(tmp_path, {"id": "long"}, [{"id": 1}, {"id": 2}])
    agree(tmp_path, [{"id": n, "v": None, "s": None} for n in (1, 2)], deltalake=False)


def test_illegal_names(tmp_path: Path) -> None:
    with pytest.raises(DeltaError) as caught:
        write_rows(tmp_path / "t", {"a b": "long"}, [{"a b": 1}])
    assert caught.value.code == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    write_rows(tmp_path / "t", {"a b": "long"}, [{"a b": 1}], properties={"delta.columnMapping.mode": "name"})
    agree(tmp_path / "t", [{"a b": 1}])


def test_a_table_that_deltalake_made_and_goes_on_writing(tmp_path: Path) -> None:
    from deltalake import DeltaTable, write_deltalake

    write_deltalake(tmp_path, pa.table({"id": [1], "p": ["a"]}), partition_by=["p"])
    write_rows(tmp_path, IDS, [{"id": 2, "p": "b"}])
    write_deltalake(tmp_path, pa.table({"id": [3], "p": ["a"]}), mode="append")
    write_rows(tmp_path, IDS, [{"id": 4, "p": "a"}], mode="overwrite", replace_where="p = 'a'")
    DeltaTable(tmp_path).create_checkpoint()
    write_rows(tmp_path, IDS, [{"id": 5, "p": "a"}])
    DeltaTable(tmp_path).optimize.compact()
    expected = [{"id": 2, "p": "b"}, {"id": 4, "p": "a"}, {"id": 5, "p": "a"}]
    agree(tmp_path, expected)


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed"])
def test_the_feature_alone_has_partition_columns_in_files(tmp_path: Path, listed: bool) -> None:
    """Whatever the properties say, which only a best effort would follow."""
    given = {"delta.feature.materializePartitionColumns": "supported"} if listed else {}
    write_rows(tmp_path, IDS, ROWS, properties=given, partition_by=(("p",),))
    assert not load_snapshot(tmp_path).configuration.properties.partition_columns_in_files
    for file in tmp_path.rglob("part-*.parquet"):
        assert ("p" in pq.read_schema(file).names) is listed
    assert sorted(map(str, read_rows(tmp_path))) == sorted(map(str, ROWS))
