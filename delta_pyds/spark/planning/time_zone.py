"""The default session time zone: that of Spark's JVM, determined from outside of the JVM.

A planner process does not get the session's settings. The session's zone defaults to the JVM's: ``-Duser.timezone`` if
given, else TZ, else the system's. A planner process is a descendant of the driver's JVM on the same machine.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from delta_pyds.errors import ExpressionError
from delta_pyds.protocol.temporal import TimeZone

_LOCALTIME = Path("/etc/localtime")
_ZONES = Path("/usr/share/zoneinfo")
_USER_TIME_ZONE = re.compile(r"-Duser\.timezone=(\S+)")
_MAX_ANCESTORS = 8


@lru_cache(maxsize=1)
def assumed_time_zone() -> str:
    """The zone if the user named none, found once in a process; UTC as the last resort."""
    for name in (_of_java(), os.environ.get("TZ", "").lstrip(":"), _of_system()):
        if name:
            try:
                return TimeZone(name).name
            except ExpressionError:
                continue
    return "UTC"


def _of_java() -> str:
    """The zone on the JVM's command line, or in the variables that every JVM reads."""
    found = [command for pid in _ancestors() if (command := _command(pid)) and "java" in command[0]]
    words = [word for command in found for word in command]
    words += [os.environ.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")]
    matches = [m for word in words for m in _USER_TIME_ZONE.findall(word)]
    return matches[-1] if matches else ""


def _ancestors() -> list[int]:
    pids: list[int] = []
    pid = os.getppid()
    while pid > 1 and len(pids) < _MAX_ANCESTORS:
        pids.append(pid)
        try:
            # the name of the process, in parentheses, may hold spaces
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return pids


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _of_system() -> str:
    """The name of /etc/localtime: of the link, or of the file with the same content, as Java finds it."""
    try:
        target = str(_LOCALTIME.resolve())
        if "zoneinfo/" in target:
            return target.split("zoneinfo/", 1)[1]
        content = _LOCALTIME.read_bytes()
    except OSError:
        return ""
    for path in sorted(_ZONES.rglob("*")):
        try:
            if path.stat().st_size == len(content) and path.is_file() and path.read_bytes() == content:
                return str(path.relative_to(_ZONES))
        except OSError:
            continue
    return ""
