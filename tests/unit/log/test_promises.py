"""What a name, a number or a text of the log promises takes no memory and no time: only what is there does.

Whoever loops over a promise here does not come back, or takes all memory: no time is asserted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.errors import CorruptLogError, DeltaError, MissingLogFilesError, ProtocolError
from delta_pyds.log import adds, checkpoint_part, decoded_size
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.segment import latest_version
from delta_pyds.protocol.paths import parse_log_name
from delta_pyds.protocol.schema import LONG, DecimalType
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.scan import packing
from delta_pyds.table.scan.packing import Packing, pack
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.values import parse_statistics, typed
from delta_pyds.verification.verify import verify
from tests.support.table_builder import TableBuilder


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    built = TableBuilder(tmp_path / "t", {"id": "long"})
    built.create()
    for i in range(4):
        built.append([{"id": i}])
    return built


def num_files(table: TableBuilder, version: int | None = None) -> int:
    snapshot = load_snapshot(str(table.path), version=version)
    return sum(len(batch.files) for batch in snapshot.adds(AddRequest(columns=("path",))))


HUGE = (10**9, 10**18, 2**63 - 1)


@pytest.mark.parametrize("parts", ["0100000000", "9999999999", "0000000000"])
def test_a_number_of_parts(table: TableBuilder, parts: str) -> None:
    (table.log_path / f"{4:020d}.checkpoint.0000000001.{parts}.parquet").write_text("x")
    assert num_files(table) == 4
    assert "checkpoint.incomplete" in {finding.rule for finding in verify(str(table.path)).findings}


@pytest.mark.parametrize("parts", [(1, 3), (0, 1), (0, 2), (2, 3), (1,), (1, 2, 3)])
def test_parts_are_those_from_the_first_to_their_number(table: TableBuilder, parts: tuple[int, ...]) -> None:
    one, two = table.checkpoint(kind="multipart", parts=2)
    assert load_snapshot(str(table.path)).segment.checkpoint is not None
    data = one.read_bytes()
    one.unlink()
    two.unlink()
    for part in parts:
        (table.log_path / f"{4:020d}.checkpoint.{part:010d}.{2:010d}.parquet").write_bytes(data)
    assert load_snapshot(str(table.path)).segment.checkpoint is None
    assert num_files(table) == 4


@pytest.mark.parametrize("end", HUGE)
@pytest.mark.parametrize("start", [0, 1, 5])
def test_a_range_of_a_compaction(table: TableBuilder, start: int, end: int) -> None:
    (table.log_path / f"{start:020d}.{end:020d}.compacted.json").write_text("{}")
    assert num_files(table) == 4
    if start > 0:
        assert num_files(table, end) == {1: 0, 5: 4}[start]  # it says that nothing happened since
    else:
        with pytest.raises(ProtocolError, match="protocol"):
            load_snapshot(str(table.path), version=end)
    assert "compaction.range" in {finding.rule for finding in verify(str(table.path)).findings}


@pytest.mark.parametrize("version", HUGE)
@pytest.mark.parametrize("compaction", [False, True])
def test_a_version_of_a_commit(table: TableBuilder, version: int, compaction: bool) -> None:
    (table.log_path / f"{version:020d}.json").write_text("{}")
    if compaction:
        (table.log_path / f"{5:020d}.{version - 1:020d}.compacted.json").write_text("{}")
        assert num_files(table) == 4  # every version is there, by its name
        (table.log_path / f"{3:020d}.json").unlink()
    with pytest.raises(MissingLogFilesError) as failure:
        load_snapshot(str(table.path))
    assert failure.value.parameters["missing_version"] == (3 if compaction else 5)
    verify(str(table.path))


@pytest.mark.parametrize("version", HUGE)
def test_a_version_of_a_checkpoint(table: TableBuilder, version: int) -> None:
    (file,) = table.checkpoint()
    file.rename(table.log_path / f"{version:020d}.checkpoint.parquet")
    assert latest_version(LocalStorage(), str(table.path)) == version
    assert num_files(table) == 4
    assert num_files(table, 4) == 4


@pytest.mark.parametrize("version", [*HUGE, 2**63, 10**30, -1])
def test_a_version_of_the_hint(table: TableBuilder, version: int) -> None:
    (table.log_path / "_last_checkpoint").write_text(json.dumps({"version": version, "size": 1, "parts": 10**9}))
    assert num_files(table) == 4
    assert latest_version(LocalStorage(), str(table.path)) == 4


@pytest.mark.parametrize(
    "name",
    [
        f"{2**63:020d}.json",
        "9" * 20 + ".crc",
        f"{1:020d}.{2**63:020d}.compacted.json",
        "9" * 20 + ".checkpoint.parquet",
    ],
)
def test_a_version_is_a_number_of_64_bits(name: str) -> None:
    assert parse_log_name(name) is None
    assert parse_log_name(name.replace("9" * 20, f"{2**63 - 1:020d}").replace(str(2**63), str(2**63 - 1))) is not None


@pytest.mark.parametrize("text", ["1e999999999", "-1e999999999", "1e-999999999", "1e41"])
def test_numbers_of_statistics(text: str) -> None:
    stats = '{"numRecords":1,"minValues":{"id":' + text + "}}"
    found = parse_statistics(stats)
    assert found is not None
    with pytest.raises(ValueError, match="1"):
        typed(found["minValues"]["id"], LONG)
    assert typed(found["minValues"]["id"], DecimalType(38, 0)) is not None


def test_a_size_of_exabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_MAX_PIECES", 1_000)
    files = pa.record_batch({"path": ["a", "b", "c"], "size": pa.array([2**62, 2**62, 2**62], pa.int64())})
    pieces = pack([files], Packing())
    assert sum(len(piece) for piece in pieces) <= 1_003
    covered: dict[str, list[tuple[int, int]]] = {}
    for piece in pieces:
        for row in piece.to_pylist():
            covered.setdefault(row["path"], []).append((row["start"], row["length"]))
    for ranges in covered.values():
        at = 0
        for start, length in sorted(ranges):
            assert start == at
            at += length
        assert at == 2**62


def test_numbers_of_actions_that_no_engine_holds(table: TableBuilder) -> None:
    commit: list[dict[str, Any]] = [{"add": {**table.active()[0]["add"], "size": 2**63}}]
    (table.log_path / f"{5:020d}.json").write_text(json.dumps(commit[0]))
    with pytest.raises(DeltaError, match="Line 1 of the log file") as failure:
        load_snapshot(str(table.path))
    assert failure.value.parameters["path"].endswith(f"{5:020d}.json")


# --- checkpoints that decode to more than they hold


def bloated(
    file: Path, text: str, *, column: str = "stats", first_null: bool = False, count: int = 20_000, delta: bool = False
) -> None:
    """A classic checkpoint, whose adds all share one text: a few kilobytes on the disk.

    ``delta``: each text as that of the row before, without a dictionary.
    """
    rows = pq.read_table(file).combine_chunks()
    is_add = rows.column("add").is_valid()
    others, one = rows.filter(pc.invert(is_add)), rows.filter(is_add).column("add").combine_chunks()[:1]
    many = one.take(pa.array([0] * count))
    children = {field.name: many.field(i) for i, field in enumerate(many.type)}
    children["path"] = pa.array([f"f{i}" for i in range(count)])
    # Arrow writes a dictionary as it is
    children[column] = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), [text])
    adds = pa.StructArray.from_arrays(list(children.values()), names=list(children))
    none = adds[:1].take(pa.array([None] * len(others), pa.int64()))
    parts = [none, adds] if first_null else [adds, none]
    columns: dict[str, Any] = {"add": pa.chunked_array(parts)}
    for name in set(rows.column_names) - {"add"}:
        values = others.column(name).combine_chunks()
        empty = pa.nulls(count, values.type)
        columns[name] = pa.chunked_array([values, empty] if first_null else [empty, values])
    encoding: dict[str, Any] = {"dictionary_pagesize_limit": 1 << 28}
    if delta:
        encoding = {"use_dictionary": False, "column_encoding": {f"add.{column}": "DELTA_BYTE_ARRAY"}}
        encoding |= {"data_page_size": 1 << 30, "write_statistics": False}
    pq.write_table(pa.table(columns), file, compression="zstd", store_schema=False, **encoding)


@pytest.mark.parametrize("first_null", [False, True])
def test_statistics_that_decode_to_gigabytes_are_unknown(
    table: TableBuilder, first_null: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = table.checkpoint()
    stats = '{"numRecords":1,"minValues":{"id":"' + "x" * (2 << 20) + '"}}'
    bloated(file, stats, first_null=first_null)
    assert file.stat().st_size < 1 << 20
    table.cleanup_log(4)
    before = pa.total_allocated_bytes()
    sizes: list[int] = []
    real = checkpoint_part.CheckpointPart.rows

    def rows(self: Any, kind: str, group: int, names: Any) -> Iterator[pa.StructArray]:
        for array in real(self, kind, group, names):
            sizes.append(pa.total_allocated_bytes() - before)
            yield array

    monkeypatch.setattr(checkpoint_part.CheckpointPart, "rows", rows)
    assert len(list(plan_scan(load_snapshot(str(table.path)), where="id = 17").files())) == 20_000
    assert max(sizes) < 64 << 20
    for batch in load_snapshot(str(table.path)).adds(AddRequest(columns=("path", "stats"))):
        assert batch.files.column("stats").null_count == len(batch.files)


_IN_LITTLE_MEMORY = """
import resource, sys
from delta_pyds.log import decoded_size
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
decoded_size.MAX_BATCH_BYTES = 8 << 20
snapshot = load_snapshot(sys.argv[1])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (450 << 20), used + (450 << 20)))
print(sum(1 for _ in plan_scan(snapshot, where="id = 17").files()))
"""


def test_texts_that_repeat_the_one_before_take_no_more_memory(table: TableBuilder) -> None:
    """480 MB of statistics in some kilobytes. The footer knows of the bytes of the first alone."""
    (file,) = table.checkpoint()
    bloated(file, '{"numRecords":1,"x":"' + "y" * 400_000 + '"}', count=1_200, delta=True)
    table.cleanup_log(4)
    assert file.stat().st_size < 1 << 17
    done = subprocess.run(
        [sys.executable, "-c", _IN_LITTLE_MEMORY, str(table.path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"},
    )
    assert done.stdout.split() == ["1200"], done.stderr[-2000:]


def test_a_footer_is_read_once_for_each_content(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = table.checkpoint()
    table.cleanup_log(4)
    read: list[Any] = []
    real = checkpoint_part.ParquetFooter
    monkeypatch.setattr(checkpoint_part, "ParquetFooter", lambda *of: read.append(of) or real(*of))
    monkeypatch.setattr(checkpoint_part, "_FACTS", BoundedCache(1 << 20))
    for times, expected in ((100, 1), (200, 2)):
        os.utime(file, (times, times))
        for _ in range(3):
            assert num_files(table) == 4
        assert len(read) == expected


def test_a_checkpoint_that_memory_is_too_short_for_need_not_be_deleted(table: TableBuilder) -> None:
    table.checkpoint()
    part = checkpoint_part.CheckpointPart(LocalStorage(), "x.checkpoint.parquet")
    for error in (MemoryError(), pa.ArrowMemoryError("malloc of size 2000000000 failed")):
        with pytest.raises(CorruptLogError, match="more memory") as failure, part.translating_errors():
            raise error
        assert failure.value.code == "DELTA_OUT_OF_MEMORY"
        assert "delete" not in str(failure.value)


@pytest.mark.parametrize("rows", [3, 5])
def test_statistics_of_other_rows_decide_nothing(
    table: TableBuilder, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One verdict for each of the four rows that are files, and no more."""
    table.checkpoint()
    table.cleanup_log(4)
    real = adds.PartScan._masks

    def verdicts(*args: Any) -> list[pa.BooleanArray]:
        whole = pa.concat_arrays(real(*args))
        return [pa.concat_arrays([whole, whole]).slice(0, len(whole) + rows - 4)]

    monkeypatch.setattr(adds.PartScan, "_masks", verdicts)
    with pytest.raises(DeltaError, match="of statistics"):
        list(plan_scan(load_snapshot(str(table.path)), where="id = 2").files())


def test_long_texts_of_another_kind_are_decoded_a_few_at_a_time(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = table.checkpoint()
    bloated(file, "y" * (1 << 14), column="clusteringProvider")
    monkeypatch.setattr(decoded_size, "MAX_BATCH_BYTES", 1 << 20)
    batches = list(load_snapshot(str(table.path)).adds(AddRequest(columns=("path", "clusteringProvider"))))
    assert {len(batch.files) for batch in batches} == {64, 20_000 % 64}
    assert sum(len(batch.files) for batch in batches) == 20_000


def test_verify_does_not_decode_what_is_absurd(table: TableBuilder) -> None:
    (file,) = table.checkpoint()
    bloated(file, "x" * (2 << 20))
    findings = [f for f in verify(str(table.path)).findings if f.rule == "checkpoint.unreadable"]
    assert [finding.where for finding in findings] == [str(file)]
    assert f"{2 << 20} bytes" in findings[0].message
