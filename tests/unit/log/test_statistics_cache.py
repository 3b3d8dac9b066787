"""What is kept of checkpoints between queries: never another content, never more memory than was said."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.errors import CorruptLogError, MissingLogFilesError
from delta_pyds.log import adds, checkpoint_part
from delta_pyds.log.listing import is_settled, log_files
from delta_pyds.log.statistics_cache import LIMIT_BYTES_OF_SELECTED_ROWS, Columns, StatisticsCache, selected_rows
from delta_pyds.spark.options.read import parse_read_options
from delta_pyds.spark.planning import driver
from delta_pyds.storage.base import FileStatus
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder

# --- what is kept


def batches(*numbers: int) -> list[tuple[int, Columns]]:
    return [(n, (pa.array(range(n), pa.int64()), None)) for n in numbers]


def test_columns_come_back_batch_by_batch_in_any_order() -> None:
    known = StatisticsCache()
    known.put("c", 0, ("x", "y"), batches(2, 3))
    assert known.get("c", 0, ("y", "x")) == [(n, (nothing, column)) for n, (column, nothing) in batches(2, 3)]
    assert known.get("c", 0, ("x", "z")) is known.get("c", 1, ("x",)) is known.get("d", 0, ("x",)) is None


def test_columns_of_one_group_come_together() -> None:
    known = StatisticsCache()
    known.put("c", 0, ("x", "y"), batches(2))
    known.put("c", 0, ("y", "z"), [(2, (pa.array([7, 8]), pa.array(["a", "b"])))])
    assert known.get("c", 0, ("x", "y", "z")) == [(2, (pa.array([0, 1]), pa.array([7, 8]), pa.array(["a", "b"])))]


def known_groups(known: StatisticsCache, checkpoint: str, key: str = "x") -> list[int]:
    return [group for group in range(20) if known.get(checkpoint, group, (key,)) is not None]


# room for four columns of ten numbers
FOUR = 4 * (1500 + 80)


def one(n: int) -> list[tuple[int, Columns]]:
    return [(n, (pa.array(range(n), pa.int64()),))]


def test_what_was_not_used_for_longest_is_given_up() -> None:
    known = StatisticsCache(FOUR)
    for name in "abcd":
        known.put(name, 0, ("x",), one(10))
    assert known.get("a", 0, ("x",))
    known.put("e", 0, ("x",), one(10))
    assert [name for name in "abcde" if known_groups(known, name)] == ["a", "c", "d", "e"]


def test_a_checkpoint_that_is_too_large_keeps_what_it_got_first() -> None:
    known = StatisticsCache(FOUR)
    known.put("other", 0, ("x",), one(10))
    for _ in range(3):
        for group in range(9):
            if known.get("large", group, ("x",)) is None:
                known.put("large", group, ("x",), one(10))
        assert known_groups(known, "large") == [0, 1, 2, 3]
    # another column of it takes the place of the first one
    for group in range(9):
        known.put("large", group, ("y",), one(10))
    assert known_groups(known, "large", "y") == [0, 1, 2, 3] and known_groups(known, "large") == []


def test_nothing_is_given_up_for_what_has_no_room_all_the_same() -> None:
    known = StatisticsCache(FOUR)
    for name in "abc":
        known.put(name, 0, ("x",), one(10))
    known.put("huge", 0, ("x",), one(10_000))
    assert known_groups(known, "huge") == []
    assert [name for name in "abc" if known_groups(known, name)] == ["a", "b", "c"]


def test_columns_of_nothing_are_counted_too() -> None:
    known = StatisticsCache(FOUR)
    for group in range(9):
        known.put(f"c{group}", 0, ("x",), [(10, (None,))])
    assert [group for group in range(9) if known_groups(known, f"c{group}")] == [5, 6, 7, 8]


# --- of checkpoints


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> StatisticsCache:
    cache = StatisticsCache()
    monkeypatch.setattr(adds, "STATISTICS_CACHE", cache)
    monkeypatch.setattr(adds, "SELECTED_ROWS", selected_rows(LIMIT_BYTES_OF_SELECTED_ROWS))
    return cache


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, tuple[str, ...]]]:
    """The row groups that are decoded, and for which fields."""
    found: list[tuple[int, tuple[str, ...]]] = []
    rows = checkpoint_part.CheckpointPart.rows

    def noting(self: Any, kind: str, group: int, names: Any) -> Iterator[pa.StructArray]:
        found.append((group, tuple(names)))
        return rows(self, kind, group, names)

    monkeypatch.setattr(checkpoint_part.CheckpointPart, "rows", noting)
    return found


@pytest.fixture(
    params=[("classic", False), ("classic", True), ("multipart", False), ("v2-json", True), ("v2-parquet", False)],
    ids=lambda kind: f"{kind[0]}-{'struct' if kind[1] else 'json'}",
)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> TableBuilder:
    kind, struct = request.param
    built = TableBuilder(
        tmp_path / "t",
        {"id": "long", "p": "integer"},
        partition_columns=["p"],
        features=(["v2Checkpoint"], ["v2Checkpoint"]) if kind.startswith("v2") else None,
    )
    built.create()
    for i in range(6):
        built.commit([built.write_file([{"id": 10 * i}, {"id": 10 * i + 5}], {"p": i % 2})])
    built.checkpoint(kind=kind, stats_json=not struct, stats_struct=struct, row_group_size=3)
    return built


def ids(table: TableBuilder, where: str) -> list[int]:
    """The first id of each file that is kept."""
    first = {Path(a["add"]["path"]).name: 10 * i for i, a in enumerate(table.active(6))}
    return [first[Path(f.path).name] for f in plan_scan(load_snapshot(str(table.path)), where=where).files()]


def test_another_predicate_on_the_same_columns_decodes_only_what_it_keeps(
    table: TableBuilder, decoded: list[Any]
) -> None:
    assert ids(table, "id = 15") == [10]
    decoded.clear()
    assert ids(table, "id = 40") == [40]
    assert len(decoded) == 1 and "path" in decoded[0][1]
    decoded.clear()
    assert ids(table, "id > 1000") == []
    assert decoded == []
    assert ids(table, "p = 1 AND id < 30") == [10]
    decoded.clear()
    assert ids(table, "p = 0 AND id < 30") == [0, 20]
    assert ids(table, "id < 10") == [0]
    assert not any("partitionValues" in names and "path" not in names for _, names in decoded)


def test_an_equal_query_reads_nothing_of_the_checkpoint_s_files(
    table: TableBuilder, decoded: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ("id = 15", "id >= 30", "p = 1 AND id < 30")
    before = [ids(table, where) for where in wanted]
    requested: list[Any] = []
    monkeypatch.setattr(checkpoint_part.CheckpointPart, "expect_rows", lambda *asked: requested.append(asked))
    decoded.clear()
    assert [ids(table, where) for where in wanted] == before
    assert list(map(len, before)) == [1, 3, 1]
    assert decoded == requested == []


def test_other_fields_of_the_same_files_are_read(table: TableBuilder) -> None:
    assert ids(table, "id = 15") == [10]
    [file] = live_files(plan_scan(load_snapshot(str(table.path)), where="id = 15"))
    assert file.stats is not None and '"numRecords":2' in file.stats


def test_large_selections_are_not_cached(
    table: TableBuilder, decoded: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adds, "SELECTED_ROWS", selected_rows(0))
    for _ in range(2):
        decoded.clear()
        assert set(ids(table, "id >= 30")) == {30, 40, 50}
        assert any("path" in names for _, names in decoded)


def test_later_commits_take_nothing_away_and_files_that_they_removed_stay_away(
    table: TableBuilder, decoded: list[Any]
) -> None:
    assert ids(table, "id >= 40") == [40, 50]
    table.commit([table.remove(table.active()[5])])
    decoded.clear()
    assert ids(table, "id >= 40") == [40]
    assert all("path" in names for _, names in decoded)


def test_a_checkpoint_that_took_the_place_of_another_is_read_anew(table: TableBuilder) -> None:
    assert ids(table, "id = 15") == [10]
    for file in table.log_path.glob("*.checkpoint*"):
        file.unlink()
    for add in table.active():
        add["add"]["stats"] = '{"numRecords":2,"minValues":{"id":15},"maxValues":{"id":15},"nullCount":{"id":0}}'
    table.checkpoint(row_group_size=3)
    assert ids(table, "id = 15") == [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize(
    ("age_ms", "generation", "settled"),
    [(0, "", False), (1_000, "", False), (60_000, "", True), (-60_000, "", False), (0, "a", True)],
)
def test_a_file_of_just_now_may_be_followed_by_one_that_looks_the_same(
    age_ms: int, generation: str, settled: bool
) -> None:
    name = "00000000000000000003.checkpoint.parquet"
    written_ms = int(time.time() * 1000) - age_ms
    [file] = log_files([FileStatus(f"/t/_delta_log/{name}", 10, written_ms, generation)])
    assert is_settled(file) is settled


# --- of sidecars


@pytest.fixture(params=["v2-json", "v2-parquet"])
def with_sidecars(request: pytest.FixtureRequest, tmp_path: Path) -> TableBuilder:
    built = TableBuilder(tmp_path / "t", {"id": "long"}, features=(["v2Checkpoint"], ["v2Checkpoint"]))
    built.create()
    for i in range(6):
        built.commit([built.write_file([{"id": 10 * i}, {"id": 10 * i + 5}])])
    built.checkpoint(kind=request.param, sidecars=2)
    built.cleanup_log(6)
    return built


def paths_of(table: TableBuilder, where: str | None) -> list[str]:
    """As Spark's planner does it, which keeps snapshots between queries."""
    options = parse_read_options({"path": str(table.path), **({"where": where} if where else {})})
    scan = driver.plan(driver.open_table(options), options)
    return sorted(file.path for file in scan.files())


def first_half(file: Path, size: int) -> bytes:
    """A readable file of that size with some of the rows."""
    rows, out = pq.read_table(file), io.BytesIO()
    pq.write_table(rows.slice(0, rows.num_rows // 2), out, store_schema=False)
    data = out.getvalue()
    footer = 8 + int.from_bytes(data[-8:-4], "little")
    return data[:-footer] + bytes(size - len(data)) + data[-footer:]


@pytest.mark.parametrize("where", [None, "id >= 0"])
def test_a_sidecar_that_was_damaged_and_restored_is_read_anew(with_sidecars: TableBuilder, where: str | None) -> None:
    whole = paths_of(with_sidecars, where)
    assert len(whole) == 6
    sidecar = min((with_sidecars.log_path / "_sidecars").iterdir())
    data = sidecar.read_bytes()
    damaged = first_half(sidecar, len(data))
    assert len(damaged) == len(data)
    sidecar.write_bytes(damaged)
    assert 0 < len(paths_of(with_sidecars, where)) < 6
    sidecar.write_bytes(data)
    assert paths_of(with_sidecars, where) == whole


def test_a_sidecar_of_another_size_is_refused_and_read_again_when_it_is_whole(with_sidecars: TableBuilder) -> None:
    whole = paths_of(with_sidecars, "id >= 0")
    sidecar = sorted((with_sidecars.log_path / "_sidecars").iterdir())[0]
    data = sidecar.read_bytes()
    for damaged in (data + b"\0", data[:-1], b""):
        sidecar.write_bytes(damaged)
        with pytest.raises(CorruptLogError, match=f"{len(damaged)} bytes") as failure:
            paths_of(with_sidecars, "id >= 0")
        assert failure.value.code == "DELTA_CORRUPT_CHECKPOINT"
        assert failure.value.parameters["path"] == str(sidecar)
    sidecar.unlink()
    with pytest.raises(MissingLogFilesError):
        paths_of(with_sidecars, "id >= 0")
    sidecar.write_bytes(data)
    assert paths_of(with_sidecars, "id >= 0") == whole


def test_sidecars_in_a_store_are_asked_for_once_a_query(
    with_sidecars: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = LocalStorage.status

    def status(self: LocalStorage, path: str) -> FileStatus:
        asked.append(path)
        return real(self, path)

    monkeypatch.setattr(LocalStorage, "status", status)
    monkeypatch.setattr(LocalStorage, "scheme", "s3")
    for _ in range(3):
        asked.clear()
        assert len(paths_of(with_sidecars, "id >= 0")) == 6
        assert len([path for path in asked if "_sidecars" in path]) == 2
