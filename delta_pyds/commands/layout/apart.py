"""Compaction after a commit, in a process of its own.

Invariant: whatever becomes of that process, the one that has committed goes on and can say so. Spark calls a write
failed whose committing worker dies, and a user would write again what the table has already; compaction is what takes
memory there, so a system that has none left kills the other process.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from delta_pyds.commands.layout.auto_compact import AutoCompaction, compact_after, wants_compaction
from delta_pyds.redaction import safe_logger

logger = safe_logger(__name__)

# the writer waits; a process that takes longer hangs
_MOST_SECONDS = 3600
# no module comes from the working directory, which -c searches first
_MAIN = "import sys; sys.path[:1] = []; from delta_pyds.commands.layout.apart import main; main()"


def compact_apart(
    table_root: str, version: int, storage_options: Mapping[str, Any], *, rule: AutoCompaction | None = None
) -> None:
    """Compact what the commit of that version has left too small, and wait for it. Never raises.

    Whether there is anything to do is looked at here: a process costs a second.
    """
    try:
        rule = rule or AutoCompaction()
        if not wants_compaction(table_root, version, storage_options, rule=rule):
            return
        # options may be secrets: they are in no argument and no environment
        request = pickle.dumps((table_root, version, dict(storage_options), rule))
        modules = os.pathsep.join(path for path in sys.path if path)
        done = subprocess.run(
            [sys.executable, "-c", _MAIN],
            input=request,
            env={**os.environ, "PYTHONPATH": modules},
            stdout=subprocess.DEVNULL,
            check=False,
            timeout=_MOST_SECONDS,
        )
        if done.returncode:
            raise OSError(f"its process ended with the code {done.returncode}")
    except Exception as error:
        logger.warning(
            "The small files of %s were not compacted after version %s; what was written is in the table: %s",
            table_root, version, error,
        )  # fmt: skip


def main() -> None:
    """In the other process."""
    table_root, version, storage_options, rule = pickle.load(sys.stdin.buffer)
    compact_after(table_root, version, storage_options, rule=rule)
