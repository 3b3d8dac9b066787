"""A writer that is killed at a given step. Steps are the calls through which a write changes the disk, each
before and after its effect, in the order in which they happen."""

from __future__ import annotations

import builtins
import os
import signal
from collections.abc import Callable
from multiprocessing.context import BaseContext
from typing import Any

from delta_pyds.table.transaction.commit_encoding import CommitEncoder


class Steps:
    """Counts steps, and kills this process at one of them; ``kill_at`` 0 only counts."""

    def __init__(self, kill_at: int) -> None:
        self.kill_at = kill_at
        self.taken: list[str] = []

    def step(self, what: str) -> None:
        self.taken.append(what)
        if len(self.taken) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch_process(self) -> None:
        """From now on, count what this process does to the disk, and each mend of a transaction."""
        for name in ("link", "replace", "unlink", "rmdir", "fsync"):
            setattr(os, name, self.watched(name, getattr(os, name)))
        builtins.open = self.watched_open(builtins.open)
        replace_changes = CommitEncoder.replace_changes

        def mend(*args: Any, **kwargs: Any) -> None:
            self.step("before mend")
            replace_changes(*args, **kwargs)
            self.step("after mend")

        CommitEncoder.replace_changes = mend  # type: ignore[method-assign]

    def watched(self, name: str, real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.step(f"before {name} {args[:2]}")
            result = real(*args, **kwargs)
            self.step(f"after {name} {args[:2]}")
            return result

        return call

    def watched_open(self, real: Any) -> Any:
        def call(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            if "x" not in mode and "w" not in mode:
                return real(file, mode, *args, **kwargs)
            self.step(f"before open {file}")
            opened = real(file, mode, *args, **kwargs)
            self.step(f"after open {file}")
            return opened

        return call


def steps_of(processes: BaseContext, run: Callable[..., None], *args: Any) -> tuple[int | None, list[str]]:
    """Call ``run`` in a new process. Returns: its exit code, and its steps if it was not killed."""
    ours, theirs = processes.Pipe(duplex=False)
    process = processes.Process(target=run, args=(*args, theirs))
    process.start()
    theirs.close()
    try:
        steps = ours.recv()
    except EOFError:
        steps = []
    process.join()
    return process.exitcode, steps


def run(table: str, kind: str, kill_at: int, report: Any) -> None:
    """Make one write in a process of its own; a process that lives sends the steps it took."""
    from tests.concurrency.kinds_of_writes import KINDS

    steps = Steps(kill_at)
    steps.watch_process()
    KINDS[kind](table)
    report.send(steps.taken)
