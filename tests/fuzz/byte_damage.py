"""Damage that knows nothing of what it hits, or only where it hurts."""

from __future__ import annotations

import struct
from random import Random

MAGIC = b"PAR1"


def damaged(content: bytes, random: Random) -> tuple[bytes, str]:
    """The bytes with one damage, and what it is."""
    kind = random.choice(_KINDS)
    at = place(content, random)
    length = random.choice([1, 1, 2, 4, 16, 64])
    if kind == "flip":
        bit = 1 << random.randrange(8)
        return _put(content, at, bytes([content[at] ^ bit])) if content else b"", f"bit {bit} of byte {at} flipped"
    if kind == "set":
        value = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
        return _put(content, at, bytes([value] * length)), f"{length} bytes at {at} are {value}"
    if kind == "number":
        value = random.choice(_NUMBERS)
        return _put(content, at, value), f"{value.hex()} at {at}"
    if kind == "cut":
        return content[:at], f"cut at {at}"
    if kind == "remove":
        return content[:at] + content[at + length :], f"{length} bytes at {at} removed"
    if kind == "insert":
        more = random.randbytes(length)
        return content[:at] + more + content[at:], f"{more.hex()} put in at {at}"
    if kind == "splice":
        source = random.randrange(max(1, len(content)))
        return _put(content, at, content[source : source + length]), f"{length} bytes of {source} at {at}"
    if kind == "zeroes":
        return _put(content, at, bytes(len(content) - at)), f"zeroes from {at} on"
    more = random.choice([b"\0" * 8, content, random.randbytes(100), MAGIC])
    return content + more, f"{len(more)} bytes at the end"


_KINDS = (
    "flip",
    "flip",
    "flip",
    "set",
    "set",
    "number",
    "number",
    "cut",
    "remove",
    "insert",
    "splice",
    "zeroes",
    "end",
)
_FORMS = (
    ("<i", -1), ("<i", 2**31 - 1), ("<i", -(2**31)), (">i", 2**31 - 1), ("<q", 2**63 - 1), ("<q", -(2**63)),
    ("<i", 0), ("<I", 2**31 + 1), (">I", 2**32 - 1), ("<i", 2**24), (">i", 2**24),
)  # fmt: skip
# the last ones as Thrift has numbers
_NUMBERS = (
    *(struct.pack(form, value) for form, value in _FORMS),
    b"\xff\xff\xff\xff\x0f",
    b"\xfe\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
)


def place(content: bytes, random: Random) -> int:
    """The position to damage: anywhere, or where a format keeps what all else depends on."""
    last = max(0, len(content) - 1)
    parquet = content[:4] == MAGIC and content[-4:] == MAGIC
    where = random.choice(
        ["any", "any", "begin", "end", "footer", "footer"] if parquet else ["any", "any", "begin", "end"]
    )
    if where == "begin":
        return min(last, random.randrange(16))
    if where == "end":
        return max(0, last - random.randrange(12))
    if where == "footer":
        return random.randrange(max(0, footer_start(content)), len(content) - 4)
    return random.randrange(len(content)) if content else 0


def footer_start(content: bytes) -> int:
    """The position at which the footer of a sound Parquet file begins."""
    return len(content) - 8 - int(struct.unpack("<I", content[-8:-4])[0])


def _put(content: bytes, at: int, new: bytes) -> bytes:
    """As many bytes as before."""
    new = new[: len(content) - at]
    return content[:at] + new + content[at + len(new) :]
