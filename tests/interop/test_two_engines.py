"""Both engines at once on one table: nothing lost, nothing doubled, every refusal one that the decision table knows.

The reference commits here through ``LinkLogStore``: the store that it has for local disks lets two processes commit
the same version, with any other engine.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality

from tests.interop.engines import Engines
from tests.interop.racing import compile_log_store, race
from tests.interop.two_engines import OURS, REFERENCE, SCHEMA, WRITERS, Done, allowed, replay
from tests.support.commits import actions
from tests.support.table_writes import read_rows, write_rows

# of each writer; in a bounded run a few
_COMMITS, _BOUNDED_COMMITS = int(os.environ.get("INTEROP_COMMITS", "50")), 6
# beside other JVMs on two slow cores; a limit for what hangs
_COMMIT_S = 40
# what moves when a race is lost: row ids and commit times; and checkpoints, which both write while the other commits
_PROPERTIES = {
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointInterval": "10",
}


@pytest.mark.also_bounded
@pytest.mark.cell("two engines at once", "ping-pong", f"{_COMMITS} commits of each of 8 writers")
def test_four_writers_of_each_engine(engines: Engines, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    commits = _BOUNDED_COMMITS if pytestconfig.getoption("bounded") else _COMMITS
    table = tmp_path / "table"
    compile_log_store(engines, tmp_path / "classes")
    write_rows(table, SCHEMA, [], partition_by=(("p",),), properties=_PROPERTIES)
    writers = [(engine, number) for engine in (OURS, REFERENCE) for number in range(WRITERS)]
    names = race("tests.interop.two_engines", tmp_path, writers, [commits, 6], _COMMIT_S * (commits + 3))
    notes = [json.loads(line) for name in names for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
    acknowledged = {Done(**note["done"]): note["version"] for note in notes if "version" in note}
    assert Counter(done.writer for done in acknowledged) == dict.fromkeys(names, commits)

    log = {version: _done(actions(table, version)) for version in range(1, len(_entries(table)))}
    assert set(_entries(table)) == {0, *log}, "the log has a gap."
    twice = [done for done, count in Counter(log.values()).items() if count > 1]
    assert not twice, f"committed more than once: {twice}"
    made, told = set(log.values()), acknowledged.keys()
    assert made <= told, "the log holds what nobody was told of."
    # what clears a partition that is empty changes nothing, and may make no commit
    assert all(_may_be_nothing(done, list(log.values())) for done in told - made), "what was acknowledged is lost."
    assert all(log[version] == done for done, version in acknowledged.items() if version is not None)

    expected = replay(list(log.values()))
    assert sorted((row["p"], row["id"]) for row in read_rows(table)) == expected
    assert sorted((row["p"], row["id"]) for row in engines.reference(table).collect()) == expected
    engines.agree(table)
    assert_df_equality(engines.ours(table), engines.reference(table), ignore_row_order=True, ignore_nullable=True)

    refused = [note for note in notes if "refused" in note]
    wrong = [note for note in refused if not _right(table, log, note)]
    assert not wrong, f"refused for no reason of the decision table: {json.dumps(wrong[:3], indent=1)}"
    turns = sum(log[v].writer.startswith(OURS) != log[v - 1].writer.startswith(OURS) for v in range(2, len(log) + 1))
    assert turns >= commits, f"in {len(log)} commits the engines took {turns} turns: they did not run at once."
    by_engine = Counter(OURS if note["done"]["writer"].startswith(OURS) else REFERENCE for note in refused)
    assert refused, "nobody was refused anything: there was no race."
    print(f"{len(log)} commits, {turns} turns, refused: {dict(by_engine)}")
    engines.assert_sound(table)


def _entries(table: Path) -> list[int]:
    return sorted(int(f.name[:20]) for f in (table / "_delta_log").glob("*.json") if f.name[20:] == ".json")


def _done(entry: list[dict[str, Any]]) -> Done:
    info = next(line["commitInfo"] for line in entry if "commitInfo" in line)
    return Done(**json.loads(info["userMetadata"]))


def _may_be_nothing(done: Done, log: list[Done]) -> bool:
    """Whether an attempt cleared a partition that was empty at some moment."""
    if done.operation != "clear":
        return False
    states = (replay(log[:length]) for length in range(len(log) + 1))
    return any(all(partition != done.partition for partition, _ in rows) for rows in states)


def _right(table: Path, log: dict[int, Done], note: dict[str, Any]) -> bool:
    """Whether the winner that the refusal names is one that the decision table lets refuse this attempt."""
    done, version = Done(**note["done"]), note["refused"]["winner"].get("version")
    if version not in log:
        return False
    touched = Counter(
        kind
        for line in actions(table, version)
        for kind in ("add", "remove")
        if kind in line and line[kind]["partitionValues"].get("p") == done.partition
    )
    return allowed(done, note["refused"]["code"], touched["add"], touched["remove"])
