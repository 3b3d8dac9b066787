"""What a table in a store costs in requests: tables of a directory behind S3's protocol, all requests counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.stores.requests_made import Request, requests_made
from tests.support.directory_server import directory_server
from tests.support.large_table import CHECKPOINT_VERSION, LargeTable, generate_large
from tests.support.s3_server import options


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
