"""Compaction of small files after a commit, if the table enables it (``delta.autoOptimize.autoCompact``).

Invariant: the commit before it never fails because of it. Errors are logged, and the table stays as that commit left
it. As in the reference, a partition that got files by the commit is compacted if it has many small files. The new files
are of a moderate size. Partitions whose values depend on a session's time zone are left out.
"""

from __future__ import annotations

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
_PLACE = Place("process", "it comes after a commit")
# at most this many partitions of one commit are checked
_MOST_PARTITIONS = 128


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
        logger.warning(
            "The small files of %s were not compacted after version %s; the written rows are in the table: %s",
            table_root, version, error,
        )  # fmt: skip
        return None


def wants_compaction(
    table_root: str, version: int, storage_options: Mapping[str, Any], *, rule: AutoCompaction
) -> bool:
    """Whether ``compact_after`` has anything to do. Raises: errors of opening the table and reading its log."""
    return _plan(table_root, version, storage_options, rule) is not None


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
