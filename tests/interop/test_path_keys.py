"""Which paths of a log name one file: we and the reference, on logs written by hand.

Protocol: "Action Reconciliation", "Add File and Remove File".
"""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_pyds.table.snapshot import load_snapshot
from tests.interop.engines import Engines
from tests.support.path_spellings import DIFFERENT, SAME, SAME_BY_PROTOCOL
from tests.support.table_builder import TableBuilder


def _left(engines: Engines, path: Path, one: str, other: str) -> tuple[int, int]:
    """The numbers of files that we and the reference see, where ``one`` was added and ``other`` removed later."""
    table = TableBuilder(path, {"id": "long"})
    table.create()
    table.commit([table.add(one)])
    table.commit([table.remove(table.add(other))])
    return load_snapshot(str(path)).totals.num_files, engines.reference_snapshot(path).allFiles().count()


@pytest.mark.also_bounded
@pytest.mark.cell("paths spelled in several ways", "ping-pong")
def test_both_take_spellings_of_one_file_for_one(engines: Engines, tmp_path: Path) -> None:
    for number, (one, other) in enumerate(SAME):
        assert _left(engines, tmp_path / f"same{number}", one, other) == (0, 0), (one, other)
    for number, (one, other) in enumerate(DIFFERENT):
        assert _left(engines, tmp_path / f"other{number}", one, other) == (1, 1), (one, other)


@pytest.mark.cell("paths spelled in several ways", "ping-pong")
def test_the_reference_decodes_no_path_where_it_compares(engines: Engines, tmp_path: Path) -> None:
    """By the protocol these are one file. It keeps what such a remove should take away."""
    for number, (one, other) in enumerate(pair for pair in SAME_BY_PROTOCOL if pair[1].isascii()):
        assert _left(engines, tmp_path / f"t{number}", one, other) == (0, 1), (one, other)
