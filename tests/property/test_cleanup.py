"""Whatever the history, cleanup changes neither a version that stays nor its time, and keeps all that are young."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.log.adds import AddRequest
from delta_pyds.log.cleanup import clean_log
from delta_pyds.log.compaction import write_compaction
from delta_pyds.protocol.properties import parse_properties
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import CommitTimes
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.support.sampling import examples
from tests.support.table_builder import TableBuilder

DAY = 86_400_000
START = 19_700 * DAY
KINDS = ["classic", "multipart", "v2-json", "v2-parquet", "v2-classic"]
STORAGE = LocalStorage()

versions = st.lists(
    st.tuples(
        st.integers(-20, 60),  # hours since the commit before, by the clock of the writer
        st.sampled_from([None, None, None, *KINDS]),
        st.booleans(),  # a hint
        st.sampled_from(["own", "own", "same"]),  # of V2: are the sidecars touched since
    ),
    min_size=3,
    max_size=14,
)


def seen(snapshot: Snapshot) -> tuple[Any, ...]:
    paths = [row["path"] for batch in snapshot.adds(AddRequest(columns=("path",))) for row in batch.files.to_pylist()]
    return sorted(paths), snapshot.metadata, snapshot.protocol


def times_of(folder: str, table: TableBuilder) -> CommitTimes:
    return CommitTimes(STORAGE, folder, properties=parse_properties(table.properties), latest_version=table.version)


@settings(deadline=None, max_examples=examples(80))
@given(versions, st.sampled_from(["files", "own", "later"]), st.integers(0, 40), st.integers(0, 10), st.data())
def test_cleanup_keeps_what_the_retention_promises(
    history: list[Any], clock: str, days: int, retention_days: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        properties = {"delta.checkpointPolicy": "v2", "x": ""}
        if clock == "own":
            properties["delta.enableInCommitTimestamps"] = "true"
        table = TableBuilder(folder, {"id": "long"}, properties=properties)
        now, own = START, START
        enabled_at = data.draw(st.integers(1, len(history) - 1)) if clock == "later" else 0
        for version, (hours, kind, hint, sidecars) in enumerate(history):
            now += hours * 3_600_000
            own = max(own + 1, now)
            actions: list[dict[str, Any]] = [{"add": {"path": f"f{version}", "partitionValues": {}, "size": 1}}]
            actions[0]["add"] |= {"modificationTime": 1, "dataChange": True}
            if version > 2:
                actions.append({"remove": {"path": f"f{version - 2}", "deletionTimestamp": 1, "dataChange": True}})
            if clock == "later" and version == enabled_at:
                enabled = {
                    "delta.enableInCommitTimestamps": "true",
                    "delta.inCommitTimestampEnablementVersion": str(version),
                    "delta.inCommitTimestampEnablementTimestamp": str(own),
                }
                actions.append(table.metadata(properties={**properties, **enabled}))
            has_own = clock == "own" or (clock == "later" and version >= enabled_at)
            times = {"timestamp_ms": now, "in_commit_timestamp": own if has_own else None}
            if version == 0:
                table.create(actions, **times)
            else:
                table.commit(actions, **times)
            if kind is not None:
                table.checkpoint(kind=kind, write_hint=hint)
            table.checksum()
            for file in (table.log_path / "_sidecars").glob("*"):
                if sidecars == "own":
                    os.utime(file, ns=(now * 1_000_000,) * 2)
        if table.version >= 2 and data.draw(st.booleans()):
            low = data.draw(st.integers(0, table.version - 1))
            write_compaction(STORAGE, folder, low, data.draw(st.integers(low + 1, table.version)))
        before = [seen(load_snapshot(folder, version=version)) for version in range(table.version + 1)]
        old_times = times_of(folder, table)
        was = {version: old_times.commit_timestamp(version) for version in range(table.version + 1)}

        at = START + days * DAY
        latest = load_snapshot(folder)
        deleted = clean_log(
            STORAGE,
            folder,
            retention_ms=retention_days * DAY,
            now_ms=at,
            configuration=latest.metadata.configuration or {},
            protocol=latest.protocol,
        )

        new_times = times_of(folder, table)
        first = new_times.earliest
        assert first is not None
        assert deleted or first == 0
        for version in range(first, table.version + 1):
            assert seen(load_snapshot(folder, version=version)) == before[version]
            assert new_times.commit_timestamp(version) == was[version]
        # young versions, and the one that the table had at the cutoff, can all be read
        cutoff = (at - retention_days * DAY) // DAY * DAY
        assert all(version >= first for version in was if was[version] > cutoff and same_clock(version, cutoff, was))
        assert seen(load_snapshot(folder)) == before[-1]
        names = [int(file.name[:20]) for file in table.log_path.glob("*.json") if file.name[20:] == ".json"]
        assert sorted(names) == list(range(first, table.version + 1))


def same_clock(version: int, cutoff: int, was: dict[int, int]) -> bool:
    """True where times can be compared: no version from this one on has an earlier time by another clock."""
    return all(was[later] > cutoff for later in was if later >= version)
