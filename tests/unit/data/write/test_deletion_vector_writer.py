"""Deletion vectors that we write are the ones that we, and deltalake's kernel, read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from delta_pyds.data.read.deletion_vector import load_deletion_vector
from delta_pyds.data.write.deletion_vector_writer import write_deletion_vectors
from delta_pyds.storage.local import LocalStorage
from tests.support.memory_storage import MemoryStorage
from tests.support.table_builder import TableBuilder

_POSITIONS = st.sets(st.integers(0, 1 << 40), min_size=1, max_size=200)


@given(st.lists(_POSITIONS, min_size=1, max_size=5), st.sampled_from([None, 2, 5]))
def test_what_is_written_is_read_back(sets: list[set[int]], prefix: int | None) -> None:
    storage = MemoryStorage()
    bitmaps = [BitMap64(s) for s in sets]
    descriptors = write_deletion_vectors(storage, "/t", bitmaps, random_prefix_length=prefix)
    for bitmap, descriptor in zip(bitmaps, descriptors, strict=True):
        assert load_deletion_vector(storage, "/t", descriptor).positions == bitmap
        assert descriptor.cardinality == len(bitmap)
    assert len({d.unique_id for d in descriptors}) == len(sets)


def test_no_bitmaps_write_no_file(tmp_path: Path) -> None:
    assert write_deletion_vectors(LocalStorage(), str(tmp_path), []) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("prefix", [None, 3])
def test_another_engine_reads_them(tmp_path: Path, prefix: int | None) -> None:
    from deltalake import DeltaTable, QueryBuilder

    builder = TableBuilder(tmp_path, {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    builder.create()
    [add] = builder.append([{"id": i} for i in range(10)])
    [vector] = write_deletion_vectors(LocalStorage(), str(tmp_path), [BitMap64([1, 3, 9])], random_prefix_length=prefix)
    described = {
        "storageType": vector.storage_type,
        "pathOrInlineDv": vector.path_or_inline_dv,
        "offset": vector.offset,
        "sizeInBytes": vector.size_in_bytes,
        "cardinality": vector.cardinality,
    }
    file = add["add"]
    removed = {"path": file["path"], "deletionTimestamp": 1, "dataChange": True, "size": file["size"],
               "extendedFileMetadata": True, "partitionValues": {}}  # fmt: skip
    builder.commit([{"remove": removed}, {"add": {**file, "deletionVector": described}}])
    rows = QueryBuilder().register("t", DeltaTable(str(tmp_path))).execute("select id from t order by id").read_all()
    assert rows.column("id").to_pylist() == [0, 2, 4, 5, 6, 7, 8]
