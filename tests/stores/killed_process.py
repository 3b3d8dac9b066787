"""A writer that is killed at a given step: each request that changes a store, before and after it."""

from __future__ import annotations

import os
from typing import Any


def run(table: str, kind: str, environment: dict[str, str], kill_at: int, report: Any) -> None:
    """Make one write in a process of its own; a process that lives sends the steps it took."""
    os.environ.update(environment)
    import aiohttp

    from tests.concurrency.killed_process import Steps
    from tests.concurrency.kinds_of_writes import KINDS
    from tests.stores.requests_made import Request, watch

    steps = Steps(kill_at)

    def told(when: str, request: Request) -> None:
        if request.changes:
            steps.step(f"{when} {request}")

    hook = watch(lambda request: told("before", request), lambda request: told("after", request))
    aiohttp.ClientSession._request = hook  # type: ignore[method-assign]
    KINDS[kind](table)
    report.send(steps.taken)
