"""A new object: short ones in one request, long ones in parts that are uploaded in the background."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, BinaryIO, Protocol

# Objects up to this size take one request. All parts are of equal size, as some S3-compatible stores require; the
# maximum of 10,000 parts allows 80 GB.
PART_BYTES = 8 * 1024 * 1024
# Parts that are uploaded at once, if the store allows it. One more waits and one is being filled: a task holds at most
# 40 MB.
PARALLEL = 3


class Upload(Protocol):
    """An upload in parts; the object is not visible before ``finish``.

    ``parallel``: the number of parts that may be sent at once; with 1 they are sent in order.
    """

    parallel: int

    def part(self, number: int, data: bytes) -> None:
        """Send a part; numbers start at 1. Raises, as all methods: errors of the store's package."""
        ...

    def finish(self) -> None: ...

    def discard(self) -> None:
        """Drop the parts that were sent."""
        ...


class FileUpload:
    """An upload through a file of an fsspec package, which sends parts while it is written to."""

    parallel = 1

    def __init__(self, file: BinaryIO) -> None:
        self._file: Any = file

    def part(self, number: int, data: bytes) -> None:  # noqa: ARG002 - parts come in order
        self._file.write(data)

    def finish(self) -> None:
        self._file.close()

    def discard(self) -> None:
        # such a file completes its upload when it is garbage-collected
        self._file.closed = True
        self._file.discard()


class ObjectOutput(io.RawIOBase):
    """A file to write to. Invariant: the object does not exist before ``close`` and is complete after it.

    A discarded or garbage-collected file leaves no object, and neither does an error or a killed process. Long objects
    are uploaded in threads while the caller makes the next part; memory is bounded.

    ``put(data)``: creates the object in one request. ``begin()``: starts an upload in parts.
    """

    def __init__(self, put: Callable[[bytes], None], begin: Callable[[], Upload]) -> None:
        super().__init__()
        self._put = put
        self._begin = begin
        self._buffer = bytearray()
        self._background: _BackgroundUpload | None = None
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        """Raises: StorageError and errors of the store's package, also those of earlier parts."""
        if self.closed:
            raise ValueError("the file is closed")
        self._buffer += data
        length = memoryview(data).nbytes
        while len(self._buffer) > PART_BYTES:
            if self._background is None:
                self._background = _BackgroundUpload(self._begin())
            self._background.send(bytes(self._buffer[:PART_BYTES]))
            del self._buffer[:PART_BYTES]
        self._written += length
        return length

    def close(self) -> None:
        """Create the object. Raises: as ``write``; then the object does not exist, as far as the store says."""
        if self.closed:
            return
        super().close()
        if self._background is None:
            self._put(bytes(self._buffer))
            return
        try:
            self._background.send(bytes(self._buffer))
            self._background.finish()
        except BaseException:
            self._background.discard()
            raise

    def discard(self) -> None:
        """Drop the data; no object is created. Never raises."""
        if not self.closed:
            super().close()
            if self._background is not None:
                self._background.discard()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        """Discard a file that was not closed: a failed writer must not leave an object."""
        background = getattr(self, "_background", None)
        if background is not None and not self.closed:
            super().close()
            background.discard(wait=False)


class _BackgroundUpload:
    """An upload in threads; no part is sent after one has failed."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self._count = 0
        self._pool = ThreadPoolExecutor(upload.parallel, thread_name_prefix="delta-upload")
        self._slots = threading.Semaphore(upload.parallel + 1)
        self._failure: BaseException | None = None

    def send(self, data: bytes) -> None:
        """Wait for a free slot and send a part in the background. Raises: the error of an earlier part."""
        self._slots.acquire()
        if self._failure is not None:
            self._slots.release()
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
            self._slots.release()

    def finish(self) -> None:
        self._pool.shutdown(wait=True)
        if self._failure is not None:
            raise self._failure
        self._upload.finish()

    def discard(self, *, wait: bool = True) -> None:
        self._failure = self._failure or InterruptedError("the file was discarded")
        if wait:
            self._drop()
            return
        with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
            threading.Thread(target=self._drop).start()

    def _drop(self) -> None:
        # wait first: a part that arrives after the discard would stay
        self._pool.shutdown(wait=True)
        with contextlib.suppress(Exception):
            self._upload.discard()
