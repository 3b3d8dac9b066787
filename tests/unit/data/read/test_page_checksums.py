"""Damage that leaves a file its size: noticed, or harmless, and never other rows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.commands.maintain import checkpoint
from delta_pyds.data.read.reader import read
from delta_pyds.errors import CorruptDataFileError, CorruptLogError, DeltaError
from delta_pyds.log.checkpoint_part import CheckpointPart
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.schema import DOUBLE, LONG, STRING, ArrayType, StructType
from delta_pyds.spark.options.read import parse_read_options
from delta_pyds.storage.local import LocalStorage
from delta_pyds.tasks.scan_state import ScanFile, ScanState
from tests.support.scans import state_of, struct
from tests.support.table_builder import TableBuilder
from tests.support.writes import batch_of, on_disk, write_files, write_state

SCHEMA = struct(("id", LONG), ("s", STRING), ("d", DOUBLE), ("l", ArrayType(LONG)))
ROWS = [{"id": i, "s": f"text {i % 5}", "d": i / 3, "l": [i, None][: i % 3]} for i in range(200)]


def _written(root: Path, **given: str) -> tuple[Path, ScanState, ScanFile]:
    """A data file as we write it."""
    state = write_state(root, SCHEMA, **given)
    (file,) = write_files(state, batch_of(SCHEMA, ROWS))
    path = on_disk(state, file)
    return path, state_of(root, SCHEMA), ScanFile(str(path), path.stat().st_size)


def _rows(state: ScanState, file: ScanFile) -> list[dict[str, object]]:
    return [row for batch in read(state, file) for row in batch.to_pylist()]


def _damaged(content: bytes, random: Random) -> bytes:
    """A bit, some bytes, or a piece of the file over another."""
    damaged, at = bytearray(content), random.randrange(len(content))
    kind = random.randrange(3)
    if kind == 0:
        damaged[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        damaged[at : at + 4] = random.randbytes(len(damaged[at : at + 4]))
    else:
        length, start = random.choice((1, 8, 64)), random.randrange(len(content))
        piece = content[start : start + length][: len(content) - at]
        damaged[at : at + len(piece)] = piece
    return bytes(damaged)


@pytest.mark.parametrize("compression", ["snappy", "none"])
def test_no_damage_gives_other_rows(tmp_path: Path, compression: str) -> None:
    path, state, file = _written(tmp_path, compression=compression)
    content, right = path.read_bytes(), _rows(state, file)
    assert right == ROWS
    random, refused, wrong_without = Random(compression), 0, 0
    unverified = dataclasses.replace(state, verify_page_checksums=False)
    for _ in range(100):
        path.write_bytes(_damaged(content, random))
        try:
            assert _rows(state, file) == right
        except DeltaError as e:
            refused += 1
            assert path.name in str(e)
        try:
            wrong_without += _rows(unverified, file) != right
        except UnicodeDecodeError:
            wrong_without += 1
        except DeltaError:
            continue
    assert refused > 50
    # otherwise this test would show nothing
    assert wrong_without > 5


@pytest.mark.parametrize(
    ("policy", "files"), [("classic", "_delta_log/*.checkpoint.parquet"), ("v2", "_delta_log/_sidecars/*.parquet")]
)
def test_pages_of_checkpoints_and_sidecars_have_checksums_that_are_verified(
    tmp_path: Path, policy: str, files: str
) -> None:
    table = TableBuilder(tmp_path, {"id": "long"}, [], {"delta.checkpointPolicy": policy})
    table.create()
    table.append([{"id": 1}])
    checkpoint(str(tmp_path))
    [path] = list(tmp_path.glob(files))
    content = path.read_bytes()
    footer_begins = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    right = [add.path for add in _adds(path)]
    assert right and all(right)
    refused = 0
    places = range(4, footer_begins, max(1, footer_begins // 60))
    for at in places:
        path.write_bytes(bytes([*content[:at], content[at] ^ 1, *content[at + 1 :]]))
        try:
            assert [add.path for add in _adds(path)] == right
        except CorruptLogError as e:
            refused += 1
            assert path.name in str(e)
    assert refused > len(places) // 8


def _adds(path: Path) -> list[AddFile]:
    return CheckpointPart(LocalStorage(), str(path)).actions("add", AddFile)


def test_the_option_turns_the_verification_off() -> None:
    assert parse_read_options({"path": "/t"}).verify_page_checksums
    assert parse_read_options({"path": "/t", "verifypagechecksums": "TRUE"}).verify_page_checksums
    assert not parse_read_options({"path": "/t", "verifyPageChecksums": "false"}).verify_page_checksums


def test_damage_of_a_file_that_has_no_checksums_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "f"
    pq.write_table(pa.table({"id": range(10)}), path, compression="none")
    assert len(_rows(state_of(tmp_path, struct(("id", LONG))), ScanFile(str(path), path.stat().st_size))) == 10
    with pytest.raises(CorruptDataFileError):
        _rows(state_of(tmp_path, StructType(SCHEMA.fields[:1])), ScanFile(str(path), 1))
