"""Tasks in this process: every output once and in order, or the error of one and nothing else."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.commands.task_runner import LocalRunner, bundles
from delta_pyds.tasks.write_state import TaskOutput

# with pauses of 0.05 s these take a minute, so that a busy machine cannot be done with them before they are cancelled
MANY = 1_200


def numbered(number: int) -> TaskOutput:
    return TaskOutput(copied_rows=number)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_each_output_comes_once_in_the_order_of_the_tasks(threads: int, count: int) -> None:
    outputs = LocalRunner(threads).run(numbered, range(count))
    assert [output.copied_rows for output in outputs] == list(range(count))


def test_tasks_run_at_the_same_time() -> None:
    meeting = threading.Barrier(2)

    def wait(number: int) -> TaskOutput:
        meeting.wait(timeout=60)  # alone, a task would wait in vain
        return numbered(number)

    assert len(LocalRunner(2).run(wait, [0, 1])) == 2


def test_an_error_goes_up_and_what_others_wrote_is_given_to_be_discarded() -> None:
    discarded: list[int] = []
    started: list[int] = []
    first_ended = threading.Event()

    def task(number: int) -> TaskOutput:
        started.append(number)
        if number == 0:
            first_ended.set()
            return numbered(0)
        if number > 1:
            time.sleep(0.05)  # no more than one or two of these begin before the rest is cancelled
        assert first_ended.wait(60)
        raise KeyError(number)

    runner = LocalRunner(1, discard=lambda outputs: discarded.extend(o.copied_rows for o in outputs))
    with pytest.raises(KeyError, match="1"):
        runner.run(task, range(MANY))
    assert discarded == [0]
    assert len(started) < MANY


# each round interrupts the calling thread at another moment; with threads that switch often, also between two lines
INTERRUPTED = """
import random, signal, sys, threading, time
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.tasks.write_state import TaskOutput

signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been told to ignore it
sys.setswitchinterval(1e-6)
main, tasks = threading.main_thread().ident, range(2_000)

def interrupt(seconds):
    time.sleep(seconds)
    signal.pthread_kill(main, signal.SIGINT)

for _ in range(200):
    discarded, started, killers = [], [], []

    def task(number):
        started.append(number)
        if number == 1:
            killers.append(threading.Thread(target=interrupt, args=[random.random() / 100]))
            killers[0].start()
        if number > 0:
            time.sleep(0.0002)
        return TaskOutput(copied_rows=number)

    runner = LocalRunner(1, discard=lambda outputs: discarded.extend(o.copied_rows for o in outputs))
    try:
        runner.run(task, tasks)
    except KeyboardInterrupt:
        killers[0].join()
        assert discarded == started, (discarded, started)
        assert len(started) < len(tasks)
    else:
        raise AssertionError("it went on after Ctrl-C")
"""


def test_ctrl_c_goes_up_and_what_tasks_wrote_is_given_to_be_discarded() -> None:
    # in a process of its own: who runs these tests may have taken the signal over
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 9))
def test_items_are_dealt_out_once_and_evenly(sizes: list[int], number: int) -> None:
    items = list(enumerate(sizes))
    dealt = bundles(items, number, lambda item: item[1])
    assert sorted(item for bundle in dealt for item in bundle) == items
    assert len(dealt) == min(number, len(items))
    assert all(dealt)
    totals = [sum(size for _, size in bundle) for bundle in dealt]
    assert max(totals, default=0) - min(totals, default=0) <= max(sizes, default=0)
