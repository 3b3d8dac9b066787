"""Time limits of whole answers. ``urllib3`` limits only single reads, so a server could send single bytes forever.

Invariant: no request takes longer than its limit, from sending it to the last byte of its answer. The answer is its
headers (a proxy's too) and body. A proxy's answer before the request is sent has the same limit.
"""

from __future__ import annotations

import http.client
import io
import time
from functools import partial
from typing import Any


def timed_pools(urllib3: Any, limit_s: float) -> dict[str, Any]:
    """Connection pools with the limit, by scheme, for ``PoolManager.pool_classes_by_scheme``."""
    return {
        scheme: type(pool.__name__, (pool,), {"ConnectionCls": _timed(connection, limit_s)})
        for scheme, pool, connection in (
            ("http", urllib3.HTTPConnectionPool, urllib3.connection.HTTPConnection),
            ("https", urllib3.HTTPSConnectionPool, urllib3.connection.HTTPSConnection),
        )
    }


def _timed(connection_class: Any, limit_s: float) -> type:
    class Timed(connection_class):  # type: ignore[misc]
        """A connection with a deadline for each request. One thread uses it at a time."""

        def connect(self) -> None:
            self._start()
            super().connect()

        def request(self, *args: Any, **given: Any) -> None:
            self._start()
            super().request(*args, **given)

        def _start(self) -> None:
            self.response_class = partial(_TimedResponse, until=time.monotonic() + limit_s)

    return Timed


class _TimedResponse(http.client.HTTPResponse):
    """``until``: the deadline, by ``time.monotonic``."""

    def __init__(self, sock: Any, *args: Any, until: float, **given: Any) -> None:
        super().__init__(sock, *args, **given)
        self.fp.close()
        self.fp = io.BufferedReader(_Until(sock, until))


class _Until(io.RawIOBase):
    """Reads from a socket until a deadline."""

    def __init__(self, sock: Any, until: float) -> None:
        super().__init__()
        # the raw file keeps the socket open until it is closed
        self._sock, self._raw, self._until = sock, sock.makefile("rb", buffering=0), until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left_s)
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
