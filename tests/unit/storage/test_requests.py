"""The requests that a table in a store costs: tables of a directory that speaks S3's protocol, all counted."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import delta_pyds
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import WritePlan, commit_write, plan_write
from delta_pyds.data.read import concurrent
from delta_pyds.data.read.reader import read
from delta_pyds.data.read.shared_plans import SharedPlans
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import StorageError, UserError
from delta_pyds.spark.source.task_scan import TaskScan, to_stream
from delta_pyds.storage import read_ahead
from delta_pyds.storage.base import TAIL_BYTES
from delta_pyds.storage.read_ahead import expect
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.storage.s3 import S3Storage
from delta_pyds.table.scan.packing import Packing, pack
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.tasks.write_state import TaskOutput
from tests.bench.tables import data_table
from tests.stores.requests_made import Request, requests_made
from tests.support.directory_server import directory_server
from tests.support.large_table import CHECKPOINT_VERSION, LargeTable, generate_large
from tests.support.s3_server import options
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import batch_of, struct, write_rows


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "bucket"
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def store(bucket: Path) -> Iterator[dict[str, Any]]:
    """The storage options of what lies in the bucket."""
    with directory_server(bucket.parent) as url:
        yield options(url)


Made = Callable[..., LargeTable]


@pytest.fixture(scope="module")
def made(bucket: Path) -> Made:
    def make(name: str, num_files: int, **given: Any) -> LargeTable:
        return generate_large(bucket / name, num_files, **given)

    return make


def planned(table: LargeTable, store: dict[str, Any]) -> list[Request]:
    """The requests of opening the table and planning a query for one of its files."""
    with requests_made() as requests:
        snapshot = load_snapshot(f"s3://bucket/{table.path.name}", storage_options=store)
        assert len(list(plan_scan(snapshot, where=table.predicate(7)).files())) == 1
    return requests


def of(requests: list[Request], part: str) -> list[Request]:
    return [request for request in requests if part in request.url and not request.lists]


@pytest.mark.parametrize("commits", [0, 40])
def test_a_short_checkpoint_is_one_request(made: Made, store: dict[str, Any], commits: int) -> None:
    table = made(f"short-{commits}", 2_000, extra_commits=commits)
    requests = planned(table, store)
    log = table.path / "_delta_log"
    assert len([request for request in requests if request.lists]) == 1
    assert len(of(requests, "_last_checkpoint")) == 1
    assert [r.received for r in of(requests, ".parquet")] == [next(log.glob("*.parquet")).stat().st_size]
    assert len(of(requests, ".json")) == commits
    assert len(requests) == 3 + commits


@pytest.mark.parametrize("stats", ["json", "struct"])
def test_of_a_long_checkpoint_the_columns_that_decide_are_read_and_then_those_of_the_files(
    made: Made, store: dict[str, Any], stats: str
) -> None:
    table = made(f"long-{stats}", 120_000, stats=stats)
    requests = planned(table, store)
    checkpoint = of(requests, ".parquet")
    size = next((table.path / "_delta_log").glob("*.parquet")).stat().st_size
    # the end, protocol and metadata, what decides about each of the two row groups, and the files of one
    assert len(checkpoint) <= 1 + 1 + 2 + 1
    assert sum(request.received for request in checkpoint) < size
    assert len(requests) == 2 + len(checkpoint)


def test_commits_before_the_checkpoint_cost_nothing(made: Made, store: dict[str, Any]) -> None:
    table = made("old", 10)
    for version in range(CHECKPOINT_VERSION):
        (table.path / "_delta_log" / f"{version:020d}.json").write_text("no commit, and never read")
    assert len(planned(table, store)) == 3


IDS = {"id": "long"}


def planned_append(root: str, store: dict[str, Any]) -> tuple[WritePlan, TaskOutput]:
    """An append to a table of two versions, of which all is done but the commit."""
    for number in range(2):
        write_rows(root, IDS, [{"id": number}], storage_options=store)
    plan = plan_write(WriteRequest(table_root=root, incoming=struct(IDS), mode="append", storage_options=store))
    assert plan.state is not None
    return plan, write(plan.state, iter(batch_of([{"id": 2}], struct(IDS))), TaskSession(0))


def test_a_commit_is_one_look_and_one_put_and_so_is_its_checksum(store: dict[str, Any]) -> None:
    plan, output = planned_append("s3://bucket/appended", store)
    with requests_made() as requests:
        assert commit_write(plan, [output]) is not None
    made = [(request.method, request.url.partition("?")[0].rpartition("/")[2]) for request in requests]
    assert made == [
        ("HEAD", f"{1:020d}.json"),
        ("PUT", f"{2:020d}.json"),
        ("GET", f"{1:020d}.crc"),
        ("PUT", f"{2:020d}.crc"),
    ]


def test_a_commit_sees_that_another_table_is_there(bucket: Path, store: dict[str, Any]) -> None:
    plan, output = planned_append("s3://bucket/replaced", store)
    planned_append("s3://bucket/other", store)
    for file in (bucket / "other" / "_delta_log").glob("*.json"):
        was = bucket / "replaced" / "_delta_log" / file.name
        # of the same length: only its content tells
        was.write_bytes(file.read_bytes() + b" " * (was.stat().st_size - file.stat().st_size))
    with pytest.raises(UserError, match="replaced by another one"):
        commit_write(plan, [output])
    assert load_snapshot("s3://bucket/replaced", storage_options=store).version == 1


def test_a_commit_to_a_table_that_was_copied_meanwhile_is_made(bucket: Path, store: dict[str, Any]) -> None:
    plan, output = planned_append("s3://bucket/copied", store)
    shutil.copytree(bucket / "copied", bucket / "copy")
    shutil.rmtree(bucket / "copied")
    shutil.copytree(bucket / "copy", bucket / "copied")
    committed = commit_write(plan, [output])
    assert committed is not None and committed.version == 2


@pytest.fixture(scope="module")
def files_of_a_store(bucket: Path) -> Path:
    """Four files of seven columns, a megabyte each."""
    return data_table(bucket, 120_000, 4)


def test_a_scan_asks_each_file_for_its_end_and_its_columns(files_of_a_store: Path, store: dict[str, Any]) -> None:
    sizes = {file.name: file.stat().st_size for file in files_of_a_store.glob("*.parquet")}
    root = f"s3://bucket/{files_of_a_store.name}"
    with requests_made() as requests:
        assert delta_pyds.scan(root, storage_options=store).to_table().num_rows == 120_000
    for name, size in sizes.items():
        received = [request.received for request in of(requests, name)]
        # all but the first bytes, which say that it is Parquet
        assert (len(received), sum(received)) == (2, size - 4)
    assert len(requests) == 3 + 2 * len(sizes)


def test_of_one_column_little_else_is_read(files_of_a_store: Path, store: dict[str, Any]) -> None:
    root = f"s3://bucket/{files_of_a_store.name}"
    with requests_made() as requests:
        assert delta_pyds.scan(root, columns="id", storage_options=store).to_table().num_columns == 1
    files = sorted(files_of_a_store.glob("*.parquet"))
    footers = [pq.read_metadata(file).serialized_size + 8 for file in files]
    for number, file in enumerate(files):
        column = pq.read_metadata(file).row_group(0).column(0).total_compressed_size
        end, rest = (request.received for request in of(requests, file.name))
        # the first tells how much the others need, and the longest of those that came meanwhile
        assert end in ({learnt + learnt // 8 + 128 for learnt in footers} if number else {8_192})
        assert rest == column
    assert len(requests) == 3 + 2 * len(files)


def test_files_that_are_short_are_one_request(bucket: Path, store: dict[str, Any]) -> None:
    table = data_table(bucket, 1_200, 4)
    with requests_made() as requests:
        scan = delta_pyds.scan(f"s3://bucket/{table.name}", columns="id", storage_options=store)
        assert scan.to_table().num_rows == 1_200
    assert sorted(r.received for r in of(requests, "part-")) == sorted(
        f.stat().st_size for f in table.glob("*.parquet")
    )


def test_a_longer_footer_costs_one_request_more_and_no_rows(bucket: Path, store: dict[str, Any]) -> None:
    """Files that are not alike: one of a hundred row groups comes after those of one."""
    table = TableBuilder(bucket / "unlike", IDS)
    table.create()
    for number, groups in enumerate((1, 1, 100, 1)):
        rows = [{"id": number * 100_000 + n} for n in range(100_000)]
        table.append(rows, row_group_size=len(rows) // groups)
    with requests_made() as requests:
        state = plan_scan(
            load_snapshot(f"s3://bucket/{table.path.name}", storage_options=store), columns="id", storage_options=store
        )
        files = list(state.files())
        plans = SharedPlans(replace(state.state, file_leaves=1))
        found = [sum(batch.num_rows for batch in read(plans.state, file, plans)) for file in files]
    assert found == [100_000] * 4
    made = Counter(request.url.partition("?")[0].rpartition("/")[2] for request in of(requests, "part-"))
    assert sorted(made.values()) == [2, 2, 2, 3]


def test_a_file_that_is_overwritten_between_two_requests_is_named(bucket: Path, store: dict[str, Any]) -> None:
    """Bytes of two files are never put together."""
    (bucket / "twice").mkdir()
    file = bucket / "twice" / "x.parquet"
    file.write_bytes(bytes(200_000))
    source = resolve_storage("s3://bucket/twice", store).parquet_source("s3://bucket/twice/x.parquet", 1_000)
    source.seek(0)
    assert source.read(10) == bytes(10)
    again = source.reopen()
    file.with_name("other").write_bytes(b"1" * 200_000)
    file.with_name("other").rename(file)
    for opened in (source, again):
        with pytest.raises(StorageError, match=r"'s3://bucket/twice/x\.parquet' was overwritten while it was read"):
            opened.read(10)
    with expect(again, [(100, 200)]), pytest.raises(StorageError, match="was overwritten"):
        again.seek(100)
        again.read(10)
    # what came with the size is of the first one
    source.seek(199_500)
    assert source.read() == bytes(500)


def test_a_file_in_parts_is_asked_for_its_end_once(
    files_of_a_store: Path, store: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent, "_PIECE_BYTES", 200_000)
    with requests_made() as requests:
        scan = delta_pyds.scan(f"s3://bucket/{files_of_a_store.name}", storage_options=store)
        assert scan.to_table().num_rows == 120_000
    for file in files_of_a_store.glob("*.parquet"):
        assert len([r for r in of(requests, file.name) if r.received == TAIL_BYTES]) == 1


def all_but_the_first_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are opened one after another, and never the second, or several at a time."""
    opened: list[str] = []
    several = threading.Event()
    real = S3Storage.parquet_source

    def waiting(self: S3Storage, path: str, *told: int) -> Any:
        opened.append(path)
        if len(opened) > 2:
            several.set()
        assert len(opened) == 1 or several.wait(20)
        return real(self, path, *told)

    monkeypatch.setattr(S3Storage, "parquet_source", waiting)


@pytest.mark.parametrize("kind", ["multipart", "v2-parquet", "v2-json"])
def test_each_part_of_a_checkpoint_is_one_request_and_several_are_under_way(
    bucket: Path, store: dict[str, Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TableBuilder(bucket / kind, IDS)
    table.create()
    table.commit([table.add(f"part-{n}.parquet", size=1) for n in range(200)])
    table.checkpoint(kind=kind, parts=12, sidecars=12)
    all_but_the_first_wait_for_each_other(monkeypatch)
    with requests_made() as requests:
        snapshot = load_snapshot(f"s3://bucket/{kind}", storage_options=store)
        assert len(list(plan_scan(snapshot).files())) == 200
    # the sizes of sidecars are compared with what the checkpoint says
    sidecars = of(requests, "_sidecars")
    assert Counter(request.method for request in sidecars) == ({} if kind == "multipart" else {"HEAD": 12, "GET": 12})
    assert len(of(requests, ".parquet")) == {"multipart": 12, "v2-parquet": 25, "v2-json": 24}[kind]
    assert len([request for request in requests if request.lists]) == 1


def test_a_task_asks_for_nothing_but_its_files(
    files_of_a_store: Path, store: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No log, and no look at sizes."""
    all_but_the_first_wait_for_each_other(monkeypatch)
    monkeypatch.setattr(read_ahead, "_BUDGET", read_ahead._ByteBudget())
    root = f"s3://bucket/{files_of_a_store.name}"
    planned = plan_scan(load_snapshot(root, storage_options=store), storage_options=store)
    task, parts = TaskScan(planned.state, None, None, ()), [to_stream(batch) for batch in planned.batches()]
    with requests_made() as requests:
        assert sum(batch.num_rows for part in parts for batch in task.read(part)) == 120_000
    assert {request.method for request in requests} == {"GET"}
    assert sorted(Counter(request.url for request in requests).values()) == [2] * 4
    assert all(".parquet" in request.url for request in requests)


def test_a_task_reads_its_part_of_a_file_and_no_other(
    bucket: Path, store: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is cut for several tasks is cut once more by each."""
    monkeypatch.setattr(concurrent, "_PIECE_BYTES", 4_000)
    monkeypatch.setattr(concurrent, "SHORT_FILE_BYTES", 1_000)
    ids = list(range(10_000))
    table = TableBuilder(bucket / "cut", IDS)
    table.create()
    table.append([{"id": n} for n in ids], row_group_size=100)
    planned = plan_scan(load_snapshot("s3://bucket/cut", storage_options=store), storage_options=store)
    packing = Packing(max_partition_bytes=30_000, open_cost_bytes=1, min_partitions=1)
    task, parts = (
        TaskScan(planned.state, None, None, ()),
        [to_stream(batch) for batch in pack(planned.batches(), packing)],
    )
    found = [n for part in parts for batch in task.read(part) for n in batch.column("id").to_pylist()]
    assert len(parts) > 1 and sorted(found) == ids
