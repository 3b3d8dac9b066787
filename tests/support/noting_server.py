"""A server on this machine that notes what it is asked, and answers nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer


@contextlib.contextmanager
def noting_server() -> Iterator[tuple[str, list[str]]]:
    """Yield the server's address, and the first lines of its requests."""
    asked: list[str] = []

    class Noting(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            asked.append(self.rfile.readline().decode("latin-1"))

    server = HTTPServer(("127.0.0.1", 0), Noting)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
