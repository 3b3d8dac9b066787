"""Deletion vectors for tests: serialised bitmaps, their files and their descriptors.

Protocol: "Deletion Vectors", "Deletion Vector File Storage Format".
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyroaring import BitMap64

MAGIC = 1681511377
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def serialise(positions: Iterable[int], magic: int = MAGIC) -> bytes:
    """Magic number, little-endian, and the portable 64-bit bitmap."""
    bitmap = BitMap64(positions)
    bitmap.run_optimize()
    return struct.pack("<i", magic) + bitmap.serialize()


def z85(data: bytes) -> str:
    """Z85 of ``data``, padded with zero bytes to a multiple of 4."""
    data += b"\0" * (-len(data) % 4)
    out: list[str] = []
    for (number,) in struct.iter_unpack(">I", data):
        digits = []
        for _ in range(5):
            number, digit = divmod(number, 85)
            digits.append(_ALPHABET[digit])
        out.extend(reversed(digits))
    return "".join(out)


def write_vectors(
    table: Path, vectors: list[list[int]], *, storage: str = "u", prefix: str = "", magic: int = MAGIC
) -> list[dict[str, Any]]:
    """Write deletion vectors, all into one file, and return a descriptor for each.

    ``storage``: ``u`` relative by UUID, ``p`` by absolute path, ``i`` inline.
    ``prefix``: the random directory of a ``u`` file.
    """
    if storage == "i":
        inline = [serialise(v, magic) for v in vectors]
        return [_descriptor("i", z85(data), data, v, None) for data, v in zip(inline, vectors, strict=True)]
    name = uuid.uuid4()
    folder = table / prefix if prefix else table
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"deletion_vector_{name}.bin"
    where = prefix + z85(name.bytes) if storage == "u" else file.absolute().as_uri()
    content = bytearray(b"\x01")
    descriptors = []
    for positions in vectors:
        data = serialise(positions, magic)
        descriptors.append(_descriptor(storage, where, data, positions, len(content)))
        content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    file.write_bytes(content)
    return descriptors


def _descriptor(storage: str, where: str, data: bytes, positions: list[int], offset: int | None) -> dict[str, Any]:
    descriptor: dict[str, Any] = {"storageType": storage, "pathOrInlineDv": where}
    if offset is not None:
        descriptor["offset"] = offset
    return descriptor | {"sizeInBytes": len(data), "cardinality": len(set(positions))}


def unique_id(descriptor: dict[str, Any] | None) -> str | None:
    """The id that, with the path, is the key of a logical file."""
    if descriptor is None:
        return None
    base = str(descriptor["storageType"]) + str(descriptor["pathOrInlineDv"])
    return base if descriptor.get("offset") is None else f"{base}@{descriptor['offset']}"
