"""Sizes as properties, options and settings give them."""

from __future__ import annotations

import pytest

from delta_pyds.protocol.properties import parse_size_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("128m", 128 << 20),
        ("128MB", 128 << 20),
        (" 2 g ", 2 << 30),
        ("3kb", 3 << 10),
        ("1t", 1 << 40),
        ("5b", 5),
    ],
)
def test_a_size(text: str, size: int) -> None:
    assert parse_size_bytes(text) == size


def test_mib_is_a_size_where_asked_for() -> None:
    assert parse_size_bytes("128 MiB", iec=True) == 128 << 20
    with pytest.raises(ValueError, match="MiB"):
        parse_size_bytes("128 MiB")


@pytest.mark.parametrize("text", ["", "m", "-1", "1.5g", "0", "1p", "1 m b", str(1 << 63), "9000000t", "9" * 30])
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_size_bytes(text)
