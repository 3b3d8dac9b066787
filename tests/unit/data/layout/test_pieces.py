"""Rows that wait by piece: none is lost, in memory or on the disk."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from delta_pyds.data.layout import cluster as module
from delta_pyds.data.layout.cluster import Pieces


@pytest.mark.parametrize("memory", [1, 2_000, 1 << 30], ids=["all spilled", "some spilled", "none spilled"])
def test_each_row_comes_back_once_under_its_piece(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MEMORY_BYTES", memory)
    waiting = Pieces(5)
    for start in range(0, 500, 50):
        ids = pa.array(range(start, start + 50), pa.int64())
        rows = pa.RecordBatch.from_arrays([ids, ids.cast(pa.string())], names=["id", "s"])
        # piece 4 gets none
        waiting.add(rows, pa.array([n * 7 % 4 for n in range(start, start + 50)], pa.int64()))

    found: Counter[int] = Counter()
    for piece in range(5):
        for batch in waiting.take(piece):
            assert {n * 7 % 4 for n in batch.column("id").to_pylist()} == {piece}
            found.update(batch.column("id").to_pylist())
    assert found == Counter(range(500))
