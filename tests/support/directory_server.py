"""S3's protocol over a directory, for benchmarks: quick enough not to be what is measured.

It lists, reads by ranges, creates under ``If-None-Match`` and deletes. The first part of a path is the bucket, a
directory below the root. Nothing is checked: not the signature, and not who asks. What is right is asked of moto and of
real stores.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import threading
import uuid
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

_PAGE = 1000


@contextlib.contextmanager
def directory_server(root: Path) -> Iterator[str]:
    """Yield the server's URL."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: object) -> None:
            """A client that went away."""

    server = Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"root": root}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    root: Path

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "list-type" in asked:
            return self._list({name: values[0] for name, values in asked.items()})
        return self._send(body=True)

    def do_HEAD(self) -> None:
        self._send(body=False)

    def do_PUT(self) -> None:
        data, file = self._body(), self._file()
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{uuid.uuid4().hex}.new")
        new.write_bytes(data)
        try:
            if self.headers.get("If-None-Match") == "*":
                os.link(new, file)
                new.unlink()
            else:
                new.replace(file)
        except FileExistsError:
            new.unlink()
            return self._answer(412, _error("PreconditionFailed"))
        return self._answer(200, headers={"ETag": _etag(file.stat())})

    def do_DELETE(self) -> None:
        self._file().unlink(missing_ok=True)
        self._answer(204)

    def do_POST(self) -> None:
        data = self._body()
        if "delete" not in parse_qs(urlsplit(self.path).query, keep_blank_values=True):
            return self._answer(501, _error("NotImplemented"))
        keys = [unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", data.decode())]
        for key in keys:
            (self._file() / key).unlink(missing_ok=True)
        deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        return self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>")

    def handle_expect_100(self) -> bool:
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def _file(self) -> Path:
        return self.root / unquote(urlsplit(self.path).path).lstrip("/")

    def _body(self) -> bytes:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" not in (self.headers.get("Content-Encoding") or ""):
            return data
        plain, at = b"", 0
        while True:
            end = data.index(b"\r\n", at)
            length = int(data[at:end].split(b";")[0], 16)
            if not length:
                return plain
            plain += data[end + 2 : end + 2 + length]
            at = end + 4 + length

    def _send(self, *, body: bool) -> None:
        try:
            file = self._file().open("rb")
        except (FileNotFoundError, IsADirectoryError):
            return self._answer(404, _error("NoSuchKey"))
        with file:
            status = os.fstat(file.fileno())
            start, length, code = 0, status.st_size, 200
            headers = {"ETag": _etag(status), "Last-Modified": formatdate(status.st_mtime, usegmt=True)}
            if self.headers.get("If-Match", headers["ETag"]) != headers["ETag"]:
                return self._answer(412, _error("PreconditionFailed"))
            wanted = self.headers.get("Range")
            if wanted is not None:
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                start = int(first) if first else max(0, length - int(last))
                end = min(int(last), length - 1) if first and last else length - 1
                if start >= length:
                    return self._answer(416, _error("InvalidRange"))
                headers["Content-Range"] = f"bytes {start}-{end}/{length}"
                length, code = end + 1 - start, 206
            self._head(code, length, headers)
            if body:
                self.wfile.flush()
                if length:
                    self.connection.sendfile(file, start, length)
        return None

    def _list(self, asked: dict[str, str]) -> None:
        bucket = self._file()
        prefix, slash = asked.get("prefix", ""), asked.get("delimiter") == "/"
        after = asked.get("continuation-token") or asked.get("start-after") or ""
        directory = bucket / prefix.rpartition("/")[0]
        keys: list[tuple[str, os.stat_result | None]] = []
        for base, directories, files in os.walk(directory):
            below = "" if Path(base) == bucket else f"{Path(base).relative_to(bucket)}/"
            found = [(below + name, os.stat(os.path.join(base, name))) for name in files if below + name > after]
            keys += [(key, status) for key, status in found if key.startswith(prefix)]
            if slash:
                keys += [(f"{below}{name}/", None) for name in directories if f"{below}{name}/" > after]
                break
        keys.sort()
        page = keys[: int(asked.get("max-keys", _PAGE))]
        more = len(keys) > len(page)
        said = f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>"
        out = [f"<Name>{escape(bucket.name)}</Name>{said}"]
        if more:
            out.append(f"<NextContinuationToken>{escape(page[-1][0])}</NextContinuationToken>")
        for key, status in page:
            if status is None:
                out.append(f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>")
            else:
                time = dt.datetime.fromtimestamp(status.st_mtime, dt.timezone.utc)
                out.append(
                    f"<Contents><Key>{escape(key)}</Key><Size>{status.st_size}</Size><ETag>{escape(_etag(status))}"
                    f"</ETag><LastModified>{time:%Y-%m-%dT%H:%M:%S.000Z}</LastModified></Contents>"
                )
        namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
        self._answer(200, f'<ListBucketResult xmlns="{namespace}">{"".join(out)}</ListBucketResult>')

    def _answer(self, status: int, text: str = "", headers: dict[str, str] | None = None) -> None:
        data = text.encode()
        self._head(status, len(data), {**(headers or {}), **({"Content-Type": "application/xml"} if data else {})})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not a line for each request."""


def _etag(status: os.stat_result) -> str:
    return f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'


def _error(code: str) -> str:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
