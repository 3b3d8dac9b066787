"""The benchmarks of tables of many files, on small tables: each of them runs, and its sides find the same rows.

A case starts a session for each side. So a run takes one case, chosen by the commit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.peers import reads_of_many_files as bench
from tests.bench.peers.results import Results
from tests.bench.peers.settings import PeerSettings
from tests.support.store_processes import what_can_be_had

_WORK = "many files"
_ON_DISK = (bench.all_read, bench.one_left, bench.all_planned)
_IN_A_STORE = (bench.one_left_in_a_store, bench.one_column_in_a_store, bench.all_columns_in_a_store)


def _small(data: Path) -> PeerSettings:
    return PeerSettings(data, rounds=1, read_files=40, pruned_files=100, planned_files=100, stored_files=20)


@pytest.mark.cell("reads of many files", "us -> reference")
@pytest.mark.one_case_in(6)
@pytest.mark.parametrize("work", [*_ON_DISK, *_IN_A_STORE])
def test_reads_of_many_files(work: Callable[..., None], tmp_path: Path) -> None:
    settings = _small(tmp_path)
    results = Results(tmp_path / "results", (_WORK,), "a test", {}, [])
    with results.part(_WORK):
        if work in _ON_DISK:
            work(settings, results)
        else:
            with what_can_be_had(), bench.store(settings) as place:
                work(settings, results, place)
    assert not results.missing
