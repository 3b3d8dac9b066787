"""Memory of this process and those below it, by what they are for; their CPU time.

Invariants: a process counts as what its command line says: Spark starts the Python that plans and the Python that runs
tasks through one daemon, whose last argument names the module. Of a page that several processes share, as forked
workers do, each counts its part (the "proportional set size" of Linux), so no page is counted twice.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

ROLES = ("driver JVM", "driver Python", "planner", "worker")
_SECONDS_BETWEEN = 0.02
_KIB_TO_MB = 1024 / 1e6


def memory_mb() -> dict[str, float]:
    """MB of each role now."""
    total = dict.fromkeys(ROLES, 0.0)
    for pid in _family():
        try:
            sizes = Path(f"/proc/{pid}/smaps_rollup").read_text()
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        if sizes:  # a process that has ended and was not waited for yet has no memory
            total[_role(pid, command)] += int(sizes[sizes.index("\nPss:") :].split(None, 2)[1]) * _KIB_TO_MB
    return total


def _role(pid: int, command: list[str]) -> str:
    if pid == os.getpid():
        return "driver Python"
    if "python" not in Path(command[0]).name:
        return "driver JVM"
    return "worker" if "pyspark.worker" in command else "planner"


def _family() -> list[int]:
    """This process and all below it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue
            children.setdefault(int(text[text.rindex(")") + 2 :].split()[1]), []).append(int(folder.name))
    family = [os.getpid()]
    for pid in family:
        family.extend(children.get(pid, ()))
    return family


def cpu_seconds() -> float:
    """CPU time of this process, of all below it, and of those below it that have ended."""
    ticks = 0
    for pid in _family():
        with contextlib.suppress(OSError):  # it has ended: its parent has its time once it was waited for
            text = Path(f"/proc/{pid}/stat").read_text()
            # utime, stime, and the same of children that were waited for
            ticks += sum(map(int, text[text.rindex(")") + 2 :].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Peak:
    """``with Peak() as peak``: the largest memory of each role, and of all together, while the block ran."""

    def __init__(self) -> None:
        self.before = memory_mb()
        self.roles = dict(self.before)
        self.total = sum(self.before.values())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def added(self) -> float:
        """MB that all processes together had more at the peak than before."""
        return self.total - sum(self.before.values())

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._ended.is_set():
            self._look()
            time.sleep(_SECONDS_BETWEEN)

    def _look(self) -> None:
        now = memory_mb()
        self.roles = {role: max(self.roles[role], now[role]) for role in ROLES}
        self.total = max(self.total, sum(now.values()))
