"""A new object: whole or not there, long ones in parts that go up beside the writing."""

from __future__ import annotations

import gc
import threading

import pytest

from delta_pyds.storage.object_output import PART_BYTES, ObjectOutput

DATA = bytes(range(256)) * (PART_BYTES // 256)
WAIT_S = 30


class Uploads:
    """A store of one object, which can be held up, and fails at a part."""

    def __init__(self, fails_at: int = 0, parallel: int = 1) -> None:
        self.parallel = parallel
        self.objects: list[bytes] = []
        self.sent: list[bytes] = []
        self.numbers: list[int] = []
        self.discarded = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.threads: set[int] = set()
        self._fails_at = fails_at

    def output(self) -> ObjectOutput:
        return ObjectOutput(self.objects.append, lambda: self)

    def part(self, number: int, data: bytes) -> None:
        assert self.goes_on.wait(WAIT_S)
        self.threads.add(threading.get_ident())
        if len(self.sent) + 1 == self._fails_at:
            raise OSError("no such bucket")
        self.sent.append(data)
        self.numbers.append(number)

    def finish(self) -> None:
        self.objects.append(b"".join(self.sent))

    def discard(self) -> None:
        self.discarded.set()


def test_a_short_one_is_one_request() -> None:
    uploads = Uploads()
    with uploads.output() as file:
        assert file.write(DATA) == len(DATA)
        assert (uploads.objects, file.tell()) == ([], len(DATA))
    assert (uploads.objects, uploads.sent) == ([DATA], [])


@pytest.mark.parametrize("piece", [1000, PART_BYTES - 1, PART_BYTES * 3])
def test_a_long_one_is_equal_parts_in_their_order(piece: int) -> None:
    uploads, whole = Uploads(), DATA * 3 + b"the end"
    with uploads.output() as file:
        for start in range(0, len(whole), piece):
            file.write(memoryview(whole)[start : start + piece])
        assert uploads.objects == []
    assert uploads.objects == [whole]
    assert [len(part) for part in uploads.sent] == [PART_BYTES] * 3 + [7]


def test_the_writer_goes_on_while_parts_go_up_and_waits_before_they_are_many() -> None:
    uploads = Uploads()
    uploads.goes_on.clear()
    file = uploads.output()
    for _ in range(3):  # the last one is held
        file.write(DATA)
    assert uploads.sent == []  # nothing went up, and nobody waited
    another = threading.Thread(target=file.write, args=(DATA,))
    another.start()
    another.join(0.2)
    assert another.is_alive()  # there is room for no more
    uploads.goes_on.set()
    another.join(WAIT_S)
    file.close()
    assert uploads.objects == [DATA * 4]
    assert len(uploads.threads) == 1 and threading.get_ident() not in uploads.threads


def test_several_parts_go_up_at_once_where_the_store_takes_them() -> None:
    uploads = Uploads(parallel=3)
    together = threading.Barrier(3)

    def part(number: int, data: bytes) -> None:
        if number <= 3:
            together.wait(WAIT_S)
        Uploads.part(uploads, number, data)

    uploads.part = part  # type: ignore[method-assign]
    with uploads.output() as file:
        file.write(DATA * 6)
    assert sorted(uploads.numbers) == [1, 2, 3, 4, 5, 6]
    assert len(uploads.objects) == 1


def test_what_a_part_raises_is_told_and_no_object_is_made() -> None:
    uploads = Uploads(fails_at=2)
    file = uploads.output()
    with pytest.raises(OSError, match="no such bucket"):
        for _ in range(8):
            file.write(DATA)
        file.close()
    file.discard()
    assert uploads.discarded.is_set() and uploads.objects == []
    uploads = Uploads(fails_at=3)
    file = uploads.output()
    file.write(DATA * 2 + b"x")
    with pytest.raises(OSError, match="no such bucket"):
        file.close()
    file.close()
    assert uploads.discarded.is_set() and uploads.objects == []


@pytest.mark.parametrize("data", [b"short", DATA * 3])
def test_an_error_in_the_block_makes_no_object(data: bytes) -> None:
    uploads = Uploads()

    def write() -> None:
        with uploads.output() as file:
            file.write(data)
            raise KeyError("x")

    with pytest.raises(KeyError):
        write()
    assert uploads.objects == [] and uploads.discarded.is_set() == (len(data) > PART_BYTES)


def test_one_that_is_let_go_of_makes_no_object() -> None:
    uploads = Uploads()
    file = uploads.output()
    file.write(DATA * 3)
    del file
    gc.collect()
    assert uploads.discarded.wait(WAIT_S) and uploads.objects == []


def test_nothing_is_written_to_one_that_was_closed() -> None:
    file = Uploads().output()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.write(b"x")
