"""Deletion vector descriptors of add and remove actions.

Protocol: "Deletion Vectors", "Deletion Vector Descriptor Schema".
"""

from __future__ import annotations

import base64
import uuid

import msgspec

from delta_pyds.errors import DeletionVectorError
from delta_pyds.protocol.foreign_json import Int32, Int64

# Z85 and RFC 1924's base85 are the same code with two alphabets.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85 = str.maketrans(_Z85, _B85)
_TO_Z85 = str.maketrans(_B85, _Z85)
_ENCODED_UUID_LENGTH = 20


class DeletionVectorDescriptor(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The location of a deletion vector, its size and its cardinality.

    ``storage_type``: ``u`` a file in the table named by a UUID, ``i`` inline,
    ``p`` a file at an absolute path. ``offset``: bytes into the file.
    ``size_in_bytes``: the size of the serialised bitmap, without length and checksum.
    ``cardinality``: number of rows deleted.
    """

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: Int32
    cardinality: Int64
    offset: Int32 | None = None
    max_row_index: Int64 | None = None

    @property
    def unique_id(self) -> str:
        """The vector's id. With the file's path it is the key of a logical file."""
        base = self.storage_type + self.path_or_inline_dv
        return base if self.offset is None else f"{base}@{self.offset}"

    def relative_path(self) -> str:
        """The file's path below the table, with its random prefix; for storage type ``u``.

        Raises: DeletionVectorError if the encoded UUID is invalid.
        """
        encoded = self.path_or_inline_dv[-_ENCODED_UUID_LENGTH:]
        prefix = self.path_or_inline_dv[:-_ENCODED_UUID_LENGTH]
        try:
            name = str(uuid.UUID(bytes=z85_decode(encoded)))
        except ValueError:
            raise DeletionVectorError(
                f"the deletion vector descriptor has an invalid file id: {self.path_or_inline_dv!r}.",
                code="DELTA_DELETION_VECTOR_MALFORMED_DESCRIPTOR",
            ) from None
        file = f"deletion_vector_{name}.bin"
        return f"{prefix}/{file}" if prefix else file

    def inline_bytes(self) -> bytes:
        """The serialised bitmap; for storage type ``i``.

        Raises: DeletionVectorError if the text is not Z85, or shorter than ``size_in_bytes``.
        """
        try:
            data = z85_decode(self.path_or_inline_dv)
        except ValueError:
            data = b""
        if len(data) < self.size_in_bytes:
            raise DeletionVectorError(
                f"an inline deletion vector holds {len(data)} bytes, but its descriptor says {self.size_in_bytes}.",
                code="DELTA_DELETION_VECTOR_SIZE_MISMATCH",
            )
        return data[: self.size_in_bytes]


def z85_decode(text: str) -> bytes:
    """Decode Z85. Raises: ValueError if the text is not a multiple of 5 characters of the alphabet."""
    if len(text) % 5 or not set(text) <= set(_Z85):
        raise ValueError(f"not Z85: {text!r}")
    return base64.b85decode(text.translate(_FROM_Z85))


def z85_encode(data: bytes) -> str:
    """Encode to Z85, padding with zero bytes to a multiple of 4 as the protocol asks."""
    padded = data + b"\0" * (-len(data) % 4)
    return base64.b85encode(padded).decode("ascii").translate(_TO_Z85)
