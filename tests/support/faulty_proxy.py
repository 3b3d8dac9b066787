"""A server between a client and a store, on the loopback, that misbehaves as it is told, takes its time, and counts."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

# Of one connection, and no business of the next.
_HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length")
_CHUNK_BYTES = 256 * 1024


class Exchange(NamedTuple):
    """One request and its answer, without heads. ``bytes_sent``: by the client. ``at``: seconds, when it came."""

    method: str
    path: str
    status: int
    bytes_sent: int
    bytes_received: int
    at: float

    @property
    def kind(self) -> str:
        """list, get, head, put, post or delete."""
        lists = self.method == "GET" and ("list-type=2" in self.path or "comp=list" in self.path)
        return "list" if lists else self.method.lower()


class _Line:
    """One line that all connections share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = 0.0

    def wait(self, size: int, bytes_per_s: float) -> None:
        """Until the line has carried so much more."""
        with self._lock:
            self._free = max(self._free, time.monotonic()) + size / bytes_per_s
            until = self._free
        if (pause := until - time.monotonic()) > 0.001:
            time.sleep(pause)


@dataclass
class Faults:
    """``choose(method, path)``: None to pass a request on, else what happens to it:

    - a status: the store is not asked
    - ``reset``: the connection ends before the store is asked
    - ``lost``: the store does what it is asked, and the connection ends before the answer
    - ``half``: of the answer the first half arrives
    - ``silent``: no answer comes, until the client goes away
    - ``unconditional``: the store is asked without the condition
    - ``refused``: the store is not asked, and the answer is ``refusal``: status, headers, body

    ``latency_s``: how long a request waits before the store is asked. ``bytes_per_s``: of all answers together; no
    bound where it is 0. ``exchanges``: all that were answered, in the order of their ends. ``retry_after_s``: what a
    status asks for.
    """

    choose: Callable[[str, str], str | int | None] = lambda *_: None
    asked: list[tuple[str, str]] = field(default_factory=list)
    injected: list[tuple[str, str, str | int]] = field(default_factory=list)
    refusal: tuple[int, list[tuple[str, str]], bytes] = (403, [], b"")
    retry_after_s: int = 0
    latency_s: float = 0.0
    bytes_per_s: float = 0.0
    exchanges: list[Exchange] = field(default_factory=list)

    def give_token(self) -> None:
        """Answer a client that asks for a token as Google's do."""
        token = {"access_token": "a", "expires_in": 3600, "token_type": "Bearer"}
        self.refusal = (200, [("Content-Type", "application/json")], json.dumps(token).encode())
        self.choose = lambda _, path: "refused" if path == "/token" else None


@contextlib.contextmanager
def proxy(store_url: str, certificate: ssl.SSLContext | None = None) -> Iterator[tuple[str, Faults]]:
    """Yield its URL, and its faults: an empty list at first.

    ``certificate``: clients may also take it for their proxy for https. Whatever host they ask for then, it shows
    this certificate, and asks the store.
    """
    target, faults, line = urlsplit(store_url), Faults(), _Line()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = _CHUNK_BYTES
        store: http.client.HTTPConnection | None = None

        def pass_on(self) -> None:
            at, body = time.monotonic(), self._body()
            faults.asked.append((self.command, self.path))
            if faults.latency_s:
                time.sleep(faults.latency_s)
            fault = faults.choose(self.command, self.path)
            if fault is not None:
                faults.injected.append((self.command, self.path, fault))
            if isinstance(fault, int):
                self._answer(fault, [("Retry-After", str(faults.retry_after_s))], b"")
            elif fault == "refused":
                self._answer(*faults.refusal)
            elif fault == "silent":
                self.connection.recv(1)  # nothing comes either
                self.close_connection = True
            elif fault == "reset":
                self._reset()
            else:
                answer = self._asked(body, conditional=fault != "unconditional")
                if fault is not None:
                    status, headers, data = answer.status, answer.getheaders(), answer.read()
                if fault == "lost":
                    self._reset()
                elif fault is not None:
                    self._answer(status, headers, data, half=fault == "half")
                else:
                    received = self._stream(answer)
                    faults.exchanges.append(Exchange(self.command, self.path, answer.status, len(body), received, at))

        def do_CONNECT(self) -> None:
            assert certificate is not None
            faults.asked.append((self.command, self.path))
            self.send_response_only(200)
            self.end_headers()
            self.wfile.flush()
            self.request = certificate.wrap_socket(self.request, server_side=True)
            self.setup()
            self.close_connection = False  # as clients of HTTP 1.0 have it, which ask for more here

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on  # noqa: N815 - http.server's names

        def handle_expect_100(self) -> bool:
            super().handle_expect_100()
            self.wfile.flush()
            return True

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            chunks = []
            while length := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(length))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)

        def _asked(self, body: bytes, *, conditional: bool) -> http.client.HTTPResponse:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            path = self.path
            if not conditional:
                headers = {name: value for name, value in headers.items() if name.lower() != "if-none-match"}
                path = re.sub(r"&?ifGenerationMatch=0", "", path)
            sent = body if body or self.command in ("PUT", "POST") else None
            # one that was kept may have been ended meanwhile
            while self.store is not None:
                try:
                    self.store.request(self.command, path, sent, headers)
                    return self.store.getresponse()
                except OSError:
                    self._part()
            self.store = http.client.HTTPConnection(target.hostname or "", target.port, timeout=60)
            self.store.request(self.command, path, sent, headers)
            return self.store.getresponse()

        def _part(self) -> None:
            if self.store is not None:
                self.store.close()
                self.store = None

        def _stream(self, answer: http.client.HTTPResponse) -> int:
            """Pass an answer on as it comes. Returns: the length of its body."""
            length = answer.getheader("Content-Length")
            if length is None or self.command == "HEAD" or answer.status in (204, 304):
                data = answer.read()
                self._answer(answer.status, answer.getheaders(), data)
                return len(data)
            self._head(answer.status, answer.getheaders(), int(length))
            buffer, received = bytearray(_CHUNK_BYTES), 0
            while count := answer.readinto(buffer):
                if faults.bytes_per_s:
                    line.wait(count, faults.bytes_per_s)
                self.wfile.write(memoryview(buffer)[:count])
                received += count
            return received

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes, *, half: bool = False) -> None:
            has_body = self.command != "HEAD" and status not in (204, 304)
            self._head(status, headers, len(body) if has_body else None)
            if self.command != "HEAD":
                self.wfile.write(body[: len(body) // 2] if half else body)
            if half:
                self._reset()

        def _head(self, status: int, headers: list[tuple[str, str]], length: int | None) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _HOP_BY_HOP or (self.command == "HEAD" and name.lower() == "content-length"):
                    self.send_header(name, value)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.end_headers()

        def _reset(self) -> None:
            self.wfile.flush()
            self.close_connection = True
            # a reset, and no orderly end
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

        def finish(self) -> None:
            self._part()
            with contextlib.suppress(OSError, ValueError):
                super().finish()

        def log_message(self, *_: object) -> None:
            """Not a line for each request."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

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
