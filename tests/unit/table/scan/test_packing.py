from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.columnar.scan_files import COMPARED, to_scan_files
from delta_pyds.table.scan import packing
from delta_pyds.table.scan.packing import Packing, pack

MB = 1024 * 1024


def files(sizes: list[int]) -> list[pa.RecordBatch]:
    names = [f"f{i}" for i in range(len(sizes))]
    return [pa.record_batch({"path": pa.array(names, pa.string()), "size": pa.array(sizes, pa.int64())})]


def test_nothing_to_read_makes_no_partition() -> None:
    assert pack([], Packing()) == []
    assert pack(files([]), Packing()) == []


def test_small_files_share_a_partition_at_the_cost_of_opening_them() -> None:
    # 32 files of 1 byte cost 4 MB each: 128 MB
    partitions = pack(files([1] * 64), Packing())
    assert [p.num_rows for p in partitions] == [32, 32]


def test_a_large_file_is_cut_into_ranges() -> None:
    (whole,) = pack(files([300 * MB]), Packing(max_partition_bytes=1024 * MB))
    assert whole.to_pylist() == [{"path": "f0", "size": 300 * MB}]
    cut = [row for p in pack(files([300 * MB]), Packing()) for row in p.to_pylist()]
    assert sorted((r["start"], r["length"]) for r in cut) == [(i * 100 * MB, 100 * MB) for i in range(3)]


def test_a_file_of_unknown_size_is_read_whole() -> None:
    sizes = pa.array([None, 10 * MB, 0, -5], pa.int64())
    batch = pa.record_batch({"path": ["a", "b", "c", "d"], "size": sizes})
    rows = [r for p in pack([batch], Packing(6 * MB, 1)) for r in p.to_pylist()]
    assert sorted((r["path"], r["start"], r["length"]) for r in rows if r["path"] != "b") == [
        ("a", 0, None),
        ("c", 0, None),
        ("d", 0, None),
    ]
    assert sorted((r["start"], r["length"]) for r in rows if r["path"] == "b") == [(0, 5 * MB), (5 * MB, 5 * MB)]


def test_few_bytes_are_spread_over_the_parallelism() -> None:
    assert len(pack(files([40 * MB, 40 * MB]), Packing(min_partitions=2))) == 2


def costs(partitions: list[pa.RecordBatch]) -> list[int]:
    """MB of each partition, with the cost of opening its files."""
    return [sum(row["size"] // MB + 4 for row in p.to_pylist()) for p in partitions]


def test_every_round_of_tasks_is_full() -> None:
    """276 MB at most 128 in each would be three tasks on two cores; by Spark's rule, of 7, 7 and 2 files."""
    partitions = pack(files([13 * MB] * 16), Packing(min_partitions=2))
    assert [p.num_rows for p in partitions] == [4, 4, 4, 4]
    assert costs(pack(files([50 * MB] * 5), Packing(min_partitions=2))) == [108, 54, 54, 54]
    # what fits into one round is not cut smaller
    assert [p.num_rows for p in pack(files([13 * MB] * 16), Packing(min_partitions=3))] == [6, 5, 5]


def test_files_of_unlike_sizes_make_partitions_of_like_cost() -> None:
    sizes = [100, 60, 50, 30, 20, 20, 10, 10]
    partitions = pack(files([size * MB for size in sizes]), Packing(min_partitions=3))
    assert max(costs(partitions)) <= 128 and max(costs(partitions)) - min(costs(partitions)) <= 24


def test_many_files_of_more_than_half_a_partition_are_packed_in_few_attempts() -> None:
    """One more partition at each attempt would be thousands of them."""
    partitions = pack(files([80 * MB] * 20_000), Packing())
    assert [p.num_rows for p in partitions] == [1] * 20_000


def test_what_no_file_has_does_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    # texts that one array of 32 bit offsets could not hold
    monkeypatch.setattr(packing, "_MOST_TEXT_BYTES", 10)
    names = [f"file-{i}" for i in range(10)]
    ids = pa.array([None] * 9 + [7], pa.int64())
    nothing = pa.nulls(10, pa.struct([("storageType", pa.string())]))
    batch = pa.record_batch({"path": names, "size": [MB] * 10, "deletionVector": nothing, "baseRowId": ids})
    partitions = pack([batch], Packing(12 * MB, 1))
    assert len(partitions) == 1 and partitions[0].schema.names == ["path", "size", "baseRowId"]
    files = list(to_scan_files(partitions[0], "/t"))
    assert sorted(file.path for file in files) == [f"/t/{name}" for name in names]
    assert {file.path: file.base_row_id for file in files}["/t/file-9"] == 7
    assert all(file.deletion_vector is None and (file.start, file.length) == (0, None) for file in files)


def _cost(row: dict[str, int]) -> int:
    return row["size"] if row.get("length") is None else row["length"]


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 10_000), max_size=40),
    st.integers(1, 3_000),
    st.integers(0, 500),
    st.integers(1, 9),
)
def test_every_byte_of_every_file_is_in_exactly_one_partition(
    sizes: list[int], limit: int, open_cost: int, least: int
) -> None:
    partitions = pack(files(sizes), Packing(limit, open_cost, least))
    pieces: dict[str, list[tuple[int, int]]] = {}
    for partition in partitions:
        assert partition.num_rows > 0
        assert (
            partition.num_rows == 1
            or sum(map(_cost, partition.to_pylist())) + open_cost * (partition.num_rows - 1) <= limit
        )
        for row in partition.to_pylist():
            length = _cost(row)
            pieces.setdefault(row["path"], []).append((row.get("start", 0), length))
            assert length <= max(limit, 1)
    assert set(pieces) == {f"f{i}" for i in range(len(sizes))}
    for i, size in enumerate(sizes):
        end = 0
        for start, length in sorted(pieces[f"f{i}"]):
            assert start == end
            end += length
        assert end == size


_SIZES = st.none() | st.integers(-1, 3 * MB)


@settings(max_examples=100, deadline=None)
@given(
    drawn=st.lists(st.tuples(_SIZES, st.none() | st.integers(0, 4)), max_size=20),
    limit=st.integers(MB // 4, 8 * MB),
    least=st.integers(1, 5),
)
def test_files_that_are_compared_stay_together(
    drawn: list[tuple[int | None, int | None]], limit: int, least: int
) -> None:
    compared = [
        None if group is None else {"group": group, "removed": i % 2 == 0} for i, (_, group) in enumerate(drawn)
    ]
    batch = pa.record_batch(
        {
            "path": pa.array([str(i) for i in range(len(drawn))], pa.string()),
            "size": pa.array([size for size, _ in drawn], pa.int64()),
            "compared": pa.array(compared, COMPARED),
        }
    )
    partitions = pack([batch], Packing(limit, 1, least))
    seen: set[int] = set()
    for partition in partitions:
        files = list(to_scan_files(partition, "/t"))
        assert files
        # one after the other, as the task needs them
        found = [g for g, _ in itertools.groupby(f.compared.group for f in files if f.compared is not None)]
        assert len(set(found)) == len(found) and not seen & set(found)
        seen |= set(found)
        for file in files:
            i = int(file.path.rpartition("/")[2])
            assert (file.compared is None) == (drawn[i][1] is None)
            if file.compared is not None:
                assert (file.compared.group, file.compared.removed) == (drawn[i][1], i % 2 == 0)
                assert (file.start, file.length) == (0, None)
    names = [name for p in partitions for name in p.column("path").to_pylist()]
    whole = [str(i) for i, (_, group) in enumerate(drawn) if group is not None]
    assert sorted(name for name in names if drawn[int(name)][1] is not None) == sorted(whole)
    assert set(names) == {str(i) for i in range(len(drawn))}
