"""A checksum carried from commit to commit equals the one computed by replay, or does not exist."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.log.checksum import VersionChecksum
from delta_pyds.log.checksum_writer import advance_checksum, compute_checksum, encode_checksum, first_checksum
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.log.replay import LogReplay
from delta_pyds.log.segment import load_segment
from delta_pyds.storage.local import LocalStorage
from tests.support.bitmaps import unique_id
from tests.support.sampling import examples
from tests.support.table_builder import TableBuilder

PATHS = ["a", "b", "c", "d", "e"]
SIZES = [0, 1, 8191, 8192, 5 << 20, 300 << 30]
CARDINALITIES = [None, None, 0, 1, 9, 10, 5_000_000, 2_147_483_646, 2_147_483_647]

# one file operation: what becomes of a path in a commit
steps = st.dictionaries(
    st.sampled_from(PATHS),
    st.tuples(
        st.sampled_from(["replace", "delete"]),
        st.sampled_from(SIZES),
        st.sampled_from(CARDINALITIES),
        st.booleans(),  # dataChange
        st.sampled_from(["with size"] * 9 + ["without size"]),
    ),
    max_size=4,
)
small = st.tuples(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), max_size=2),
    st.dictionaries(st.sampled_from("fgh"), st.sampled_from(["", "{}", None]), max_size=2),
    st.sampled_from([None, None, None, "metadata", "vectors"]),
    st.sampled_from(["WRITE"] * 6 + ["COMPUTE STATS", "Manual Update"]),
)


def vector(number: int, cardinality: int | None) -> dict[str, Any]:
    if cardinality is None:
        return {}
    descriptor = {"storageType": "u", "pathOrInlineDv": f"{number:020d}", "sizeInBytes": 9, "cardinality": cardinality}
    return {"deletionVector": descriptor}


def commit_of(table: TableBuilder, files: dict[str, Any], others: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The actions of a commit that keeps the protocol's rules: what is removed is there."""
    transactions, domains, change, operation = others
    live = {add["add"]["path"]: add["add"] for add in table.active()}
    actions: list[dict[str, Any]] = []
    if change == "metadata":
        actions.append(table.metadata(properties={"note": str(table.version)}))
    elif change == "vectors":
        features = ["deletionVectors"]
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
        actions.append({"protocol": protocol})
    for path, (what, size, cardinality, data_change, with_size) in files.items():
        if operation == "COMPUTE STATS":
            if path in live:
                actions.append({"add": {**live[path], "stats": "{}", "dataChange": False}})
            continue
        if path in live:
            gone = {key: live[path][key] for key in ("path", "size", "deletionVector") if key in live[path]}
            if with_size == "without size":
                gone.pop("size")
            actions.append({"remove": {**gone, "dataChange": data_change, "deletionTimestamp": 1}})
        if what == "replace":
            has_vectors = change == "vectors" or table.protocol()["protocol"]["minReaderVersion"] == 3
            body = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": data_change}
            actions.append({"add": body | (vector(table.version, cardinality) if has_vectors else {})})
    actions += [{"txn": {"appId": name, "version": version}} for name, version in transactions.items()]
    actions += [
        {"domainMetadata": {"domain": name, "configuration": text or "", "removed": text is None}}
        for name, text in domains.items()
    ]
    return actions


def by_name(checksum: VersionChecksum) -> dict[str, Any]:
    content = json.loads(encode_checksum(checksum))
    content["setTransactions"] = sorted(content["setTransactions"], key=lambda t: t["appId"])
    content["domainMetadata"] = sorted(content["domainMetadata"], key=lambda d: d["domain"])
    return content


def expected(table: TableBuilder) -> dict[str, Any]:
    """By the builder's model, one file at a time."""
    state = table.state()
    sizes = [add["size"] for add in state.adds.values()]
    vectors = [add["deletionVector"] for add in state.adds.values() if "deletionVector" in add]
    content: dict[str, Any] = {"numFiles": len(sizes), "tableSizeBytes": sum(sizes), "numMetadata": 1, "numProtocol": 1}
    content["setTransactions"] = sorted(state.txns.values(), key=lambda t: t["appId"])
    content["domainMetadata"] = sorted(state.live_domains, key=lambda d: d["domain"])
    if "deletionVectors" in table.protocol()["protocol"].get("writerFeatures", ()):
        content["numDeletedRecordsOpt"] = sum(v["cardinality"] for v in vectors)
        content["numDeletionVectorsOpt"] = len(vectors)
        counts = [0] * 10
        for add in state.adds.values():
            deleted = add.get("deletionVector", {}).get("cardinality", 0)
            counts[9 if deleted >= 2_147_483_647 else min(8, len(str(deleted))) if deleted else 0] += 1
        content["deletedRecordCountsHistogramOpt"] = {"deletedRecordCounts": counts}
    return content


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(st.tuples(steps, small), max_size=8))
def test_carried_on_equals_computed(history: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = TableBuilder(folder, {"id": "long"}, protocol=(1, 2))
        table.create()
        carried: VersionChecksum | None = None
        for files, others in [({}, None), *history]:
            if others is not None:
                actions = commit_of(table, files, others)
                keys = [(b["path"], unique_id(b.get("deletionVector"))) for a in actions for b in file_bodies(a)]
                if len(set(keys)) < len(keys):
                    continue  # a commit that removes and adds one logical file is invalid
                table.commit(actions, operation=others[3])
            lines = decode_commit(table.commit_file(table.version).read_bytes(), "")
            given_too = {"in_commit_timestamp": None, "txn_id": f"t{table.version}"}
            computed = compute_checksum(LogReplay(LocalStorage(), load_segment(LocalStorage(), folder)), **given_too)
            if carried is None:
                carried = first_checksum(lines, transactions_kept=True, **given_too) if table.version == 0 else computed
            else:
                carried = advance_checksum(carried, lines, transactions_kept=True, **given_too)
            content = by_name(computed)
            assert {key: content.get(key) for key in expected(table)} == expected(table)
            assert content["txnId"] == f"t{table.version}"
            if carried is not None:
                assert by_name(carried) == content
                assert msgspec.json.decode(encode_checksum(carried), type=VersionChecksum) == carried
        assert sorted(Path(folder).iterdir()) == [Path(folder, "_delta_log")]


def file_bodies(action: dict[str, Any]) -> list[dict[str, Any]]:
    return [body for kind, body in action.items() if kind in ("add", "remove")]
