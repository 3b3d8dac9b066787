"""The requests that this process makes of stores, counted where all three clients make them: in aiohttp."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import aiohttp
import pytest


@dataclass(frozen=True)
class Request:
    """``url``: decoded, with all parameters. ``received``: bytes of the answer, as far as it says."""

    method: str
    url: str
    received: int = 0

    @property
    def changes(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def lists(self) -> bool:
        marks = ("list-type=2", "comp=list", "delimiter=/")
        return self.method == "GET" and any(mark in self.url for mark in marks)


def watch(before: Callable[[Request], None], after: Callable[[Request], None]) -> Any:
    """A method to put in the place of ``aiohttp.ClientSession._request``."""
    real = aiohttp.ClientSession._request

    async def request(session: aiohttp.ClientSession, method: str, url: Any, **options: Any) -> Any:
        parameters = "&".join(f"{name}={value}" for name, value in (options.get("params") or {}).items())
        whole = f"{unquote(str(url))}{'&' if '?' in str(url) else '?'}{parameters}"
        before(Request(method.upper(), whole))
        response = await real(session, method, url, **options)
        length = response.headers.get("Content-Length") or 0
        after(Request(method.upper(), whole, int(length) if method.upper() == "GET" else 0))
        return response

    return request


def watch_changes(step: Callable[[str], None]) -> None:
    """From now on, call ``step`` before and after each request of this process that changes a store."""

    def told(when: str, request: Request) -> None:
        if request.changes:
            step(f"{when} {request}")

    hook = watch(lambda request: told("before", request), lambda request: told("after", request))
    aiohttp.ClientSession._request = hook  # type: ignore[method-assign]


@contextlib.contextmanager
def requests_made() -> Iterator[list[Request]]:
    """All of them in order, repeated ones too."""
    made: list[Request] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aiohttp.ClientSession, "_request", watch(lambda _: None, made.append))
        yield made
