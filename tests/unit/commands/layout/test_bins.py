"""Which files become one, and which files of a clustered table are clustered again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.commands.layout.bins import (
    Bin,
    Sizes,
    compaction_bins,
    cubes,
    may_need_compaction,
    needs_compaction,
    rewriting_bins,
)
from delta_pyds.commands.layout.cubes import Cube, cube_of, files_to_cluster, new_cube_tags
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor


def file(path: str, size: int, *, deleted: int = 0, rows: int | None = 100, **more: Any) -> AddFile:
    vector = DeletionVectorDescriptor("i", "x", 1, deleted) if deleted else None
    stats = None if rows is None else f'{{"numRecords":{rows}}}'
    at = more.pop("at", {})
    return AddFile(path=path, partition_values=at, size=size, stats=stats, deletion_vector=vector, **more)


def paths(bins: list[Bin]) -> list[list[str]]:
    return [[f.path for f in one.files] for one in bins]


SIZES = Sizes(min_file_bytes=100, max_file_bytes=100)


def test_small_files_come_first_and_a_bin_is_as_full_as_the_next_file_lets_it() -> None:
    files = [file("c", 60), file("a", 10), file("d", 70), file("b", 30), file("e", 80)]
    # 10 + 30 + 60 fit; 70 and 80 are alone, so they stay
    assert paths(compaction_bins(files, SIZES)) == [["a", "b", "c"]]


def test_files_of_other_partitions_stay_apart() -> None:
    files = [file(path, 1, at={"p": value}) for path, value in (("a", "1"), ("b", "2"), ("c", "1"), ("d", None))]
    assert paths(compaction_bins(files, SIZES)) == [["a", "c"]]


def test_a_bin_holds_no_more_than_a_file_may() -> None:
    found = compaction_bins([file(str(n), 40) for n in range(5)], SIZES)
    assert [len(one.files) for one in found] == [2, 2]
    # a file that is larger than a bin is in none of several
    assert paths(compaction_bins([file("a", 1), file("b", 101)], SIZES)) == []


@pytest.mark.parametrize(
    ("one", "wanted"),
    [
        (file("small", 99), True),
        (file("large", 100), False),
        (file("few deleted", 100, deleted=5), False),
        (file("many deleted", 100, deleted=6), True),
        (file("uncounted", 100, deleted=1, rows=None), True),
    ],
    ids=lambda v: v.path if isinstance(v, AddFile) else "",
)
def test_small_files_and_those_with_many_deleted_rows_are_compacted(one: AddFile, wanted: bool) -> None:
    assert needs_compaction(one, SIZES) is wanted


def test_of_a_file_that_is_large_and_whole_no_action_is_made() -> None:
    """The mask may keep a file too many, and never leaves out one that is to be compacted."""
    files = [file("a", 99), file("b", 100), file("c", 100, deleted=1), file("d", 100, deleted=6), file("e", 2**40)]
    struct = pa.struct([("storageType", pa.string()), ("cardinality", pa.int64())])
    vectors = [
        None if f.deletion_vector is None else {"storageType": "u", "cardinality": f.deletion_vector.cardinality}
        for f in files
    ]
    vectors[1] = {"storageType": None, "cardinality": None}
    rows = pa.record_batch({"size": [f.size for f in files], "deletionVector": pa.array(vectors, struct)})

    kept = may_need_compaction(rows, SIZES).to_pylist()

    assert kept == [True, False, True, True, False]
    assert all(keep or not needs_compaction(f, SIZES) for f, keep in zip(files, kept, strict=True))


def test_what_has_to_be_rewritten_is_also_where_it_is_alone() -> None:
    files = [file("a", 500), file("c", 30), file("d", 30)]
    assert paths(rewriting_bins(files, SIZES)) == [["c", "d"], ["a"]]


def cube(path: str, size: int, name: str, columns: tuple[str, ...] = ("x",), provider: str = "liquid") -> AddFile:
    tags: dict[str, str | None] = {**new_cube_tags(columns), "ZCUBE_ID": name}
    return file(path, size, tags=tags, clustering_provider=provider)


CUBES = Sizes(min_cube_bytes=100, target_cube_bytes=150)


def chosen(files: list[AddFile], *, full: bool = False) -> list[str]:
    return [f.path for f in files_to_cluster(files, ("x",), CUBES, full=full)]


def test_new_files_are_clustered_with_the_small_cubes() -> None:
    assert chosen([cube("a", 30, "1"), file("new", 5), cube("b", 60, "2"), cube("c", 60, "2"), file("newer", 5)]) == [
        "new",
        "newer",
        "a",
    ]


def test_one_small_cube_alone_stays_and_two_become_one() -> None:
    assert chosen([cube("a", 30, "1"), cube("b", 30, "1")]) == []
    assert chosen([cube("a", 30, "1"), cube("b", 30, "2")]) == ["a", "b"]
    assert chosen([]) == []


def test_files_that_were_clustered_otherwise_wait_for_a_full_run() -> None:
    files = [cube("other", 500, "9", ("y",)), cube("foreign", 1, "8", provider="theirs"), cube("a", 30, "1")]
    assert chosen(files) == []
    assert chosen(files, full=True) == ["a", "foreign", "other"]
    assert chosen([cube("a", 30, "1")], full=True) == []


def test_tags_that_cannot_be_read_are_none() -> None:
    assert cube_of(cube("a", 1, "1", ("a b", "c.d"))) == Cube("1", ("a b", "c.d"))
    for columns in ("no JSON", '{"a": 1}', "[1]", "[" * 100_000):
        assert cube_of(file("a", 1, tags={"ZCUBE_ID": "1", "ZCUBE_ZORDER_BY": columns})) is None


def test_cubes_are_filled_in_their_order() -> None:
    found = cubes([file("a", 100), file("b", 60), file("c", 90), file("d", 400)], CUBES)
    assert paths(found) == [["a"], ["b", "c"], ["d"]]
