"""All processes of one session of the operating system: what a process started with ``start_new_session`` has started.

Spark's Python daemons make process groups of their own, but they stay in the session of the driver.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator

_PROC = "/proc"
_ENDED = "ZX"


def members(session: int) -> list[int]:
    """The processes of the session that run: one that ended and was not waited for is not among them."""
    return [pid for pid, state, of in _processes() if of == session and state not in _ENDED]


def kill_session(session: int) -> None:
    """SIGKILL for every process of the session, and for this one last of all if it belongs to it."""
    me = os.getpid()
    own = os.getsid(0) == session
    while others := [pid for pid in members(session) if pid != me]:
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    if own:
        os.kill(me, signal.SIGKILL)


def _processes() -> Iterator[tuple[int, str, int]]:
    """Process id, state and session of all processes."""
    if not os.path.isdir(f"{_PROC}/self"):
        yield from _listed()
        return
    for name in os.listdir(_PROC):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"{_PROC}/{name}/stat", "rb") as file:
            # the name of the program comes before, in parentheses, and may hold anything
            state, _, _, session = file.read().rpartition(b")")[2].split()[:4]
            yield int(name), state.decode(), int(session)


def _listed() -> Iterator[tuple[int, str, int]]:
    out = subprocess.run(["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        pid, state = line.split()[:2]
        with contextlib.suppress(OSError):
            yield int(pid), state[0], os.getsid(int(pid))
