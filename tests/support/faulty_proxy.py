"""A server between a client and a store, on the loopback, that misbehaves as it is told."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

# Of one connection, and no business of the next.
_HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length")


@dataclass
class Faults:
    """``choose(method, path)``: None to pass a request on, else what happens to it:

    - a status: the store is not asked
    - ``reset``: the connection ends before the store is asked
    - ``lost``: the store does what it is asked, and the connection ends before the answer
    - ``half``: of the answer the first half arrives
    - ``silent``: no answer comes, until the client goes away
    - ``unconditional``: the store is asked without the condition
    """

    choose: Callable[[str, str], str | int | None] = lambda *_: None
    asked: list[tuple[str, str]] = field(default_factory=list)
    injected: list[tuple[str, str, str | int]] = field(default_factory=list)


@contextlib.contextmanager
def proxy(store_url: str) -> Iterator[tuple[str, Faults]]:
    """Yield its URL, and its faults, which are none at first."""
    target, faults = urlsplit(store_url), Faults()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            body = self._body()
            faults.asked.append((self.command, self.path))
            fault = faults.choose(self.command, self.path)
            if fault is not None:
                faults.injected.append((self.command, self.path, fault))
            if isinstance(fault, int):
                self._answer(fault, [("Retry-After", "0")], b"")
            elif fault == "silent":
                self.connection.recv(1)  # nothing comes either
                self.close_connection = True
            elif fault == "reset":
                self._reset()
            else:
                status, headers, answer = self._asked(body, conditional=fault != "unconditional")
                if fault == "lost":
                    self._reset()
                else:
                    self._answer(status, headers, answer, half=fault == "half")

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on  # noqa: N815 - http.server's names

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            chunks = []
            while length := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(length))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)

        def _asked(self, body: bytes, *, conditional: bool) -> tuple[int, list[tuple[str, str]], bytes]:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            path = self.path
            if not conditional:
                headers = {name: value for name, value in headers.items() if name.lower() != "if-none-match"}
                path = re.sub(r"&?ifGenerationMatch=0", "", path)
            connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=60)
            try:
                connection.request(
                    self.command, path, body if body or self.command in ("PUT", "POST") else None, headers
                )
                answer = connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            finally:
                connection.close()

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes, *, half: bool = False) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _HOP_BY_HOP or (self.command == "HEAD" and name.lower() == "content-length"):
                    self.send_header(name, value)
            if self.command != "HEAD" and status not in (204, 304):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: len(body) // 2] if half else body)
            if half:
                self._reset()

        def _reset(self) -> None:
            self.wfile.flush()
            self.close_connection = True
            # a reset, and no orderly end
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

        def finish(self) -> None:
            with contextlib.suppress(OSError, ValueError):
                super().finish()

        def log_message(self, *_: object) -> None:
            """Not a line for each request."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that went away is what these tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", faults
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
