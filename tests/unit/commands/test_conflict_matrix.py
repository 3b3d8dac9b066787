"""Each cell of the matrix of conflicts: a command that lost to another one, with mends and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_pyds import verify
from delta_pyds.errors import ConflictError
from delta_pyds.table.snapshot import load_snapshot
from tests.support.commits import last
from tests.support.conflict_matrix import CODES, LOSERS, WINNERS, cells, make_table

CELLS = cells()
_LETTERS = {code: letter for letter, code in CODES.items()}


def test_the_matrix_has_each_pair_once() -> None:
    assert CELLS.keys() == {(loser, winner) for loser in LOSERS for winner in WINNERS}


def outcome(path: Path, loser: str, winner: str, **properties: str) -> str:
    """The outcome of the loser, as a cell has it."""
    make_table(path, properties)
    end = LOSERS[loser](path)
    WINNERS[winner](path)()
    version = load_snapshot(str(path)).version
    try:
        end()
    except ConflictError as error:
        assert load_snapshot(str(path)).version == version
        return _LETTERS[error.code]
    report = verify(str(path))
    assert report.findings == (), str(report)
    if load_snapshot(str(path)).version == version:
        return "nothing"
    return "mended" if "numMends" in (last(path).operation_metrics or {}) else "ok"


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("loser", "winner"), CELLS)
def test_a_cell(tmp_path: Path, loser: str, winner: str) -> None:
    theirs, ours = CELLS[loser, winner]
    assert outcome(tmp_path / "mended", loser, winner) == ours
    # without mends, the rules are the reference's; what differs then is in the cell
    alike = {"deltapy.rowLevelConcurrency": "false"}
    assert outcome(tmp_path / "as the reference", loser, winner, **alike) in {theirs, ours} - {"mended", "nothing"}
