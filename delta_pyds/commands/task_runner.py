"""An interface that runs the tasks of a command, and its implementation in threads of this process.

``spark.task_runner`` runs them in the executors of a session.
"""

from __future__ import annotations

import heapq
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Generic, Protocol, TypeVar

from delta_pyds.progress import advance_of_step
from delta_pyds.tasks.write_state import TaskOutput

T = TypeVar("T")
# the output of a task; it can be pickled
R = TypeVar("R")

# Arrow decodes and encodes with threads of its own: more threads here would only hold more row groups in memory
_MOST_THREADS = 4
_LOOK_SECONDS = 1.0


class TaskRunner(Protocol):
    """Runs tasks, and returns their outputs.

    Invariants: each output is returned once, in the order of the tasks, even if the task ran more than once. If one
    task fails, its error is raised and no output is returned. Files of the other tasks are in no commit: the runner
    deletes those that it knows of, vacuum deletes the rest.
    """

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at once."""
        ...

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """Call ``function``, which is importable by its name, with each task, which can be pickled."""
        ...


class LocalRunner:
    """Runs tasks in threads of this process.

    ``discard``: gets the outputs of successful tasks if another one failed, or the caller was interrupted. Running
    tasks are waited for; the others never begin.

    >>> LocalRunner().run(find_rows, tasks)
    """

    def __init__(
        self, threads: int | None = None, *, discard: Callable[[Sequence[TaskOutput]], None] | None = None
    ) -> None:
        self._threads = threads or min(_MOST_THREADS, os.cpu_count() or 1)
        self._discard = discard

    @property
    def parallelism(self) -> int:
        return self._threads

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        advance = advance_of_step()

        def run_one(task: T) -> R:
            output = function(task)
            advance(1)
            return output

        if len(tasks) <= 1:
            return [run_one(task) for task in tasks]
        threads = _TaskThreads(run_one, tasks, min(self._threads, len(tasks)))
        try:
            threads.run()
        except BaseException:
            # also for Ctrl-C
            threads.stop()
            if self._discard is not None:
                self._discard([o for o in threads.outputs.values() if isinstance(o, TaskOutput)])
            raise
        return [threads.outputs[number] for number in range(len(tasks))]


class _TaskThreads(Generic[T, R]):
    """The threads of one run.

    Invariant: a Ctrl-C in the calling thread is raised there, and each output is in ``outputs`` nevertheless.
    ``ThreadPoolExecutor`` and ``wait`` give no such promise: they hold locks in Python code, and a Ctrl-C between two
    lines of it leaves a lock held or an output unknown. So the threads record everything by single calls of built-in
    containers, and the caller only counts.
    """

    def __init__(self, run_one: Callable[[T], R], tasks: Sequence[T], number: int) -> None:
        self.outputs: dict[int, R] = {}
        self._run_one = run_one
        self._tasks = tasks
        self._number = number
        self._errors: dict[int, BaseException] = {}
        self._waiting = deque(range(len(tasks)))
        # a token for each attempt to take a task, and one for its end
        self._begun: list[None] = []
        self._ended: list[None] = []
        self._changes: SimpleQueue[None] = SimpleQueue()
        self._start = Lock()

    def run(self) -> None:
        """Run all tasks. Raises: the error of the first task that failed, in the order of the tasks."""
        self._start.acquire()
        try:
            for _ in range(self._number):
                Thread(target=self._work, name="deltapy-task").start()
        finally:
            # no task begins while ``Thread.start`` holds its own lock
            self._start.release()
        while not self._errors and len(self.outputs) < len(self._tasks):
            self._wait()
        if self._errors:
            self.stop()
            raise self._errors[min(self._errors)]

    def stop(self) -> None:
        """Start no further task, and wait for the running ones."""
        self._waiting.clear()
        # the ends are counted first: a task that begins between the two counts is waited for
        while len(self._ended) < len(self._begun):
            self._wait()

    def _wait(self) -> None:
        # a Ctrl-C may lose a notification, so nothing depends on it
        with suppress(Empty):
            self._changes.get(timeout=_LOOK_SECONDS)

    def _work(self) -> None:
        with self._start:
            pass
        while True:
            self._begun.append(None)
            try:
                if not self._take_one():
                    return
            finally:
                self._ended.append(None)
                self._changes.put(None)

    def _take_one(self) -> bool:
        """Run the next task. Returns: whether there was one."""
        try:
            number = self._waiting.popleft()
        except IndexError:
            return False
        try:
            self.outputs[number] = self._run_one(self._tasks[number])
        except BaseException as error:
            self._waiting.clear()
            self._errors[number] = error
        return True


def bundles(items: Sequence[T], number: int, size: Callable[[T], int]) -> list[tuple[T, ...]]:
    """Distribute items over at most ``number`` tasks of similar size; no task is empty."""
    shares: list[list[T]] = [[] for _ in range(min(number, len(items)))]
    # of shares of equal size the one with fewer items comes first, so that empty files are distributed too
    smallest = [(0, 0, n) for n in range(len(shares))]
    for item in sorted(items, key=size, reverse=True):
        total, count, share = smallest[0]
        shares[share].append(item)
        heapq.heapreplace(smallest, (total + size(item), count + 1, share))
    return [tuple(share) for share in shares]
