"""The hand-written tables are what the protocol says, by the word of another implementation."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.support import bitmaps
from tests.support.checkpoints import canonical_json, hint_checksum
from tests.support.delta_types import schema_of
from tests.support.file_statistics import STRING_PREFIX_LENGTH
from tests.support.table_builder import TableBuilder, generate_large, partition_text

UTC = dt.timezone.utc


def rows_by_deltalake(path: Path, version: int | None = None) -> list[dict[str, Any]]:
    table = DeltaTable(path, version=version)
    batches = QueryBuilder().register("t", table).execute("select * from t").read_all()
    return pa.table(batches).to_pylist()


def same_rows(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> bool:
    return sorted(map(repr, left)) == sorted(map(repr, right))


def plain(path: Path, **options: Any) -> TableBuilder:
    table = TableBuilder(path, {"id": "long", "name": "string"}, **options)
    table.create()
    return table


def test_rows_of_a_plain_table_are_those_that_deltalake_reads(tmp_path: Path) -> None:
    table = plain(tmp_path)
    table.append([{"id": 1, "name": "a"}, {"id": None, "name": None}])
    [second] = table.append(pa.table({"id": [3], "name": ["c"]}))
    table.commit([table.remove(second)])
    assert table.expected_rows() == [{"id": 1, "name": "a"}, {"id": None, "name": None}]
    assert same_rows(rows_by_deltalake(tmp_path), table.expected_rows())
    assert same_rows(rows_by_deltalake(tmp_path, version=2), table.expected_rows(2))
    assert len(table.expected_rows(2)) == 3


def test_all_types_survive(tmp_path: Path) -> None:
    schema = {
        "b": "byte",
        "s": "short",
        "i": "int",
        "l": "long",
        "f": "float",
        "d": "double",
        "dec": "decimal(20,3)",
        "t": "boolean",
        "bin": "binary",
        "day": "date",
        "ts": "timestamp",
        "ntz": "timestamp_ntz",
        "nested": {"x": "int", "deep": {"y": "string"}},
        "list": ["long"],
        "map": "map<string,int>",
        "structs": "array<struct<k:int,v:string>>",
    }
    table = TableBuilder(tmp_path, schema)
    table.create()
    row = {
        "b": -5,
        "s": 300,
        "i": 70_000,
        "l": 1 << 40,
        "f": 1.5,
        "d": float("inf"),
        "dec": Decimal("-12345.678"),
        "t": True,
        "bin": b"\x00\xff",
        "day": dt.date(1900, 1, 1),
        "ts": dt.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC),
        "ntz": dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        "nested": {"x": 1, "deep": {"y": "z"}},
        "list": [1, None],
        "map": {"k": 1},
        "structs": [{"k": 1, "v": "one"}, None],
    }
    table.append([row, {}])
    expected = table.expected_rows()
    assert expected[0] == {**row, "map": [("k", 1)]}
    assert set(expected[1].values()) == {None}
    got = rows_by_deltalake(tmp_path)
    assert len(got) == 2
    assert {k: v for k, v in got[0].items() if k != "ts"} == {k: v for k, v in expected[0].items() if k != "ts"}
    assert got[0]["ts"] == row["ts"]


def test_partition_values_of_every_form_are_read_back(tmp_path: Path) -> None:
    schema = {"id": "long", "p": "string", "day": "date", "n": "integer"}
    table = TableBuilder(tmp_path, schema, partition_columns=["p", "day", "n"])
    table.create()
    table.append(
        [
            {"id": 1, "p": "a b/c=%d", "day": dt.date(2024, 1, 1), "n": 1},
            {"id": 2, "p": "a b/c=%d", "day": dt.date(2024, 1, 1), "n": 1},
            {"id": 3, "p": "ünï", "day": None, "n": None},
        ]
    )
    assert len(table.active()) == 2
    assert same_rows(rows_by_deltalake(tmp_path), table.expected_rows())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (dt.date(2024, 2, 3), "2024-02-03"),
        (dt.datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC), "2024-02-03T04:05:06.000000Z"),
        (dt.datetime(2024, 2, 3, 4, 5, 6), "2024-02-03 04:05:06"),
        (Decimal("1E+2"), "100"),
    ],
)
def test_partition_text_follows_the_protocol(value: Any, text: str | None) -> None:
    assert partition_text(value) == text


CHECKPOINTS: list[dict[str, Any]] = [
    {"kind": "classic"},
    {"kind": "classic", "stats_struct": True, "partition_values_struct": True},
    {"kind": "classic", "stats_json": False, "stats_struct": True},
    {"kind": "multipart", "parts": 3},
    {"kind": "v2-json"},
    {"kind": "v2-parquet", "sidecars": 2},
    {"kind": "v2-parquet", "sidecars": 0},
    {"kind": "v2-classic"},
]


@pytest.mark.parametrize("options", CHECKPOINTS, ids=str)
def test_a_checkpointed_table_is_read_without_its_commits(tmp_path: Path, options: dict[str, Any]) -> None:
    table = TableBuilder(
        tmp_path,
        {"id": "long", "p": "string"},
        partition_columns=["p"],
        properties={"delta.checkpointPolicy": "v2"} if options["kind"].startswith("v2") else {},
    )
    table.create([{"txn": {"appId": "app", "version": 7}}])
    for number in range(4):
        table.append([{"id": number, "p": "x" if number % 2 else None}])
    table.commit([table.remove(table.active()[0])])
    files = table.checkpoint(**options)
    assert len(files) == options.get("parts", 1)
    table.cleanup_log(before=table.version)
    assert not table.commit_file(0).exists()
    assert len(list(tmp_path.glob("_delta_log/_sidecars/*"))) == (
        options.get("sidecars", 1) if options["kind"].startswith("v2") else 0
    )
    assert same_rows(rows_by_deltalake(tmp_path), table.expected_rows())
    assert len(table.expected_rows()) == 3
    table.append([{"id": 99, "p": "y"}])
    assert same_rows(rows_by_deltalake(tmp_path), table.expected_rows())
    assert DeltaTable(tmp_path).transaction_version("app") == 7


def test_checkpoint_statistics_as_struct_are_typed(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"d": "decimal(5,2)", "ts": "timestamp", "s": {"x": "int"}})
    table.create()
    moment = dt.datetime(2024, 1, 1, 0, 0, 0, 1999, tzinfo=UTC)
    table.append([{"d": Decimal("1.50"), "ts": moment, "s": {"x": 4}}, {}])
    [file] = table.checkpoint(stats_struct=True)
    [parsed] = [s for s in pq.read_table(file)["add"].combine_chunks().field("stats_parsed").to_pylist() if s]
    bounds = {"d": Decimal("1.50"), "ts": moment.replace(microsecond=1000), "s": {"x": 4}}
    assert parsed["minValues"] == bounds
    assert parsed["maxValues"] == bounds
    assert parsed["nullCount"] == {"d": 1, "ts": 1, "s": {"x": 1}}


@pytest.mark.parametrize("storage", ["u", "i", "p"])
def test_deleted_rows_are_gone(tmp_path: Path, storage: str) -> None:
    table = plain(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    [add] = table.append([{"id": i, "name": str(i)} for i in range(1000)])
    after_first = table.delete(add, range(0, 1000, 3), storage)
    table.delete(after_first, [1, 2], storage)
    rows = table.expected_rows()
    assert [r["id"] for r in rows] == [i for i in range(1000) if i % 3 and i not in (1, 2)]
    assert len(table.expected_rows(1)) == 1000
    assert same_rows(rows_by_deltalake(tmp_path), rows)


def test_several_vectors_share_a_file(tmp_path: Path) -> None:
    table = plain(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    adds = [table.append([{"id": n * 10 + i} for i in range(10)])[0] for n in range(3)]
    pairs = table.delete_rows_of_many([(add, [n]) for n, add in enumerate(adds)], prefix="ab")
    table.commit([action for pair in pairs for action in pair])
    files = {table.vector_file(new) for _, new in pairs}
    assert [f.parent.name for f in files] == ["ab"]
    assert same_rows(rows_by_deltalake(tmp_path), table.expected_rows())
    assert len(table.expected_rows()) == 27


def test_z85_is_the_documented_example() -> None:
    assert bitmaps.z85(bytes.fromhex("864fd26fb559f75b")) == "HelloWorld"


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_renames_nested_columns(tmp_path: Path, mode: str) -> None:
    table = TableBuilder(
        tmp_path,
        {"a": "long", "p": "string", "s": {"x": "int", "l": "array<struct<k:int>>"}},
        partition_columns=["p"],
        properties={"delta.columnMapping.mode": mode},
        features=(["columnMapping"], ["columnMapping"]),
    )
    table.create()
    [add] = table.append([{"a": 1, "p": "v", "s": {"x": 2, "l": [{"k": 3}]}}])
    stored = pq.read_schema(table.data_file(add))
    assert [int(f.metadata[b"PARQUET:field_id"]) for f in stored] == [1, 3]
    assert all(name.startswith("col-") for name in stored.names)
    assert same_rows(rows_by_deltalake(tmp_path), table.expected_rows())
    schema = table.schema
    schema["fields"][0]["name"] = "renamed"
    del schema["fields"][2]
    table.commit([table.metadata(schema)])
    assert table.expected_rows() == [{"renamed": 1, "p": "v"}]
    assert same_rows(rows_by_deltalake(tmp_path), table.expected_rows())


def test_a_file_may_name_and_number_its_columns_otherwise(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"a": "long", "s": {"x": "int"}}, properties={"delta.columnMapping.mode": "id"})
    table.create()
    [add] = table.append([{"a": 1, "s": {"x": 2}}, {"a": 2, "s": None}], physical_names={"a": "one", "s.x": "two"})
    [bare] = table.append([{"a": 3}], field_ids=False, columns=["a"])
    schema = pq.read_schema(table.data_file(add))
    assert schema.names[0] == "one"
    assert schema.field(1).type.field(0).name == "two"
    assert schema.field(1).type.field(0).metadata[b"PARQUET:field_id"] == b"3"
    assert not pq.read_schema(table.data_file(bare)).field(0).metadata
    expected = [{"a": 1, "s": {"x": 2}}, {"a": 2, "s": None}, {"a": 3, "s": None}]
    assert same_rows(table.expected_rows(), expected)


def test_statistics_follow_the_protocol(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"t": "string", "d": "double", "l": ["int"], "ts": "timestamp_ntz", "b": "boolean"})
    table.create()
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    rows = [{"t": "z" * 40, "d": float("nan"), "l": [1], "ts": moment, "b": True}, {"t": "a", "d": 1.0}, {}]
    stats = json.loads(table.write_file(rows)["add"]["stats"])
    assert stats["numRecords"] == 3
    assert stats["minValues"] == {"t": "a", "d": 1.0, "ts": "1969-12-31T23:59:59.999"}
    cut = "z" * STRING_PREFIX_LENGTH + "\U0010ffff"
    assert stats["maxValues"] == {"t": cut, "d": "NaN", "ts": "1969-12-31T23:59:59.999"}
    assert stats["nullCount"] == {"t": 1, "d": 1, "l": 2, "ts": 2, "b": 2}
    assert "tightBounds" not in stats
    assert json.loads(table.write_file(rows, stats="wide")["add"]["stats"])["tightBounds"] is False
    assert "stats" not in table.write_file(rows, stats=False)["add"]


def test_only_the_first_columns_have_statistics(tmp_path: Path) -> None:
    table = TableBuilder(
        tmp_path, {"s": {"a": "int", "b": "int"}, "c": "int"}, properties={"delta.dataSkippingNumIndexedCols": "1"}
    )
    table.create()
    stats = json.loads(table.write_file([{"s": {"a": 1, "b": 2}, "c": 3}])["add"]["stats"])
    assert stats["minValues"] == {"s": {"a": 1}}
    assert stats["nullCount"] == {"s": {"a": 0}}


def test_a_compaction_replaces_its_commits(tmp_path: Path) -> None:
    table = plain(tmp_path)
    adds = [table.append([{"id": n}])[0] for n in range(3)]
    table.commit([table.remove(adds[1])])
    actions = [json.loads(line) for line in table.compact_log(1, 4).read_text().splitlines()]
    assert [next(iter(a)) for a in actions] == ["add", "add", "remove"]
    assert {a["add"]["path"] for a in actions if "add" in a} == {adds[0]["add"]["path"], adds[2]["add"]["path"]}


def test_canonical_form_is_the_protocols_example() -> None:
    sample = json.loads(
        """{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2],
        {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}"""
    )
    assert canonical_json(sample).startswith('"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,')
    assert hint_checksum(sample) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_version_checksum_counts_files_and_deleted_rows(tmp_path: Path) -> None:
    table = plain(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    [add] = table.append([{"id": 1}, {"id": 2}])
    table.append([{"id": 3}])
    table.delete(add, [0])
    content = json.loads(table.checksum(all_files=True).read_text())
    assert (content["numFiles"], content["numDeletedRecordsOpt"], content["numDeletionVectorsOpt"]) == (2, 1, 1)
    assert content["tableSizeBytes"] == sum(a["size"] for a in content["allFiles"])


def test_times_are_those_asked_for(tmp_path: Path) -> None:
    table = plain(tmp_path, properties={"delta.enableInCommitTimestamps": "true"})
    table.commit(timestamp_ms=5_000, in_commit_timestamp=6_000)
    info = json.loads(table.commit_file(1).read_text().splitlines()[0])["commitInfo"]
    assert info["inCommitTimestamp"] == 6_000
    assert table.commit_file(1).stat().st_mtime_ns == 5_000 * 1_000_000


def test_damage_is_done_where_asked(tmp_path: Path) -> None:
    table = plain(tmp_path)
    [add] = table.append([{"id": 1}])
    before = table.data_file(add).read_bytes()
    table.flip_byte(table.data_file(add), -1)
    assert table.data_file(add).read_bytes()[-1] == before[-1] ^ 0xFF
    table.truncate(table.data_file(add), 10)
    assert table.data_file(add).stat().st_size == 10


def test_shorthand_and_json_say_the_same() -> None:
    schema = schema_of({"id": "bigint not null", "m": "map<string,array<int>>", "s": "struct<x:decimal(3,1),y:int>"})
    assert schema == schema_of(schema)
    assert schema["fields"][0]["nullable"] is False
    assert schema["fields"][1]["type"]["valueType"]["elementType"] == "integer"
    assert [f["type"] for f in schema["fields"][2]["type"]["fields"]] == ["decimal(3,1)", "integer"]


@pytest.mark.parametrize("stats", ["json", "struct", "both"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_large_tables_are_opened_by_deltalake(tmp_path: Path, stats: str, partitioned: bool) -> None:
    large = generate_large(tmp_path / "t", 1000, partitioned=partitioned, stats=stats, extra_commits=2, real_files=[7])
    table = DeltaTable(large.path)
    assert table.version() == large.version
    adds = pa.table(table.get_add_actions(flatten=True))
    assert adds.num_rows == large.num_files == 1002
    assert sorted(adds["min.id"].to_pylist()) == [i * 1000 for i in range(1002)]
    [path] = [p for p in adds["path"].to_pylist() if (large.path / p).exists()]
    [place] = [i for i, p in enumerate(adds["path"].to_pylist()) if p == path]
    assert adds["size_bytes"][place].as_py() == (large.path / path).stat().st_size
    ids = pq.read_table(large.path / path, columns=["id"], partitioning=None)["id"].to_pylist()
    assert (ids[0], ids[-1]) == (7000, 7999)
    assert adds["min.id"][place].as_py() == 7000
