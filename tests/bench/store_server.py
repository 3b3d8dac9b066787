"""A store of its own process for a benchmark: S3's protocol over a directory, slowed down, every request counted."""

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
    """``url``: the endpoint, which counts and waits. Tables lie below ``s3://bucket``, a directory of the root."""

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
    """``root``: holds a directory ``bucket``. Server and proxy are a process each, which end with the block."""
    spawn = multiprocessing.get_context("spawn")
    ends: list[Connection] = []
    processes = []

    def started(target: Any, *arguments: Any) -> str:
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=target, args=(theirs, *arguments), daemon=True)
        process.start()
        ends.append(ours)
        processes.append(process)
        return str(ours.recv())

    try:
        url = started(_serve, root)
        yield StoreServer(started(_pass_on, url), ends[-1])
    finally:
        for process in processes:
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
