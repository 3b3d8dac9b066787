"""Reads several files at once: their batches in the order of the files, in bounded memory.

Invariant: at most ``threads`` files are open. Each thread holds at most its share of ``ahead_bytes``, and one batch, of
decoded rows that were not consumed yet. Files are taken from their iterator when they are needed.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, islice

import pyarrow as pa

from delta_pyds.data.read.reader import read
from delta_pyds.data.read.shared_plans import SharedPlans
from delta_pyds.storage.read_ahead import limit_read_ahead
from delta_pyds.storage.resolve import scheme_of
from delta_pyds.tasks.scan_state import ScanFile, ScanState

_AHEAD_BYTES = 256 * 1024 * 1024
# the most bytes that a task holds: of decoded rows, and as they were read
_TASK_AHEAD_BYTES = 64 * 1024 * 1024
_TASK_HELD_BYTES = 96 * 1024 * 1024
_MOST_THREADS = 16
# Files of a remote store that are read at once; local files are read by as many threads as there are processors.
# Most of the time is spent waiting for the store.
_STORE_THREADS = 16
TASK_THREADS = 4
# a longer file is read in parts by several threads; opening it again takes a millisecond
_PIECE_BYTES = 32 * 1024 * 1024
_MOST_PIECES = 4_096
_SMALL_BYTES = 1 << 20
# one thread reads several short local files: passing one to a thread takes as long as decoding it
SHORT_FILE_BYTES = 256 * 1024
_SHORT_FILES = 64


def default_threads(table_root: str) -> int:
    """The number of processors that this process may use; more for a remote store, where threads wait."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MOST_THREADS, allowed if scheme_of(table_root) == "file" else max(allowed, _STORE_THREADS))


def useful_threads(state: ScanState, files: Sequence[ScanFile], threads: int) -> int:
    """The number of threads, up to ``threads``, that speed up reading these files.

    It is one for short local files: most of the work on them is in Python, which runs one thread at a time. For a
    remote store, where threads wait, it may exceed ``threads``.
    """
    are_short = all(f.size_bytes <= SHORT_FILE_BYTES for f in files)
    if scheme_of(state.table_root) == "file":
        return 1 if are_short else threads
    return max(threads, _STORE_THREADS if are_short else TASK_THREADS)


def read_concurrently(
    state: ScanState, files: Iterable[ScanFile], *, threads: int, ahead_bytes: int = _AHEAD_BYTES
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the live rows of the files that satisfy the predicate, as ``read`` does for one file.

    Closing the iterator ends the threads. Raises: as ``read``, when the iteration reaches the file.
    """
    with closing(read_numbered(state, files, threads=threads, ahead_bytes=ahead_bytes)) as numbered:
        for _, batch in numbered:
            yield batch


def read_in_task(state: ScanState, files: Iterable[ScanFile]) -> Generator[pa.RecordBatch, None, None]:
    """As ``read_concurrently``, in a Spark task: reads one local file, or a few remote files, at once."""
    if scheme_of(state.table_root) == "file":
        return read_concurrently(state, files, threads=1)
    limit_read_ahead(_TASK_HELD_BYTES)
    rest = iter(files)
    first = list(islice(rest, _STORE_THREADS))
    threads = useful_threads(state, first, TASK_THREADS)
    return read_concurrently(state, chain(first, rest), threads=threads, ahead_bytes=_TASK_AHEAD_BYTES)


def read_numbered(
    state: ScanState, files: Iterable[ScanFile], *, threads: int, ahead_bytes: int = _AHEAD_BYTES
) -> Generator[tuple[int, pa.RecordBatch], None, None]:
    """As ``read_concurrently``, each batch with the number of its file, from 0."""
    plans = SharedPlans(state)
    if threads <= 1:
        # whole files: each part would open the file and load its deletion vector again
        for number, file in enumerate(files):
            for batch in read(state, file, plans):
                yield number, batch
        return
    together = _SHORT_FILES if scheme_of(state.table_root) == "file" else 1
    readers = _Readers(lambda file: read(state, file, plans), _pieces(files, together), threads, ahead_bytes // threads)
    try:
        yield from readers.batches()
    finally:
        readers.close()


def _pieces(files: Iterable[ScanFile], together: int) -> Iterator[_Piece]:
    """Yield parts of long files, and groups of up to ``together`` consecutive short files."""
    short: list[tuple[int, ScanFile]] = []
    for number, file in enumerate(files):
        is_short = file.size_bytes <= SHORT_FILE_BYTES
        if short and (not is_short or len(short) >= together):
            yield _Piece(short)
            short = []
        if is_short:
            short.append((number, file))
        else:
            yield from (_Piece([(number, part)]) for part in _parts(file))
    if short:
        yield _Piece(short)


def _parts(file: ScanFile) -> Iterator[ScanFile]:
    """Split a long file or part into parts that cover it. A row group belongs to the part with its midpoint."""
    end = file.size_bytes if file.length is None else file.start + file.length
    number = min(-(-(end - file.start) // _PIECE_BYTES), _MOST_PIECES)
    if number <= 1:
        yield file
        return
    length = -(-(end - file.start) // number)
    for start in range(file.start, end, length):
        # the last part reads to the end of the whole, even if the log has a wrong size
        is_last = start + length >= end
        yield replace(file, start=start, length=length if not is_last else file.length and end - start)


@dataclass(eq=False)
class _Piece:
    """A part of the stream, of files with their numbers: the decoded batches that were not consumed yet."""

    files: Sequence[tuple[int, ScanFile]]
    batches: deque[tuple[int, pa.RecordBatch, int]] = field(default_factory=deque)
    held_bytes: int = 0
    ended: bool = False
    error: BaseException | None = None


class _Readers:
    """Threads that read pieces. One condition guards all state that they share with the consumer."""

    def __init__(
        self,
        read_file: Callable[[ScanFile], Iterator[pa.RecordBatch]],
        pieces: Iterator[_Piece],
        threads: int,
        share_bytes: int,
    ) -> None:
        self._read = read_file
        self._pieces = pieces
        self._share_bytes = share_bytes
        self._changed = threading.Condition()
        self._closed = False
        self._order: deque[_Piece] = deque()  # started or waiting, in the order of the stream
        self._waiting: deque[_Piece] = deque()
        self._ahead = threads
        self._threads: list[threading.Thread] = []

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        self._plan()
        while self._order:
            piece = self._order[0]
            decoded = self._next_of(piece)
            if decoded:
                yield from decoded
                continue
            if piece.error is not None:
                raise piece.error
            self._order.popleft()
            self._plan()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _plan(self) -> None:
        """Start or queue as many pieces as there are threads, with a thread for each."""
        while len(self._order) < self._ahead and (piece := next(self._pieces, None)) is not None:
            self._order.append(piece)
            with self._changed:
                self._waiting.append(piece)
                self._changed.notify_all()
            if len(self._threads) < self._ahead:
                # a daemon thread, so that a program can exit in the middle of a stream
                thread = threading.Thread(target=self._work, name="deltapy-read", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _next_of(self, piece: _Piece) -> list[tuple[int, pa.RecordBatch]]:
        """The next batch, or several small ones; empty at the end of the piece."""
        found: list[tuple[int, pa.RecordBatch]] = []
        with self._changed:
            self._changed.wait_for(lambda: piece.batches or piece.ended)
            taken = 0
            while piece.batches and taken <= _SMALL_BYTES:
                number, batch, size = piece.batches.popleft()
                taken += size
                found.append((number, batch))
            piece.held_bytes -= taken
            if found:
                self._changed.notify_all()
        return found

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                piece = self._waiting.popleft()
            error: BaseException | None = None
            try:
                self._fill(piece)
            except BaseException as e:
                error = e
            with self._changed:
                piece.error, piece.ended = error, True
                self._changed.notify_all()

    def _fill(self, piece: _Piece) -> None:
        for number, file in piece.files:
            for batch in self._read(file):
                size = _size_of(batch)
                with self._changed:
                    self._changed.wait_for(lambda: piece.held_bytes < self._share_bytes or self._closed)
                    if self._closed:
                        return
                    piece.batches.append((number, batch, size))
                    piece.held_bytes += size
                    self._changed.notify_all()


def _size_of(batch: pa.RecordBatch) -> int:
    """Size in bytes. For a small batch, the size of its shared buffers, which is cheap to get."""
    size = int(batch.get_total_buffer_size())
    return size if size <= _SMALL_BYTES else int(batch.nbytes)
