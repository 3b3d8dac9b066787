"""The number of bytes read from the end of each file, and the tasks that wait for the first."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from delta_pyds.errors import StorageError
from delta_pyds.storage.base import TAIL_BYTES
from delta_pyds.storage.local import LocalStorage
from delta_pyds.storage.object_file import ObjectFile
from delta_pyds.storage.parquet_ends import ParquetEnds

LONG = 10_000_000


class Store:
    """Files whose names are the lengths of their footers. ``asked``: paths, and how much of their ends."""

    scheme = "s3"

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.free = threading.Event()
        self.free.set()

    def parquet_source(self, path: str, tail_bytes: int, _: int | None) -> Any:
        self.asked.append((path, tail_bytes))
        assert self.free.wait(20)
        if path == "none":
            raise StorageError("none")
        return SimpleNamespace(footer_bytes=int(path))


def asked(ends: ParquetEnds, *files: tuple[int, int | None]) -> list[int]:
    """The bytes asked for of files with footers and sizes of so many bytes, one after the other."""
    store: Any = Store()
    for footer, size in files:
        ends.open(store, str(footer), size)
    return [tail for _, tail in store.asked]


def test_the_next_file_is_asked_for_as_much_as_those_before_had() -> None:
    seen = asked(ParquetEnds("columns", 7), (1_000, LONG), (900, LONG), (1_500, LONG), (200_000, LONG), (1_000, LONG))
    assert seen == [8_192, 1_253, 1_253, 1_815, 225_128]
    # nothing of the first file is known
    assert asked(ParquetEnds("footers"), (1_000, None), (1_000, None)) == [TAIL_BYTES, 1_253]
    assert asked(ParquetEnds("columns", 40), (0, LONG)) == [20_480]
    assert asked(ParquetEnds("columns", 10_000), (0, LONG)) == [TAIL_BYTES]


def test_a_footer_that_is_said_to_be_long_is_not_believed_at_once() -> None:
    assert asked(ParquetEnds("columns", 7), (1 << 31, 1 << 40), (1_000, LONG)) == [8_192, 1 << 20]


def test_short_files_come_whole_where_columns_of_them_are_read() -> None:
    short = (1_000, TAIL_BYTES)
    assert asked(ParquetEnds("columns", 7), short, short) == [TAIL_BYTES] * 2
    assert asked(ParquetEnds("footers", 7), short, short) == [8_192, 1_253]
    # a size of 0 is invalid
    assert asked(ParquetEnds("columns", 7), (1_000, 0)) == [8_192]


def test_what_is_read_whole_is_never_asked_for_less() -> None:
    assert asked(ParquetEnds("all"), (1_000, LONG), (100_000, LONG), (1_000, LONG)) == [TAIL_BYTES, TAIL_BYTES, 112_628]


@pytest.mark.parametrize(("reads", "begun"), [("all", 4), ("columns", 1), ("footers", 1)])
def test_others_wait_for_the_first_where_bytes_would_come_in_vain(reads: Any, begun: int) -> None:
    store: Any = Store()
    store.free.clear()
    ends = ParquetEnds(reads, 7)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(ends.open, store, "1000", LONG) for _ in range(4)]
        for _ in range(40):
            if len(store.asked) > begun:
                break
            threading.Event().wait(0.005)
        assert len(store.asked) == begun
        store.free.set()
        assert [future.result(20).footer_bytes for future in futures] == [1_000] * 4
    assert len(store.asked) == 4


def test_nobody_waits_for_a_first_that_failed() -> None:
    ends, store = ParquetEnds("columns", 7), Store()
    with pytest.raises(StorageError, match="none"):
        ends.open(store, "none", LONG)  # type: ignore[arg-type]
    assert asked(ends, (1_000, LONG), (1_000, LONG)) == [8_192, 1_253]


def test_a_local_file_is_opened_as_it_is(tmp_path: Any) -> None:
    (tmp_path / "x").write_bytes(b"12345678")
    with ParquetEnds("columns", 7).open(LocalStorage(), f"{tmp_path}/x", 3) as file:
        assert file.read() == b"12345678"


@pytest.mark.parametrize(
    ("tail", "footer"),
    [
        (b"footer" + b"\x06\0\0\0PAR1", 14),
        (b"\x40\0\0\0PAR1", 72),
        (b"\xff\xff\xff\x7fPAR1", 0),
        (b"\x06\0\0\0PAR2", 0),
        (b"AR1", 0),
        (b"", 0),
    ],
)
def test_a_footer_is_as_long_as_the_last_bytes_say(tail: bytes, footer: int) -> None:
    assert ObjectFile(1_000, tail, lambda *_: b"", "s3://bucket/x").footer_bytes == footer
