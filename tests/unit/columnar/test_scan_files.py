"""Rows of files that tasks turn into what the reader takes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.scan_files import to_scan_files
from delta_pyds.errors import DeletionVectorError
from delta_pyds.log.file_table import DELETION_VECTOR
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.table.scan.packing import Packing, pack

VECTOR = {
    "storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "offset": None, "sizeInBytes": 40, "cardinality": 6, "maxRowIndex": None,
}  # fmt: skip
DESCRIPTOR = DeletionVectorDescriptor("i", str(VECTOR["pathOrInlineDv"]), 40, 6)
NULLS = dict.fromkeys(VECTOR)


def _files(sizes: list[int], **columns: pa.Array) -> pa.RecordBatch:
    count = len(sizes)
    arrays: dict[str, pa.Array] = {
        "path": pa.array([f"f{i}" for i in range(count)]),
        "size": pa.array(sizes, pa.int64()),
        "deletionVector": pa.nulls(count, DELETION_VECTOR),
        "baseRowId": pa.nulls(count, pa.int64()),
        "defaultRowCommitVersion": pa.nulls(count, pa.int64()),
    }
    return pa.record_batch(arrays | columns)


def _vectors(*values: dict[str, Any] | None) -> pa.Array:
    return pa.array(values, DELETION_VECTOR)


def test_files_of_a_scan_select_no_rows_and_are_no_change_data() -> None:
    (file,) = to_scan_files(_files([1]), "/t")
    assert (file.selected, file.change_data) == (None, False)


def test_selected_rows_and_change_data_of_each_file() -> None:
    batch = _files(
        [1] * 4,
        selected=_vectors(VECTOR, None, NULLS, VECTOR),
        deletionVector=_vectors(None, None, None, VECTOR),
        changeData=pa.array([False, True, None, False]),
    )
    found = [(f.selected, f.deletion_vector, f.change_data) for f in to_scan_files(batch, "/t")]
    assert found == [
        (DESCRIPTOR, None, False),
        (None, None, True),
        (None, None, False),
        (DESCRIPTOR, DESCRIPTOR, False),
    ]


def test_half_a_descriptor_of_selected_rows_is_refused() -> None:
    batch = _files([1], selected=_vectors(NULLS | {"storageType": "u"}))
    with pytest.raises(DeletionVectorError, match="'f0'"):
        list(to_scan_files(batch, "/t"))


def test_each_piece_of_a_cut_file_selects_the_same_rows() -> None:
    sizes = [10, 250, 90, 300]
    selected = [VECTOR, VECTOR, None, None]
    batches = [
        _files(
            sizes[at:end], selected=_vectors(*selected[at:end]), changeData=pa.array([False, False, True, True][at:end])
        )
        for at, end in ((0, 1), (1, 4))
    ]
    # by size, for each batch numbers its files from 0
    pieces: dict[int, list[tuple[int, int | None]]] = {}
    for partition in pack(batches, Packing(max_partition_bytes=100, open_cost_bytes=1)):
        for file in to_scan_files(partition, "/t"):
            pieces.setdefault(file.size_bytes, []).append((file.start, file.length))
            assert file.selected == (DESCRIPTOR if file.size_bytes in (10, 250) else None)
            assert file.change_data == (file.size_bytes in (90, 300))
    assert {size: sorted(found) for size, found in pieces.items()} == {
        10: [(0, None)],
        250: [(0, 84), (84, 84), (168, 82)],
        90: [(0, None)],
        300: [(0, 75), (75, 75), (150, 75), (225, 75)],
    }
