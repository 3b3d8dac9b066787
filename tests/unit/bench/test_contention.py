"""The bench of writers that change one table at once: its commands, and two of our writers."""

from __future__ import annotations

from pathlib import Path

from tests.bench.peers import contention
from tests.bench.peers.contention_commands import BLOCK_ROWS, KINDS, NUM_ROWS, Command, Race, command
from tests.bench.peers.results import Results
from tests.bench.peers.settings import PeerSettings


def test_writers_of_disjoint_rows_share_no_row() -> None:
    race = Race(8, 20, disjoint=True)
    rows: list[set[int]] = []
    for writer in range(8):
        commands = [command(race, writer, n) for n in range(race.num_commands)]
        assert sorted(c.kind for c in commands) == sorted(KINDS * 20)
        rows.append({i for c in commands for i in range(c.first, c.last + 1)})
        assert rows[-1] <= set(range(NUM_ROWS))
    assert sum(map(len, rows)) == len(set().union(*rows))


def test_the_model_takes_a_command() -> None:
    first, last = 0, BLOCK_ROWS - 1
    rows = {i: (i, "") for i in range(BLOCK_ROWS)}
    Command("delete", first, last, 1).change(rows)
    assert [i for i in range(BLOCK_ROWS) if i not in rows] == [1, 5, 9, 13]
    Command("update", first, last, 1).change(rows)
    assert rows[2] == (7, "")
    merge = Command("merge", first, last, 1)
    merge.change(rows)
    assert all(rows[i] == (v, note) for i, v, note in merge.source)


def test_two_of_our_writers_leave_the_rows_of_the_model(tmp_path: Path) -> None:
    settings = PeerSettings(tmp_path, race_writers=2, race_commands=1, race_reference_files=())
    results = Results(tmp_path / "results", ("contention",), "a test", {}, [])
    with results.part("contention"):
        contention.race(settings, results, vectors=True, files=1, disjoint=False)
    assert "aborts of 1,000" in results.markdown()
