"""A new object that is written to: in one request where it is short, else in parts as they come."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO

# Up to here one request is as good as several, and a task holds no more of a file.
_IN_ONE_REQUEST_BYTES = 8 * 1024 * 1024


class ObjectOutput(io.RawIOBase):
    """Invariant: nothing is there before ``close``, and all of it afterwards; one that is let go of leaves no file.

    ``put(data)`` makes the object of these bytes. ``begin()`` opens a file of the package, which sends parts as it is
    written to, and of which nobody sees anything until it is closed.
    """

    def __init__(self, put: Callable[[bytes], None], begin: Callable[[], BinaryIO]) -> None:
        super().__init__()
        self._put = put
        self._begin = begin
        self._held = bytearray()
        self._long: BinaryIO | None = None
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        """Raises: StorageError, and what the package raises."""
        length = memoryview(data).nbytes
        if self._long is None and len(self._held) + length > _IN_ONE_REQUEST_BYTES:
            self._long = self._begin()
            self._long.write(bytes(self._held))
            self._held.clear()
        if self._long is not None:
            self._long.write(data)
        else:
            self._held += data
        self._written += length
        return length

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        if self._long is not None:
            self._long.close()
        else:
            self._put(bytes(self._held))

    def __del__(self) -> None:
        """Nobody closed it, so nobody asked for the file: a writer that failed leaves none behind."""
