"""Numbers in a footer that nothing in the file bears out: an error, and neither memory nor time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from delta_pyds.data.read.reader import read
from delta_pyds.errors import CorruptDataFileError
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import LONG
from delta_pyds.tasks.scan_state import ScanFile
from tests.support.bitmaps import write_vectors
from tests.support.parquet_footers import (
    GROUP_ROWS,
    META_DATA,
    NUM_ROWS,
    NUM_VALUES,
    ROW_GROUPS,
    chunks,
    read_footer,
    with_footer,
)
from tests.support.scans import scan, state_of, struct, write

MOST = 2**62


def _promising(tmp_path: Path, rows: int) -> ScanFile:
    """A file of a hundred rows that says it has so many."""
    path = tmp_path / "f"
    content = Path(write(path, pa.table({"a": range(100)})).path).read_bytes()
    footer = read_footer(content)
    footer[NUM_ROWS][1] = rows
    for group in footer[ROW_GROUPS][1][1]:
        group[GROUP_ROWS][1] = rows
    for chunk in chunks(footer):
        chunk[META_DATA][1][NUM_VALUES][1] = rows
    path.write_bytes(with_footer(content, footer))
    return ScanFile(str(path), path.stat().st_size)


@pytest.mark.parametrize("columns", [struct(("a", LONG)), struct()], ids=["a column", "no column"])
@pytest.mark.parametrize("deleted", [False, True])
def test_rows_that_are_not_there_are_missed(tmp_path: Path, columns: object, deleted: bool) -> None:
    file = _promising(tmp_path, MOST)
    if deleted:
        vector = msgspec.convert(write_vectors(tmp_path, [[1, 2]])[0], DeletionVectorDescriptor)
        file = dataclasses.replace(file, deletion_vector=vector)
    before, seen = pa.total_allocated_bytes(), 0
    with pytest.raises(CorruptDataFileError, match="rows"):
        for batch in read(state_of(tmp_path, columns), file):
            seen += batch.num_rows
            assert pa.total_allocated_bytes() - before < 64 << 20
    assert seen <= 100


def test_more_rows_than_bytes_are_counted_where_they_are_true(tmp_path: Path) -> None:
    file = write(tmp_path / "f", pa.table({"a": pa.nulls(3_000_000, pa.int64())}), row_group_size=3_000_000)
    assert file.size_bytes * 64 < 3_000_000
    assert sum(b.num_rows for b in read(state_of(tmp_path, struct()), file)) == 3_000_000


@pytest.mark.parametrize("rows", [-1, 99, 101])
def test_row_groups_and_file_that_disagree_on_their_rows(tmp_path: Path, rows: int) -> None:
    path = Path(_promising(tmp_path, 100).path)
    footer = read_footer(path.read_bytes())
    footer[NUM_ROWS][1] = rows
    path.write_bytes(with_footer(path.read_bytes(), footer))
    with pytest.raises(CorruptDataFileError, match=str(rows)):
        scan(state_of(tmp_path, struct(("a", LONG))), ScanFile(str(path), path.stat().st_size))
