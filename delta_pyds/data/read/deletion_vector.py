"""Deletion vectors of data files: loaded, checked, and turned into masks.

A deletion vector removes rows. In the change feed it says which rows a commit deleted or restored.

Protocol: "Deletion Vectors", "Deletion Vector File Storage Format".
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import BitmapError, deserialize, live_mask, serialize
from delta_pyds.errors import DeletionVectorError, FileNotFoundInStorageError, StorageError
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor, z85_encode
from delta_pyds.protocol.paths import resolve_below, resolve_data_path
from delta_pyds.storage.base import Storage

_DEFAULT_OFFSET = 1  # right after the version byte
_SIZE = struct.Struct(">I")
# A longer vector is read only after the file's size was checked: a wrong size in the log must not allocate memory.
_ASKED_FOR_BYTES = 1 << 20
_MOST = (1 << 63) - 1


def inline_vector(positions: BitMap64) -> DeletionVectorDescriptor:
    """A deletion vector that its descriptor holds, for tasks and small vectors."""
    data = serialize(positions)
    return DeletionVectorDescriptor("i", z85_encode(data), len(data), len(positions))


@dataclass(frozen=True)
class DeletedRows:
    """Positions of the deleted rows in one data file, counted from its first row.

    ``source``: the origin of the vector, for messages.
    """

    positions: BitMap64
    source: str

    def check_within(self, num_rows: int, file: str) -> None:
        """Raises: DeletionVectorError if a position lies after the file's last row."""
        if self.positions and self.positions.max() >= num_rows:
            raise DeletionVectorError(
                f"{self.source} deletes row {self.positions.max()} of the data file '{file}', which has {num_rows} "
                "rows: it was written for another file. Restore the table to an earlier version, or rewrite it from "
                "its source.",
                code="DELTA_DELETION_VECTOR_INVALID_ROW_INDEX",
                file=file,
                deletion_vector=self.source,
            )

    def count_in(self, start: int, length: int) -> int:
        """The number of deleted rows in ``[start, start + length)``."""
        return int(self.positions.range_cardinality(start, start + length)) if length else 0

    def live_in(self, start: int, length: int) -> int:
        """The number of live rows in ``[start, start + length)``."""
        return length - self.count_in(start, length)

    def live(self, start: int, length: int) -> pa.BooleanArray:
        """One boolean per row of ``[start, start + length)``: true for a live row."""
        return live_mask(self.positions, start, length)


@dataclass(frozen=True)
class SelectedRows:
    """Positions in one data file, counted from its first row: only these rows are wanted.

    The cost depends on the number of selected rows, not on the size of the file.
    """

    positions: BitMap64

    @staticmethod
    def of(selected: DeletedRows, deleted: DeletedRows | None) -> SelectedRows:
        """The rows that ``selected`` has and ``deleted`` does not."""
        return SelectedRows(selected.positions if deleted is None else selected.positions - deleted.positions)

    def live_in(self, start: int, length: int) -> int:
        """The number of selected rows in ``[start, start + length)``."""
        return int(self.positions.range_cardinality(start, start + length)) if length else 0

    def live(self, start: int, length: int) -> pa.BooleanArray:
        """One boolean per row of ``[start, start + length)``: true for a selected row."""
        if 2 * self.live_in(start, length) <= length:
            return pc.invert(live_mask(self.positions, start, length))
        # building a mask is fastest from the smaller set, here the rows that are not selected
        others = BitMap64()
        others.add_range(start, start + length)
        return live_mask(others - self.positions, start, length)


LiveRows = DeletedRows | SelectedRows


def load_deletion_vector(storage: Storage, table_root: str, descriptor: DeletionVectorDescriptor) -> DeletedRows:
    """Read the deletion vector of a descriptor; of its file only the bytes that hold it.

    Raises:
        DeletionVectorError: names the file, with the code DELTA_DELETION_VECTOR_SIZE_MISMATCH, _CHECKSUM_MISMATCH,
            _INVALID_MAGIC, _CARDINALITY_MISMATCH or _MALFORMED_DESCRIPTOR.
        FileNotFoundInStorageError, StorageError: the file cannot be read.
    """
    if descriptor.storage_type == "i":
        source = "an inline deletion vector"
        _check_numbers(descriptor, source)
        data = descriptor.inline_bytes()
    else:
        path = _path(table_root, descriptor)
        source = f"the deletion vector file '{path}'"
        data = _read_checked(storage, table_root, path, descriptor, source)
    try:
        positions = deserialize(data)
    except BitmapError as e:
        code = "INVALID_MAGIC" if e.magic else "MALFORMED_BITMAP"
        raise _error(code, source, f"is damaged: {e}") from None
    if len(positions) != descriptor.cardinality:
        raise _error(
            "CARDINALITY_MISMATCH",
            source,
            f"has {len(positions)} rows at offset {descriptor.offset}, but the log says {descriptor.cardinality}",
        )
    return DeletedRows(positions, source)


def _path(table_root: str, descriptor: DeletionVectorDescriptor) -> str:
    if descriptor.storage_type == "u":
        return resolve_below(table_root, descriptor.relative_path())
    if descriptor.storage_type == "p":
        return resolve_data_path(table_root, descriptor.path_or_inline_dv)
    raise DeletionVectorError(
        f"a deletion vector descriptor has the storage type {descriptor.storage_type!r}, not 'u', 'i' or 'p'.",
        code="DELTA_DELETION_VECTOR_MALFORMED_DESCRIPTOR",
    )


def _read_checked(
    storage: Storage, table_root: str, path: str, descriptor: DeletionVectorDescriptor, source: str
) -> bytes:
    _check_numbers(descriptor, source)
    offset = _DEFAULT_OFFSET if descriptor.offset is None else descriptor.offset
    size = descriptor.size_in_bytes
    try:
        if size > _ASKED_FOR_BYTES and offset + size + 2 * _SIZE.size > storage.status(path).size_bytes:
            raise _error("SIZE_MISMATCH", source, f"ends in the middle of the {size} bytes at offset {offset}")
        block = storage.read(path, offset, _SIZE.size + size + _SIZE.size)
    except FileNotFoundInStorageError:
        raise FileNotFoundInStorageError(
            f"{source}, which the log of the table '{table_root}' names, does not exist. It was removed manually or by "
            "a VACUUM with too short a retention: restore the file, or the table to a version that does not need it.",
            path=path,
        ) from None
    except StorageError as error:
        raise StorageError(
            f"{source} of the table '{table_root}' could not be read: {error.message}",
            code=error.code,
            table=table_root,
            path=path,
        ) from error
    if len(block) < _SIZE.size or _SIZE.unpack_from(block)[0] != size:
        # the message does not show the actual bytes: the log may point at any file
        raise _error("SIZE_MISMATCH", source, f"has no vector of {size} bytes at offset {offset}, as the log says")
    if len(block) < size + 2 * _SIZE.size:
        raise _error("SIZE_MISMATCH", source, f"ends in the middle of the {size} bytes at offset {offset}")
    data = block[_SIZE.size : _SIZE.size + size]
    if zlib.crc32(data) != _SIZE.unpack_from(block, _SIZE.size + size)[0]:
        raise _error("CHECKSUM_MISMATCH", source, f"does not match its checksum at offset {offset}")
    return data


def _check_numbers(descriptor: DeletionVectorDescriptor, source: str) -> None:
    named = {"size": descriptor.size_in_bytes, "offset": descriptor.offset or 0, "cardinality": descriptor.cardinality}
    for name, number in named.items():
        if not 0 <= number <= _MOST:
            raise _error("SIZE_MISMATCH", source, f"has the invalid {name} {number} in the log")


def _error(code: str, source: str, problem: str) -> DeletionVectorError:
    return DeletionVectorError(
        f"{source} {problem}. Without it deleted and live rows cannot be distinguished: restore the file from a "
        "backup, or the table to a version that does not need it.",
        code=f"DELTA_DELETION_VECTOR_{code}",
        deletion_vector=source,
    )
