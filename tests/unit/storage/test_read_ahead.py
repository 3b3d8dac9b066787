"""Ranges that are asked for before they are read: the bytes are the object's, and each is asked for once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from delta_pyds.errors import StorageError
from delta_pyds.storage import read_ahead
from delta_pyds.storage.object_file import ObjectFile
from delta_pyds.storage.read_ahead import expect, in_background, pieces_of

CONTENT = random.Random(3).randbytes(1_000_000)
TAIL = 1_000
PATH = "s3://bucket/x.parquet"


class Store:
    """``asked``: the ranges, in any order."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.content = content
        self.asked: list[tuple[int, int]] = []
        self.free = threading.Event()
        self.free.set()

    def fetch(self, offset: int, length: int) -> bytes:
        self.asked.append((offset, offset + length))
        assert self.free.wait(20)
        return self.content[offset : offset + length]

    def file(self) -> ObjectFile:
        return ObjectFile(len(CONTENT), CONTENT[-TAIL:], self.fetch, PATH)


def read(file: ObjectFile, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def test_what_is_expected_is_asked_for_once() -> None:
    store = Store()
    file = store.file()
    with expect(file, [(500_000, 600_000), (100, 200_000), (200_100, 300_000)]):
        for _ in range(2):
            assert read(file, 100, 200_000) == CONTENT[100:200_000]
            assert read(file, 250_000, 300_000) == CONTENT[250_000:300_000]
            assert read(file, 500_000, 500_001) == CONTENT[500_000:500_001]
    # those that are near each other together
    assert sorted(store.asked) == [(100, 300_000), (500_000, 600_000)]


def test_what_is_not_expected_is_asked_for_when_it_is_read() -> None:
    store = Store()
    file = store.file()
    with expect(file, [(100_000, 200_000), (700_000, 800_000)]):
        assert read(file, 50_000, 999_999) == CONTENT[50_000:999_999]
    ranges = [(50_000, 100_000), (100_000, 200_000), (200_000, 700_000), (700_000, 800_000), (800_000, 999_000)]
    assert sorted(store.asked) == ranges
    # what was let go of is asked for again
    assert read(file, 100_000, 200_000) == CONTENT[100_000:200_000]
    assert store.asked[-1] == (100_000, 200_000)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_expected_the_bytes_are_those_of_the_object(seed: int) -> None:
    drawn = random.Random(seed)

    def drawn_range() -> tuple[int, int]:
        start = drawn.randrange(-10_000, 1_010_000)
        return start, start + drawn.choice((-5, 0, 1, 1_000, 80_000, 2_000_000))

    file = Store().file()
    expectations = []
    for _ in range(60):
        if drawn.random() < 0.3:
            expectations.append(expect(file, [drawn_range() for _ in range(drawn.randrange(4))]))
        elif expectations and drawn.random() < 0.2:
            expectations.pop(drawn.randrange(len(expectations))).close()
        else:
            start, end = drawn_range()
            start = max(start, 0)
            assert read(file, start, max(start, end)) == CONTENT[start : max(start, end)]


def test_ranges_are_asked_for_together_and_nobody_waits_for_them() -> None:
    store = Store()
    store.free.clear()
    file = store.file()
    expected = expect(file, [(0, 10), (300_000, 300_010), (600_000, 600_010)])
    for _ in range(2_000):
        if len(store.asked) == 3:
            break
        threading.Event().wait(0.005)
    assert sorted(store.asked) == [(0, 10), (300_000, 300_010), (600_000, 600_010)]
    store.free.set()
    assert read(file, 0, 10) == CONTENT[:10]
    expected.close()


def test_a_long_range_is_asked_for_in_pieces() -> None:
    pieces = pieces_of([(5, 20_000_005)])
    assert [start for start, _ in pieces][1:] == [end for _, end in pieces][:-1]
    assert (pieces[0][0], pieces[-1][1], len(pieces)) == (5, 20_000_005, 3)
    assert pieces_of([(9, 9), (8, 3)]) == []


def test_an_error_comes_when_the_range_is_read() -> None:
    def fail(offset: int, length: int) -> bytes:
        raise StorageError(f"{offset} {length}")

    file = ObjectFile(len(CONTENT), CONTENT[-TAIL:], fail, PATH)
    with expect(file, [(0, 100)]):
        with pytest.raises(StorageError, match="0 100"):
            read(file, 10, 20)
        assert read(file, 999_500, 1_000_000) == CONTENT[999_500:]


def test_an_object_that_has_become_shorter_is_an_error() -> None:
    file = Store(CONTENT[:150]).file()
    with expect(file, [(0, 200)]), pytest.raises(OSError, match="shorter"):
        read(file, 100, 200)


def test_a_file_that_is_no_object_expects_nothing() -> None:
    with expect(object(), [(0, 100)]) as expectation:
        assert expectation.pieces == ()


def test_work_in_the_background_is_done_whatever_was_done_before() -> None:
    def fail() -> None:
        raise ValueError("no")

    futures = [in_background(PATH, lambda n=n: n) for n in range(100)]  # type: ignore[misc]
    failed = in_background(PATH, fail)
    assert [future.result(20) for future in futures] == list(range(100))
    with pytest.raises(ValueError, match="no"):
        failed.result(20)


def test_a_silent_store_takes_no_thread_from_another() -> None:
    free, begun = threading.Event(), threading.Semaphore(0)

    def wait() -> bool:
        begun.release()
        return free.wait(20)

    silent = [in_background("s3://silent/x", wait) for _ in range(2 * read_ahead._THREADS)]
    for _ in range(read_ahead._THREADS):
        assert begun.acquire(timeout=20)
    assert in_background(PATH, lambda: 1).result(20) == 1
    assert in_background("s3a://silent/x", lambda: 1).result(20) == 1
    # and it has no more of them than any other
    assert not begun.acquire(blocking=False)
    free.set()
    assert all(future.result(20) for future in silent)


def test_threads_that_have_nothing_to_do_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_IDLE_S", 0.001)

    def threads() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "deltapy-fetch"}

    before = threads()
    for number in range(200):
        # begun again, just while others end
        futures = [in_background("s3://idle/x", lambda n=n: n) for n in range(number % 3)]  # type: ignore[misc]
        assert [future.result(20) for future in futures] == list(range(number % 3))
        threading.Event().wait(0.0005 * (number % 5))
    deadline = time.monotonic() + 20
    while threads() - before and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert threads() <= before


def test_work_is_done_after_more_than_there_are_threads_for_and_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread had ended, and as many were counted on as requests had waited for one."""
    monkeypatch.setattr(read_ahead, "_IDLE_S", 0.01)
    free = threading.Event()

    def work() -> threading.Thread:
        assert free.wait(20)
        return threading.current_thread()

    futures = [in_background("s3://paused/x", work) for _ in range(3 * read_ahead._THREADS)]
    free.set()
    workers = {future.result(20) for future in futures}
    assert len(workers) <= read_ahead._THREADS
    for worker in workers:
        worker.join(20)
    assert in_background("s3://paused/x", lambda: 1).result(20) == 1


def test_work_that_gets_no_thread_fails_and_the_next_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading, "Thread", NoThread)
        for _ in range(read_ahead._THREADS):
            with pytest.raises(RuntimeError, match="new thread"):
                in_background("s3://full/x", lambda: 1)
        # what was to be read ahead is asked for when it is read, and holds no room
        held = read_ahead._ByteBudget()
        patched.setattr(read_ahead, "_BUDGET", held)
        expectations = read_ahead.Expectations(lambda offset, length: CONTENT[offset : offset + length], "s3://full/y")
        with expectations.add([(0, 1000)], 0) as expectation:
            assert not expectation.pieces and held._bytes == 0
            assert expectations.read(10, 20) == CONTENT[10:20]
    assert in_background("s3://full/x", lambda: 2).result(20) == 2


def test_what_is_let_go_of_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound of a process, ranges are asked for when they are read."""
    held = read_ahead._ByteBudget()
    monkeypatch.setattr(read_ahead, "_BUDGET", held)
    read_ahead.limit_read_ahead(250_000)
    store = Store()
    file = store.file()
    first = expect(file, [(0, 200_000)])
    again = expect(file, [(100_000, 200_000), (500_000, 600_000)])
    assert read(file, 100_000, 600_000) == CONTENT[100_000:600_000]
    # the second expects a part of the first's, and the rest does not fit
    assert sorted(store.asked) == [(0, 200_000), (200_000, 600_000)]
    first.close()
    assert read(file, 0, 200_000) == CONTENT[:200_000] and len(store.asked) == 2
    del again
    assert held._bytes == 0
    with expect(file, [(500_000, 600_000)]):
        assert read(file, 500_000, 600_000) == CONTENT[500_000:600_000]
    assert store.asked[2:] == [(500_000, 600_000)]


def test_a_forked_process_waits_for_no_thread_of_its_parent() -> None:
    """Python's daemon of Spark forks its workers; what the parent has asked for never comes to them."""
    assert in_background(PATH, lambda: 1).result(20) == 1  # that thread waits for more
    store = Store()
    store.free.clear()
    file = store.file()
    with expect(file, [(0, 200_000)]):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(20)  # one that waits for ever is ended
                store.free.set()
                status = int(
                    read(file, 0, 200_000) != CONTENT[:200_000] or in_background(PATH, lambda: 2).result() != 2
                )
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        store.free.set()
    assert ended == 0


def test_a_process_that_ends_does_not_wait_for_a_store_that_is_silent() -> None:
    program = (
        "import threading\n"
        "from delta_pyds.storage.object_file import ObjectFile\n"
        "from delta_pyds.storage.read_ahead import expect\n"
        "asked = threading.Event()\n"
        "def fetch(offset, length):\n"
        "    asked.set()\n"
        "    threading.Event().wait()\n"
        "expected = expect(ObjectFile(1000, b'', fetch, 's3://b/x'), [(0, 1000)])\n"
        "assert asked.wait(20)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
