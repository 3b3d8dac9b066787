"""Writes deletion vectors. Protocol: "Deletion Vectors", "Deletion Vector File Storage Format"."""

from __future__ import annotations

import random
import string
import struct
import uuid
import zlib
from collections.abc import Sequence

from pyroaring import BitMap64

from delta_pyds.columnar.roaring import serialize
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor, z85_encode
from delta_pyds.protocol.paths import join
from delta_pyds.storage.base import Storage

_FORMAT_VERSION = b"\x01"
_WORD = struct.Struct(">I")


def write_deletion_vectors(
    storage: Storage, table_root: str, bitmaps: Sequence[BitMap64], *, random_prefix_length: int | None = None
) -> list[DeletionVectorDescriptor]:
    """Write bitmaps of row positions into one new file, in the portable format.

    The file is complete before a descriptor of it exists; without a commit
    that names it, it is an orphan. No bitmap may be empty.

    Returns: a descriptor for each bitmap, in order.
    Protocol: "Deletion Vector File Storage Format".
    """
    if not bitmaps:
        return []
    name = uuid.uuid4()
    alphabet = string.ascii_letters + string.digits
    prefix = "".join(random.choices(alphabet, k=random_prefix_length or 0))
    descriptors = []
    blocks = [_FORMAT_VERSION]
    offset = len(_FORMAT_VERSION)
    for bitmap in bitmaps:
        data = serialize(bitmap)
        blocks += [_WORD.pack(len(data)), data, _WORD.pack(zlib.crc32(data))]
        descriptors.append(
            DeletionVectorDescriptor(
                storage_type="u",
                path_or_inline_dv=prefix + z85_encode(name.bytes),
                size_in_bytes=len(data),
                cardinality=len(bitmap),
                offset=offset,
            )
        )
        offset += len(data) + 2 * _WORD.size
    relative = descriptors[0].relative_path()
    with storage.open_output(join(table_root, relative)) as file:
        file.write(b"".join(blocks))
    return descriptors
