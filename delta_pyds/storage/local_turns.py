"""Turns of writers on one machine: those that lost a race for a version try again one after another.

It saves work and makes waiting fair. Nothing depends on it: only the put of a commit decides who wins a version.

A turn is an advisory lock on a directory. The system gives it back when a process ends. Nothing is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable

from delta_pyds.storage.local import local_path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# a writer that has waited longer tries more often
_LONGEST_PAUSE_S, _SHORTEST_PAUSE_S = 0.008, 0.001
_SHORTER = 0.97


class Turn:
    """One writer's turn among those that write to a directory. ``path``: None if the directory is not local.

    >>> with Turn(directory) as turn:
    ...     turn.wait(2.0, time.sleep)
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def wait(self, longest_s: float, sleep: Callable[[float], None]) -> bool:
        """Wait until no other writer has its turn. Returns: whether this writer has it now.

        A writer waits once. After ``longest_s`` it continues without a turn: another writer may have stopped during its
        own. It continues at once if the file system has no such locks.
        """
        path, self._path = self._path, None
        if path is None:
            return self._descriptor is not None
        try:
            descriptor = os.open(local_path(path), _DIRECTORY)
        except OSError:
            return False
        waited, pause, begin = 0.0, _LONGEST_PAUSE_S, time.monotonic()
        try:
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._descriptor, descriptor = descriptor, -1
                    return True
                # a busy machine sleeps longer than it is asked to
                if max(waited, time.monotonic() - begin) >= longest_s:
                    return False
                sleep(pause)
                waited += pause
                pause = max(_SHORTEST_PAUSE_S, pause * _SHORTER)
        except OSError:
            return False
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def end(self) -> None:
        """Let the next writer have its turn. Does nothing without one."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with contextlib.suppress(OSError):
                # a process that was forked meanwhile has the descriptor too
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)
