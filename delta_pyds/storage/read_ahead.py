"""Requests for ranges of objects before they are read, several at a time, so that a reader waits for the store once.

Invariant: expectations change neither the bytes that are read nor the errors, except the time of an error. A range is
requested once and held until all its expectations are closed. A process holds at most 256 MB.
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

# Concurrent requests to one store. With more requests, all files arrive late, and the network is idle while they are
# decoded.
_THREADS = min(32, max(8, 4 * (os.cpu_count() or 1)))
# Idle time after which a thread ends.
_IDLE_S = 60.0
# A gap up to this size between two ranges is fetched with them: a second request would take longer.
HOLE_BYTES = 64 * 1024
# The bytes that all files of a process may hold; further ranges are requested when they are read.
_MOST_BYTES = 256 * 1024 * 1024
# Longer ranges are split into several requests: one connection is slower than the line.
_PIECE_BYTES = 8 * 1024 * 1024


class Piece(NamedTuple):
    """Bytes ``start`` to ``end`` (exclusive) of an object, requested."""

    start: int
    end: int
    data: Future[bytes]


class Expectation:
    """Ranges that will be read from a file. Release them with ``close``, or use it as a context manager."""

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
    """All expectations of one file. ``fetch(offset, length)``: reads a range of it, in any thread."""

    def __init__(self, fetch: Callable[[int, int], bytes], path: str) -> None:
        self._fetch = fetch
        self._path = path
        self._lock = threading.RLock()  # re-entrant: garbage collection may close an expectation meanwhile
        self._process = os.getpid()
        self._open: weakref.WeakSet[Expectation] = weakref.WeakSet()
        self._pieces: tuple[Piece, ...] = ()

    def add(self, ranges: Iterable[tuple[int, int]], hole_bytes: int) -> Expectation:
        """Request ranges: pairs of the first byte and the one after the last, in any order.

        Ranges beyond the memory limit are not requested.
        """
        with self._lock:
            pieces = []
            for wanted in pieces_of(ranges, hole_bytes):
                for start, end, piece in _cover(self._pieces, *wanted):
                    piece = piece or self._request(start, end)
                    if piece is not None:
                        pieces.append(piece)
            expectation = Expectation(pieces, self._remove)
            self._open.add(expectation)
            self._sort()
        return expectation

    def _request(self, start: int, end: int) -> Piece | None:
        """Start a request; None if there is no memory or thread for it. Then the range is requested when it is read."""
        if not _BUDGET.take(end - start):
            return None
        try:
            return Piece(start, end, in_background(self._path, partial(self._fetch, start, end - start)))
        except RuntimeError:
            _BUDGET.release(end - start)
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
                    _BUDGET.release(piece.end - piece.start)

    def _sort(self) -> None:
        # pieces do not overlap, so the start identifies each
        pieces = {piece.start: piece for expectation in self._open for piece in expectation.pieces}
        self._pieces = tuple(pieces[start] for start in sorted(pieces))

    def read(self, start: int, end: int) -> bytes | memoryview:
        """Return the bytes; ranges that were not expected are requested now. A range in one piece is not copied."""
        found: list[bytes | memoryview] = []
        for first, last, piece in _cover(self._pieces, start, end):
            # a forked process must not wait for its parent's threads
            if piece is None or not (piece.data.done() or self._process == os.getpid()):
                data: bytes | memoryview = self._fetch(first, last - first)
            else:
                data = memoryview(piece.data.result())[first - piece.start : last - piece.start]
            found.append(data)
            if len(data) != last - first:
                break  # the object has become shorter
        return found[0] if len(found) == 1 else b"".join(found)


def _cover(pieces: Sequence[Piece], start: int, end: int) -> Iterator[tuple[int, int, Piece | None]]:
    """The parts of a range, each with the piece that holds it; None if no piece does."""
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
    """The ranges to request: near ones are merged, long ones are split."""
    together: list[tuple[int, int]] = []
    for start, end in sorted(r for r in ranges if r[0] < r[1]):
        last = together[-1] if together else (0, -1)
        # a request ends at the end of a range, so that no range is joined from two requests
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
    """Request ranges of a Parquet source before they are read. A source that is not an object is left alone.

    Args:
        source: as ``Storage.parquet_source`` returns it.
        ranges: pairs of the first byte and the one after the last.
        hole_bytes: a gap up to this size between two ranges is fetched with them.
    """
    method = getattr(source, "expect", None)
    return Expectation() if method is None else method(ranges, hole_bytes)


class _ByteBudget:
    """The memory limit for all pieces of the process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = threading.RLock()
        self._bytes = 0
        self.most_bytes = _MOST_BYTES

    def take(self, num_bytes: int) -> bool:
        """Reserve bytes. Returns: False if they do not fit."""
        with self._lock:
            if self._bytes + num_bytes > self.most_bytes:
                return False
            self._bytes += num_bytes
            return True

    def release(self, num_bytes: int) -> None:
        with self._lock:
            self._bytes -= num_bytes


_BUDGET = _ByteBudget()


def limit_read_ahead(num_bytes: int) -> None:
    """Limit the bytes that all files of this process hold, from now on."""
    _BUDGET.most_bytes = num_bytes


def in_background(path: str, work: Callable[[], _T]) -> Future[_T]:
    """Run ``work`` in one of this process's threads for requests; ``work`` must not wait for another such thread.

    ``path``: the file that is requested. Each store has its own threads: a store may be silent for minutes.
    """
    store = "/".join(path.split("/", 3)[:3])
    with _POOLS_LOCK[0]:
        pool = _POOLS.setdefault(store, _Pool())
    return pool.submit(work)


class _Pool:
    """Daemon threads for requests to one store; idle ones end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads = 0
        self._idle = 0

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        """Raises: RuntimeError if the process cannot start another thread."""
        future: Future[_T] = Future()
        with self._changed:
            # an idle thread wakes after a delay, and takes one item: more items than idle threads need another thread
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
        """The next work; None for a thread that was idle too long, which must end."""
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
    _BUDGET.reset()


if hasattr(os, "register_at_fork"):
    # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_forget_threads)
