"""Deletion vectors that we write are the ones that we, and deltalake's kernel, read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import serialize
from delta_pyds.data.read.deletion_vector import load_deletion_vector
from delta_pyds.data.write.deletion_vector_writer import write_deletion_vectors
from delta_pyds.errors import StorageError
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


def test_many_bitmaps_go_to_files_of_a_size(tmp_path: Path) -> None:
    bitmaps = [BitMap64(range(n, 100_000, 7)) for n in range(6)]
    storage = LocalStorage()
    size = len(serialize(bitmaps[0]))
    vectors = write_deletion_vectors(storage, str(tmp_path), bitmaps, file_bytes=2 * size + size // 2)
    files = [v.relative_path() for v in vectors]
    assert files[0] == files[1] != files[2] == files[3] != files[4] == files[5]
    assert len(list(tmp_path.rglob("*.bin"))) == 3
    for bitmap, vector in zip(bitmaps, vectors, strict=True):
        assert load_deletion_vector(storage, str(tmp_path), vector).positions == bitmap


def test_a_storage_that_fails_in_between_keeps_none_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, calls = LocalStorage.open_output, []

    def full(self: LocalStorage, path: str) -> BinaryIO:
        calls.append(path)
        if len(calls) == 3:
            raise StorageError("the disk is full")
        return opened(self, path)

    monkeypatch.setattr(LocalStorage, "open_output", full)
    bitmaps = [BitMap64([n]) for n in range(3)]
    with pytest.raises(StorageError):
        write_deletion_vectors(LocalStorage(), str(tmp_path), bitmaps, file_bytes=1)
    assert len(calls) == 3
    assert list(tmp_path.rglob("*.bin")) == []


def test_a_disk_that_is_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system says so when the file is flushed, not when it is opened."""

    def full(*_: Any) -> BinaryIO:
        return os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb")

    monkeypatch.setattr(LocalStorage, "open_output", full)
    with pytest.raises(StorageError, match=r"deletion_vector_.*\.bin' of table .* could not be written: No space left"):
        write_deletion_vectors(LocalStorage(), str(tmp_path), [BitMap64([1])])
