"""Whatever happens to a table, to a query and to its process: every file comes once, in order."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.table.stream.commit import StreamRules
from delta_pyds.table.stream.source import StreamOptions
from tests.support.sampling import examples
from tests.support.stream_query import Query
from tests.support.table_builder import TableBuilder

KINDS = ["append", "append", "append", "metadata", "txn", "optimize", "delete", "checkpoint"]
TRIGGERS = [None, None, None, "logged", "delivered"]
limits = st.fixed_dictionaries(
    {"max_files": st.none() | st.integers(1, 4), "max_bytes": st.none() | st.integers(1, 60)},
)
changes = st.tuples(st.sampled_from(KINDS), st.integers(1, 5), st.randoms(use_true_random=False))
steps = st.lists(
    st.one_of(
        changes,
        changes,
        st.tuples(st.just("trigger"), st.sampled_from(TRIGGERS), st.none()),
        st.tuples(st.just("trigger"), st.sampled_from(TRIGGERS), st.none()),
        st.tuples(st.just("restart"), limits, st.none()),
        st.tuples(st.just("available now"), limits, st.none()),
    ),
    max_size=25,
)
starts = st.sampled_from([None, None, 0, 1, "latest"])


class History:
    """A table and what each of its versions did to it."""

    def __init__(self, folder: Path) -> None:
        self.table = TableBuilder(folder, {"id": "long"}, properties={"delta.enableChangeDataFeed": "true"})
        self.table.create()
        self.live: dict[str, dict[str, Any]] = {}
        # of each version: files in the table after it, files with new data, files that went with their data
        self.versions: list[tuple[list[dict[str, Any]], list[str], list[str]]] = [([], [], [])]
        self.names = 0

    def change(self, kind: str, count: int, random: Any) -> None:
        added: list[str] = []
        removed: list[str] = []
        actions: list[Any] = []
        if kind == "checkpoint":
            self.table.checkpoint()
            return
        if kind == "append":
            added = [self.new(actions, random) for _ in range(count)]
        elif kind == "metadata":
            actions.append(self.table.metadata(properties={**self.table.properties, "note": str(count)}))
        elif kind == "txn":
            actions.append({"txn": {"appId": "x", "version": count}})
        else:
            gone = random.sample(sorted(self.live), min(count, len(self.live)))
            data = kind == "delete"
            actions += [self.table.remove({"add": self.live.pop(name)}, dataChange=data) for name in gone]
            removed = gone if data else []
            for _ in gone if not data else range(random.choice([0, 1])):
                name = self.new(actions, random, dataChange=data)
                added += [name] if data else []
        self.table.commit(actions)
        self.versions.append((list(self.live.values()), added, removed))

    def new(self, actions: list[Any], random: Any, **fields: Any) -> str:
        self.names += 1
        name = f"{random.choice('abc')}{self.names}"
        add = self.table.add(name, size=random.choice([0, 5, 30]), modificationTime=random.choice([1, 2]), **fields)
        self.live[name] = add["add"]
        actions.append(add)
        return name

    def snapshot(self, version: int) -> list[str]:
        files = self.versions[version][0]
        return [f["path"] for f in sorted(files, key=lambda f: (f["modificationTime"], f["path"]))]


def play(history: History, query: Query, todo: list[Any]) -> None:
    for what, how, random in todo:
        if what == "trigger":
            query.trigger(how)
        elif what == "restart":
            query.crash()
            query.options = replace(query.options, **how)
        elif what == "available now":
            query.options = replace(query.options, **how)
            query.run_available_now()
            assert int(json.loads(query.offsets[-1])["reservoirVersion"]) >= len(history.versions)
            query.crash()
        else:
            history.change(what, how, random)
    query.run()


def first_version(query: Query) -> tuple[int, bool]:
    """The start of the first batch, by what the checkpoint says of its end."""
    start = query.options.starting_version
    first = json.loads(query.offsets[0])
    if isinstance(start, int):
        return start, False
    if start == "latest":
        assert query.batches[0] == []
        return int(first["reservoirVersion"]), False
    return int(first["reservoirVersion"]) - (0 if first["isStartingVersion"] else 1), True


def play_through(start: Any, first: list[Any], options: StreamOptions, todo: list[Any]) -> tuple[History, Query]:
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder) / "t")
        for change in first:
            history.change(*change)
        if start == 1:
            history.change("txn", 1, None)
        query = Query(history.table.path, replace(options, starting_version=start))
        play(history, query, todo)
        assert not query.trigger()
    return history, query


@settings(max_examples=examples(80), deadline=None)
@given(starts, st.lists(changes, max_size=4), limits, steps)
def test_each_added_file_comes_exactly_once_and_in_order(
    start: Any, first: list[Any], limit: dict[str, Any], todo: list[Any]
) -> None:
    options = StreamOptions(**limit, rules=StreamRules(skip_change_commits=True))
    history, query = play_through(start, first, options, todo)
    version, initial = first_version(query)
    expected = history.snapshot(version) if initial else []
    for _, added, removed in history.versions[version + 1 if initial else version :]:
        expected += [] if removed else added
    assert query.paths() == expected
    assert query.last() == {"reservoirVersion": len(history.versions), "index": -1, "isStartingVersion": False}


@settings(max_examples=examples(60), deadline=None)
@given(starts, st.lists(changes, max_size=4), limits, steps)
def test_each_commit_comes_whole_in_a_change_feed(
    start: Any, first: list[Any], limit: dict[str, Any], todo: list[Any]
) -> None:
    history, query = play_through(start, first, StreamOptions(**limit, read_change_feed=True), todo)
    version, initial = first_version(query)
    expected = [(name, "insert", version) for name in history.snapshot(version)] if initial else []
    for at, (_, added, removed) in list(enumerate(history.versions))[version + 1 if initial else version :]:
        expected += [(name, "insert", at) for name in added] + [(name, "delete", at) for name in removed]
    found = [(row["path"], row["partition:0"], int(row["partition:1"])) for row in query.files()]
    assert found == expected
    versions = [{row["partition:1"] for row in rows} for rows in query.batches.values()]
    split = [v for n, of in enumerate(versions) for v in of if any(v in other for other in versions[n + 1 :])]
    assert set(split) <= ({str(version)} if initial else set())
