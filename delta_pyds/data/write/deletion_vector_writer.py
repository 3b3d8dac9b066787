"""Writes deletion vectors. Protocol: "Deletion Vectors", "Deletion Vector File Storage Format"."""

from __future__ import annotations

import random
import string
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

from pyroaring import BitMap64

from delta_pyds.columnar.roaring import serialize
from delta_pyds.errors import StorageError
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor, z85_encode
from delta_pyds.protocol.paths import join
from delta_pyds.storage.base import Storage

_FORMAT_VERSION = b"\x01"
_WORD = struct.Struct(">I")
# the size of one file: each small file costs a request, but readers read only a part of a large file
FILE_BYTES = 2 << 20


def write_deletion_vectors(
    storage: Storage,
    table_root: str,
    bitmaps: Iterable[BitMap64],
    *,
    random_prefix_length: int | None = None,
    file_bytes: int = FILE_BYTES,
) -> list[DeletionVectorDescriptor]:
    """Write bitmaps of row positions, in the portable format, into new files of about ``file_bytes``.

    A file is complete and durable before a descriptor of it is returned. Until a commit names it, it is an orphan.
    After an error all files are deleted, as far as the storage allows.

    Args:
        bitmaps: not empty.
    Returns: a descriptor for each bitmap, in order.
    Raises: StorageError.
    """
    descriptors: list[DeletionVectorDescriptor] = []
    made: list[str] = []
    streams: list[BinaryIO] = []
    pending: list[tuple[bytes, int]] = []
    size = 0

    def write() -> None:
        nonlocal pending, size
        name = _name(random_prefix_length)
        new = list(_descriptors(name, pending))
        path = join(table_root, new[0].relative_path())
        made.append(path)
        try:
            with storage.open_output(path) as file:
                file.write(_content(pending))
        except OSError as error:
            raise StorageError(
                f"the deletion vector file {path!r} of table {table_root!r} could not be written: "
                f"{error.strerror or error}.",
                table=table_root,
                path=path,
            ) from error
        streams.append(file)
        descriptors.extend(new)
        pending, size = [], 0

    try:
        for bitmap in bitmaps:
            data = serialize(bitmap)
            if pending and size + len(data) > file_bytes:
                write()
            pending.append((data, len(bitmap)))
            size += len(data)
        if pending:
            write()
        storage.make_durable(streams, below=table_root)
    except BaseException:
        for path in made:
            with suppress(Exception):
                storage.delete(path, below=table_root)
        raise
    return descriptors


def _name(random_prefix_length: int | None) -> str:
    """The name of a new file in descriptors."""
    prefix = "".join(random.choices(string.ascii_letters + string.digits, k=random_prefix_length or 0))
    return prefix + z85_encode(uuid.uuid4().bytes)


def _descriptors(name: str, bitmaps: Sequence[tuple[bytes, int]]) -> Iterator[DeletionVectorDescriptor]:
    """``bitmaps``: serialized, with their numbers of rows."""
    offset = len(_FORMAT_VERSION)
    for data, cardinality in bitmaps:
        yield DeletionVectorDescriptor("u", name, len(data), cardinality, offset)
        offset += len(data) + 2 * _WORD.size


def _content(bitmaps: Sequence[tuple[bytes, int]]) -> bytes:
    blocks = [_FORMAT_VERSION]
    for data, _ in bitmaps:
        blocks += [_WORD.pack(len(data)), data, _WORD.pack(zlib.crc32(data))]
    return b"".join(blocks)
