"""A server that gives a byte a time is given up after the limit of the call, whatever part of an answer it is at."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from delta_pyds.catalog.unity_http import UnityHttp
from delta_pyds.errors import CatalogError, NothingWrittenError
from tests.support.certificates import certificate_for

LIMIT_S, BYTE_S = 0.4, 0.05
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n"
BODY = b'{"name":"a"}'


class Answer(msgspec.Struct):
    name: str


class DrippingServer:
    """Answers each request with ``quick`` at once and ``slow`` byte by byte, which takes longer than the limit."""

    def __init__(self, quick: bytes, slow: bytes, rest: bytes = b"", tls: ssl.SSLContext | None = None) -> None:
        self._parts, self._tls = (quick, slow, rest), tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._socket]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                if self._tls is not None:
                    connection = self._tls.wrap_socket(connection, server_side=True)
                self._open.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        quick, slow, rest = self._parts
        with contextlib.suppress(OSError):
            while _asked(connection):
                connection.sendall(quick)
                for byte in slow:
                    connection.sendall(bytes((byte,)))
                    time.sleep(BYTE_S)
                connection.sendall(rest)

    def close(self) -> None:
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _asked(connection: socket.socket) -> bool:
    """Whether a whole request has come: a call, or what a proxy is asked for."""
    data = b""
    while part := connection.recv(1 << 16):
        data += part
        if data.endswith(b"\r\n\r\n{}") or (data.startswith(b"CONNECT") and data.endswith(b"\r\n\r\n")):
            return True
    return False


@pytest.fixture
def dripping() -> Iterator[Callable[..., DrippingServer]]:
    with ExitStack() as until_the_end:

        def make(*parts: bytes, tls: ssl.SSLContext | None = None) -> DrippingServer:
            server = DrippingServer(*parts, tls=tls)
            until_the_end.callback(server.close)
            return server

        yield make


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Of a server whose certificate clients trust."""
    certificate, key = certificate_for(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@pytest.mark.parametrize(
    "parts",
    [(b"", HEAD, BODY), (HEAD[:17], HEAD[17:], BODY), (HEAD.replace(b"12", b"32"), BODY + b" " * 20)],
    ids=["status line", "head", "body"],
)
@pytest.mark.parametrize("encrypted", [False, True])
def test_an_answer_that_drips(
    dripping: Callable[..., DrippingServer], parts: tuple[bytes, ...], encrypted: bool, trusted: ssl.SSLContext
) -> None:
    """In the end it would be a good one: a client that waits for each byte gets it."""
    http = UnityHttp(dripping(*parts, tls=trusted if encrypted else None).url, read_s=LIMIT_S)
    with pytest.raises(CatalogError, match="timed out") as error:
        http.post("tables/t", {}, Answer)
    assert not isinstance(error.value, NothingWrittenError)


def test_what_a_proxy_says_drips(dripping: Callable[..., DrippingServer], monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = dripping(b"", b"HTTP/1.1 200 Connection established\r\n\r\n")
    monkeypatch.setenv("https_proxy", proxy.url)
    http = UnityHttp("https://unity.example", read_s=LIMIT_S)
    with pytest.raises((CatalogError, NothingWrittenError), match="timed out"):
        http.post("tables/t", {}, Answer)


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_connection_is_used_again_with_a_limit_of_its_own(
    dripping: Callable[..., DrippingServer], encrypted: bool, trusted: ssl.SSLContext
) -> None:
    server = dripping(HEAD, b"", BODY, tls=trusted if encrypted else None)
    http = UnityHttp(server.url, read_s=LIMIT_S)
    for _ in range(3):
        assert http.post("tables/t", {}, Answer).name == "a"
        time.sleep(LIMIT_S / 2)
    # of the server and one connection
    assert len(server._open) == 2
