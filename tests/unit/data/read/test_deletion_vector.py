from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from delta_pyds.data.read.deletion_vector import load_deletion_vector
from delta_pyds.errors import DeletionVectorError, FileNotFoundInStorageError, StorageError
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.storage.local import LocalStorage
from tests.support import bitmaps
from tests.support.bitmaps import write_vectors

VECTORS = [[0, 3, 5], list(range(0, 200_000, 2)), [], [7]]


def _descriptor(value: dict[str, Any], **changes: Any) -> DeletionVectorDescriptor:
    return msgspec.convert(value | changes, DeletionVectorDescriptor)


class _Counting(LocalStorage):
    """Remembers what was read."""

    def __init__(self) -> None:
        self.reads: list[tuple[int | None, int | None]] = []

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        self.reads.append((offset, length))
        return super().read(path, offset, length)


@pytest.mark.parametrize(("storage", "prefix"), [("u", ""), ("u", "ab"), ("p", ""), ("i", "")])
def test_vectors_of_every_kind_that_share_a_file(tmp_path: Path, storage: str, prefix: str) -> None:
    table = tmp_path / "a table%20"
    descriptors = write_vectors(table, VECTORS, storage=storage, prefix=prefix)
    for descriptor, positions in zip(descriptors, VECTORS, strict=True):
        deleted = load_deletion_vector(LocalStorage(), str(table), _descriptor(descriptor))
        assert list(deleted.positions) == positions


def test_only_the_bytes_of_one_vector_are_read(tmp_path: Path) -> None:
    descriptor = _descriptor(write_vectors(tmp_path, VECTORS)[1])
    storage = _Counting()
    load_deletion_vector(storage, str(tmp_path), descriptor)
    assert storage.reads == [(descriptor.offset, descriptor.size_in_bytes + 8)]


def _broken(tmp_path: Path, descriptor: DeletionVectorDescriptor) -> DeletionVectorError:
    with pytest.raises(DeletionVectorError) as caught:
        load_deletion_vector(LocalStorage(), str(tmp_path), descriptor)
    return caught.value


def _file(tmp_path: Path) -> Path:
    return next(tmp_path.glob("deletion_vector_*.bin"))


def test_any_changed_bit_of_the_bitmap_fails_the_checksum(tmp_path: Path) -> None:
    descriptor = _descriptor(write_vectors(tmp_path, [[1, 2, 3]])[0])
    file = _file(tmp_path)
    content = file.read_bytes()
    for at in range(5, len(content)):
        file.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        error = _broken(tmp_path, descriptor)
        assert error.code == "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"
        assert str(file) in str(error)


def test_size_that_is_not_the_promised_one(tmp_path: Path) -> None:
    value = write_vectors(tmp_path, [[1, 2, 3]])[0]
    changes: list[dict[str, Any]] = [
        {"sizeInBytes": value["sizeInBytes"] + 4},
        {"offset": 0},
        {"offset": 1000},
        {"offset": -1},
    ]
    for change in changes:
        assert _broken(tmp_path, _descriptor(value, **change)).code == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"


@pytest.mark.parametrize("storage", ["u", "i"])
@pytest.mark.parametrize("field", ["size_in_bytes", "cardinality", "offset"])
@pytest.mark.parametrize("number", [-1, -(2**63), 2**63, 2**64 - 1])
def test_numbers_that_are_none_of_a_vector(tmp_path: Path, storage: str, field: str, number: int) -> None:
    given = _descriptor(write_vectors(tmp_path, [[1, 2, 3]], storage=storage)[0])
    error = _broken(tmp_path, msgspec.structs.replace(given, **{field: number}))
    assert error.code == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"
    assert str(number) in str(error)


@pytest.mark.parametrize("size", [2**31 - 1, 2**40, 2**63 - 1])
@pytest.mark.parametrize("header", [False, True])
def test_a_size_takes_no_memory_before_the_file_is_known_to_be_that_long(
    tmp_path: Path, size: int, header: bool
) -> None:
    descriptor = msgspec.structs.replace(_descriptor(write_vectors(tmp_path, [[1, 2, 3]])[0]), size_in_bytes=size)
    if header:  # the file says so too
        content = bytearray(_file(tmp_path).read_bytes())
        content[1:5] = (size & 0xFFFFFFFF).to_bytes(4, "big")
        _file(tmp_path).write_bytes(content)
    storage = _Counting()
    with pytest.raises(DeletionVectorError, match=f"{size} bytes") as caught:
        load_deletion_vector(storage, str(tmp_path), descriptor)
    assert caught.value.code == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"
    assert storage.reads == []


def test_file_that_is_cut_short(tmp_path: Path) -> None:
    descriptor = _descriptor(write_vectors(tmp_path, [[1, 2, 3]])[0])
    file = _file(tmp_path)
    content = file.read_bytes()
    for length in range(len(content)):
        file.write_bytes(content[:length])
        assert _broken(tmp_path, descriptor).code == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"


def test_cardinality_that_is_not_the_promised_one(tmp_path: Path) -> None:
    value = write_vectors(tmp_path, [[1, 2, 3]])[0]
    error = _broken(tmp_path, _descriptor(value, cardinality=4))
    assert error.code == "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"
    inline = write_vectors(tmp_path, [[1, 2, 3]], storage="i")[0]
    assert _broken(tmp_path, _descriptor(inline, cardinality=4)).code == "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"


def test_wrong_magic_number(tmp_path: Path) -> None:
    for storage in ("u", "i"):
        descriptor = _descriptor(write_vectors(tmp_path, [[1]], storage=storage, magic=1681511378)[0])
        assert _broken(tmp_path, descriptor).code == "DELTA_DELETION_VECTOR_INVALID_MAGIC"


@pytest.mark.parametrize("storage", ["u", "i"])
def test_a_bitmap_that_is_cut_short(tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer made the checksum of the damaged bytes."""
    whole = bitmaps.serialise
    monkeypatch.setattr(bitmaps, "serialise", lambda positions, magic: whole(positions, magic)[:-5])
    descriptor = _descriptor(write_vectors(tmp_path, [[1, 5, 70_000]], storage=storage)[0])
    assert _broken(tmp_path, descriptor).code == "DELTA_DELETION_VECTOR_MALFORMED_BITMAP"


def test_missing_file_is_named_with_its_table(tmp_path: Path) -> None:
    descriptor = _descriptor(write_vectors(tmp_path, [[1]])[0])
    file = _file(tmp_path)
    file.unlink()
    with pytest.raises(FileNotFoundInStorageError) as caught:
        load_deletion_vector(LocalStorage(), str(tmp_path), descriptor)
    assert caught.value.code == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert str(file) in str(caught.value) and f"'{tmp_path}'" in str(caught.value)


def test_unknown_storage_type(tmp_path: Path) -> None:
    value = write_vectors(tmp_path, [[1]])[0] | {"storageType": "x"}
    assert _broken(tmp_path, _descriptor(value)).code == "DELTA_DELETION_VECTOR_MALFORMED_DESCRIPTOR"


def test_position_behind_the_last_row_is_refused(tmp_path: Path) -> None:
    descriptor = _descriptor(write_vectors(tmp_path, [[1, 10]])[0])
    deleted = load_deletion_vector(LocalStorage(), str(tmp_path), descriptor)
    deleted.check_within(11, "part-1")
    with pytest.raises(DeletionVectorError, match="part-1") as caught:
        deleted.check_within(10, "part-1")
    assert caught.value.code == "DELTA_DELETION_VECTOR_INVALID_ROW_INDEX"


def test_counts_in_ranges(tmp_path: Path) -> None:
    deleted = load_deletion_vector(LocalStorage(), str(tmp_path), _descriptor(write_vectors(tmp_path, [[1, 5, 9]])[0]))
    assert [deleted.count_in(*r) for r in ((0, 10), (1, 1), (2, 3), (5, 5), (5, 0), (10, 10))] == [3, 1, 0, 2, 0, 0]


def test_a_failing_disk_is_named_with_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = _descriptor(write_vectors(tmp_path, VECTORS)[1])

    def fails(*_: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("delta_pyds.storage.local.os.read", fails)
    with pytest.raises(StorageError, match=r"deletion_vector_.*Input/output error") as error:
        load_deletion_vector(LocalStorage(), str(tmp_path), descriptor)
    assert error.value.parameters["table"] == str(tmp_path)
