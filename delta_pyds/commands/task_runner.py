"""An interface that runs the tasks of a command, and its implementation in threads of this process.

``spark.task_runner`` runs them in the executors of a session.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol, TypeVar

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

    Invariants: each output is returned once, in the order of the tasks, even if the task ran more than once. Where one
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
        with ThreadPoolExecutor(min(self._threads, len(tasks)), thread_name_prefix="deltapy-task") as pool:
            futures: list[Future[R]] = []
            try:
                futures.extend(pool.submit(run_one, task) for task in tasks)
                done = _waited_for(futures)
                for future in futures:
                    if future in done:
                        future.result()  # of several errors the first task's is raised
                return [future.result() for future in futures]
            except BaseException:
                # Ctrl-C too
                pool.shutdown(cancel_futures=True)
                if self._discard is not None:
                    written = (f.result() for f in futures if _ended_well(f))
                    self._discard([output for output in written if isinstance(output, TaskOutput)])
                raise


def _waited_for(futures: Sequence[Future[Any]]) -> set[Future[Any]]:
    """The futures that ended before one failed, or all. A wait does not notice a Ctrl-C right before it began."""
    while True:
        done, others = wait(futures, timeout=_LOOK_SECONDS, return_when=FIRST_EXCEPTION)
        if not others or any(future.exception() is not None for future in done if not future.cancelled()):
            return done


def _ended_well(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


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
