"""Damage to the footer of a Parquet file, which has no checksum: one byte, one number, one thing in it, or bounds."""

from __future__ import annotations

from random import Random

from tests.fuzz.byte_damage import footer_start
from tests.support.parquet_footers import (
    MAX_VALUE,
    META_DATA,
    MIN_VALUE,
    STATISTICS,
    Struct,
    chunks,
    mutated,
    read_footer,
    with_footer,
)

# here are the orders of the columns, and the length
_LAST_BYTES = 60
# as Thrift writes numbers: the largest of 32 and 64 bits, the smallest, -1, 1, one that has no end
_VARINTS = (
    b"\xfe\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x01", b"\x02", b"\x80" * 11,
)  # fmt: skip


def damaged_footer(content: bytes, random: Random) -> tuple[bytes, str, str]:
    """The file with one damage to its footer, what it is, and how: "bounds" that contradict each other must be seen
    through; what else is damaged nobody can see in every case ("footer bytes").
    """
    kind = random.choice((_last, _last, _anywhere, _anywhere, _varint, _tree, None))
    swapped = None if kind else _swapped(content, random)
    if swapped is not None:
        return *swapped, "bounds"
    new, what = (kind or _anywhere)(content, random)
    return new, what, "footer bytes"


def _last(content: bytes, random: Random) -> tuple[bytes, str]:
    return _one_byte(content, len(content) - 1 - random.randrange(_LAST_BYTES), random)


def _anywhere(content: bytes, random: Random) -> tuple[bytes, str]:
    return _one_byte(content, random.randrange(footer_start(content), len(content)), random)


def _one_byte(content: bytes, at: int, random: Random) -> tuple[bytes, str]:
    value = random.choice((content[at] ^ 1 << random.randrange(8), random.randrange(256)))
    return content[:at] + bytes([value]) + content[at + 1 :], f"byte {at - len(content)} is {value}"


def _varint(content: bytes, random: Random) -> tuple[bytes, str]:
    """Another number in the place of as many bytes, or between two."""
    at, number = random.randrange(footer_start(content), len(content) - 8), random.choice(_VARINTS)
    if random.random() < 0.5:
        return content[:at] + number + content[at + len(number) :], f"{number.hex()} at {at - len(content)}"
    tail = content[footer_start(content) : at] + number + content[at:-8]
    new = content[: footer_start(content)] + tail + len(tail).to_bytes(4, "little") + content[-4:]
    return new, f"{number.hex()} put in at {at - len(content)}"


def _tree(content: bytes, random: Random) -> tuple[bytes, str]:
    return with_footer(content, mutated(read_footer(content), random)), "one thing is another one"


def _swapped(content: bytes, random: Random) -> tuple[bytes, str] | None:
    """Minimum and maximum of a column, or of all, change places; None where no column has them."""
    footer = read_footer(content)
    found = [chunk[META_DATA][1][STATISTICS][1] for chunk in chunks(footer) if STATISTICS in chunk[META_DATA][1]]
    bounded: list[Struct] = [one for one in found if MIN_VALUE in one and MAX_VALUE in one]
    if not bounded:
        return None
    chosen = bounded if random.random() < 0.5 else [random.choice(bounded)]
    for one in chosen:
        one[MIN_VALUE], one[MAX_VALUE] = one[MAX_VALUE], one[MIN_VALUE]
    return with_footer(content, footer), f"bounds of {len(chosen)} of {len(bounded)} columns swapped"
