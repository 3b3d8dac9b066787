"""Calls to Unity Catalog's REST interface: JSON in, JSON out, with a bearer token. Needs ``urllib3``.

Invariants:

- The token is sent only to the address in the settings; redirects are not followed. It is never sent unencrypted to
  another machine. No error, ``repr`` or pickle contains it.
- An error tells whether the server may have acted on the call.
- No call takes longer than its limit, however slowly the server answers.
- Connections are used only by the process that opened them.
"""

from __future__ import annotations

import http.client
import importlib
import io
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from delta_pyds.backoff import pause_s
from delta_pyds.errors import CatalogError, NothingWrittenError, OptionError
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.redaction import conceal

_API = "/api/2.1/unity-catalog"
_CONNECT_S = 20.0
_READ_S = 60.0
_LONGEST_ANSWER = 64 << 20
_CONNECTIONS = 8
_TRIES = 4
# temporary errors of a proxy or a busy server: the request is tried again
_PASSING = frozenset((429, 502, 503, 504))
_UNAUTHORIZED = 401
_REFUSALS = frozenset((_UNAUTHORIZED, 403, 404, 405))
_OF_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_Answer = TypeVar("_Answer")


class UnityError(Exception):
    """An error that the server reports. ``kind``: the server's name for it; empty if the server gives none.

    ``acted``: whether the server may have acted on the call despite the error.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.status, self.kind = status, kind
        hint = "; check the catalog's token setting" if status == _UNAUTHORIZED else ""
        super().__init__(f"{message} ({kind or 'HTTP'} {status}{hint})")

    @property
    def acted(self) -> bool:
        if self.kind:
            return self.status >= 500 and self.status != 501
        # the answer is from a proxy, which may not know the outcome
        return self.status >= 400 and self.status not in _REFUSALS


class _Error(msgspec.Struct):
    message: str = ""
    type: str = ""


class _ErrorAnswer(msgspec.Struct):
    """The error format of this interface, or of the older one. Missing permissions are reported in the older one."""

    error: _Error | None = None
    error_code: str = ""
    message: str = ""


class UnityHttp:
    """``url``: the server's URL, with or without the path of its interface. ``token``: None for a server without
    authentication. ``renewed``: returns a new token when the server refuses this one, which may have expired.

    >>> UnityHttp("https://unity.example", token).get("catalogs/main/schemas/db/tables/t", LoadedTable)
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        renewed: Callable[[], str | None] | None = None,
        read_s: float = _READ_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._urllib3 = _client()
        self._base = _base_of(url)
        self._authorization, self._renewed = self._authorizing(token), renewed
        self._read_s, self._sleep = read_s, sleep
        self._process, self._pool = -1, None
        parts = urlsplit(self._base)
        self.shown = f"{parts.scheme}://{parts.netloc}"

    def __repr__(self) -> str:
        return f"UnityHttp({self.shown!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A catalog client contains its token and cannot be pickled.")

    def get(self, path: str, answer: type[_Answer], **query: str) -> _Answer:
        """Send a GET request. Repeat it if the server cannot be reached or is busy.

        Raises: UnityError; CatalogError if the server does not answer.
        """
        url = f"{path}?{urlencode(query)}" if query else path
        for attempt in range(1, _TRIES):
            try:
                return self._call("GET", url, None, answer)
            except UnityError as error:
                if error.status not in _PASSING:
                    raise
            except (NothingWrittenError, CatalogError):
                pass
            self._sleep(pause_s(attempt, first_s=0.2, longest_s=2.0))
        try:
            return self._call("GET", url, None, answer)
        except NothingWrittenError as error:
            raise CatalogError(error.message) from None

    def post(self, path: str, body: Mapping[str, Any], answer: type[_Answer]) -> _Answer:
        """Send a POST request, once.

        Raises: UnityError; NothingWrittenError if the server cannot have received the call; CatalogError if the
            outcome is unknown.
        """
        return self._call("POST", path, msgspec.json.encode(body), answer)

    def _call(self, method: str, path: str, body: bytes | None, answer: type[_Answer]) -> _Answer:
        sent = self._authorization
        status, data = self._answered(method, f"{self._base}/{path}", body, sent)
        # a refused token means that the server has done nothing
        if status == _UNAUTHORIZED and (instead := self._renewed_headers(sent)) != sent:
            status, data = self._answered(method, f"{self._base}/{path}", body, instead)
        if status >= 300:
            raise _error_of(status, data)
        try:
            return decode_json(data, answer)
        except InvalidJSONError as error:
            raise CatalogError(f"The catalog {self.shown} gave an invalid answer: {error}.") from None

    def _renewed_headers(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        """New headers instead of the refused ones. Another thread may have renewed them already."""
        if self._renewed is not None and self._authorization == refused:
            self._authorization = self._authorizing(self._renewed())
        return self._authorization

    def _authorizing(self, token: str | None) -> Mapping[str, str]:
        parts = urlsplit(self._base)
        header = _bearer(token)
        if header and parts.scheme == "http" and parts.hostname not in _OF_THIS_MACHINE:
            raise OptionError(
                f"the token of the catalog at {parts.scheme}://{parts.netloc} would be sent unencrypted, and others "
                "could read it. Give an https:// url; http:// with a token is only for a server on this machine.",
                option="catalog",
            )
        return header

    def _answered(
        self, method: str, url: str, body: bytes | None, authorization: Mapping[str, str]
    ) -> tuple[int, bytes]:
        exceptions = self._urllib3.exceptions
        headers = {"Accept": "application/json", "User-Agent": "delta_pyds", **authorization}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._connections().request(
                method,
                url,
                body=body,
                headers=headers,
                timeout=self._urllib3.Timeout(connect=_CONNECT_S, read=self._read_s),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except (exceptions.NewConnectionError, exceptions.ConnectTimeoutError) as error:
            raise NothingWrittenError(f"The catalog {self.shown} cannot be reached: {_reason(error)}.") from None
        except exceptions.HTTPError as error:
            if error.args and isinstance(error.args[0], ssl.SSLCertVerificationError):
                raise NothingWrittenError(
                    f"The TLS certificate of the catalog {self.shown} is not trusted: {_reason(error)}. Check the "
                    "catalog's url, or name the certificates to trust in the environment variable SSL_CERT_FILE."
                ) from None
            raise CatalogError(f"The catalog {self.shown} gave no answer: {_reason(error)}.") from None
        try:
            data = self._whole(response)
        except exceptions.HTTPError as error:
            response.close()
            raise CatalogError(f"The catalog {self.shown} gave an incomplete answer: {_reason(error)}.") from None
        response.release_conn()
        return response.status, data

    def _whole(self, response: Any) -> bytes:
        """The answer, limited in size. Raises: CatalogError; urllib3 HTTPError."""
        data = bytearray()
        while part := response.read1(1 << 16, decode_content=True):
            data += part
            if len(data) > _LONGEST_ANSWER:
                response.close()
                raise CatalogError(f"The catalog {self.shown} gave an answer of more than {_LONGEST_ANSWER} bytes.")
        return bytes(data)

    def _connections(self) -> Any:
        if self._process != os.getpid():
            parts = urlsplit(self._base)
            host, proxy = parts.hostname or "", getproxies().get(parts.scheme)
            if proxy and host not in _OF_THIS_MACHINE and not proxy_bypass(host):
                headers = _proxy_headers(self._urllib3, proxy)
                pool = self._urllib3.ProxyManager(proxy, proxy_headers=headers, maxsize=_CONNECTIONS)
            else:
                pool = self._urllib3.PoolManager(maxsize=_CONNECTIONS)
            pool.pool_classes_by_scheme = _timed_pools(self._urllib3, self._read_s)
            self._pool, self._process = pool, os.getpid()
        return self._pool


def _proxy_headers(urllib3: Any, proxy: str) -> Mapping[str, str]:
    """The headers with the user and password in the proxy's URL. The HTTP client does not send them by itself."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    user, password = unquote(parts.username), unquote(parts.password or "")
    headers: Mapping[str, str] = urllib3.make_headers(proxy_basic_auth=f"{user}:{password}")
    conceal((password, *(value.rpartition(" ")[2] for value in headers.values())))
    return headers


def path_of(*parts: str) -> str:
    """The path of these parts; slashes in a part are escaped."""
    return "/".join(quote(part, safe="") for part in parts)


def _client() -> Any:
    try:
        urllib3 = importlib.import_module("urllib3")
        urllib3.HTTPResponse.read1  # noqa: B018 - since 2.2
    except (ImportError, AttributeError) as error:
        raise OptionError(
            "Unity Catalog needs the package urllib3, 2.2 or later: install delta_pyds[unity].", option="catalog"
        ) from error
    return urllib3


def _base_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        invalid = parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.port == 0
    except ValueError:  # an invalid port
        invalid = True
    if invalid or parts.query or parts.fragment:
        raise OptionError(
            "the url of a Unity Catalog must have the form https://host[:port], without user and parameters. Give the "
            "token in a setting of its own, DELTA_PYDS_CATALOG_<NAME>_TOKEN.",
            option="catalog",
        )
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path if path.endswith(_API) else path + _API}/delta/v1"


def _bearer(token: str | None) -> dict[str, str]:
    if token is None or not token.strip():
        return {}
    plain = token.strip()
    if not _TOKEN.fullmatch(plain):
        # the HTTP client would show the token in its error
        raise OptionError(
            "the token of the catalog contains a space or another character that a token cannot contain. Check "
            "DELTA_PYDS_CATALOG_<NAME>_TOKEN.",
            option="catalog",
        )
    conceal((plain,))
    return {"Authorization": f"Bearer {plain}"}


def _error_of(status: int, data: bytes) -> UnityError:
    try:
        answer = decode_json(data, _ErrorAnswer)
    except InvalidJSONError:
        answer = _ErrorAnswer()
    error = answer.error or _Error(answer.message, answer.error_code)
    if not error.type:
        # the answer of a proxy, or of a server that is not Unity Catalog
        message = "the server gave an unexpected answer"
        if status < 400:
            message = "the server sent a redirect, which is not followed"
        elif status == 404:
            message = (
                "there is no Unity Catalog with version 1 of the Delta interface at this url; check the catalog's url"
            )
        return UnityError(status, "", message)
    return UnityError(status, error.type, error.message.strip().rstrip(".") or "the server gave no reason")


def _reason(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__


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


def _timed_pools(urllib3: Any, limit_s: float) -> dict[str, Any]:
    """Connection pools with the limit, by scheme, for ``PoolManager.pool_classes_by_scheme``.

    ``urllib3`` limits only single reads, so a server could send single bytes forever. Here no request takes longer than
    its limit, from sending it to the last byte of its answer: headers (a proxy's too) and body. A proxy's answer before
    the request is sent has the same limit.
    """
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
