"""Each rule of checkpoints, hints, compactions and checksums, broken alone."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds import compact_log, verify
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.table.snapshot import load_snapshot
from tests.support.checkpoints import hint_checksum
from tests.support.planned_changes import planned_delete
from tests.support.table_builder import Action, TableBuilder
from tests.support.table_writes import write_rows
from tests.support.verification import messages, rules

SCHEMA = {"id": "long", "p": "string"}
V2 = {"delta.checkpointPolicy": "v2"}
TXN = {"txn": {"appId": "a", "version": 3, "lastUpdated": 5}}
DOMAIN = {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}


def make(path: Path, **options: Any) -> TableBuilder:
    """Versions 0 to 3: two files, a tombstone, a transaction, a domain."""
    options = {"features": ([], ["domainMetadata"])} | options
    t = TableBuilder(path, SCHEMA, partition_columns=["p"], **options)
    t.create([TXN, DOMAIN])
    t.append([{"id": 1, "p": "x"}, {"id": 2, "p": "y"}])
    [add] = t.append([{"id": 3, "p": "x"}])
    t.commit([t.remove(add)])
    return t


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return make(tmp_path)


def rewrite(file: Path, change: Callable[[list[Action]], list[Action]]) -> None:
    """Change the rows of a Parquet checkpoint; each is a dict with one action that is not None."""
    content = pq.read_table(file)
    rows = change(content.to_pylist())
    pq.write_table(pa.Table.from_pylist(rows, content.schema), file)


def edited(kind: str, **changes: Any) -> Callable[[list[Action]], list[Action]]:
    """Fields of the first action of a kind replaced."""

    def change(rows: list[Action]) -> list[Action]:
        row = next(r for r in rows if r[kind] is not None)
        row[kind] = {**row[kind], **changes}
        return rows

    return change


def dropped(kind: str) -> Callable[[list[Action]], list[Action]]:
    def change(rows: list[Action]) -> list[Action]:
        row = next(r for r in rows if r[kind] is not None)
        return [r for r in rows if r is not row]

    return change


def repeated(kind: str) -> Callable[[list[Action]], list[Action]]:
    return lambda rows: [*rows, next(r for r in rows if r[kind] is not None)]


def extra(kind: str, **changes: Any) -> Callable[[list[Action]], list[Action]]:
    def change(rows: list[Action]) -> list[Action]:
        row = next(r for r in rows if r[kind] is not None)
        return [*rows, {**row, kind: {**row[kind], **changes}}]

    return change


CHANGES: list[tuple[str, Any, str]] = [
    ("a file is missing", dropped("add"), "error checkpoint.files"),
    ("a file is too many", extra("add", path="more.parquet"), "error checkpoint.files"),
    ("a file is there twice", repeated("add"), "error checkpoint.duplicate-key"),
    ("another size", edited("add", size=1), "error checkpoint.file-fields"),
    ("another partition value", edited("add", partitionValues=[("p", "other")]), "error checkpoint.file-fields"),
    ("another time", edited("add", modificationTime=1), "error checkpoint.file-fields"),
    ("a base row id", edited("add", baseRowId=1), "error checkpoint.file-fields"),
    ("a clustering provider", edited("add", clusteringProvider="liquid"), "error checkpoint.file-fields"),
    ("tags", edited("add", tags=[("a", "b")]), "warning checkpoint.file-fields"),
    ("other statistics", edited("add", stats='{"numRecords":9}'), "error checkpoint.statistics"),
    ("no statistics", edited("add", stats=None), "error checkpoint.statistics"),
    ("a tombstone of no commit", extra("remove", path="never.parquet"), "error checkpoint.tombstones"),
    ("a tombstone twice", repeated("remove"), "error checkpoint.duplicate-key"),
    ("another deletion time", edited("remove", deletionTimestamp=1), "error checkpoint.tombstones"),
    ("another table", edited("metaData", id="other"), "error checkpoint.definition"),
    ("another property", edited("metaData", configuration=[("a", "b")]), "error checkpoint.definition"),
    ("no metadata", dropped("metaData"), "error checkpoint.definition"),
    ("two metadata", repeated("metaData"), "error checkpoint.definition"),
    ("another protocol", edited("protocol", writerFeatures=[]), "error checkpoint.definition"),
    ("no protocol", dropped("protocol"), "error checkpoint.definition"),
    ("no transaction", dropped("txn"), "error checkpoint.transactions"),
    ("another transaction version", edited("txn", version=4), "error checkpoint.transactions"),
    ("a strange transaction", extra("txn", appId="b"), "error checkpoint.transactions"),
    ("a transaction twice", repeated("txn"), "error checkpoint.duplicate-key"),
    ("no domain", dropped("domainMetadata"), "error checkpoint.domains"),
    ("another domain", edited("domainMetadata", configuration="x"), "error checkpoint.domains"),
    ("a row of nothing", lambda rows: [*rows, dict.fromkeys(rows[0])], "error checkpoint.many-actions"),
]


@pytest.mark.parametrize(("change", "expected"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_a_checkpoint_that_is_not_the_replay(table: TableBuilder, change: Any, expected: str) -> None:
    [file] = table.checkpoint(write_hint=False)
    rewrite(file, lambda rows: rows)
    assert rules(table) == []
    rewrite(file, change)
    assert rules(table) == [expected]


def test_a_live_file_as_tombstone(table: TableBuilder) -> None:
    [file] = table.checkpoint(write_hint=False)
    live = table.active()[0]["add"]["path"]
    rewrite(file, extra("remove", path=live))
    assert rules(table) == ["error checkpoint.tombstones"]


def test_provenance_in_a_checkpoint(table: TableBuilder) -> None:
    [file] = table.checkpoint(write_hint=False)
    content = pq.read_table(file)
    infos = pa.array([None] * len(content) + [{"operation": "WRITE"}], pa.struct([("operation", pa.string())]))
    rows = pa.Table.from_pylist([*content.to_pylist(), dict.fromkeys(content.column_names)], content.schema)
    pq.write_table(rows.append_column("commitInfo", infos), file)
    assert rules(table) == ["error checkpoint.forbidden-action"]


def test_statistics_may_be_structs_only_when_json_is_switched_off(tmp_path: Path) -> None:
    t = make(tmp_path / "on")
    t.checkpoint(stats_json=False, stats_struct=True)
    assert rules(t) == []
    t = make(tmp_path / "lost")
    t.checkpoint(stats_json=False)
    assert rules(t) == ["error checkpoint.statistics"]
    t = make(tmp_path / "off", properties={"delta.checkpoint.writeStatsAsJson": "false"})
    t.checkpoint(stats_json=False)
    assert rules(t) == []


def test_structs_that_say_otherwise_than_the_json(table: TableBuilder) -> None:
    [file] = table.checkpoint(stats_struct=True, partition_values_struct=True, write_hint=False)
    assert rules(table) == []
    wrong = {"numRecords": 1, "minValues": {"id": 7}, "maxValues": {"id": 1}, "nullCount": {"id": 0}}
    rewrite(file, edited("add", stats_parsed=wrong))
    assert rules(table) == ["error checkpoint.statistics"]
    [file] = table.checkpoint(partition_values_struct=True, write_hint=False)
    rewrite(file, edited("add", partitionValues_parsed={"p": "other"}))
    assert rules(table) == ["error checkpoint.partition-values"]


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1.5", "0.1", "1.4E-45"])
def test_floating_partition_values(tmp_path: Path, text: str) -> None:
    """The log has text, ``partitionValues_parsed`` numbers; NaN is the same as itself here."""
    t = TableBuilder(tmp_path, {"id": "long", "p": "float"}, partition_columns=["p"])
    t.create([])
    t.commit([t.add("a.parquet", stats=None, partitionValues={"p": text})])
    [file] = t.checkpoint(partition_values_struct=True, write_hint=False)
    assert rules(t, data=False) == []
    rewrite(file, edited("add", partitionValues_parsed={"p": 7.0}))
    assert rules(t, data=False) == ["error checkpoint.partition-values"]


def test_timestamps_as_int96_are_not_taken_for_nanoseconds(tmp_path: Path) -> None:
    """Spark writes them so by default; as nanoseconds the year 1 would wrap around."""
    t = TableBuilder(tmp_path, {"id": "long", "p": "timestamp"}, partition_columns=["p"])
    t.create([])
    t.commit([t.add("a.parquet", stats=None, partitionValues={"p": "0001-01-01T00:00:00.000000Z"})])
    [file] = t.checkpoint(partition_values_struct=True, write_hint=False)
    pq.write_table(pq.read_table(file), file, use_deprecated_int96_timestamps=True)
    assert rules(t, data=False) == []


def test_a_tombstone_that_has_not_expired_is_kept(table: TableBuilder) -> None:
    now = int(time.time() * 1000)
    table.commit([table.remove(table.active()[0], deletion_timestamp=now)])
    table.checkpoint(tombstones=False, write_hint=False)
    assert rules(table) == ["error checkpoint.tombstones"]
    table.commit([table.metadata(properties={"delta.deletedFileRetentionDuration": "interval 0 hours"})])
    table.checkpoint(5, tombstones=False, write_hint=False)
    assert [Path(f.where).name for f in verify(str(table.path)).errors] == [f"{4:020d}.checkpoint.parquet"]


def test_transactions_may_expire(tmp_path: Path) -> None:
    t = make(tmp_path, properties={"delta.setTransactionRetentionDuration": "interval 1 day"})
    [file] = t.checkpoint(write_hint=False)
    rewrite(file, dropped("txn"))
    t.checksum(setTransactions=[])
    assert rules(t) == []


def test_a_checkpoint_that_cannot_be_read(table: TableBuilder) -> None:
    [file] = table.checkpoint(write_hint=False)
    table.truncate(file, file.stat().st_size // 2)
    assert rules(table) == ["error checkpoint.unreadable"]
    table.truncate(file, 0)
    assert rules(table) == ["warning checkpoint.incomplete"]


@pytest.mark.parametrize("position", range(-200, 0, 9))
def test_a_damaged_footer_is_a_finding(table: TableBuilder, position: int) -> None:
    """Not a crash: Arrow ends the process for some of these when it is asked for statistics."""
    [file] = table.checkpoint(write_hint=False)
    table.flip_byte(file, position)
    assert all(r.startswith(("error checkpoint.", "error feature.")) for r in rules(table))


def test_a_damaged_checkpoint_that_the_log_stands_on(table: TableBuilder) -> None:
    [file] = table.checkpoint(write_hint=False)
    table.cleanup_log(3)
    table.truncate(file, file.stat().st_size // 2)
    assert rules(table) == ["error checkpoint.unreadable", "warning files.not-checked"]


# --- kinds


def test_a_multi_part_checkpoint_with_a_part_missing(table: TableBuilder) -> None:
    first, _ = table.checkpoint(kind="multipart", write_hint=False)
    first.unlink()
    assert rules(table) == ["warning checkpoint.incomplete"]


def test_kinds_that_the_feature_forbids_or_asks_for(tmp_path: Path) -> None:
    multipart = TableBuilder(tmp_path / "1", {"id": "long"}, properties=V2)
    multipart.create()
    multipart.checkpoint(kind="multipart", write_hint=False)
    assert rules(multipart) == ["error checkpoint.multi-part"]
    t = make(tmp_path / "2")
    t.checkpoint(kind="v2-json", write_hint=False)
    assert rules(t) == ["error feature.missing"]


@pytest.fixture
def v2(tmp_path: Path) -> TableBuilder:
    t = TableBuilder(tmp_path, SCHEMA, partition_columns=["p"], properties=V2)
    t.create([TXN])
    t.append([{"id": 1, "p": "x"}, {"id": 2, "p": "y"}])
    return t


def sidecar(t: TableBuilder) -> Path:
    return next((t.log_path / "_sidecars").iterdir())


def test_a_sidecar_that_is_missing(v2: TableBuilder) -> None:
    v2.checkpoint(kind="v2-json")
    sidecar(v2).unlink()
    assert rules(v2) == ["error checkpoint.sidecar-missing", "warning hint.content"]


def test_a_sidecar_of_another_size(v2: TableBuilder) -> None:
    [top] = v2.checkpoint(kind="v2-json", write_hint=False)
    size = sidecar(v2).stat().st_size
    top.write_text(top.read_text().replace(f'"sizeInBytes": {size}', f'"sizeInBytes": {size + 1}'))
    assert rules(v2) == ["error checkpoint.sidecar-size"]


def test_a_sidecar_that_cannot_be_read(v2: TableBuilder) -> None:
    v2.checkpoint(kind="v2-parquet", write_hint=False)
    content = sidecar(v2).read_bytes()
    sidecar(v2).write_bytes(b"x" * len(content))
    assert rules(v2) == ["error checkpoint.unreadable"]


def test_a_sidecar_with_more_than_files(v2: TableBuilder) -> None:
    v2.checkpoint(kind="v2-json", write_hint=False)
    file = sidecar(v2)
    content = pq.read_table(file)
    txns = pa.array([None] * len(content) + [{"appId": "z"}], pa.struct([("appId", pa.string())]))
    rows = pa.Table.from_pylist([*content.to_pylist(), {"add": None, "remove": None}], content.schema)
    pq.write_table(rows.append_column("txn", txns), file)
    assert rules(v2) == ["error checkpoint.sidecar-size", "error checkpoint.sidecars"]


def edit_json(t: TableBuilder, change: Callable[[list[Action]], list[Action]]) -> None:
    [top] = t.checkpoint(kind="v2-json", write_hint=False)
    lines = change([json.loads(line) for line in top.read_text().splitlines()])
    top.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_v2_checkpoints_say_what_they_are(v2: TableBuilder) -> None:
    edit_json(v2, lambda lines: lines[1:])
    assert rules(v2) == ["error checkpoint.metadata"]


def test_v2_checkpoints_say_their_version(v2: TableBuilder) -> None:
    edit_json(v2, lambda lines: [{"checkpointMetadata": {"version": 0}}, *lines[1:]])
    assert rules(v2) == ["error checkpoint.metadata"]


def test_file_actions_are_in_one_place(v2: TableBuilder) -> None:
    edit_json(v2, lambda lines: [*lines, v2.active()[0]])
    assert rules(v2) == ["error checkpoint.duplicate-key", "error checkpoint.sidecars"]


def test_lines_of_a_json_checkpoint_are_checked_as_those_of_commits(v2: TableBuilder) -> None:
    edit_json(v2, lambda lines: [*lines, {"commitInfo": {}}])
    assert rules(v2) == ["error checkpoint.forbidden-action"]
    [top] = [f for f in v2.log_path.iterdir() if "checkpoint" in f.name]
    top.write_text(top.read_text() + "{nonsense\n")
    assert rules(v2) == ["error checkpoint.forbidden-action", "error checkpoint.unreadable"]


# --- the hint


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"version": 2}, ["error hint.version"]),
        ({"version": 9}, ["error hint.version"]),
        ({"size": 99}, ["warning hint.content"]),
        ({"size": -1}, []),
        ({"parts": 2}, ["warning hint.content"]),
        ({"sizeInBytes": 1}, ["warning hint.content"]),
        ({"numOfAddFiles": 1}, ["warning hint.content"]),
        ({"checksum": "0" * 32}, ["warning hint.unreadable"]),
        ({"version": -1}, ["warning hint.unreadable"]),
    ],
)
def test_the_hint(table: TableBuilder, change: dict[str, Any], expected: list[str]) -> None:
    table.checkpoint()
    hint = json.loads((table.log_path / "_last_checkpoint").read_text()) | change
    if "checksum" not in change:
        hint["checksum"] = hint_checksum(hint)
    (table.log_path / "_last_checkpoint").write_text(json.dumps(hint))
    assert rules(table) == expected


def test_a_hint_behind_the_newest_checkpoint(table: TableBuilder) -> None:
    table.checkpoint(2)
    table.checkpoint(3, write_hint=False)
    assert rules(table) == ["warning hint.stale"]


@pytest.mark.parametrize(
    "change",
    [
        {"path": "00000000000000000001.checkpoint.other.json"},
        {"sizeInBytes": 5},
        {"sidecarFiles": []},
        {"nonFileActions": []},
        {"nonFileActions": [{"txn": {"appId": 7}}]},
    ],
)
def test_what_the_hint_repeats_of_a_v2_checkpoint(v2: TableBuilder, change: dict[str, Any]) -> None:
    v2.checkpoint(kind="v2-json")
    assert rules(v2) == []
    hint = json.loads((v2.log_path / "_last_checkpoint").read_text())
    hint["v2Checkpoint"] |= change
    v2.last_checkpoint({k: v for k, v in hint.items() if k != "checksum"})
    assert rules(v2) == ["warning hint.content"]


# --- compactions


def test_compactions_that_are_not_their_commits(table: TableBuilder) -> None:
    file = table.compact_log(1, 3)
    assert verify(str(table.path)).checked.compactions == 1
    assert rules(table) == []
    lines = file.read_text().splitlines()
    damages = {
        "missing": lines[1:],
        "another": [json.dumps({"add": {**json.loads(lines[0])["add"], "size": 1}}), *lines[1:]],
        "too many": [*lines, json.dumps(TXN)],
        "twice": [*lines, lines[0]],
    }
    for changed in damages.values():
        file.write_text("\n".join(changed) + "\n")
        assert rules(table) == ["error compaction.actions"]
    file.write_text("{\n")
    assert "error compaction.unreadable" in rules(table)


def test_a_compaction_of_a_file_that_was_deleted_from_twice(tmp_path: Path) -> None:
    """It holds a tombstone of the file without a vector, and one with the first vector."""
    write_rows(
        tmp_path, {"id": "long"}, [{"id": i} for i in range(9)], properties={"delta.enableDeletionVectors": "true"}
    )
    for condition in ("id = 2", "id = 3"):
        plan = planned_delete(load_snapshot(tmp_path), condition, CommandOptions())
        run_delete(plan, Place("process", "a test says so"))
    file = Path(compact_log(tmp_path, 0, 2))
    assert file.read_text().count('{"remove":') == 2
    assert rules(tmp_path) == []
    lines = [line for line in file.read_text().splitlines() if line.startswith('{"add":')]
    again = json.loads(lines[0])
    del again["add"]["deletionVector"]
    with file.open("a") as more:
        more.write(json.dumps(again) + "\n")
    assert "error compaction.actions" in rules(tmp_path)


def test_a_compaction_that_does_not_say_what_came_last_is_named_even_without_its_commits(table: TableBuilder) -> None:
    file = table.compact_log(1, 3)
    first = json.loads(file.read_text().splitlines()[0])["add"]
    with file.open("a") as lines:
        lines.write(json.dumps(table.remove({"add": first})) + "\n")
    for _ in range(2):
        findings = [f for f in verify(str(table.path)).findings if f.rule == "compaction.actions"]
        assert [f.where for f in findings if first["path"] in f.message] == [str(file)] * len(findings) != []
        (table.log_path / f"{2:020d}.json").unlink(missing_ok=True)


def test_a_compaction_keeps_removed_domains(table: TableBuilder) -> None:
    table.commit([{"domainMetadata": {"domain": "d", "configuration": "{}", "removed": True}}])
    file = table.compact_log(3, 4)
    assert rules(table) == []
    file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if "domain" not in line))
    assert rules(table) == ["error compaction.actions"]


def test_a_compaction_of_versions_that_are_not_there(table: TableBuilder) -> None:
    file = table.compact_log(2, 3)
    shutil.copy(file, table.log_path / f"{2:020d}.{7:020d}.compacted.json")
    shutil.copy(file, table.log_path / f"{3:020d}.{2:020d}.compacted.json")
    assert rules(table) == ["error compaction.range"]


# --- version checksums


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"numFiles": 7}, "files"),
        ({"tableSizeBytes": 7}, "files"),
        ({"numMetadata": 2}, "definition"),
        ({"numProtocol": 0}, "definition"),
        ({"numDeletedRecordsOpt": 1}, "vectors"),
        ({"numDeletionVectorsOpt": 1}, "vectors"),
        ({"deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [2, 0, 0, 0, 0, 0, 0, 0, 0, 0]}}, []),
        ({"deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]}}, "vectors"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, "definition"),
        ({"setTransactions": []}, "transactions"),
        ({"setTransactions": [TXN["txn"], TXN["txn"]]}, "transactions"),
        ({"setTransactions": [{"appId": "a", "version": 9}]}, "transactions"),
        ({"domainMetadata": []}, "domains"),
        ({"domainMetadata": [DOMAIN["domainMetadata"], {"domain": "x", "configuration": "", "removed": True}]},
         "domains"),
        ({"txnId": "another"}, "txn-id"),
        ({"inCommitTimestampOpt": 5}, "timestamp"),
        ({"fileSizeHistogram": {"sortedBinBoundaries": [0, 1 << 20], "fileCounts": [1, 1], "totalBytes": [9, 9]}},
         "histogram"),
        ({"fileSizeHistogram": {"sortedBinBoundaries": [5, 9], "fileCounts": [1, 1], "totalBytes": [9, 9]}},
         "histogram"),
        ({"histogramOpt": {"sortedBinBoundaries": [0], "fileCounts": [3], "totalBytes": [9]}}, "histogram"),
        ({"allFiles": []}, "all-files"),
        ({"numFiles": None}, "both"),
        ({"numFiles": "x"}, "unreadable"),
    ],
)  # fmt: skip
def test_version_checksums(table: TableBuilder, change: dict[str, Any], expected: Any) -> None:
    table.checksum(**change)
    if expected == "both":
        assert rules(table) == ["error checksum.field", "error checksum.unreadable"]
    else:
        assert rules(table) == ([f"error checksum.{expected}"] if expected else [])


def test_all_files_of_a_checksum(table: TableBuilder) -> None:
    table.checksum(all_files=True)
    assert rules(table) == []
    files = [a["add"] for a in table.active()]
    for wrong in ([*files, files[0]], [{**files[0], "size": 1}, files[1]]):
        table.checksum(allFiles=wrong)
        assert rules(table) == ["error checksum.all-files"]


def test_old_checksums_lack_what_is_required_today(table: TableBuilder) -> None:
    table.checksum(metadata=None, protocol=None)
    assert rules(table) == ["warning checksum.field"]


def test_histograms_follow_the_files_from_version_to_version(table: TableBuilder) -> None:
    def histogram(version: int) -> dict[str, Any]:
        sizes = [a["add"]["size"] for a in table.active(version)]
        edges = [0, min(sizes, default=0) + 1, 1 << 20]
        bins = [[s for s in sizes if low <= s < high] for low, high in zip(edges, [*edges[1:], 1 << 62], strict=True)]
        return {
            "sortedBinBoundaries": edges,
            "fileCounts": [len(b) for b in bins],
            "totalBytes": [sum(b) for b in bins],
        }

    for version in range(1, 4):
        table.checksum(version, fileSizeHistogram=histogram(version), histogramOpt=histogram(version))
    assert rules(table) == []


def test_a_checksum_that_cannot_be_read(table: TableBuilder) -> None:
    file = table.checksum()
    file.write_text("{")
    assert rules(table) == ["error checksum.unreadable"]


def test_a_checksum_beyond_the_last_commit(table: TableBuilder) -> None:
    file = table.checksum()
    os.rename(file, table.log_path / f"{9:020d}.crc")
    assert rules(table) == ["error checksum.without-commit"]


def test_a_checksum_with_another_in_commit_timestamp(tmp_path: Path) -> None:
    t = TableBuilder(tmp_path, {"id": "long"}, properties={"delta.enableInCommitTimestamps": "true"})
    t.create()
    t.checksum()
    assert rules(t) == []
    t.checksum(inCommitTimestampOpt=None)
    assert rules(t) == ["error checksum.timestamp"]


def test_names_with_other_uuids_are_all_compared(v2: TableBuilder) -> None:
    [one] = v2.checkpoint(kind="v2-json", write_hint=False)
    other = one.with_name(one.name.replace(one.name.split(".")[2], str(uuid.uuid4())))
    other.write_text(one.read_text().replace('"version": 3', '"version": 4'))
    assert rules(v2) == ["error checkpoint.transactions"]
    assert verify(str(v2.path)).checked.checkpoints == 2
    assert other.name in messages(v2)


@pytest.mark.parametrize("kind", ["add", "remove"])
def test_file_actions_without_a_path_are_a_finding(tmp_path: Path, kind: str) -> None:
    table = make(tmp_path / "t")
    (file,) = table.checkpoint()
    content = pq.read_table(file)
    rows = pa.array([{"x": 1}] * content.num_rows, pa.struct([("x", pa.int64())]))
    pq.write_table(content.set_column(content.column_names.index(kind), kind, rows), file)
    assert "error checkpoint.unreadable" in rules(table)
    assert f"its column {kind} has no field path" in messages(table)
