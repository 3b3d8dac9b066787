"""Compaction, purge, Z-order and clustering: the same rows with the same ids in other files, and what the log says."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from delta_pyds.commands.layout.bins import Sizes
from delta_pyds.commands.layout.cluster_by import cluster_by
from delta_pyds.commands.layout.operation import LayoutResult
from delta_pyds.commands.layout.optimize import plan_compaction, plan_optimize, plan_purge, plan_zorder
from delta_pyds.commands.layout.plan import LayoutPlan
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.data.layout import cluster
from delta_pyds.errors import ConcurrentDeleteReadError, DeltaError, OptionError, UserError
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.change_feed import change_rows
from tests.support.commits import last
from tests.support.planned_changes import delete
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows, write_rows
from tests.support.verification import clean

SCHEMA = {"id": "long", "v": "string", "p": "long"}
VECTORS = {"delta.enableDeletionVectors": "true"}
IDS = {"delta.enableRowTracking": "true"}
ALL = VECTORS | IDS | {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"}
PROPERTIES: dict[str, dict[str, str]] = {"plain": {}, "vectors": VECTORS, "ids": IDS, "all": ALL}
HERE = Place("process", "a test says so")
OPTIONS = CommandOptions()


def table(path: Path, properties: Mapping[str, str], **more: Any) -> None:
    """Ten files of ten rows."""
    rows = [[{"id": n * 37 % 100, "v": f"v{n}", "p": n % 2} for n in range(f * 10, f * 10 + 10)] for f in range(10)]
    write_rows(path, SCHEMA, rows, properties=dict(properties), **more)


def files(path: Path) -> list[Any]:
    return list(live_files(plan_scan(load_snapshot(str(path)))))


def rows(path: Path, properties: Mapping[str, str]) -> list[Any]:
    ids = "delta.enableRowTracking" in properties
    return sorted(read_rows(path, row_ids=ids), key=lambda row: row["id"])


def optimize(path: Path, *filters: str, **more: Any) -> LayoutResult:
    return run_layout(plan_optimize(load_snapshot(str(path)), filters, OPTIONS, **more), HERE, LocalRunner(1))


@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=list(PROPERTIES))
@pytest.mark.parametrize(
    "plan",
    [
        lambda s: plan_compaction(s, (), OPTIONS),
        lambda s: plan_purge(s, (), OPTIONS),
        lambda s: plan_zorder(s, ["id", "v"], (), OPTIONS),
        lambda s: plan_zorder(s, ["v"], (), OPTIONS, sizes=Sizes(max_file_bytes=3_000)),
    ],
    ids=["compaction", "purge", "zorder", "zorder to several files"],
)
def test_the_same_rows_are_in_other_files(
    tmp_path: Path, plan: Callable[..., LayoutPlan], properties: Mapping[str, str], partitioned: bool
) -> None:
    table(tmp_path, properties, partition_by=(("p",),) if partitioned else ())
    delete(tmp_path, "id % 10 = 3 OR id < 20")
    before, old = rows(tmp_path, properties), files(tmp_path)
    snapshot = load_snapshot(str(tmp_path))

    result = run_layout(plan(snapshot), HERE)

    assert rows(tmp_path, properties) == before
    new = files(tmp_path)
    marked = [f for f in old if f.deletion_vector is not None]
    if result.version is None:
        assert not marked
        assert new == old
        return
    assert not any(f.deletion_vector for f in new)
    assert result.metrics["numFilesRemoved"] == len({f.path for f in old} - {f.path for f in new})
    assert result.metrics["numFilesAdded"] == len({f.path for f in new} - {f.path for f in old})
    assert last(tmp_path).operation_metrics["numDeletionVectorsRemoved"] == str(len(marked))
    assert last(tmp_path).isolation_level == "SnapshotIsolation"
    # a change feed sees nothing of it
    if "delta.enableChangeDataFeed" in properties:
        assert change_rows(tmp_path, result.version) == []
    clean(tmp_path)


def test_small_files_of_each_partition_become_one(tmp_path: Path) -> None:
    table(tmp_path, {}, partition_by=(("p",),))
    result = optimize(tmp_path, "p = 1")
    assert result.metrics["numFilesRemoved"] == 10
    assert (result.metrics["totalConsideredFiles"], result.metrics["partitionsOptimized"]) == (10, 1)
    assert last(tmp_path).operation == "OPTIMIZE"
    assert last(tmp_path).operation_parameters == {
        "predicate": '["p = 1"]', "zOrderBy": "[]", "clusterBy": "[]", "auto": False,
    }  # fmt: skip

    result = optimize(tmp_path)
    assert (result.metrics["numFilesRemoved"], result.metrics["totalFilesSkipped"]) == (10, 1)
    assert len(files(tmp_path)) == 2

    again = optimize(tmp_path)
    assert (again.version, again.metrics["numBins"], again.metrics["totalFilesSkipped"]) == (None, 0, 2)
    assert again.metrics["filesAdded"] == {"min": None, "max": None, "avg": 0.0, "totalFiles": 0, "totalSize": 0}


def test_nothing_stays_of_files_all_of_whose_rows_are_deleted(tmp_path: Path) -> None:
    table(tmp_path, VECTORS)
    one = files(tmp_path)[0]
    builder_rows = rows(tmp_path, {})
    delete(tmp_path, "id % 2 = 0 AND v <> 'none'")
    delete(tmp_path, "id < 99")
    assert one.path and len(builder_rows) == 100
    optimize(tmp_path)
    assert [row["id"] for row in rows(tmp_path, {})] == [99]
    clean(tmp_path)


def test_rows_are_not_lost_where_the_log_counts_others(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    for n in range(3):
        builder.append([{"id": n}, {"id": n + 10}])
    log = tmp_path / "_delta_log" / "00000000000000000002.json"
    log.write_text(re.sub(r"(numRecords[^0-9]+)2", r"\g<1>3", log.read_text()))
    before = set(tmp_path.rglob("*.parquet"))

    with pytest.raises(DeltaError) as caught:
        optimize(tmp_path)

    assert caught.value.code == "DELTA_NUM_RECORDS_MISMATCH"
    assert set(tmp_path.rglob("*.parquet")) == before


def test_it_loses_only_against_what_took_its_files(tmp_path: Path) -> None:
    table(tmp_path, VECTORS)
    plan = plan_optimize(load_snapshot(str(tmp_path)), (), OPTIONS)
    write_rows(tmp_path, SCHEMA, [{"id": 500, "v": "new", "p": 0}])
    assert run_layout(plan, HERE).version == 2

    plan = plan_optimize(load_snapshot(str(tmp_path)), (), CommandOptions(row_level_concurrency=False))
    delete(tmp_path, "id = 5")
    before = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(ConcurrentDeleteReadError):
        run_layout(plan, HERE)
    assert set(tmp_path.rglob("*.parquet")) == before
    clean(tmp_path)


def test_nothing_is_left_to_do_if_others_replaced_all_its_files(tmp_path: Path) -> None:
    """The loser of two compactions ends without an error, and without a file of its own."""
    table(tmp_path, VECTORS)
    plan = plan_optimize(load_snapshot(str(tmp_path)), (), OPTIONS)
    assert optimize(tmp_path).version is not None
    before, version = set(tmp_path.rglob("*.parquet")), load_snapshot(str(tmp_path)).version

    result = run_layout(plan, HERE)

    assert (result.version, result.metrics["numFilesAdded"], result.metrics["numFilesRemoved"]) == (None, 0, 0)
    assert (set(tmp_path.rglob("*.parquet")), load_snapshot(str(tmp_path)).version) == (before, version)
    clean(tmp_path)


def test_an_append_only_table_is_compacted_too(tmp_path: Path) -> None:
    table(tmp_path, {"delta.appendOnly": "true"})
    assert optimize(tmp_path).metrics["numFilesAdded"] == 1


@pytest.mark.parametrize("text", ["id = 1", "p = 1 AND id = 2", "nope = 1"])
def test_a_filter_chooses_partitions(tmp_path: Path, text: str) -> None:
    table(tmp_path, {}, partition_by=(("p",),))
    with pytest.raises(UserError, match=r"non-partition column '(id|nope)'. Only the .* referenced: \[p\]") as caught:
        optimize(tmp_path, text)
    assert caught.value.code == "DELTA_NON_PARTITION_COLUMN_REFERENCE"


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("nope", "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        ("id, v", "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        ("p", "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        ("v", "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"),
    ],
)
def test_a_z_order_is_by_columns_that_skip_files(tmp_path: Path, column: str, code: str) -> None:
    table(tmp_path, {"delta.dataSkippingNumIndexedCols": "1"}, partition_by=(("p",),))
    with pytest.raises(OptionError) as caught:
        plan_zorder(load_snapshot(str(tmp_path)), [column], (), OPTIONS)
    assert caught.value.code == code


def test_rows_of_a_file_are_near_on_the_curve(tmp_path: Path) -> None:
    many = [{"id": n * 7919 % 4096, "v": f"{n * 31 % 64:03}", "p": n} for n in range(4096)]
    write_rows(tmp_path, SCHEMA, [many[i::8] for i in range(8)])
    size = sum(f.size for f in files(tmp_path))
    plan = plan_zorder(load_snapshot(str(tmp_path)), ["id", "v"], (), OPTIONS, sizes=Sizes(max_file_bytes=size // 16))
    run_layout(plan, HERE, LocalRunner(1))
    found = files(tmp_path)
    assert 12 <= len(found) <= 20
    shares = []
    for file in found:
        ids = pq.read_table(tmp_path / file.path).column("id").to_pylist()
        shares.append((max(ids) - min(ids)) / 4096)
    # 16 files in two columns: a quarter of each
    assert sum(shares) / len(shares) < 0.4
    assert rows(tmp_path, {}) == sorted(many, key=lambda row: row["id"])
    assert last(tmp_path).operation_parameters["zOrderBy"] == '["id","v"]'


def test_what_a_place_on_the_curve_has_too_much_of_goes_to_more_files(tmp_path: Path) -> None:
    same = [[{"id": 1, "v": f"{n * 7919}{f}" * 20, "p": n} for n in range(500)] for f in range(4)]
    write_rows(tmp_path, SCHEMA, same)
    plan = plan_zorder(load_snapshot(str(tmp_path)), ["id"], (), OPTIONS, sizes=Sizes(max_file_bytes=6_000))
    run_layout(plan, HERE, LocalRunner(1))
    assert len(read_rows(tmp_path)) == 2_000
    clean(tmp_path)


def test_a_clustered_table_is_clustered_as_far_as_it_needs_to_be(tmp_path: Path) -> None:
    table(tmp_path, ALL)
    assert cluster_by(load_snapshot(str(tmp_path)), ["id", "v"], OPTIONS) == 1
    assert last(tmp_path).operation == "CLUSTER BY"
    assert last(tmp_path).operation_parameters == {"oldClusteringColumns": "", "newClusteringColumns": "id,v"}
    before = rows(tmp_path, ALL)

    result = optimize(tmp_path)
    [file] = files(tmp_path)
    assert file.clustering_provider == "liquid"
    assert file.tags["ZCUBE_ZORDER_BY"] == '["id","v"]'
    assert last(tmp_path).operation_parameters == {
        "predicate": "[]", "zOrderBy": "[]", "clusterBy": '["id","v"]', "auto": False, "isFull": False,
    }  # fmt: skip
    assert result.metrics["clusteringStats"] == {
        "inputZCubeFiles": {"numFiles": 0, "size": 0},
        "inputOtherFiles": {"numFiles": 10, "size": result.metrics["filesRemoved"]["totalSize"]},
        "inputNumZCubes": 0,
        "mergedFiles": {"numFiles": 10, "size": result.metrics["filesRemoved"]["totalSize"]},
        "numOutputZCubes": 1,
    }
    assert optimize(tmp_path).version is None
    assert rows(tmp_path, ALL) == before

    cluster_by(load_snapshot(str(tmp_path)), ["p"], OPTIONS)
    assert optimize(tmp_path).version is None
    assert optimize(tmp_path, full=True).metrics["numFilesRemoved"] == 1
    assert optimize(tmp_path, full=True).version is None
    cluster_by(load_snapshot(str(tmp_path)), [], OPTIONS)
    assert rows(tmp_path, ALL) == before
    with pytest.raises(DeltaError) as caught:
        optimize(tmp_path, full=True)
    assert caught.value.code == "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"
    clean(tmp_path)


def test_a_clustered_table_takes_no_other_layout(tmp_path: Path) -> None:
    table(tmp_path, {})
    assert cluster_by(load_snapshot(str(tmp_path)), [], OPTIONS) is None
    cluster_by(load_snapshot(str(tmp_path)), ["id"], OPTIONS)
    for plan, code in (
        (lambda s: plan_optimize(s, ["p = 1"], OPTIONS), "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
        (lambda s: plan_zorder(s, ["id"], (), OPTIONS), "DELTA_CLUSTERING_WITH_ZORDER_BY"),
        (lambda s: cluster_by(s, ["id", "ID"], OPTIONS), "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY"),
    ):
        with pytest.raises(DeltaError) as caught:
            plan(load_snapshot(str(tmp_path)))
        assert caught.value.code == code


def test_a_partitioned_table_is_not_clustered(tmp_path: Path) -> None:
    table(tmp_path, {}, partition_by=(("p",),))
    with pytest.raises(UserError) as caught:
        cluster_by(load_snapshot(str(tmp_path)), ["id"], OPTIONS)
    assert caught.value.code == "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"


def test_new_files_have_statistics_of_all_their_rows(tmp_path: Path) -> None:
    table(tmp_path, {})
    optimize(tmp_path)
    [file] = files(tmp_path)
    assert '"numRecords":100' in file.stats
    assert '"minValues":{"id":0,' in file.stats


NESTED = {
    "place": "long",
    "st": {"type": "struct", "fields": [
        {"name": "x", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "t", "type": "timestamp", "nullable": True, "metadata": {}},
    ]},
    "li": {"type": "array", "elementType": "string", "containsNull": True},
    "ma": {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
    "b": "binary",
    "d": "decimal(20,3)",
}  # fmt: skip


@pytest.mark.parametrize("memory", [1, 1 << 30], ids=["spilled", "in memory"])
@pytest.mark.parametrize("by", [["place"], ["st.x", "st.t", "d"], ["D", "Place"]], ids=str)
def test_values_of_every_kind_come_through(
    tmp_path: Path, by: list[str], memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_MEMORY_BYTES", memory)
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    values = [
        {
            "place": None if n % 11 == 0 else n * 7 % 50,
            "st": None if n % 7 == 0 else {"x": n % 5, "t": None if n % 3 == 0 else moment + dt.timedelta(hours=n)},
            "li": None if n % 5 == 0 else [str(n), None],
            "ma": [("k", n)],
            "b": bytes([n]),
            "d": Decimal(n) / 8,
        }
        for n in range(100)
    ]
    write_rows(tmp_path, NESTED, [values[i::4] for i in range(4)])
    before = sorted(map(str, read_rows(tmp_path)))

    result = run_layout(
        plan_zorder(load_snapshot(str(tmp_path)), by, (), OPTIONS, sizes=Sizes(max_file_bytes=4_000)), HERE
    )

    assert result.metrics["numFilesAdded"] > 1
    assert sorted(map(str, read_rows(tmp_path))) == before
    optimize(tmp_path)
    assert sorted(map(str, read_rows(tmp_path))) == before
    assert len(files(tmp_path)) == 1
    clean(tmp_path)


def test_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    table(tmp_path, {}, partition_by=(("p",),))
    damaged = files(tmp_path)[-1]
    (tmp_path / damaged.path).write_bytes(b"PAR1" + bytes(damaged.size - 8) + b"PAR1")
    before = set(tmp_path.rglob("*.parquet"))
    for plan in (plan_compaction, lambda s, f, o: plan_zorder(s, ["id"], f, o)):
        with pytest.raises(DeltaError):
            run_layout(plan(load_snapshot(str(tmp_path)), (), OPTIONS), HERE)
    assert set(tmp_path.rglob("*.parquet")) == before
    assert load_snapshot(str(tmp_path)).version == 0


def test_files_whose_rows_nobody_has_counted_are_laid_out_too(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"})
    builder.create()
    for n in range(3):
        builder.append([{"id": n}, {"id": n + 10}], stats=False)
    run_layout(plan_zorder(load_snapshot(str(tmp_path)), ["id"], (), OPTIONS), HERE)
    assert sorted(row["id"] for row in read_rows(tmp_path)) == [0, 1, 2, 10, 11, 12]
    assert optimize(tmp_path).version is None


def test_a_clustering_column_that_is_gone_is_named(tmp_path: Path) -> None:
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["gone"]]}', "removed": False}
    builder = TableBuilder(tmp_path, {"id": "long"}, features=((), ("clustering", "domainMetadata")))
    builder.create()
    builder.append([{"id": 1}])
    builder.commit([{"domainMetadata": domain}])
    with pytest.raises(UserError, match="gone") as caught:
        optimize(tmp_path)
    assert caught.value.code == "DELTA_CLUSTERING_COLUMNS_MISMATCH"
