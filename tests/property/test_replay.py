"""Replay of the log equals a naive fold over its commits, whatever checkpoints and compactions lie in between."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.log.adds import AddRequest
from delta_pyds.log.compaction import write_compaction
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.support.sampling import examples
from tests.support.table_builder import TableBuilder

PATHS = ["a.parquet", "b.parquet", "c%20d.parquet", "p=1/e.parquet"]
VECTORS = [None, "x", "y"]
KINDS = ["classic", "multipart", "v2-json", "v2-parquet"]


def vector(name: str | None) -> dict[str, Any] | None:
    if name is None:
        return None
    return {
        "storageType": "u",
        "pathOrInlineDv": f"{name}{'0' * 19}",
        "offset": 1,
        "sizeInBytes": 30,
        "cardinality": 1,
    }


keys = st.tuples(st.sampled_from(PATHS), st.sampled_from(VECTORS))
file_actions = st.dictionaries(keys, st.booleans(), max_size=4)
small_actions = st.lists(
    st.one_of(
        st.tuples(st.just("txn"), st.sampled_from("ab"), st.integers(0, 9)),
        st.tuples(st.just("domain"), st.sampled_from("fg"), st.sampled_from(["", "{}", None])),
        st.tuples(st.just("metadata"), st.just(""), st.integers(0, 9)),
    ),
    max_size=3,
    unique_by=lambda a: a[:2],
)
afterwards = st.sampled_from([None, None, *KINDS])


def small_actions_of(table: TableBuilder, small: list[Any]) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = []
    for kind, name, value in small:
        if kind == "txn":
            actions.append({"txn": {"appId": name, "version": value}})
        elif kind == "domain":
            removed = value is None
            actions.append({"domainMetadata": {"domain": name, "configuration": value or "", "removed": removed}})
        else:
            actions.append(table.metadata(properties={"note": str(value)}))
    return actions


def actions_of(table: TableBuilder, files: dict[Any, bool], small: list[Any]) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = []
    for (path, name), added in files.items():
        body = {"path": path, "partitionValues": {}, "size": 10, "dataChange": True}
        if vector(name):
            body["deletionVector"] = vector(name)
        if added:
            stats = '{"numRecords":5,"tightBounds":false}'
            actions.append({"add": {**body, "modificationTime": 1, "stats": stats}})
        else:
            actions.append({"remove": {**body, "deletionTimestamp": 1}})
    return [*actions, *small_actions_of(table, small)]


def seen(snapshot: Snapshot) -> dict[str, Any]:
    files = set()
    for batch in snapshot.adds(AddRequest(columns=("path", "deletionVector", "size", "stats"))):
        for row in batch.files.to_pylist():
            dv = row["deletionVector"]
            files.add((row["path"], dv and f"{dv['storageType']}{dv['pathOrInlineDv']}@{dv['offset']}", row["stats"]))
    return {
        "files": files,
        "txns": {k: t.version for k, t in snapshot.transactions.items()},
        "domains": {k: d.configuration for k, d in snapshot.domain_metadata.items()},
        "properties": dict(snapshot.metadata.configuration or {}),
        "protocol": (snapshot.protocol.min_reader_version, snapshot.protocol.min_writer_version),
    }


def fold(commits: list[list[dict[str, Any]]]) -> dict[str, Any]:
    state: dict[str, Any] = {"files": {}, "txns": {}, "domains": {}, "properties": {}, "protocol": None}
    for commit in commits:
        for action in commit:
            ((kind, body),) = action.items()
            if kind in ("add", "remove"):
                dv = body.get("deletionVector")
                key = (body["path"], dv and f"{dv['storageType']}{dv['pathOrInlineDv']}@{dv['offset']}")
                state["files"].pop(key, None)
                if kind == "add":
                    state["files"][key] = body["stats"]
            elif kind == "txn":
                state["txns"][body["appId"]] = body["version"]
            elif kind == "domainMetadata":
                state["domains"].pop(body["domain"], None)
                if not body["removed"]:
                    state["domains"][body["domain"]] = body["configuration"]
            elif kind == "metaData":
                state["properties"] = body["configuration"]
            elif kind == "protocol":
                state["protocol"] = (body["minReaderVersion"], body["minWriterVersion"])
    return {**state, "files": {(*key, stats) for key, stats in state["files"].items()}}


@settings(deadline=None, max_examples=examples(120))
@given(
    st.lists(st.tuples(file_actions, small_actions, afterwards), min_size=1, max_size=7),
    st.data(),
)
def test_replay_equals_a_naive_fold(history: list[Any], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = TableBuilder(
            folder, {"id": "long"}, features=(["deletionVectors", "v2Checkpoint"], ["deletionVectors", "v2Checkpoint"])
        )
        table.create()
        first = [table.protocol(), {"metaData": {"configuration": dict(table.properties)}}]
        commits = [first]
        for files, small, checkpoint in history:
            actions = actions_of(table, files, small)
            table.commit(actions)
            commits.append(actions)
            if checkpoint:
                table.checkpoint(kind=checkpoint, write_hint=data.draw(st.booleans()))
        last = len(commits) - 1
        if last >= 2 and data.draw(st.booleans()):
            low = data.draw(st.integers(0, last - 1))
            table.compact_log(low, data.draw(st.integers(low + 1, last)))
        for version in {last, data.draw(st.integers(0, last))}:
            assert seen(load_snapshot(folder, version=version)) == fold(commits[: version + 1])


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.tuples(file_actions, small_actions, afterwards), min_size=2, max_size=7), st.data())
def test_our_compactions_change_no_version(history: list[Any], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = TableBuilder(folder, {"id": "long"}, features=(["deletionVectors", "v2Checkpoint"],) * 2)
        table.create()
        for files, small, checkpoint in history:
            table.commit(actions_of(table, files, small))
            if checkpoint:
                table.checkpoint(kind=checkpoint, write_hint=data.draw(st.booleans()))
        before = [seen(load_snapshot(folder, version=version)) for version in range(table.version + 1)]
        low = data.draw(st.integers(0, table.version - 1))
        high = data.draw(st.integers(low + 1, table.version))
        path = write_compaction(LocalStorage(), folder, low, high)
        text = Path(path).read_text()
        assert "commitInfo" not in text or text == '{"commitInfo":{}}\n'
        assert [seen(load_snapshot(folder, version=version)) for version in range(table.version + 1)] == before
        # and it stands for the commits: without them the later versions are the same
        for checkpoint_file in Path(folder, "_delta_log").glob("*.checkpoint*"):
            checkpoint_file.unlink()
        Path(folder, "_delta_log", "_last_checkpoint").unlink(missing_ok=True)
        for version in range(low, high + 1):
            table.commit_file(version).unlink()
        for version in range(high, table.version + 1):
            assert seen(load_snapshot(folder, version=version)) == before[version]
