"""A table read from our checkpoints equals a naive fold over its commits, through any chain of checkpoints."""

from __future__ import annotations

import json
import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.columnar.older_arrow import rows_with_dicts
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.checkpoint_writer import CheckpointSettings, write_checkpoint
from delta_pyds.log.last_checkpoint import write_last_checkpoint
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.property.test_replay import VECTORS, small_actions, small_actions_of
from tests.support.bitmaps import unique_id
from tests.support.sampling import examples
from tests.support.table_builder import TableBuilder

PATHS = ["a.parquet", "b.parquet", "c%20d.parquet", "p=1/e.parquet", "p=2/f.parquet"]
FEATURES = ["deletionVectors", "v2Checkpoint", "domainMetadata"]
FORMS = [(True, False), (True, True), (False, True)]


def vector(name: str | None) -> dict[str, Any] | None:
    if name is None:
        return None
    body: dict[str, Any] = {"storageType": "u", "pathOrInlineDv": f"{name}{'0' * 19}", "sizeInBytes": 30}
    # an offset that is not given is not part of the id
    return body | {"cardinality": 1} | ({"offset": 1} if name == "x" else {})


words = st.text(st.characters(blacklist_categories=("Cs",)), max_size=6)
stats = st.none() | st.fixed_dictionaries(
    {"numRecords": st.integers(0, 2**40)},
    optional={
        "minValues": st.fixed_dictionaries({}, optional={"id": st.integers(-(2**63), 2**63 - 1), "s": words}),
        "maxValues": st.fixed_dictionaries({}, optional={"x": st.floats(allow_nan=False, allow_infinity=False)}),
        "nullCount": st.fixed_dictionaries({}, optional={"id": st.integers(0, 9), "x": st.integers(0, 9)}),
        "tightBounds": st.booleans(),
    },
)
keys = st.tuples(st.sampled_from(PATHS), st.sampled_from(VECTORS))
file_actions = st.dictionaries(
    keys, st.tuples(st.sampled_from(["add", "remove"]), stats, st.integers(0, 9)), max_size=5
)
checkpoint = st.none() | st.tuples(st.sampled_from(["classic", "v2"]), st.sampled_from(FORMS), st.integers(0, 9))


def actions_of(table: TableBuilder, files: dict[Any, Any], small: list[Any]) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = []
    for (path, name), (kind, statistics, number) in files.items():
        body: dict[str, Any] = {"path": path, "partitionValues": {"p": str(number)}, "size": number}
        if vector(name):
            body["deletionVector"] = vector(name)
        if number % 3 == 0:
            body |= {"baseRowId": number, "defaultRowCommitVersion": 1}
        if kind == "add":
            body |= {"modificationTime": number, "dataChange": True}
            body |= {"tags": {"k": "v"}, "clusteringProvider": "liquid"} if number % 2 else {}
            body |= {} if statistics is None else {"stats": json.dumps(statistics)}
        else:
            body |= {"deletionTimestamp": number, "dataChange": True, "extendedFileMetadata": True}
        actions.append({kind: body})
    return [*actions, *small_actions_of(table, small)]


def without_nulls(value: Any) -> Any:
    """What a struct and JSON have in common: absent fields, and objects of nothing else, are nothing."""
    if isinstance(value, dict):
        kept = {k: v for k, v in ((k, without_nulls(v)) for k, v in value.items()) if v is not None}
        return kept or None
    return value


def in_model(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    dropped = {"dataChange", "deletionVector", "path"}
    row = {k: v for k, v in body.items() if k not in dropped}
    if kind == "add":
        row["stats"] = without_nulls(json.loads(body["stats"])) if body.get("stats") else None
    return without_nulls(row) or {}


def seen(snapshot: Snapshot) -> dict[str, Any]:
    columns = (
        "path", "partitionValues", "size", "modificationTime", "stats", "tags", "deletionVector", "baseRowId",
        "defaultRowCommitVersion", "clusteringProvider",
    )  # fmt: skip
    adds = [r for b in snapshot.adds(AddRequest(columns)) for r in rows_with_dicts(b.files)]
    removes = [r for b in snapshot.replay.tombstones(0) for r in rows_with_dicts(b)]
    assert len({(r["path"], unique_id(r["deletionVector"])) for r in adds + removes}) == len(adds) + len(removes)
    return {
        "add": {(r["path"], unique_id(r["deletionVector"])): in_model("add", r) for r in adds},
        "remove": {(r["path"], unique_id(r["deletionVector"])): in_model("remove", r) for r in removes},
        "txns": {k: t.version for k, t in snapshot.transactions.items()},
        "domains": {k: d.configuration for k, d in snapshot.domain_metadata.items()},
        "properties": dict(snapshot.metadata.configuration or {}),
        "features": list(snapshot.protocol.reader_features or ()),
    }


class Model:
    """The naive fold."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"add": {}, "remove": {}, "txns": {}, "domains": {}}

    def apply(self, actions: list[dict[str, Any]]) -> None:
        for action in actions:
            ((kind, body),) = action.items()
            if kind in ("add", "remove"):
                key = (body["path"], unique_id(body.get("deletionVector")))
                self.state["add"].pop(key, None)
                self.state["remove"].pop(key, None)
                self.state[kind][key] = in_model(kind, body)
            elif kind == "txn":
                self.state["txns"][body["appId"]] = body["version"]
            elif kind == "domainMetadata":
                self.state["domains"].pop(body["domain"], None)
                if not body["removed"]:
                    self.state["domains"][body["domain"]] = body["configuration"]
            elif kind == "metaData":
                self.state["properties"] = body["configuration"]

    def expire(self, since: int) -> None:
        removes = self.state["remove"]
        self.state["remove"] = {k: r for k, r in removes.items() if r["deletionTimestamp"] >= since}


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(st.tuples(file_actions, small_actions, checkpoint), min_size=1, max_size=7), st.integers(1, 4))
def test_a_chain_of_checkpoints_equals_a_naive_fold(history: list[Any], sidecar_actions: int) -> None:
    schema = {"id": "long", "s": "string", "x": "double", "p": "string"}
    with tempfile.TemporaryDirectory() as folder:
        table = TableBuilder(folder, schema, ["p"], features=(FEATURES[:2], FEATURES))
        table.create()
        model = Model()
        model.apply([{"metaData": {"configuration": dict(table.properties)}}])
        model.state["features"] = FEATURES[:2]
        for files, small, wanted in history:
            actions = actions_of(table, files, small)
            table.commit(actions)
            model.apply(actions)
            if wanted is not None:
                policy, (as_json, as_struct), since = wanted
                snapshot = load_snapshot(folder)
                hint = write_checkpoint(
                    snapshot.storage,
                    snapshot.replay,
                    CheckpointSettings(
                        snapshot.schema,
                        ("p",),
                        (("id",), ("s",), ("x",)),
                        policy=policy,
                        stats_as_json=as_json,
                        stats_as_struct=as_struct,
                        tombstones_since_ms=since,
                        sidecar_actions=sidecar_actions,
                    ),
                )
                model.expire(since)
                assert hint.num_of_add_files == len(model.state["add"])
                write_last_checkpoint(snapshot.storage, folder, hint)
                table.cleanup_log(table.version)
                table.commit_file(table.version).write_text("{}\n")  # nothing may come from the commits
            assert seen(load_snapshot(folder)) == model.state
