"""Progress of long operations: each step reports how much of it is done, and is logged at its end.

Invariants: an error in showing progress does not stop the step. Progress is shown only in a terminal or a notebook, or
on request, so never in a worker of Spark. The table's name is redacted as in errors.

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

# the shortest time between two reports of a step
_INTERVAL_S = 0.1


@dataclass(frozen=True)
class ProgressStep:
    """The state of a step.

    Attributes:
        name: The step, as "vacuum".
        table: The table's path or name.
        done: The number of units that are done.
        total: The number of all units; None if unknown.
        unit: The unit of ``done`` and ``total``, as "files".
        seconds: The time since the start of the step.
        ended: Whether the step is over, successfully or not.

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
    """A function that receives the progress of steps.

    It is called at the start of a step, at most ten times a second, and at the end. Calls come from any thread, but
    never two at a time for one step.

    >>> seen = []
    >>> with delta_pyds.progress_to(seen.append):
    ...     delta_pyds.checkpoint("/data/events")
    """

    def __call__(self, step: ProgressStep, /) -> object: ...


_given: ContextVar[Progress | bool | None] = ContextVar("delta_pyds_progress", default=None)
_inner: ContextVar[_Running | None] = ContextVar("delta_pyds_step", default=None)


@contextmanager
def progress_to(progress: Progress | Literal[True, False]) -> Iterator[None]:
    """Set how this thread shows progress within the ``with`` block.

    Outside of it, terminals and notebooks show bars if ``tqdm`` is installed.

    Args:
        progress: A function that gets each ``ProgressStep``; True for bars, False for nothing.

    Returns:
        A context manager; its value is None.

    Raises:
        ImportError: ``progress`` is True and ``tqdm`` is not installed (``pip install delta-pyds[progress]``).

    >>> with delta_pyds.progress_to(lambda step: print(step.name, step.done)):
    ...     delta_pyds.verify("/data/events")
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
    """Run a step of a long operation.

    Args:
        name: the step, as "vacuum".
        table: the table's path or name.
        total: the number of all units; None if unknown.
        unit: the unit of the numbers.
        log: logs the number of units and the time at INFO when the step ends without an error.

    Returns: a function to call, from any thread, with the number of further units that are done.
    """
    running = _Running(name, shown(table), total, unit, _receiver())
    token = _inner.set(running)
    try:
        yield running.advance
    finally:
        _inner.reset(token)
        running.end()
    # not after an error: a failed step is not logged as done
    took_s = time.monotonic() - running.started_s
    log.info("%s of table %s: %d %s in %.1f s.", name.capitalize(), table, running.done, unit, took_s)


def advance_of_step() -> Callable[[int], None]:
    """The function of the current step, for code that several steps share. Call this in the step's own thread."""
    running = _inner.get()
    return (lambda _: None) if running is None else running.advance


def name_of_step() -> str | None:
    """The current step of this thread, with its table; None if no step is running."""
    running = _inner.get()
    return None if running is None else f"{running.name} of {running.table}"


class _Running:
    def __init__(self, name: str, table: str, total: int | None, unit: str, progress: Progress | None) -> None:
        self.name, self.table, self.total, self.unit = name, table, total, unit
        self.done = 0
        self.started_s = time.monotonic()
        self._progress = progress
        self._lock = threading.RLock()
        self._reported_s = 0.0
        self._report(ended=False)

    def advance(self, number: int) -> None:
        with self._lock:
            self.done += number
            if time.monotonic() - self._reported_s >= _INTERVAL_S:
                self._report(ended=False)

    def end(self) -> None:
        with self._lock:
            self._report(ended=True)

    def _report(self, *, ended: bool) -> None:
        if self._progress is None:
            return
        self._reported_s = time.monotonic()
        seconds = self._reported_s - self.started_s
        try:
            self._progress(ProgressStep(self.name, self.table, self.done, self.total, self.unit, seconds, ended))
        except Exception as error:
            # an error in showing progress must not stop the step
            logger.warning("The progress of %s is no longer shown: %s: %s", self.name, type(error).__name__, error)
            self._progress = None


def _receiver() -> Progress | None:
    given = _given.get()
    if given is None:
        return _bars_if_installed() if _is_interactive() else None
    return None if isinstance(given, bool) else given


def _is_interactive() -> bool:
    """Whether this is a terminal or a notebook; a worker of Spark is neither."""
    try:
        if sys.stderr.isatty():
            return True
    except (AttributeError, ValueError):
        return False  # stderr is None or closed
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
    """Shows each step as a bar of ``tqdm`` on standard error, which disappears at the end of the step."""

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
