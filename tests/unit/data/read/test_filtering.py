from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.read.reader import ArrayQueue, filter_arrays
from tests.support.scans import every_type, relaxed, sample


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.995, 1.0])
def test_rows_of_every_type_are_kept_by_the_mask(share: float) -> None:
    random = Random(7)
    types = every_type()
    arrays = []
    for data_type in types:
        array = pa.array([sample(data_type, random) for _ in range(403)], relaxed(arrow_type(data_type)))
        arrays.append(array.slice(3))
    kept = [random.random() < share for _ in range(400)]
    got = filter_arrays(arrays, pa.array(kept, pa.bool_()), sum(kept))
    for before, after in zip(arrays, got, strict=True):
        after.validate(full=True)
        assert after.type == before.type
        assert after.to_pylist() == [v for v, keep in zip(before.to_pylist(), kept, strict=True) if keep]


def test_a_full_mask_copies_nothing() -> None:
    array = pa.array([1, 2])
    assert filter_arrays([array], pa.array([True, True]), 2)[0] is array


def test_queue_hands_out_rows_in_other_portions() -> None:
    queue = ArrayQueue()
    for start, stop in ((0, 3), (3, 10), (10, 11)):
        queue.push([pa.array(range(start, stop)), pa.array(map(str, range(start, stop)))], stop - start)
    got = [queue.pop(n) for n in (1, 2, 5, 3)]
    assert [g[0].to_pylist() for g in got] == [[0], [1, 2], [3, 4, 5, 6, 7], [8, 9, 10]]
    assert [g[1].to_pylist() for g in got] == [["0"], ["1", "2"], list("34567"), ["8", "9", "10"]]
