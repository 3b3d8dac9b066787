"""Compaction of small files after a commit, if the table enables it (``delta.autoOptimize.autoCompact``).

Invariant: the commit before it never fails because of it. Errors are logged, and the table stays as that commit left
it. As in the reference, a partition that got files by the commit is compacted if it has many small files. The new files
are of a moderate size. Partitions whose values depend on a session's time zone are left out.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any

from delta_pyds.catalog.opening import table_storage
from delta_pyds.commands.layout.bins import Sizes, by_partition
from delta_pyds.commands.layout.operation import LayoutResult
from delta_pyds.commands.layout.optimize import plan_auto_compaction
from delta_pyds.commands.layout.plan import LayoutPlan
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.expr.nodes import TRUE, Expr
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.protocol.actions import CLUSTERING_DOMAIN, AddFile
from delta_pyds.protocol.paths import commit_path
from delta_pyds.protocol.schema import TIMESTAMP
from delta_pyds.protocol.temporal import lacks_zone
from delta_pyds.redaction import safe_logger
from delta_pyds.table.scan.partition_match import in_partitions
from delta_pyds.table.snapshot import open_snapshot

logger = safe_logger(__name__)

_MIB = 1 << 20
_NOT_COMPACTED = "The small files of %s were not compacted after version %s; the written rows are in the table: %s"
_PLACE = Place("process", "it comes after a commit")
# at most this many partitions of one commit are checked
_MOST_PARTITIONS = 128
# the writer waits for a separate process; one that takes longer hangs
_MOST_SECONDS = 3600
# removes the working directory, which -c searches first, from the module path
_MAIN = "import sys; sys.path[:1] = []; from delta_pyds.commands.layout.auto_compact import main; main()"


@dataclass(frozen=True)
class AutoCompaction:
    """``enabled``: the session's setting; None leaves it to the table.

    ``min_files``: the fewest small files of a partition to compact. ``max_file_bytes``: a new file's limit.
    ``small_file_bytes``: files below this size are small; None means half of ``max_file_bytes``. ``max_bytes``: the
    most bytes that one run reads, because the writer waits for it. The run after the next commit continues.
    """

    enabled: bool | None = None
    min_files: int = 50
    max_file_bytes: int = 128 * _MIB
    small_file_bytes: int | None = None
    max_bytes: int = 2048 * _MIB

    @property
    def sizes(self) -> Sizes:
        """The sizes of a compaction; deleted rows alone do not start one."""
        small = self.max_file_bytes // 2 if self.small_file_bytes is None else self.small_file_bytes
        return Sizes(small, self.max_file_bytes, max_deleted_ratio=1.0)

    def wanted(self, table_wants: bool) -> bool:
        """Whether to compact. As in the reference, the session's setting takes precedence over the table's."""
        return table_wants if self.enabled is None else self.enabled


def compact_after(
    table_root: str,
    version: int,
    storage_options: Mapping[str, Any],
    *,
    rule: AutoCompaction | None = None,
    runner: TaskRunner | None = None,
) -> LayoutResult | None:
    """Compact small files after the commit of that version. None if there was nothing to do, or if it failed."""
    try:
        plan = _plan(table_root, version, storage_options, rule or AutoCompaction())
        return None if plan is None else run_layout(plan, _PLACE, runner)
    except Exception as error:
        logger.warning(_NOT_COMPACTED, table_root, version, error)
        return None


def compact_in_separate_process(
    table_root: str, version: int, storage_options: Mapping[str, Any], *, rule: AutoCompaction | None = None
) -> None:
    """Compact small files after the commit of that version in a separate process, and wait for it. Never raises.

    Invariant: even if that process dies, the committing process continues and reports the commit. If the committing
    worker died, Spark would report a failed write, and the user would write the same rows again. Compaction needs the
    most memory, so a system without free memory kills the separate process. This process checks whether there is
    anything to do, because starting a process takes a second.
    """
    try:
        rule = rule or AutoCompaction()
        if _plan(table_root, version, storage_options, rule) is None:
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
        logger.warning(_NOT_COMPACTED, table_root, version, error)


def main() -> None:
    """Run the compaction in the separate process."""
    table_root, version, storage_options, rule = pickle.load(sys.stdin.buffer)
    compact_after(table_root, version, storage_options, rule=rule)


def _plan(table_root: str, version: int, storage_options: Mapping[str, Any], rule: AutoCompaction) -> LayoutPlan | None:
    storage = table_storage(table_root, storage_options)
    snapshot = open_snapshot(storage, table_root)
    configuration = snapshot.configuration
    # optimize clusters a clustered table; compaction, which combines files by size, would undo that
    if not rule.wanted(configuration.properties.auto_compact) or CLUSTERING_DOMAIN in snapshot.domain_metadata:
        return None
    path = commit_path(table_root, version)
    lines = decode_commit(storage.read(path), path)
    written = [line.add.partition_values or {} for line in lines if line.add is not None]
    if not written:
        return None
    partitions = list({frozenset(values.items()): values for values in written}.values())[:_MOST_PARTITIONS]
    predicate: Expr = TRUE
    if configuration.partition_columns:
        predicate = in_partitions(snapshot.schema, configuration.partition_columns, partitions)
    timestamps = [f.physical_name for f in configuration.schema if f.data_type == TIMESTAMP]

    def worth(small: list[AddFile]) -> list[AddFile]:
        # a timestamp without a zone depends on the session's time zone, which is unknown here: its rows would change
        groups = by_partition(file for file in small if not _lacks_zone(file, timestamps))
        enough = [
            file for some in groups if len(some) >= rule.min_files for file in sorted(some, key=attrgetter("size"))
        ]
        sums = accumulate(file.size for file in enough)
        return [file for file, total in zip(enough, sums, strict=True) if total <= rule.max_bytes]

    plan = plan_auto_compaction(snapshot, predicate, CommandOptions(storage_options), rule.sizes, worth)
    return plan if plan.bins else None


def _lacks_zone(file: AddFile, timestamps: Sequence[str]) -> bool:
    """Whether a partition value of the file is a timestamp without a time zone."""
    values = file.partition_values or {}
    return any(lacks_zone(text) for name in timestamps if (text := values.get(name)))
