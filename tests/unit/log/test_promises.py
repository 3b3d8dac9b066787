"""What a name, a number or a text of the log promises takes no memory and no time: only what is there does.

Whoever loops over a promise here does not come back, or takes all memory: no time is asserted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.commands.verification.values import parse_statistics, typed
from delta_pyds.commands.verify import verify
from delta_pyds.errors import DeltaError, MissingLogFilesError, TimeTravelError
from delta_pyds.log.checkpoint_reader import AddRequest
from delta_pyds.log.segment import latest_version
from delta_pyds.protocol.paths import parse_log_name
from delta_pyds.protocol.schema import LONG, DecimalType
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.packing import Packing, pack
from delta_pyds.table.snapshot import load_snapshot
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


@pytest.mark.parametrize("end", HUGE)
@pytest.mark.parametrize("start", [0, 1, 5])
def test_a_range_of_a_compaction(table: TableBuilder, start: int, end: int) -> None:
    (table.log_path / f"{start:020d}.{end:020d}.compacted.json").write_text("{}")
    assert num_files(table) == 4
    with pytest.raises(TimeTravelError):
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


def test_a_size_of_exabytes() -> None:
    files = pa.record_batch({"path": ["a", "b", "c"], "size": pa.array([2**62, 2**62, 2**62], pa.int64())})
    pieces = pack([files], Packing())
    assert sum(len(piece) for piece in pieces) <= 100_003
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
