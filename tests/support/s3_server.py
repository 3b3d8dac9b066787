"""An S3 server on the loopback, for as long as a test module runs."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

# moto takes any
CREDENTIALS = {"key": "test", "secret": "test"}


@contextmanager
def s3_server(*, heeds_conditions: bool = True, in_one_step: bool = True) -> Iterator[str]:
    """Yield the server's URL; it has a bucket ``bucket``.

    ``heeds_conditions`` False: it ignores If-None-Match, as some stores do. ``in_one_step`` False: it looks whether
    there is a file, and puts its own later.
    """
    application = DomainDispatcherApplication(create_backend_app)
    lock = threading.Lock()
    names: set[str] = set()

    def one_at_a_time(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        if not heeds_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if not in_one_step and environ["PATH_INFO"] not in names and environ.pop("HTTP_IF_NONE_MATCH", None):
            time.sleep(0.1)
            names.add(environ["PATH_INFO"])
        # moto looks first and puts then; S3's conditional put is one step
        with lock:
            return list(application(environ, start_response))

    class Quiet(WSGIRequestHandler):
        def log(self, *_: Any) -> None:
            """Not a line for each request."""

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        urllib.request.urlopen(urllib.request.Request(f"{url}/bucket", method="PUT")).close()
        yield url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def options(url: str) -> dict[str, Any]:
    """The storage options of a table on the server."""
    return {**CREDENTIALS, "endpoint_url": url, "client_kwargs": {"region_name": "us-east-1"}}
