"""An object as a file for Parquet readers: one request for footer and size, then one for each range."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

from delta_pyds.storage.read_ahead import HOLE_BYTES, Expectation, Expectations

# Arrow first reads this much of a file's end.
_ARROW_BYTES = 64 * 1024


class ObjectFile(io.RawIOBase):
    """A file over one object. Invariant: each byte is the object's byte at that offset.

    Each read of a range is one request; an expected range is requested once. The last bytes, which came with the size,
    are never requested again, and neither is a footer that begins before them.

    ``size_bytes``: the object's size. ``tail``: its last bytes. ``fetch(offset, length)``: reads a range of it.
    ``path``: its path, for messages.
    """

    def __init__(self, size_bytes: int, tail: bytes, fetch: Callable[[int, int], bytes], path: str) -> None:
        super().__init__()
        self._size = size_bytes
        self._tail = tail
        self._fetch = fetch
        self._path = path
        self._expected = Expectations(fetch, path)
        self._at = 0

    def reopen(self) -> ObjectFile:
        """Open the same file again, without a request."""
        return ObjectFile(self._size, self._tail, self._fetch, self._path)

    @property
    def footer_bytes(self) -> int:
        """The length of the Parquet footer with the 8 bytes after it; 0 if the last bytes are not plausible."""
        length = int.from_bytes(self._tail[-8:-4], "little") + 8
        return length if self._tail[-4:] == b"PAR1" and length <= self._size else 0

    def short_footer(self) -> Any:
        """The footer with the 8 bytes after it, fetched if necessary.

        Returns: None if Arrow can read the end without a request, or if this is not a Parquet file.
        """
        if self.footer_bytes > len(self._tail):
            self.seek(-self.footer_bytes, io.SEEK_END)
            self._tail = bytes(self.read())
        if not self.footer_bytes or len(self._tail) >= min(_ARROW_BYTES, self._size):
            return None
        self.seek(-self.footer_bytes, io.SEEK_END)
        return self.read()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def expect(self, ranges: Iterable[tuple[int, int]], hole_bytes: int = HOLE_BYTES) -> Expectation:
        """Request ranges that will be read: pairs of the first byte and the one after the last.

        Ranges from a damaged footer may lie outside of the file.
        """
        before = self._size - len(self._tail)
        return self._expected.add(((max(start, 0), min(end, before)) for start, end in ranges), hole_bytes)

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"a position before the start of the file: {base + offset}")
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> Any:
        """Return bytes or a view of them. Raises: StorageError; OSError if the object has become shorter."""
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        start, tail_at = self._at, self._size - len(self._tail)
        if start >= end:
            return b""
        data: bytes | memoryview = b""
        if start < tail_at:
            wanted = min(end, tail_at) - start
            data = self._expected.read(start, start + wanted)
            if len(data) != wanted:
                raise OSError(f"it became shorter while it was read: {len(data)} of {wanted} bytes at offset {start}")
        if end > tail_at:
            rest = memoryview(self._tail)[max(start - tail_at, 0) : end - tail_at]
            data = b"".join((data, rest)) if len(data) else rest
        self._at = end
        return data

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
