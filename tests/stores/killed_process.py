"""A writer that is killed at a given step: each request that changes a store, before and after it."""

from __future__ import annotations

import os
from typing import Any


def run(table: str, kind: str, environment: dict[str, str], kill_at: int, report: Any) -> None:
    """Make one write in a process of its own; a process that lives sends the steps it took."""
    os.environ.update(environment)
    from tests.concurrency.killed_process import Steps
    from tests.concurrency.kinds_of_writes import KINDS
    from tests.stores.requests_made import watch_changes

    steps = Steps(kill_at)
    watch_changes(steps.step)
    KINDS[kind](table)
    report.send(steps.taken)
