"""Checkpoints that we write: what is in them, who can read them, and what a failure leaves behind."""

from __future__ import annotations

import datetime as dt
import io
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from delta_pyds import verify
from delta_pyds.errors import CorruptLogError, ProtocolError, StorageError
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.checkpoint_part import CheckpointPart
from delta_pyds.log.checkpoint_writer import CheckpointSettings, write_checkpoint
from delta_pyds.log.last_checkpoint import LastCheckpointHint, write_last_checkpoint
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot, load_snapshot, open_snapshot
from tests.support.checkpoints import hint_checksum
from tests.support.memory_storage import MemoryStorage
from tests.support.table_builder import BASE_TIME_MS, TableBuilder

UTC = dt.timezone.utc
INNER = {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]}
SCHEMA = {
    "id": "long",
    "name": "string",
    "price": "double",
    "ratio": "float",
    "amount": "decimal(20,2)",
    "at": "timestamp",
    "day": "date",
    "s": INNER,
    "flag": "boolean",
    "raw": "binary",
    "part": "date",
    "letter": "string",
}
PARTITIONS = ["part", "letter"]
FORMS = [(True, False), (True, True), (False, True)]
KINDS = [(policy, form) for policy in ("classic", "v2") for form in FORMS]
APP = "an app"


def row(i: int) -> dict[str, Any]:
    return {
        "id": i,
        "name": f'n"{i}é',
        "price": i / 3,
        "ratio": 0.75,
        "amount": Decimal(f"{i}.25"),
        "at": dt.datetime(2024, 1, 1 + i, 12, 0, 0, 123456, UTC),
        "day": dt.date(2024, 1, 1 + i),
        "s": {"x": i},
        "flag": True,
        "raw": b"\x00",
        "part": dt.date(2024, 1, 1 + i % 3) if i else None,
        "letter": "a b/%",
    }


def build(path: Path, **properties: str) -> TableBuilder:
    """Files with and without deletion vectors, tombstones, a transaction and domains."""
    table = TableBuilder(
        path,
        SCHEMA,
        PARTITIONS,
        {"delta.enableDeletionVectors": "true", **properties},
        features=(["deletionVectors", "v2Checkpoint"], ["deletionVectors", "v2Checkpoint", "domainMetadata"]),
    )
    table.create([{"txn": {"appId": APP, "version": 7, "lastUpdated": BASE_TIME_MS}}])
    for i in range(6):
        table.append([row(i), row(i)])
    first, second, third = table.active()[:3]
    table.delete(first, [0])
    table.commit([table.remove(second)])
    table.commit([*table.delete_rows(third, [1], "i"), {"txn": {"appId": "old", "version": 1, "lastUpdated": 5}}])
    table.commit([{"domainMetadata": {"domain": d, "configuration": d, "removed": False}} for d in ("keep", "drop")])
    table.commit([{"domainMetadata": {"domain": "drop", "configuration": "", "removed": True}}])
    return table


def settings_of(snapshot: Snapshot, **options: Any) -> CheckpointSettings:
    partitions = snapshot.configuration.partition_columns
    columns = [(f.name,) for f in snapshot.schema if f.name not in partitions]
    return CheckpointSettings(snapshot.schema, partitions, tuple(columns), **options)


def checkpoint(path: Path, **options: Any) -> LastCheckpointHint:
    snapshot = load_snapshot(str(path))
    hint = write_checkpoint(snapshot.storage, snapshot.replay, settings_of(snapshot, **options))
    write_last_checkpoint(snapshot.storage, str(path), hint)
    return hint


def forget_commits(table: TableBuilder) -> None:
    table.cleanup_log(table.version)
    table.commit_file(table.version).write_text('{"commitInfo":{"timestamp":1}}\n')


def facts(snapshot: Snapshot) -> list[str]:
    columns = ("path", "partitionValues", "size", "modificationTime", "stats", "tags", "deletionVector")
    rows = [r for b in snapshot.adds(AddRequest(columns)) for r in b.files.to_pylist()]
    for r in rows:
        stats = json.loads(r["stats"], parse_int=float)
        r["stats"] = sorted((k, repr(v)) for k, v in stats.items())
    return sorted(map(repr, rows))


def tombstones(snapshot: Snapshot, since: int = 0) -> list[str]:
    rows = [r for batch in snapshot.replay.tombstones(since) for r in batch.to_pylist()]
    return sorted(repr({k: v for k, v in r.items() if k != "dataChange"}) for r in rows)


def small(snapshot: Snapshot) -> Any:
    return snapshot.protocol, snapshot.metadata, dict(snapshot.transactions), dict(snapshot.domain_metadata)


# --- reading back


@pytest.mark.parametrize(("policy", "form"), KINDS)
def test_our_reader_finds_the_same_table_in_the_checkpoint_alone(tmp_path: Path, policy: str, form: Any) -> None:
    table = build(tmp_path)
    before = load_snapshot(str(tmp_path))
    expected = facts(before), tombstones(before), small(before)
    hint = checkpoint(tmp_path, policy=policy, stats_as_json=form[0], stats_as_struct=form[1])
    forget_commits(table)
    after = load_snapshot(str(tmp_path))
    assert after.segment.checkpoint is not None and after.segment.commits == ()
    assert after.segment.checkpoint.kind == ("classic" if policy == "classic" else "v2-json")
    assert (facts(after), tombstones(after), small(after)) == expected
    assert len(tombstones(after)) == 3
    assert set(after.domain_metadata) == {"keep"}
    assert hint.num_of_add_files == len(facts(after)) == 5
    for where in ("id = 3", "name >= 'n\"4'", "at > '2024-01-05'", "s.x = 5", "part = '2024-01-02'", "amount < 3.3"):
        wanted = [f.path for f in plan_scan(before, where=where).files()]
        assert sorted(f.path for f in plan_scan(after, where=where).files()) == sorted(wanted)
        assert len(wanted) < 5


@pytest.mark.parametrize(("policy", "form"), KINDS)
def test_deltalake_finds_the_same_table_in_the_checkpoint_alone(tmp_path: Path, policy: str, form: Any) -> None:
    table = build(tmp_path)

    def theirs() -> Any:
        opened = DeltaTable(str(tmp_path))
        adds = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
        # the order of columns is that of the first file
        files = sorted(repr(sorted((k, v) for k, v in a.items() if "flag" not in k)) for a in adds)
        transactions = opened.transaction_version(APP), opened.transaction_version("old")
        return files, transactions, opened.schema().to_json(), opened.metadata().id, repr(opened.protocol())

    expected = theirs()
    checkpoint(tmp_path, policy=policy, stats_as_json=form[0], stats_as_struct=form[1])
    forget_commits(table)
    assert theirs() == expected
    assert len(expected[0]) == 5 and expected[1] == (7, 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_there_by_their_physical_names(tmp_path: Path, mode: str, form: Any) -> None:
    table = TableBuilder(
        tmp_path,
        {"a.b": "long", "p": "integer"},
        ["p"],
        {"delta.columnMapping.mode": mode},
        physical_names={"a.b": 'col-"1"', "p": "col-p"},
    )
    table.create()
    for i in range(3):
        table.append([{"a.b": i, "p": i}])
    checkpoint(tmp_path, stats_as_json=form[0], stats_as_struct=form[1])
    forget_commits(table)
    after = load_snapshot(str(tmp_path))
    for where in ("`a.b` = 1", "p = 1"):
        assert len(list(plan_scan(after, where=where).files())) == 1
    if form[1]:
        add = pq.read_schema(table.log_path / f"{table.version:020d}.checkpoint.parquet").field("add").type
        assert add.field("partitionValues_parsed").type == pa.struct([("col-p", pa.int32())])
        assert add.field("stats_parsed").type.field("minValues").type == pa.struct([('col-"1"', pa.int64())])


def test_the_classic_file_has_the_columns_and_types_of_the_specification(tmp_path: Path) -> None:
    table = build(tmp_path)
    checkpoint(tmp_path)
    file = table.log_path / f"{table.version:020d}.checkpoint.parquet"
    schema = pq.read_schema(file)
    assert schema.names == ["txn", "add", "remove", "metaData", "protocol", "domainMetadata"]
    add = {f.name: f.type for f in schema.field("add").type}
    assert add["partitionValues_parsed"] == pa.struct([("part", pa.date32()), ("letter", pa.string())])
    assert "stats_parsed" in add and add["stats"] == pa.string()
    assert [f.name for f in schema.field("remove").type] == [
        "path", "deletionTimestamp", "dataChange", "extendedFileMetadata", "partitionValues", "size",
        "deletionVector", "baseRowId", "defaultRowCommitVersion",
    ]  # fmt: skip
    leaves = {c.path: c for c in map(pq.ParquetFile(file).schema.column, range(len(pq.ParquetFile(file).schema)))}
    assert "add.partitionValues.key_value.key" in leaves and "protocol.readerFeatures.list.element" in leaves
    at = leaves["add.stats_parsed.minValues.at"].logical_type
    assert json.loads(at.to_json()) == {
        "Type": "Timestamp", "isAdjustedToUTC": True, "timeUnit": "microseconds",
        "is_from_converted_type": False, "force_set_converted_type": False,
    }  # fmt: skip
    rows = pq.read_table(file).to_pylist()
    assert all(sum(v is not None for v in r.values()) == 1 for r in rows)
    files = [r["add"] or r["remove"] for r in rows if r["add"] or r["remove"]]
    assert {f["dataChange"] for f in files} == {False}
    assert {r["add"]["partitionValues_parsed"]["part"] for r in rows if r["add"]} >= {None, dt.date(2024, 1, 3)}
    (protocol,) = [r["protocol"] for r in rows if r["protocol"]]
    assert protocol["readerFeatures"] == ["deletionVectors", "v2Checkpoint"]


def test_statistics_are_left_out_as_the_properties_say(tmp_path: Path) -> None:
    for as_json in (True, False):
        for as_struct in (True, False):
            table = build(tmp_path / f"{as_json}{as_struct}")
            checkpoint(table.path, stats_as_json=as_json, stats_as_struct=as_struct)
            names = {
                f.name
                for f in pq.read_schema(table.log_path / f"{table.version:020d}.checkpoint.parquet").field("add").type
            }
            assert ("stats" in names) == as_json
            assert ("stats_parsed" in names) == ("partitionValues_parsed" in names) == as_struct


def test_a_table_without_partitions_has_no_typed_partition_values(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    checkpoint(tmp_path)
    add = pq.read_schema(table.log_path / f"{table.version:020d}.checkpoint.parquet").field("add").type
    assert add.get_field_index("partitionValues_parsed") < 0
    assert add.get_field_index("stats_parsed") >= 0


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_footers_have_no_bounds_of_floating_columns(tmp_path: Path, policy: str) -> None:
    """They would leave NaN out, so who rules row groups out by ``maxValues`` would lose files."""
    table = build(tmp_path)
    checkpoint(tmp_path, policy=policy)
    found = [*table.log_path.glob("*.checkpoint*.parquet"), *table.log_path.glob("_sidecars/*.parquet")]
    leaves = [file.schema.column(i) for file in map(pq.ParquetFile, found) for i in range(len(file.schema))]
    floating = {leaf.path for leaf in leaves if leaf.physical_type in ("FLOAT", "DOUBLE")}
    assert floating == {f"add.stats_parsed.{b}Values.{name}" for b in ("min", "max") for name in ("price", "ratio")}
    groups = [file.metadata.row_group(i) for file in map(pq.ParquetFile, found) for i in range(file.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    assert {c.path_in_schema for c in columns if c.statistics is None} == floating


def test_row_groups_of_tombstones_are_not_decoded_for_files(tmp_path: Path) -> None:
    """Floating columns have no null counts in the footer; the paths have."""
    table = build(tmp_path)
    checkpoint(tmp_path)
    storage = load_snapshot(str(tmp_path)).storage
    part = CheckpointPart(storage, str(table.log_path / f"{table.version:020d}.checkpoint.parquet"))
    assert (part.row_groups_with("add"), part.row_groups_with("remove"), part.row_groups_with("protocol")) == (
        [1], [2], [0],
    )  # fmt: skip


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_table_without_files_has_a_checkpoint_that_everybody_reads(tmp_path: Path, policy: str) -> None:
    table = TableBuilder(tmp_path, {"id": "long"}, features=(["v2Checkpoint"], ["v2Checkpoint"]))
    table.create()
    hint = checkpoint(tmp_path, policy=policy)
    forget_commits(table)
    assert hint.num_of_add_files == 0
    assert list(plan_scan(load_snapshot(str(tmp_path))).files()) == []
    assert DeltaTable(str(tmp_path)).file_uris() == []
    assert len(list(table.log_path.glob("_sidecars/*"))) == (1 if policy == "v2" else 0)


def test_small_actions_and_files_have_row_groups_of_their_own(tmp_path: Path) -> None:
    table = build(tmp_path)
    checkpoint(tmp_path)
    file = pq.ParquetFile(table.log_path / f"{table.version:020d}.checkpoint.parquet")
    groups = [file.read_row_group(i).to_pylist() for i in range(file.num_row_groups)]
    kinds = [{k for r in g for k, v in r.items() if v is not None} for g in groups]
    assert kinds == [{"protocol", "metaData", "txn", "domainMetadata"}, {"add"}, {"remove"}]


# --- what is in the state


def test_expired_tombstones_and_transactions_are_left_out(tmp_path: Path) -> None:
    table = build(tmp_path)
    times = sorted(r["deletionTimestamp"] for r in table.state().removes.values())
    checkpoint(tmp_path, tombstones_since_ms=times[1], transactions_since_ms=5)
    forget_commits(table)
    after = load_snapshot(str(tmp_path))
    kept = [r["deletionTimestamp"] for b in after.replay.tombstones(0) for r in b.to_pylist()]
    assert sorted(kept) == times[1:]
    assert set(after.transactions) == {APP}


def test_a_file_that_came_back_is_no_tombstone(tmp_path: Path) -> None:
    table = build(tmp_path)
    (gone,) = [r for r in table.state().removes.values() if not r.get("deletionVector")][:1]
    checkpoint(tmp_path)
    back = {k: v for k, v in gone.items() if k not in ("deletionTimestamp", "extendedFileMetadata")}
    table.commit([{"add": {**back, "modificationTime": 1, "dataChange": True}}])
    paths = [r["path"] for b in load_snapshot(str(tmp_path)).replay.tombstones(0) for r in b.to_pylist()]
    assert len(paths) == 2 and paths.count(gone["path"]) == sum(
        r["path"] == gone["path"] for r in table.state().removes.values()
    )
    hint = checkpoint(tmp_path, policy="v2")
    assert hint.num_of_add_files == 6


def test_a_partition_value_that_is_none_of_its_type_refuses_the_checkpoint(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long", "p": "integer"}, ["p"])
    table.create()
    table.commit([table.add("a.parquet", partitionValues={"p": "x"})])
    with pytest.raises(ProtocolError, match=r"column p: .*'x'"):
        checkpoint(tmp_path)
    assert not list(table.log_path.glob("*checkpoint*"))


def test_an_add_without_partition_values_or_with_a_struct_of_nulls_becomes_well_formed(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    (file,) = table.checkpoint()
    content = pq.read_table(file)
    add = content.column("add").combine_chunks()
    columns = {f.name: c for f, c in zip(add.type, add.flatten(), strict=True)}
    columns["partitionValues"] = pa.nulls(len(add), add.type.field("partitionValues").type)
    vector = add.type.field("deletionVector").type
    columns["deletionVector"] = pa.StructArray.from_arrays(
        [pa.nulls(len(add), f.type) for f in vector], fields=list(vector)
    )
    broken = pa.StructArray.from_arrays(list(columns.values()), fields=list(add.type), mask=add.is_null())
    pq.write_table(content.set_column(content.column_names.index("add"), "add", broken), file)
    table.commit([table.add("b.parquet")])
    checkpoint(tmp_path)
    rows = pq.read_table(table.log_path / f"{table.version:020d}.checkpoint.parquet").column("add").drop_null()
    assert [(r["partitionValues"], r["deletionVector"]) for r in rows.to_pylist()] == [([], None)] * 2


def test_bounds_stored_as_int96_do_not_wrap_around(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"at": "timestamp"})
    table.create()
    table.append([{"at": dt.datetime(9999, 12, 31, tzinfo=UTC)}])
    (file,) = table.checkpoint(stats_json=False, stats_struct=True)
    pq.write_table(pq.read_table(file), file, use_deprecated_int96_timestamps=True, store_schema=False)
    forget_commits(table)
    assert len(list(plan_scan(load_snapshot(str(tmp_path)), where="at > '9000-01-01'").files())) == 1
    table.commit([table.add("b.parquet")])
    checkpoint(tmp_path)
    forget_commits(table)
    after = load_snapshot(str(tmp_path))
    stats = [s for b in after.adds(AddRequest(("stats",))) for s in b.files.column("stats").to_pylist()]
    assert json.loads(stats[0])["maxValues"] == {"at": "9999-12-31T00:00:00.000Z"}


# --- V2


def test_a_v2_checkpoint_divides_its_files_among_sidecars(tmp_path: Path) -> None:
    table = build(tmp_path)
    hint = checkpoint(tmp_path, policy="v2", sidecar_actions=3)
    (top,) = table.log_path.glob("*.checkpoint.*.json")
    version, word, middle, _ = top.name.split(".")
    assert (int(version), word, str(uuid.UUID(middle))) == (table.version, "checkpoint", middle)
    lines = [json.loads(line) for line in top.read_text().splitlines()]
    kinds = [next(iter(line)) for line in lines]
    assert kinds[:4] == ["checkpointMetadata", "sidecar", "sidecar", "sidecar"]
    assert sorted(kinds[4:]) == ["domainMetadata", "metaData", "protocol", "txn", "txn"]
    files = [table.log_path / "_sidecars" / line["sidecar"]["path"] for line in lines[1:4]]
    assert [f.name.split(".")[2:4] for f in files] == [[f"{i:010d}", f"{3:010d}"] for i in (1, 2, 3)]
    assert [pq.read_metadata(f).num_rows for f in files] == [3, 3, 2]
    for line, file in zip(lines[1:4], files, strict=True):
        assert line["sidecar"]["sizeInBytes"] == file.stat().st_size
        assert line["sidecar"]["modificationTime"] == file.stat().st_mtime_ns // 1_000_000
        assert pq.read_schema(file).names == ["add", "remove"]
    metadata = lines[0]["checkpointMetadata"]
    assert metadata["version"] == table.version
    tags = metadata["tags"]
    schema = json.loads(tags.pop("sidecarFileSchema"))
    assert [f["name"] for f in schema["fields"]] == ["add", "remove"]
    sidecar_bytes = sum(f.stat().st_size for f in files)
    assert tags == {"sidecarNumActions": "8", "sidecarSizeInBytes": str(sidecar_bytes), "numOfAddFiles": "5"}
    assert (hint.size, hint.size_in_bytes) == (8 + len(lines), sidecar_bytes + top.stat().st_size)


def test_without_the_feature_a_checkpoint_is_classic_whatever_the_policy(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    checkpoint(tmp_path, policy="v2")
    assert [f.name for f in table.log_path.glob("*checkpoint*.*")] == [f"{0:020d}.checkpoint.parquet"]


# --- the hint


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_the_hint_counts_and_sums_what_is_there_and_has_a_true_checksum(tmp_path: Path, policy: str) -> None:
    table = build(tmp_path)
    checkpoint(tmp_path, policy=policy)
    text = (table.log_path / "_last_checkpoint").read_text()
    hint = json.loads(text)
    assert hint["checksum"] == hint_checksum(hint)
    assert text.startswith('{"version":' + str(table.version) + ',"size":')
    assert hint["numOfAddFiles"] == 5
    if policy == "classic":
        (file,) = table.log_path.glob("*.checkpoint.parquet")
        assert hint["size"] == pq.read_metadata(file).num_rows
        assert hint["sizeInBytes"] == file.stat().st_size
        assert [f["name"] for f in hint["checkpointSchema"]["fields"]] == pq.read_schema(file).names
        assert "v2Checkpoint" not in hint
    else:
        (top,) = table.log_path.glob("*.checkpoint.*.json")
        lines = [json.loads(line) for line in top.read_text().splitlines()]
        v2 = hint["v2Checkpoint"]
        assert (v2["path"], v2["sizeInBytes"]) == (top.name, top.stat().st_size)
        assert v2["modificationTime"] == top.stat().st_mtime_ns // 1_000_000
        assert v2["sidecarFiles"] == [line["sidecar"] for line in lines if "sidecar" in line]
        in_order = sorted((line for line in lines if "sidecar" not in line), key=repr)
        assert sorted(v2["nonFileActions"], key=repr) == in_order
        assert "checkpointSchema" not in hint


def test_a_hint_does_not_repeat_very_much(tmp_path: Path) -> None:
    table = TableBuilder(
        tmp_path, {f"column{i}": "long" for i in range(400)}, features=(["v2Checkpoint"], ["v2Checkpoint"])
    )
    table.create([{"txn": {"appId": str(i), "version": 1}} for i in range(31)])
    table.commit([table.add(f"{i}.parquet") for i in range(31)])
    assert checkpoint(tmp_path).checkpoint_schema is None
    v2 = checkpoint(tmp_path, policy="v2", sidecar_actions=1).v2_checkpoint
    assert v2 is not None and v2.non_file_actions is None and v2.sidecar_files is None
    assert (table.log_path / "_last_checkpoint").stat().st_size < 1000


# --- failures and races


def in_memory(table: TableBuilder, storage: MemoryStorage) -> str:
    for file in table.log_path.glob("*.json"):
        storage.put(f"memory:/t/_delta_log/{file.name}", file.read_bytes())
    return "memory:/t"


class Failing:
    """Fails the calls that ``wanted`` picks, before or after they had their effect."""

    def __init__(self, operation: str, suffix: str) -> None:
        self.operation, self.suffix, self.armed = operation, suffix, False

    def __call__(self, operation: str, path: str) -> None:
        if self.armed and operation == self.operation and path.endswith(self.suffix):
            raise StorageError(f"{path} failed", path=path)


def names(storage: MemoryStorage, directory: str) -> list[str]:
    return [f.name for f in storage.list_from(directory, "")]


@pytest.mark.parametrize(
    ("policy", "suffix", "left"),
    [("classic", ".parquet", []), ("v2", ".parquet", []), ("v2", ".json", [3, 3, 2])],
)
def test_a_writer_that_dies_leaves_at_most_sidecars_that_nothing_refers_to(
    tmp_path: Path, policy: str, suffix: str, left: list[int]
) -> None:
    table = build(tmp_path)
    failing = Failing("put_if_absent", suffix)
    storage = MemoryStorage(on_call=failing)
    root = in_memory(table, storage)
    before = open_snapshot(storage, root)
    log = names(storage, f"{root}/_delta_log")
    failing.armed = True
    settings = settings_of(before, policy=policy, sidecar_actions=3)
    with pytest.raises(StorageError, match="failed"):
        write_checkpoint(storage, before.replay, settings)
    failing.armed = False
    assert names(storage, f"{root}/_delta_log") == log
    sidecars = names(storage, f"{root}/_delta_log/_sidecars") if left else []
    files = [storage.parquet_source(f"{root}/_delta_log/_sidecars/{name}") for name in sidecars]
    assert [pq.read_metadata(f).num_rows for f in files] == left
    again = open_snapshot(storage, root)
    assert again.segment.checkpoint is None and facts(again) == facts(before)
    # and the next writer succeeds
    write_last_checkpoint(storage, root, write_checkpoint(storage, again.replay, settings))
    after = open_snapshot(storage, root)
    assert after.segment.checkpoint is not None and facts(after) == facts(before)


def test_a_checkpoint_that_changes_while_the_next_is_made_of_it_is_noticed(tmp_path: Path) -> None:
    """Counts are compared with the written rows: here a file becomes one that a later commit removed."""
    table = TableBuilder(tmp_path, {"id": "long"}, features=(["v2Checkpoint"], ["v2Checkpoint"]))
    table.create()
    kept = [add for n in range(4) for add in table.append([{"id": n}])]
    table.checkpoint()
    gone = "x" * len(kept[-1]["add"]["path"])
    table.commit([{"remove": {"path": gone, "deletionTimestamp": 1, "dataChange": True}}])
    [file] = table.log_path.glob("*.checkpoint.parquet")
    plain = io.BytesIO()
    pq.write_table(pq.read_table(file), plain, row_group_size=1, compression="none", use_dictionary=False)
    before = plain.getvalue()
    sources: list[io.BytesIO] = []

    class Changing(MemoryStorage):
        def parquet_source(self, path: str, tail_bytes: int = 0, size_bytes: int | None = None) -> io.BytesIO:
            sources.append(super().parquet_source(path, tail_bytes, size_bytes))
            return sources[-1]

    def change(operation: str, path: str) -> None:
        if operation == "put_if_absent" and "_sidecars" in path:
            for source in sources:
                source.getbuffer()[:] = before.replace(kept[-1]["add"]["path"].encode(), gone.encode())

    storage = Changing(on_call=change)
    root = in_memory(table, storage)
    storage.put(f"{root}/_delta_log/{file.name}", before)
    snapshot = open_snapshot(storage, root)
    with pytest.raises(CorruptLogError) as caught:
        write_checkpoint(storage, snapshot.replay, settings_of(snapshot, policy="v2", sidecar_actions=1))
    assert caught.value.code == "DELTA_CHECKPOINT_SNAPSHOT_MISMATCH"
    assert not [name for name in names(storage, f"{root}/_delta_log") if ".checkpoint." in name and "json" in name]


def test_a_checkpoint_without_its_hint_is_found_all_the_same(tmp_path: Path) -> None:
    table = build(tmp_path)
    snapshot = load_snapshot(str(tmp_path))
    write_checkpoint(snapshot.storage, snapshot.replay, settings_of(snapshot, policy="v2"))
    forget_commits(table)
    assert facts(load_snapshot(str(tmp_path))) == facts(snapshot)


def test_a_classic_checkpoint_that_is_there_stays_and_the_hint_describes_it(tmp_path: Path) -> None:
    table = build(tmp_path)
    (file,) = table.checkpoint(stats_struct=True, write_hint=False)
    content = file.read_bytes()
    hint = checkpoint(tmp_path)
    assert file.read_bytes() == content
    num_rows = pq.read_metadata(file).num_rows
    assert (hint.size, hint.size_in_bytes, hint.num_of_add_files) == (num_rows, len(content), 5)
    v2 = build(tmp_path / "v2")
    v2.checkpoint(kind="v2-classic", write_hint=False)
    assert checkpoint(v2.path).num_of_add_files is None


def test_a_writer_that_comes_second_keeps_the_first_ones_file(tmp_path: Path) -> None:
    table = build(tmp_path)
    first = MemoryStorage()
    root = in_memory(table, first)
    snapshot = open_snapshot(first, root)
    other = write_checkpoint(first, snapshot.replay, settings_of(snapshot, stats_as_struct=False))
    path = f"{root}/_delta_log/{table.version:020d}.checkpoint.parquet"
    theirs = first.read(path)

    class Race:
        storage: MemoryStorage

        def __call__(self, operation: str, path: str) -> None:
            if operation == "put_if_absent" and path.endswith(".parquet"):
                self.storage.put(path, theirs)

    race = Race()
    race.storage = MemoryStorage(on_call=race)
    in_memory(table, race.storage)
    snapshot = open_snapshot(race.storage, root)
    hint = write_checkpoint(race.storage, snapshot.replay, settings_of(snapshot))
    assert race.storage.read(path) == theirs
    assert (hint.size, hint.size_in_bytes, hint.num_of_add_files) == (other.size, len(theirs), other.num_of_add_files)


def test_a_damaged_file_in_the_place_of_the_checkpoint_is_named(tmp_path: Path) -> None:
    table = build(tmp_path)
    file = table.log_path / f"{table.version:020d}.checkpoint.parquet"
    file.write_bytes(b"PAR1")
    with pytest.raises(CorruptLogError, match=file.name):
        checkpoint(tmp_path)
    assert not (table.log_path / "_last_checkpoint").exists()


# --- on top of checkpoints of others


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("deltalake", {}),
        ("classic", {"stats_struct": True, "stats_json": False, "row_group_size": 2}),
        ("classic", {"stats_struct": True, "partition_values_struct": True}),
        ("multipart", {}),
        ("v2-json", {"sidecars": 0}),
        ("v2-json", {"stats_struct": True, "stats_json": False, "sidecars": 2}),
        ("v2-parquet", {"sidecars": 2}),
        ("v2-classic", {}),
    ],
)
def test_nothing_is_lost_on_top_of_a_checkpoint_that_another_program_wrote(
    tmp_path: Path, kind: str, content: dict[str, Any], form: Any
) -> None:
    table = build(tmp_path)
    if kind == "deltalake":
        DeltaTable(str(tmp_path)).create_checkpoint()
    else:
        table.checkpoint(kind=kind, **content)
    forget_commits(table)
    live = table.active()
    again, gone = live[0]["add"], live[1]
    table.append([row(7)])
    table.commit([table.remove(gone), {"add": {**again, "tags": {"k": "v"}}}])
    before = load_snapshot(str(tmp_path))
    expected = facts(before), tombstones(before), small(before)
    assert len(expected[0]) == 5
    checkpoint(tmp_path, stats_as_json=form[0], stats_as_struct=form[1])
    forget_commits(table)
    after = load_snapshot(str(tmp_path))
    assert (facts(after), tombstones(after), small(after)) == expected
    assert len(list(plan_scan(after, where="id = 7").files())) == 1


@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("2026-01-01 00:00:00", False),
        ("2026-01-01", False),
        ("2026-01-01 00:00:00.000001", False),
        ("2026-01-01T00:00:00.000000Z", True),
        ("2026-01-01 00:00:00+01:00", True),
        ("2026-01-01 00:00:00 UTC", True),
        (None, True),
    ],
)
def test_times_of_a_zone_that_nobody_says_are_no_typed_partition_values(
    tmp_path: Path, policy: str, text: str | None, typed: bool
) -> None:
    """Without a zone it is a time of the system that wrote it. A wrong moment, or a null, would hide the file."""
    properties = {"delta.checkpointPolicy": "v2"} if policy == "v2" else {}
    table = TableBuilder(tmp_path, {"id": "long", "at": "timestamp", "p": "string"}, ["at", "p"], properties)
    table.create()
    table.append([{"id": 1}], partition_values={"at": "2025-01-01T00:00:00.000000Z", "p": "a"})
    table.append([{"id": 2}], partition_values={"at": text, "p": "b"})
    checkpoint(tmp_path)
    files = [*table.log_path.glob("*.checkpoint*.parquet"), *table.log_path.glob("_sidecars/*.parquet")]
    adds = [row["add"] for file in files for row in pq.read_table(file).to_pylist() if row.get("add")]
    assert len(adds) == 2 and all(("partitionValues_parsed" in add) == typed for add in adds)
    assert all("stats_parsed" in add for add in adds)
    assert not verify(str(tmp_path)).findings
