"""The groups of files that Spark scans together, by deletion vectors, sizes and rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.log.file_table import DELETION_VECTOR
from delta_pyds.spark.native import parts
from delta_pyds.spark.native.files import NativeFiles
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.tasks.scan_state import ScanState
from tests.support.table_builder import build

LARGE = parts.LARGE_FILE_ROWS


def files_with(sizes: list[int], deleted: dict[int, int]) -> NativeFiles:
    """``deleted``: rows of the files that have a deletion vector."""
    vector = {"storageType": "i", "pathOrInlineDv": "x", "offset": None, "sizeInBytes": 1, "cardinality": 1}
    vectors = [vector if n in deleted else None for n in range(len(sizes))]
    paths = [f"/t/{n}.parquet" for n in range(len(sizes))]
    rows = {"path": paths, "size": sizes, "deletionVector": pa.array(vectors, DELETION_VECTOR)}
    return NativeFiles(pa.table(rows), "/t", None, deleted)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> ScanState:
    return plan_scan(load_snapshot(str(build(tmp_path_factory.mktemp("parts") / "t", {"id": "long"}).path))).state


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from([None, 1, LARGE // 3, LARGE])), min_size=1, max_size=60))
def test_every_file_is_in_one_part_with_others_of_its_kind(
    state: ScanState, drawn: list[tuple[int, int | None]]
) -> None:
    deleted = {n: rows for n, (_, rows) in enumerate(drawn) if rows is not None}
    found = parts.parts_of(files_with([size for size, _ in drawn], deleted), state)
    assert sorted(n for part in found for n in part.chosen) == list(range(len(drawn)))
    assert len(found) <= parts.MAX_SCANS
    for part in found:
        assert len({n in deleted for n in part.chosen}) == 1
        if part.chosen[0] in deleted:
            assert part.joined or len(part.chosen) == 1


def test_only_the_file_with_a_vector_pays(state: ScanState) -> None:
    found = parts.parts_of(files_with(list(range(1, 101)), {17: 5}), state)
    assert [len(part.chosen) for part in found] == [99, 1]


def test_one_pair_of_equal_sizes_leaves_the_other_files_their_sizes(state: ScanState) -> None:
    sizes = [*range(1, 100), 7]
    found = parts.parts_of(files_with(sizes, dict.fromkeys(range(100), LARGE)), state)
    assert [(len(part.chosen), part.joined) for part in found] == [(99, True), (1, True)]


def test_many_small_files_stay_together(state: ScanState) -> None:
    found = parts.parts_of(files_with([7] * 100, dict.fromkeys(range(100), 10)), state)
    assert [(len(part.chosen), part.joined) for part in found] == [(100, True)]
