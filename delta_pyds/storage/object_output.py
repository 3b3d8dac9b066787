"""A new object that is written to: in one request where it is short, else in parts, which go up beside the writing."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, BinaryIO, Protocol

# Up to here one request is as good as several. Equal parts: some that speak like S3 want them. 10,000 parts are 80 GB.
PART_BYTES = 8 * 1024 * 1024
# How many go up at once where a store takes them so. One more waits, and one is filled: a task holds 40 MB at most.
PARALLEL = 3


class Upload(Protocol):
    """An object in parts, of which nobody sees anything before ``finish``.

    ``parallel``: how many parts may go up at once; with 1 they come in their order.
    """

    parallel: int

    def part(self, number: int, data: bytes) -> None:
        """Send a part; they count from 1. Raises: whatever the store's package raises, as all here."""
        ...

    def finish(self) -> None: ...

    def discard(self) -> None:
        """Forget the parts that were sent."""
        ...


class FileUpload:
    """An upload by a file of an fsspec package, which sends parts as it is written to."""

    parallel = 1

    def __init__(self, file: BinaryIO) -> None:
        self._file: Any = file

    def part(self, number: int, data: bytes) -> None:  # noqa: ARG002 - they come in their order
        self._file.write(data)

    def finish(self) -> None:
        self._file.close()

    def discard(self) -> None:
        # such a file completes itself when it is let go of
        self._file.closed = True
        self._file.discard()


class ObjectOutput(io.RawIOBase):
    """Invariant: nothing is there before ``close``, and all of it afterwards. One that was let go of, or left by an
    error, leaves no object, and neither does a process that is killed.

    Long objects go up in threads of their own, while the caller makes the next part; memory is bounded. ``put(data)``
    makes the object of these bytes. ``begin()`` opens an upload, for which it asks the store.
    """

    def __init__(self, put: Callable[[bytes], None], begin: Callable[[], Upload]) -> None:
        super().__init__()
        self._put = put
        self._begin = begin
        self._held = bytearray()
        self._long: _Background | None = None
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        """Raises: StorageError, and what the package raises: also of parts before."""
        if self.closed:
            raise ValueError("the file is closed")
        self._held += data
        length = memoryview(data).nbytes
        while len(self._held) > PART_BYTES:
            if self._long is None:
                self._long = _Background(self._begin())
            self._long.send(bytes(self._held[:PART_BYTES]))
            del self._held[:PART_BYTES]
        self._written += length
        return length

    def close(self) -> None:
        """Make the object. Raises: as ``write``, and then there is none, as far as the store says."""
        if self.closed:
            return
        super().close()
        if self._long is None:
            self._put(bytes(self._held))
            return
        try:
            self._long.send(bytes(self._held))
            self._long.finish()
        except BaseException:
            self._long.discard()
            raise

    def discard(self) -> None:
        """Make no object. Never raises."""
        if not self.closed:
            super().close()
            if self._long is not None:
                self._long.discard()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        """Nobody closed it, so nobody asked for the file: a writer that failed leaves none behind."""
        background = getattr(self, "_long", None)
        if background is not None and not self.closed:
            super().close()
            background.discard(wait=False)


class _Background:
    """An upload in threads; after a part that failed no other begins."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self._count = 0
        self._pool = ThreadPoolExecutor(upload.parallel, thread_name_prefix="delta-upload")
        self._room = threading.Semaphore(upload.parallel + 1)
        self._failure: BaseException | None = None

    def send(self, data: bytes) -> None:
        """Wait until there is room for a part, and let it go up. Raises: what an earlier one raised."""
        self._room.acquire()
        if self._failure is not None:
            self._room.release()
            raise self._failure
        self._count += 1
        self._pool.submit(self._send, self._count, data)

    def _send(self, number: int, data: bytes) -> None:
        try:
            if self._failure is None:
                self._upload.part(number, data)
        except BaseException as error:
            self._failure = error
        finally:
            self._room.release()

    def finish(self) -> None:
        self._pool.shutdown(wait=True)
        if self._failure is not None:
            raise self._failure
        self._upload.finish()

    def discard(self, *, wait: bool = True) -> None:
        self._failure = self._failure or InterruptedError("the file was let go of")
        if wait:
            self._forget()
            return
        with contextlib.suppress(RuntimeError):  # the interpreter ends
            threading.Thread(target=self._forget).start()

    def _forget(self) -> None:
        # a part that arrives after that would stay
        self._pool.shutdown(wait=True)
        with contextlib.suppress(Exception):
            self._upload.discard()
