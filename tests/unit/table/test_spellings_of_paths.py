"""One file, spelled in two ways: whatever compares files of a log takes it for one.

Protocol: "Action Reconciliation", "Add File and Remove File".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import delta_pyds
from delta_pyds.commands.maintenance.clone import CloneOptions, shallow_clone
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum
from delta_pyds.errors import ConcurrentDeleteDeleteError, ConcurrentDeleteReadError, ProtocolError
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.log.compaction import write_compaction
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.change_feed.change_scan import with_partition_values
from delta_pyds.table.change_feed.changes import change_relation, changes_of
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.transaction import Operation
from tests.support.memory_storage import MemoryStorage
from tests.support.path_spellings import DIFFERENT, SAME, SAME_BY_PROTOCOL
from tests.support.table_builder import BASE_TIME_MS, TableBuilder
from tests.support.table_writes import read_rows
from tests.support.transactions import QUIET, Table, file, removed

_PAIRS = [*SAME, *SAME_BY_PROTOCOL]
# of files that a test makes: relative, and found on the disk
_RELATIVE = [("a%3Ab", "a%3ab"), ("d/x", "./d//x"), ("p=R%26D/x", "p=R&D/x"), ("caf%C3%A9 b", "caf%c3%a9%20b")]
_VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1, "sizeInBytes": 40,
           "cardinality": 2}  # fmt: skip
both = pytest.mark.parametrize(("one", "other"), _PAIRS)


def live(table: TableBuilder) -> list[str]:
    request = AddRequest(columns=("path",))
    return [p for batch in load_snapshot(str(table.path)).adds(request) for p in batch.files.column(0).to_pylist()]


def tombstones(table: TableBuilder) -> list[str]:
    return [
        p for batch in load_snapshot(str(table.path)).replay.tombstones(0) for p in batch.column("path").to_pylist()
    ]


def new(tmp_path: Path, **more: Any) -> TableBuilder:
    features = ["deletionVectors", "v2Checkpoint"]
    table = TableBuilder(tmp_path / "t", {"id": "long"}, features=(features, features), **more)
    table.create()
    return table


@both
@pytest.mark.parametrize("kind", ["none", "classic", "multipart", "v2-json", "v2-json inline", "v2-parquet"])
def test_a_remove_removes_it_and_an_add_brings_it_back(tmp_path: Path, kind: str, one: str, other: str) -> None:
    table = new(tmp_path)
    table.commit([table.add(one), table.add("stays")])

    def checkpoint() -> None:
        if kind != "none":
            table.checkpoint(kind=kind.split()[0], sidecars=0 if "inline" in kind else 1)

    checkpoint()
    table.commit([table.remove(table.add(other), deletion_timestamp=1)])
    assert (live(table), tombstones(table)) == (["stays"], [other])
    table = new(tmp_path / "tombstone")
    table.commit([table.add("stays"), table.remove(table.add(one), deletion_timestamp=1)])
    checkpoint()
    table.commit([table.add(other)])
    assert (live(table), tombstones(table)) == (["stays", other], [])


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_another_file_stays(tmp_path: Path, checkpoint: bool, one: str, other: str) -> None:
    table = new(tmp_path)
    table.commit([table.add(one)])
    if checkpoint:
        table.checkpoint()
    table.commit([table.remove(table.add(other), deletion_timestamp=1)])
    assert live(table) == [one]


@both
def test_its_deletion_vector_belongs_to_the_key(tmp_path: Path, one: str, other: str) -> None:
    table = new(tmp_path)
    table.commit([table.add(one, deletionVector=_VECTOR)])
    table.checkpoint()
    table.commit([table.remove(table.add(other), deletion_timestamp=1)])
    assert live(table) == [one]
    table.commit([table.remove(table.add(other, deletionVector=_VECTOR), deletion_timestamp=1)])
    assert live(table) == []


@both
def test_a_compaction_keeps_the_newest_action(one: str, other: str) -> None:
    storage = MemoryStorage()
    later = msgspec.json.encode({"remove": {"path": other}})
    for version, line in enumerate([msgspec.json.encode({"add": {"path": one, "size": 1}}), later]):
        storage.put(f"memory://t/_delta_log/{version:020d}.json", line)
    assert storage.read(write_compaction(storage, "memory://t", 0, 1)).strip() == later


@both
def test_a_compaction_with_two_actions_for_it_decides_nothing(tmp_path: Path, one: str, other: str) -> None:
    table = new(tmp_path)
    table.commit([table.add(one)])
    table.commit([table.remove(table.add(other), deletion_timestamp=1)])
    lines = [json.dumps(a) for a in (table.add(one), table.remove(table.add(other)))]
    (table.log_path / f"{1:020d}.{2:020d}.compacted.json").write_text("\n".join(reversed(lines)) + "\n")
    assert live(table) == []


@both
def test_verification_and_checksums_follow_it(tmp_path: Path, one: str, other: str) -> None:
    table = new(tmp_path)
    table.commit([table.add(one, stats='{"numRecords":1}')])
    table.commit([table.remove(table.add(other))])
    found = delta_pyds.verify(str(table.path), data=False).findings
    upwards = {"commit.path"} if ".." in other else set()
    assert {f.rule for f in found} == upwards | {"commit.remove-path"}, str(found)
    table.commit([table.add(one, stats='{"numRecords":1}')])
    table.checksum(all_files=True)
    checksum = table.log_path / f"{table.version:020d}.crc"
    text = json.loads(checksum.read_text())
    text["allFiles"] = [{**a, "path": other} for a in text["allFiles"]]
    checksum.write_text(json.dumps(text))
    assert load_snapshot(str(table.path)).verify_checksum()


@both
def test_the_change_feed_sees_one_file(one: str, other: str) -> None:
    def kinds(*actions: dict[str, Any]) -> list[tuple[str, bool]]:
        lines = "\n".join(json.dumps(a) for a in actions).encode()
        return [(c.kind, c.selected is not None) for c in changes_of(decode_commit(lines, "a commit"))]

    out = {"remove": {"path": one, "dataChange": True}}
    back = {"add": {"path": other, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}}
    marked = {"add": {**back["add"], "deletionVector": _VECTOR}}
    assert kinds(out, back) == []
    assert kinds(out, marked) == [("delete", True)]
    assert kinds(*({"cdc": {"path": p, "partitionValues": {}, "size": 1}} for p in (one, other))) == [("cdc", False)]


@both
def test_the_change_feed_finds_partition_values_of_an_early_remove(tmp_path: Path, one: str, other: str) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long", "p": "string"}, ["p"])
    table.create()
    table.commit([table.add(one, partitionValues={"p": "a"})])
    table.checkpoint()
    [line] = [{"remove": {"path": other, "dataChange": True}}]
    table.commit([line])
    snapshot = load_snapshot(str(table.path))
    changes = changes_of(decode_commit(json.dumps(line).encode(), "a commit"))
    relation = change_relation(snapshot.configuration)
    [found] = with_partition_values(changes, snapshot.storage, relation, snapshot.version)
    assert found.partition_values == {"p": "a"}


@both
def test_a_commit_that_removed_it_is_a_conflict(one: str, other: str) -> None:
    table = Table(MemoryStorage())
    table.create()
    table.append(one)
    reads, removes = table.start(), table.start()
    first = table.start()
    first.remove(removed(one))
    first.commit(Operation("DELETE"), policy=QUIET)
    reads.record_files([other])
    reads.add([file("new")])
    with pytest.raises(ConcurrentDeleteReadError):
        reads.commit(Operation("UPDATE"), policy=QUIET)
    removes.remove(removed(other))
    with pytest.raises(ConcurrentDeleteDeleteError):
        removes.commit(Operation("DELETE"), policy=QUIET)


@both
def test_one_commit_has_it_once(one: str, other: str) -> None:
    table = Table(MemoryStorage())
    table.create()
    twice, there_and_back = table.start(), table.start()
    twice.add([file(one), file(other)])
    with pytest.raises(ProtocolError, match="added twice"):
        twice.commit(Operation("WRITE"), policy=QUIET)
    there_and_back.add([file(one)])
    there_and_back.remove(removed(other))
    with pytest.raises(ProtocolError, match="added and removed"):
        there_and_back.commit(Operation("WRITE"), policy=QUIET)
    with pytest.raises(ProtocolError, match="removed twice"):
        table.start().remove(removed([one, other]))


@pytest.mark.parametrize(("one", "other"), _RELATIVE)
def test_a_restore_leaves_it_where_it_is(tmp_path: Path, one: str, other: str) -> None:
    table = new(tmp_path)
    table.commit([table.add(one)])
    table.commit([table.remove(table.add(other))])
    table.commit([table.add(other), table.add("more")])
    result = restore(load_snapshot(str(table.path)), RestoreOptions(version=1))
    assert (result.num_removed_files, result.num_restored_files) == (1, 0)
    assert live(table) == [other]


@pytest.mark.parametrize(("one", "other"), _RELATIVE)
@pytest.mark.parametrize("lite", [False, True])
def test_a_vacuum_leaves_it_where_it_is(tmp_path: Path, lite: bool, one: str, other: str) -> None:
    table = new(tmp_path, properties={"delta.enableExpiredLogCleanup": "false"})
    [written] = [table.write_file([{"id": 1}], path="d/x")]
    name = load_path(table, one)
    (table.path / "d/x").replace(name)
    first = {"add": {**written["add"], "path": one}}
    table.commit([first])
    table.commit([table.remove(first, deletion_timestamp=BASE_TIME_MS)])
    table.commit([{"add": {**written["add"], "path": other}}])
    for path in (name, name.parent):
        table.set_mtime(path, BASE_TIME_MS)
    now_ms = BASE_TIME_MS + 100 * 86_400_000
    plan = plan_vacuum(LocalStorage(), str(table.path), VacuumOptions(lite=lite), now_ms=now_ms)
    assert plan.files.num_rows == 0
    assert read_rows(table.path) == [{"id": 1}]


def load_path(table: TableBuilder, path: str) -> Path:
    """The file of a path of the log, with its directory made."""
    name = {"a%3Ab": "a:b", "d/x": "d/x", "p=R%26D/x": "p=R&D/x", "caf%C3%A9 b": "café b"}[path]
    (table.path / name).parent.mkdir(exist_ok=True)
    return table.path / name


@pytest.mark.parametrize(("one", "other"), _RELATIVE)
def test_a_clone_of_a_table_that_has_it_already_names_it_once(tmp_path: Path, one: str, other: str) -> None:
    source = new(tmp_path / "source")
    written = source.write_file([{"id": 1}], path="d/x")
    (source.path / "d/x").replace(load_path(source, one))
    source.commit([{"add": {**written["add"], "path": other}}])
    target = tmp_path / "target"
    shallow_clone(load_snapshot(str(source.path)), LocalStorage(), str(target), CloneOptions())
    log = target / "_delta_log" / f"{0:020d}.json"
    text = log.read_text()
    log.write_text(text.replace("file:/", "file:///"))
    result = shallow_clone(load_snapshot(str(source.path)), LocalStorage(), str(target), CloneOptions(replace=True))
    assert result.version == 1
    assert read_rows(target) == [{"id": 1}]
    assert '"path"' not in (target / "_delta_log" / f"{1:020d}.json").read_text()
