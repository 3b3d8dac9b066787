from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.errors import CorruptLogError
from delta_pyds.protocol.actions import AddFile, RemoveFile
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.table.scan.live_files import adds_of, removal

ROW: dict[str, Any] = {"path": "a.parquet", "size": 1, "modificationTime": 1, "dataChange": True}
VECTOR: dict[str, Any] = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 8, "cardinality": 1}


def test_a_remove_says_all_that_readers_of_changes_and_vacuum_need() -> None:
    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 2, 1)
    add = AddFile(
        "a b",
        {"p": None},
        10,
        7,
        tags={"k": "v"},
        deletion_vector=vector,
        base_row_id=3,
        default_row_commit_version=4,
        stats="{}",
    )
    for data_change in (True, False):
        assert removal(add, deletion_timestamp_ms=99, data_change=data_change) == RemoveFile(
            "a b",
            deletion_timestamp=99,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values={"p": None},
            size=10,
            tags={"k": "v"},
            deletion_vector=vector,
            base_row_id=3,
            default_row_commit_version=4,
        )


def test_a_remove_of_an_unpartitioned_file_has_no_partition_values_and_not_none() -> None:
    assert removal(AddFile("a", None, 10, 7), deletion_timestamp_ms=1, data_change=True).partition_values == {}


def test_a_row_is_an_action() -> None:
    (found,) = adds_of(pa.RecordBatch.from_pylist([{**ROW, "deletionVector": VECTOR}]))
    assert found.path == "a.parquet" and found.deletion_vector is not None
    (found,) = adds_of(pa.RecordBatch.from_pylist([{**ROW, "deletionVector": dict.fromkeys(VECTOR)}]))
    assert found.deletion_vector is None


@pytest.mark.parametrize("missing", ["sizeInBytes", "cardinality", "pathOrInlineDv"])
def test_a_row_with_an_incomplete_vector_is_a_damaged_log(missing: str) -> None:
    kinds = pa.RecordBatch.from_pylist([{"deletionVector": VECTOR}]).schema.field(0).type
    damaged = pa.array([{**VECTOR, missing: None}], kinds)
    rows = pa.RecordBatch.from_pylist([ROW]).append_column("deletionVector", damaged)
    with pytest.raises(CorruptLogError, match=r"the file 'a.parquet' is damaged .*" + missing):
        list(adds_of(rows))


def test_a_row_with_a_key_twice_is_a_damaged_log() -> None:
    values = pa.array([[("p", "1"), ("p", "2")]], pa.map_(pa.string(), pa.string()))
    rows = pa.RecordBatch.from_pylist([ROW]).append_column("partitionValues", values)
    with pytest.raises(CorruptLogError, match="two values of one key"):
        list(adds_of(rows))
