"""Damage below a checksum that fits: a checksum does not find it."""

from __future__ import annotations

import json
import struct
import zlib
from random import Random

from tests.fuzz.byte_damage import damaged
from tests.support.checkpoints import hint_checksum


def damaged_vector(content: bytes, random: Random) -> tuple[bytes, str]:
    """A file of deletion vectors, one of them damaged at its own length, with the checksum of what it says now."""
    at, vectors = 1, []
    while at + 4 <= len(content):
        size = int(struct.unpack(">I", content[at : at + 4])[0])
        vectors.append((at + 4, size))
        at += 8 + size
    if not vectors:
        return damaged(content, random)
    begin, size = random.choice(vectors)
    old = content[begin : begin + size]
    new, what = damaged(old, random)
    new = (new + old[len(new) :])[:size]
    seal = struct.pack(">I", zlib.crc32(new))
    return content[:begin] + new + seal + content[begin + size + 4 :], f"vector at {begin}: {what}"


def sealed_hint(text: str) -> str | None:
    """A hint with the checksum of its content, or None where it is too odd to have one."""
    try:
        hint = json.loads(text)
        if not isinstance(hint, dict):
            return None
        hint.pop("checksum", None)
        return json.dumps({**hint, "checksum": hint_checksum(hint)})
    except (ValueError, RecursionError, OverflowError):
        return None
