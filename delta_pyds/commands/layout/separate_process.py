"""Compaction after a commit, in a separate process.

Invariant: even if that process dies, the committing process continues and reports the commit. If the committing worker
died, Spark would report a failed write, and the user would write the same rows again. Compaction needs the most memory,
so a system without free memory kills the separate process.
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
# removes the working directory, which -c searches first, from the module path
_MAIN = "import sys; sys.path[:1] = []; from delta_pyds.commands.layout.separate_process import main; main()"


def compact_in_separate_process(
    table_root: str, version: int, storage_options: Mapping[str, Any], *, rule: AutoCompaction | None = None
) -> None:
    """Compact small files after the commit of that version, and wait for it. Never raises.

    This process checks whether there is anything to do, because starting a process takes a second.
    """
    try:
        rule = rule or AutoCompaction()
        if not wants_compaction(table_root, version, storage_options, rule=rule):
            return
        # options may be secrets, so they are not passed as arguments or in the environment
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
            "The small files of %s were not compacted after version %s; the written rows are in the table: %s",
            table_root, version, error,
        )  # fmt: skip


def main() -> None:
    """Run the compaction in the separate process."""
    table_root, version, storage_options, rule = pickle.load(sys.stdin.buffer)
    compact_after(table_root, version, storage_options, rule=rule)
