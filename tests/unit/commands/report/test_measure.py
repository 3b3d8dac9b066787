"""The numbers of a report, against tables whose numbers are known."""

from __future__ import annotations

import json
import os
import random
import shutil
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_pyds
from delta_pyds.commands.layout.bins import Sizes
from delta_pyds.commands.layout.optimize import plan_optimize
from delta_pyds.commands.maintain import checkpoint
from delta_pyds.commands.report.depth import depth
from delta_pyds.commands.report.files import Ranges
from delta_pyds.commands.report.gains import optimize_gain
from delta_pyds.commands.report.measure import TableMeasures, measure, read_files
from delta_pyds.commands.report.versions import versions
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import BASE_TIME_MS, TableBuilder

_DAY_MS = 86_400_000


def _measures(path: Path, now_ms: int = BASE_TIME_MS + 3 * _DAY_MS) -> TableMeasures:
    return measure(load_snapshot(path), now_ms=now_ms)


def test_files_rows_and_deletions(many_sided: TableBuilder) -> None:
    files = _measures(many_sided.path).files
    sizes = [path.stat().st_size for path in many_sided.path.glob("p=*/*.parquet")]
    assert (files.num_files, files.size_bytes) == (4, sum(sizes))
    assert (files.num_rows, files.num_deleted, files.num_vectors, files.num_uncounted) == (31, 4, 1, 0)
    assert files.deletion_ratio == 4 / 35
    assert (sum(files.sizes.counts), sum(files.sizes.weights)) == (4, sum(sizes))
    assert dict(zip(files.deletions.labels, files.deletions.counts, strict=True)) == {
        "none": 3, "≤ 1 %": 0, "1-5 %": 0, "5-10 %": 0, "10-25 %": 0, "25-50 %": 1, "> 50 %": 0,
    }  # fmt: skip
    assert files.deletions.weights == (0, 0, 0, 0, 0, 4, 0)


def test_ages(many_sided: TableBuilder) -> None:
    ages = _measures(many_sided.path).files.ages
    assert dict(zip(ages.labels, ages.counts, strict=True))["1-7 d"] == 4


def test_partitions_and_their_skew(many_sided: TableBuilder) -> None:
    found = _measures(many_sided.path).partitions
    assert found is not None
    assert (found.columns, found.number, found.median_files) == (("p",), 2, 2)
    a, b = found.largest
    assert (a.name, a.num_files, a.num_rows) == ("p=a", 3, 26)
    assert (b.name, b.num_files, b.num_rows) == ("p=b", 1, 5)
    assert found.skew == pytest.approx(a.size_bytes / ((a.size_bytes + b.size_bytes) / 2))


def test_depth_stays_within_a_partition(many_sided: TableBuilder) -> None:
    by_column = {found.column: found for found in _measures(many_sided.path).depths}
    assert set(by_column) == {"id", "city"}
    # of the eight ends, 5 and 9 lie in two files each
    assert (by_column["id"].average, by_column["id"].worst, by_column["id"].num_files) == (10 / 8, 2, 4)
    assert (by_column["city"].average, by_column["city"].worst) == (1.0, 1)


@pytest.mark.parametrize("seed", range(5))
def test_depth_is_what_counting_gives(seed: int) -> None:
    drawn = random.Random(seed)
    rows: list[tuple[int, Any, Any]] = []
    for _ in range(60):
        low = drawn.choice([None, drawn.randrange(20)])
        high = drawn.choice([None, low and low + drawn.randrange(8), drawn.randrange(20)])
        rows.append((drawn.randrange(3), low, high))
    half = len(rows) // 2
    partition = pa.chunked_array(
        [pa.array([str(group) for group, _, _ in part]).dictionary_encode() for part in (rows[:half], rows[half:])]
    ).unify_dictionaries()
    low = pa.chunked_array([pa.array([r[1] for r in part], pa.int64()) for part in (rows[:half], rows[half:])])
    high = pa.chunked_array([pa.array([r[2] for r in part], pa.int64()) for part in (rows[:half], rows[half:])])

    found = depth(("x",), Ranges(low, high), partition, clustering=True)

    known = [(g, lo, hi) for g, lo, hi in rows if lo is not None and hi is not None and lo <= hi]
    counted = [sum(g == group and lo <= value <= hi for group, lo, hi in known) for g, *ends in known for value in ends]
    assert found.average == pytest.approx(sum(counted) / len(counted))
    assert found.worst == max(counted)
    assert (found.num_files, found.num_unknown) == (len(known), len(rows) - len(known))


def test_versions_tell_how_the_table_grew(many_sided: TableBuilder) -> None:
    versions = _measures(many_sided.path).versions
    assert [v.num_files for v in versions.shown] == [0, 1, 2, 3, 4, 4]
    assert versions.shown[0].size_bytes == 0
    assert [v.operation for v in versions.shown][-2:] == ["WRITE", "DELETE"]
    assert (versions.shown[-1].files_added, versions.shown[-1].files_removed) == (1, 1)
    assert dict(versions.operations) == {"WRITE": 4, "CREATE TABLE": 1, "DELETE": 1} and not versions.more


def test_versions_end_where_a_commit_is_gone(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    for n in range(4):
        builder.append([{"id": n}])
    builder.checkpoint()
    (tmp_path / "_delta_log" / f"{2:020d}.json").unlink()
    shown = _measures(tmp_path).versions.shown
    assert [(v.version, v.num_files) for v in shown] == [(0, None), (1, None), (3, 3), (4, 4)]


def test_a_commit_that_cannot_be_read_leaves_older_sizes_unknown(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    for n in range(3):
        builder.append([{"id": n}])
    builder.checkpoint()
    builder.append([{"id": 9}])
    (tmp_path / "_delta_log" / f"{2:020d}.json").write_text('{"add":')
    shown = _measures(tmp_path).versions.shown
    assert [(v.version, v.num_files) for v in shown if v.num_files is not None] == [(2, 2), (3, 3), (4, 4)]


def test_a_long_commit_is_counted_line_by_line(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    builder.append([{"id": 1}])
    builder.checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_bytes(b"{}\n" * 100_000)
    snapshot = load_snapshot(tmp_path)
    tracemalloc.start()
    try:
        shown = versions(snapshot, 1, 7).shown
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [version.files_added for version in shown] == [0, 1]
    # a list of its lines would take 4 MB
    assert peak < 2_000_000


def _add(path: str, **more: Any) -> str:
    add = {"path": path, "partitionValues": {}, "size": 10, "modificationTime": 1, "dataChange": True, **more}
    return json.dumps({"add": add})


@pytest.mark.parametrize(
    ("commits", "files"),
    [
        ([[_add("a")], [_add("a", stats="{}")], [_add("b")]], [None, None, None, 2]),
        ([[_add("a")], [_add("b"), _add("a", dataChange=False)], [_add("c")]], [None, None, 2, 3]),
        ([[_add("a")], [_add("a", dataChange=False)], [_add("b")]], [0, 1, 1, 2]),
        ([[_add("a")], ['{"remove":{"path":"never","dataChange":true,"size":10}}'], [_add("b")]], [None] * 3 + [2]),
        ([[_add("a")], ['{"remove":{"path":"never","dataChange":true,"size":' + "9" * 400 + "}}"], [_add("b")]],
         [None, None, 1, 2]),
    ],
)  # fmt: skip
def test_growth_is_not_guessed(tmp_path: Path, commits: list[list[str]], files: list[int | None]) -> None:
    """Files that are added again, removed without having been there, and invalid sizes."""
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    for n, lines in enumerate(commits):
        (tmp_path / "_delta_log" / f"{n + 1:020d}.json").write_text("\n".join(lines) + "\n")
    if "9" * 400 in str(commits):
        # before a checkpoint no reader looks at it
        small = (tmp_path / "_delta_log" / f"{2:020d}.json").read_text()
        (tmp_path / "_delta_log" / f"{2:020d}.json").write_text("{}\n")
        delta_pyds.checkpoint(tmp_path)
        (tmp_path / "_delta_log" / f"{2:020d}.json").write_text(small)
    assert [v.num_files for v in _measures(tmp_path).versions.shown] == files
    assert delta_pyds.report(tmp_path, verify=False).startswith("<!DOCTYPE html>")


def test_a_table_that_may_not_be_written_has_no_gain(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"}, features=((), ("future",)))
    builder.create()
    for n in range(2):
        builder.append([{"id": n}])
    found = _measures(tmp_path)
    assert "future" in found.optimize.reason and "future" in found.vacuum.reason and found.optimize.taken == 0


def test_what_vacuum_and_optimize_would_gain(many_sided: TableBuilder) -> None:
    orphan = many_sided.path / "orphan.parquet"
    orphan.write_bytes(b"x" * 700)
    os.utime(orphan, (1_000_000_000, 1_000_000_000))
    found = _measures(many_sided.path)
    orphan.unlink()
    assert (found.vacuum.num_files, found.vacuum.size_bytes, found.vacuum.retention_hours) == (1, 700, 168)
    assert (found.optimize.verb, found.optimize.before, found.optimize.after) == ("compaction", 4, 2)
    assert (found.optimize.taken, found.optimize.bins) == (3, 1)
    assert found.purge.taken == 1


@pytest.mark.parametrize("seed", range(3))
def test_compaction_is_what_would_be_planned(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    builder = TableBuilder(tmp_path, {"id": "long", "p": "long"}, ["p"], {"delta.enableDeletionVectors": "true"})
    builder.create()
    for n in range(12):
        rows = [{"id": n, "p": drawn.randrange(3)} for _ in range(drawn.choice([1, 20, 300]))]
        added = builder.append(rows)
        if drawn.random() < 0.3:
            builder.commit(builder.delete_rows(added[0], [0]))
    snapshot = load_snapshot(tmp_path)
    sizes = Sizes(min_file_bytes=drawn.choice([800, 1500]), max_file_bytes=3000)
    plan = plan_optimize(snapshot, [], CommandOptions(), sizes=sizes)
    found = optimize_gain(snapshot, read_files(snapshot)[0], sizes)
    assert (found.bins, found.taken) == (len(plan.bins), sum(len(b.files) for b in plan.bins))
    assert found.taken_bytes == plan.bytes_to_read


def _clustered(path: Path, tags: list[Mapping[str, str] | None]) -> None:
    builder = TableBuilder(path, {"id": "long", "x": "long"}, features=((), ("clustering", "domainMetadata")))
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["id"]]}', "removed": False}
    builder.create([{"domainMetadata": domain}])
    for n, some in enumerate(tags):
        add = builder.write_file([{"id": n, "x": 7}])
        more = {} if some is None else {"tags": some, "clusteringProvider": "liquid"}
        builder.commit([{"add": {**add["add"], **more}}])


@pytest.mark.parametrize(
    "tags",
    [
        [None, None],
        [{"ZCUBE_ID": "c", "ZCUBE_ZORDER_BY": '["id"]'}] * 3,
        [None, *[{"ZCUBE_ID": "c", "ZCUBE_ZORDER_BY": '["id"]'}] * 2],
        [{"ZCUBE_ID": "c", "ZCUBE_ZORDER_BY": '["x"]'}, {"ZCUBE_ID": "d", "ZCUBE_ZORDER_BY": "[{"}],
        [{"ZCUBE_ID": "c", "ZCUBE_ZORDER_BY": '["id"]'}, {"ZCUBE_ID": "d", "ZCUBE_ZORDER_BY": '["id"]'}],
    ],
)
def test_clustering_takes_the_files_that_would_be_planned(tmp_path: Path, tags: list[Any]) -> None:
    _clustered(tmp_path, tags)
    snapshot = load_snapshot(tmp_path)
    plan = plan_optimize(snapshot, [], CommandOptions())
    found = measure(snapshot)
    assert found.optimize.verb == "clustering"
    assert found.optimize.taken == sum(len(b.files) for b in plan.bins)
    assert [d.column for d in found.depths if d.clustering] == ["id"]


def test_a_table_without_files(tmp_path: Path) -> None:
    TableBuilder(tmp_path, {"id": "long", "p": "string"}, ["p"]).create()
    found = _measures(tmp_path)
    assert found.files.num_files == found.files.size_bytes == found.files.num_rows == 0
    assert found.partitions is not None and found.partitions.number == 0
    assert [d.average for d in found.depths] == [None] and found.optimize.taken == 0


def test_files_without_statistics(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    (add,) = builder.append([{"id": 1}])
    del add["add"]["stats"]
    builder.commit([{"add": {**add["add"], "path": "other.parquet"}}])
    found = _measures(tmp_path)
    assert (found.files.num_files, found.files.num_rows, found.files.num_uncounted) == (2, 1, 1)
    (only,) = found.depths
    assert (only.num_files, only.num_unknown, only.average) == (1, 1, 1.0)


def test_deleted_rows_of_files_that_nobody_counted_are_no_part_of_the_ratio(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    builder.create()
    builder.append([{"id": n} for n in range(10)])
    (other,) = builder.append([{"id": n} for n in range(20)])
    remove, add = builder.delete_rows(other, range(7))
    del add["add"]["stats"]
    builder.commit([remove, add])
    files = _measures(tmp_path).files
    assert (files.num_rows, files.num_deleted, files.num_deleted_counted, files.deletion_ratio) == (10, 7, 0, 0.0)
    assert dict(zip(files.deletions.labels, files.deletions.weights, strict=True))["unknown"] == 7
    assert "7 more are deleted in files" in delta_pyds.report(tmp_path, verify=False)


def test_numbers_that_cannot_be_meant_do_no_harm(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    (add,) = builder.append([{"id": 1}])
    for n, size in enumerate((-5, 2**63 - 1, 2**63 - 1)):
        stats = '{"numRecords":9223372036854775807,"minValues":{"id":"x"},"maxValues":{"id":[]}}'
        more = {"path": f"{n}.parquet", "size": size, "modificationTime": -(2**63), "stats": stats}
        builder.commit([{"add": {**add["add"], **more}}])
    found = _measures(tmp_path)
    assert found.files.num_files == 4 and found.files.size_bytes >= 2**51
    assert sum(found.files.sizes.counts) == sum(found.files.ages.counts) == 4


def test_a_checkpoint_gives_the_same(many_sided: TableBuilder, tmp_path: Path) -> None:
    shutil.copytree(many_sided.path, tmp_path / "t")
    before = _measures(tmp_path / "t")
    checkpoint(tmp_path / "t")
    after = _measures(tmp_path / "t")
    assert (after.files, after.depths, after.partitions) == (before.files, before.depths, before.partitions)
