"""A store in processes of its own for a benchmark: slowed down, and every request counted."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.support.directory_server import directory_server
from tests.support.faulty_proxy import Exchange, proxy


@dataclass(frozen=True)
class StoreServer:
    """``url``: the endpoint, which counts and waits."""

    url: str
    _pipe: Connection

    def behave(self, latency_s: float = 0.0, bytes_per_s: float = 0.0) -> None:
        """From now on."""
        self._pipe.send((latency_s, bytes_per_s))
        self._pipe.recv()

    def taken(self) -> Sequence[Exchange]:
        """The requests since the last call."""
        self._pipe.send(None)
        return [Exchange(*one) for one in self._pipe.recv()]

    def options(self) -> dict[str, Any]:
        """Storage options of this package."""
        return {
            "key": "test",
            "secret": "test",
            "endpoint_url": self.url,
            "client_kwargs": {"region_name": "us-east-1"},
        }

    def deltalake_options(self) -> dict[str, str]:
        """The same for deltalake."""
        return {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "aws_conditional_put": "etag",
        }


@contextlib.contextmanager
def store_server(root: Path) -> Iterator[StoreServer]:
    """S3's protocol over a directory. Tables lie below ``s3://bucket``, the directory ``bucket`` of the root."""
    with _started(_serve, root) as (url, _), counted(url) as server:
        yield server


@contextlib.contextmanager
def counted(store_url: str) -> Iterator[StoreServer]:
    """A proxy before the store at this URL, in a process that ends with the block."""
    with _started(_pass_on, store_url) as (url, pipe):
        yield StoreServer(url, pipe)


@contextlib.contextmanager
def _started(target: Any, argument: Any) -> Iterator[tuple[str, Connection]]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=target, args=(theirs, argument), daemon=True)
    process.start()
    try:
        yield str(ours.recv()), ours
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, root: Path) -> None:
    with directory_server(root) as url, contextlib.suppress(EOFError):
        pipe.send(url)
        pipe.recv()


def _pass_on(pipe: Connection, store_url: str) -> None:
    with proxy(store_url) as (url, faults), contextlib.suppress(EOFError):
        pipe.send(url)
        while True:
            told = pipe.recv()
            if told is None:
                made = list(faults.exchanges)
                del faults.exchanges[: len(made)]
                faults.asked.clear()
                pipe.send([tuple(one) for one in made])
            else:
                faults.latency_s, faults.bytes_per_s = told
                pipe.send(None)
