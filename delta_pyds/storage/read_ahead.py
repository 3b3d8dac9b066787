"""Ranges of objects asked for before they are read, several at a time: what waits for a store waits for it once.

Invariant: what is expected changes no byte that is read, and no error but the time that it comes at. A range is asked
for once, and held until all who expect it let go; a process holds no more than 256 MB of them.
"""

from __future__ import annotations

import bisect
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple, TypeVar

_T = TypeVar("_T")

# Requests at a time to one store. With more, all files arrive at the end, and are decoded while nothing comes.
_THREADS = min(32, max(8, 4 * (os.cpu_count() or 1)))
# So long a thread waits for more.
_IDLE_S = 60.0
# What lies between two ranges is fetched with them, where a request of its own would take longer.
HOLE_BYTES = 64 * 1024
# What all files of a process may hold; the rest is asked for when it is read.
_MOST_BYTES = 256 * 1024 * 1024
# Of a longer range several requests bring a piece each: one connection is slower than the line.
_PIECE_BYTES = 8 * 1024 * 1024


class Piece(NamedTuple):
    """Bytes ``start`` to ``end`` of an object, on their way."""

    start: int
    end: int
    data: Future[bytes]


class Expectation:
    """What a file was told that will be read. Let go of it by ``close``, or as a context."""

    def __init__(self, pieces: Sequence[Piece] = (), closed: Callable[[Expectation], None] = lambda _: None) -> None:
        self.pieces = pieces
        self._closed = closed

    @property
    def num_bytes(self) -> int:
        return sum(piece.end - piece.start for piece in self.pieces)

    def close(self) -> None:
        closed, self._closed = self._closed, lambda _: None
        closed(self)
        self.pieces = ()

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.close()

    def __enter__(self) -> Expectation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Expectations:
    """All of one file. ``fetch(offset, length)``: bytes of it, to be asked by any thread."""

    def __init__(self, fetch: Callable[[int, int], bytes], path: str) -> None:
        self._fetch = fetch
        self._path = path
        self._lock = threading.RLock()  # what is collected meanwhile is let go of
        self._process = os.getpid()
        self._open: weakref.WeakSet[Expectation] = weakref.WeakSet()
        self._pieces: tuple[Piece, ...] = ()

    def add(self, ranges: Iterable[tuple[int, int]], hole_bytes: int) -> Expectation:
        """``ranges``: first byte and the one after the last, in any order. Those that do not fit are not asked for."""
        with self._lock:
            pieces = []
            for wanted in pieces_of(ranges, hole_bytes):
                for start, end, piece in _cover(self._pieces, *wanted):
                    piece = piece or self._asked(start, end)
                    if piece is not None:
                        pieces.append(piece)
            expectation = Expectation(pieces, self._remove)
            self._open.add(expectation)
            self._sort()
        return expectation

    def _asked(self, start: int, end: int) -> Piece | None:
        """None where there is no room, and no thread: then it is asked for when it is read."""
        if not _HELD.take(end - start):
            return None
        try:
            return Piece(start, end, in_background(self._path, partial(self._fetch, start, end - start)))
        except RuntimeError:
            _HELD.give_back(end - start)
            return None

    def _remove(self, expectation: Expectation) -> None:
        with self._lock:
            self._open.discard(expectation)
            before = self._pieces
            self._sort()
            kept = {piece.start for piece in self._pieces}
            for piece in before:
                if piece.start not in kept:
                    piece.data.cancel()
                    _HELD.give_back(piece.end - piece.start)

    def _sort(self) -> None:
        # no two of them have a byte in common, so each is known by its start
        pieces = {piece.start: piece for expectation in self._open for piece in expectation.pieces}
        self._pieces = tuple(pieces[start] for start in sorted(pieces))

    def read(self, start: int, end: int) -> bytes | memoryview:
        """The bytes, by requests of their own where they were not expected; not copied where one piece has them."""
        found: list[bytes | memoryview] = []
        for first, last, piece in _cover(self._pieces, start, end):
            # a forked process waits for none of its parent's threads
            if piece is None or not (piece.data.done() or self._process == os.getpid()):
                data: bytes | memoryview = self._fetch(first, last - first)
            else:
                data = memoryview(piece.data.result())[first - piece.start : last - piece.start]
            found.append(data)
            if len(data) != last - first:
                break  # the object has become shorter
        return found[0] if len(found) == 1 else b"".join(found)


def _cover(pieces: Sequence[Piece], start: int, end: int) -> Iterator[tuple[int, int, Piece | None]]:
    """A range in parts, each with the piece that has it."""
    first = bisect.bisect_right(pieces, start, key=lambda piece: piece.start)
    for piece in pieces[max(0, first - 1) :]:
        if start >= end or piece.start >= end:
            break
        if piece.end <= start:
            continue
        if piece.start > start:
            yield start, piece.start, None
            start = piece.start
        yield start, min(end, piece.end), piece
        start = min(end, piece.end)
    if start < end:
        yield start, end, None


def pieces_of(ranges: Iterable[tuple[int, int]], hole_bytes: int = HOLE_BYTES) -> list[tuple[int, int]]:
    """The requests that bring these ranges: near ones together, long ones in pieces."""
    together: list[tuple[int, int]] = []
    for start, end in sorted(r for r in ranges if r[0] < r[1]):
        last = together[-1] if together else (0, -1)
        # a request ends where a range does, so that nobody puts a range together again
        if last[1] > start or (last[1] >= 0 and last[1] + hole_bytes >= start and end - last[0] <= _PIECE_BYTES):
            together[-1] = last[0], max(last[1], end)
        else:
            together.append((start, end))
    pieces = []
    for start, end in together:
        number = -(-(end - start) // _PIECE_BYTES)
        step = -(-(end - start) // number)
        pieces += [(at, min(at + step, end)) for at in range(start, end, step)]
    return pieces


def expect(source: Any, ranges: Iterable[tuple[int, int]], hole_bytes: int = HOLE_BYTES) -> Expectation:
    """Tell a Parquet source what of it will be read. One that is no object has nothing to wait for.

    ``hole_bytes``: so much between two ranges is fetched with them.
    """
    told = getattr(source, "expect", None)
    return Expectation() if told is None else told(ranges, hole_bytes)


class _Held:
    """The bytes of all pieces."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = threading.RLock()
        self._bytes = 0
        self.most_bytes = _MOST_BYTES

    def take(self, num_bytes: int) -> bool:
        """Whether there is room."""
        with self._lock:
            if self._bytes + num_bytes > self.most_bytes:
                return False
            self._bytes += num_bytes
            return True

    def give_back(self, num_bytes: int) -> None:
        with self._lock:
            self._bytes -= num_bytes


_HELD = _Held()


def hold_at_most(num_bytes: int) -> None:
    """From now on, of all files of this process."""
    _HELD.most_bytes = num_bytes


def in_background(path: str, work: Callable[[], _T]) -> Future[_T]:
    """Do it in one of this process's threads for requests, which it must not wait for.

    ``path``: of the file that it is about. Each store has threads of its own: one may be silent for minutes.
    """
    store = "/".join(path.split("/", 3)[:3])
    with _POOLS_LOCK[0]:
        pool = _POOLS.setdefault(store, _Pool())
    return pool.submit(work)


class _Pool:
    """Threads for requests to one store, which a process does not wait for when it ends, and which end when idle."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads = 0
        self._idle = 0

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        """Raises: RuntimeError where the process may have no thread more."""
        future: Future[_T] = Future()
        with self._changed:
            # an idle thread takes one of what waits, and wakes later than it is told
            if len(self._waiting) >= self._idle and self._threads < _THREADS:
                threading.Thread(target=self._work, name="deltapy-fetch", daemon=True).start()
                self._threads += 1
            self._waiting.append((future, work))
            self._changed.notify()
        return future

    def _work(self) -> None:
        while (taken := self._next()) is not None:
            future, work = taken
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            del future, work, taken

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        """What to do; None for a thread that has waited long enough, of which nobody counts any more."""
        with self._changed:
            self._idle += 1
            found = self._changed.wait_for(lambda: self._waiting, _IDLE_S)
            self._idle -= 1
            if found:
                return self._waiting.popleft()
            self._threads -= 1
            return None


# by scheme and bucket
_POOLS: dict[str, _Pool] = {}
_POOLS_LOCK = [threading.Lock()]


def _forget_threads() -> None:
    _POOLS_LOCK[0] = threading.Lock()
    _POOLS.clear()
    _HELD.reset()


if hasattr(os, "register_at_fork"):
    # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_forget_threads)
