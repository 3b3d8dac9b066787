"""Long work shows itself: each step tells how much of it is done, to whoever wants to see it, and at its end the log.

Invariants: a step that fails to show itself goes on; nothing is shown unless a person looks (a terminal, a notebook) or
asks for it, so never in a worker of Spark; a step says the same of its table as an error does.

    with delta_pyds.progress_to(print):
        table.optimize().executeCompaction()
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from delta_pyds.redaction import safe_logger, shown

logger = safe_logger(__name__)

# two looks at a step are not closer than that
_INTERVAL_S = 0.1


@dataclass(frozen=True)
class ProgressStep:
    """How far a step is. ``total``: None where nobody knows; ``unit``: of ``done``. ``ended``: it is over, well or not.

    >>> def show(step: delta_pyds.ProgressStep) -> None:
    ...     print(f"{step.name}: {step.done} of {step.total} {step.unit} after {step.seconds:.0f} s")
    """

    name: str
    table: str
    done: int
    total: int | None
    unit: str
    seconds: float
    ended: bool


class Progress(Protocol):
    """Is told of steps, from the thread at work or from others, one call after the other: at the beginning, at most
    ten times in a second, and at the end.

    >>> seen = []
    >>> with delta_pyds.progress_to(seen.append):
    ...     delta_pyds.checkpoint("/data/events")
    """

    def __call__(self, step: ProgressStep, /) -> object: ...


_given: ContextVar[Progress | bool | None] = ContextVar("delta_pyds_progress", default=None)
_inner: ContextVar[_Running | None] = ContextVar("delta_pyds_step", default=None)


@contextmanager
def progress_to(progress: Progress | Literal[True, False]) -> Iterator[None]:
    """Show the steps of long work within, in this thread: to a function, as bars (True), or not at all (False).

    Without it there are bars in terminals and notebooks, where ``tqdm`` is installed.

    >>> with delta_pyds.progress_to(lambda step: print(step.name, step.done)):
    ...     delta_pyds.verify("/data/events")

    Raises: ImportError for True without ``tqdm`` (``pip install delta-pyds[progress]``).
    """
    token = _given.set(_bars() if progress is True else progress)
    try:
        yield
    finally:
        _given.reset(token)


@contextmanager
def step(
    name: str, table: str, *, total: int | None = None, unit: str = "files", log: logging.Logger = logger
) -> Iterator[Callable[[int], None]]:
    """One step of long work. Gives the function that says how many more are done, from any thread.

    At its end ``log`` says, at INFO, how many there were and how long it took.
    """
    running = _Running(name, shown(table), total, unit, _chosen())
    token = _inner.set(running)
    try:
        yield running.advance
    finally:
        _inner.reset(token)
        running.end()
    # not after an error: the log claims no step that has failed
    took_s = time.monotonic() - running.started_s
    log.info("%s of table %s: %d %s in %.1f s.", name.capitalize(), table, running.done, unit, took_s)


def advance_of_step() -> Callable[[int], None]:
    """What ``step`` gave, for work that does not know whose step it is; to be asked for in the step's own thread."""
    running = _inner.get()
    return _nothing if running is None else running.advance


def name_of_step() -> str | None:
    """The step at work in this thread, with its table; None where there is none."""
    running = _inner.get()
    return None if running is None else f"{running.name} of {running.table}"


class _Running:
    def __init__(self, name: str, table: str, total: int | None, unit: str, progress: Progress | None) -> None:
        self.name, self.table, self.total, self.unit = name, table, total, unit
        self.done = 0
        self.started_s = time.monotonic()
        self._progress = progress
        self._lock = threading.RLock()
        self._told_s = 0.0
        self._tell(ended=False)

    def advance(self, number: int) -> None:
        with self._lock:
            self.done += number
            if time.monotonic() - self._told_s >= _INTERVAL_S:
                self._tell(ended=False)

    def end(self) -> None:
        with self._lock:
            self._tell(ended=True)

    def _tell(self, *, ended: bool) -> None:
        if self._progress is None:
            return
        self._told_s = time.monotonic()
        seconds = self._told_s - self.started_s
        try:
            self._progress(ProgressStep(self.name, self.table, self.done, self.total, self.unit, seconds, ended))
        except Exception as error:
            # what shows the work must not stop it
            logger.warning("The progress of %s is not shown any more: %s: %s", self.name, type(error).__name__, error)
            self._progress = None


def _nothing(_number: int) -> None:
    return None


def _chosen() -> Progress | None:
    given = _given.get()
    if given is None:
        return _bars_if_installed() if _somebody_looks() else None
    return None if isinstance(given, bool) else given


def _somebody_looks() -> bool:
    """Whether this is a terminal or a notebook; a worker of Spark is neither."""
    try:
        if sys.stderr.isatty():
            return True
    except (AttributeError, ValueError):
        return False  # none, or closed
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _bars_if_installed() -> Progress | None:
    try:
        return _bars()
    except ImportError:
        return None


def _bars() -> Progress:
    from tqdm.auto import tqdm

    return _Bar(tqdm)


class _Bar:
    """One step as one bar of ``tqdm``, on the standard error; gone when the step is over."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self._shown: dict[tuple[str, str], Any] = {}

    def __call__(self, step: ProgressStep) -> None:
        key = step.name, step.table
        bar = self._shown.get(key)
        if bar is None:
            if step.ended:
                return
            bar = self._make(
                desc=f"{step.name} {step.table[-40:]}", total=step.total, unit=f" {step.unit}", leave=False
            )
            self._shown[key] = bar
        bar.update(step.done - bar.n)
        if step.ended:
            bar.close()
            del self._shown[key]
