"""The end of every layout command: its tasks run, their counts are compared with the log, one commit.

Invariants: after an error the table is as before, and the new files are deleted, unless the outcome of the commit is
unknown. No row is lost or repeated: for each file, the number of live rows read must be the number in the log. Their
sum must be the number of written rows.

Protocol: "Add File and Remove File" (``dataChange``), "Row Tracking", "Clustered Table".
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import msgspec

from delta_pyds.commands.commit import (
    CommandEnd,
    FileChanges,
    commit_or_discard,
    discard_files,
    live_rows,
    require_visible,
)
from delta_pyds.commands.layout.bins import Bin
from delta_pyds.commands.layout.mend import LayoutMend, MendedBin
from delta_pyds.commands.layout.operation import LayoutResult, operation_of, result_metrics
from delta_pyds.commands.layout.plan import LayoutPlan
from delta_pyds.commands.row_changes.find_rows import table_files
from delta_pyds.commands.row_changes.plan import files_state, mends_races
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import LocalRunner, TaskRunner
from delta_pyds.data.layout.cluster import cluster_files
from delta_pyds.data.layout.compact import compact_files
from delta_pyds.data.row_changes.files import with_row_ids
from delta_pyds.data.write.deletion_vector_writer import write_deletion_vectors
from delta_pyds.errors import DeltaError
from delta_pyds.progress import step
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.paths import path_key
from delta_pyds.redaction import safe_logger
from delta_pyds.table.scan.live_files import removal
from delta_pyds.table.transaction.mend import MendedChanges, Mends, NetChanges, NothingToCommitError
from delta_pyds.table.transaction.row_tracking import PRESERVED_TAG
from delta_pyds.table.transaction.transaction import Transaction
from delta_pyds.tasks.layout import ClusterFiles, CompactFiles
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.write_state import TaskOutput, WriteState, WrittenFile

logger = safe_logger(__name__)

_STEPS = {"OPTIMIZE": "optimize", "REORG": "purge"}
# the size of a narrow row in a file, in bytes
_LEAST_ROW_BYTES = 8
# a bin becomes one file, even if the new file is larger because its rows compress worse
_ONE_FILE = 1 << 60
# threads of one task if tasks are fewer than processors: Arrow decodes in them while rows are sorted and encoded
_MOST_THREADS = 4


def run_layout(plan: LayoutPlan, place: Place, runner: TaskRunner | None = None) -> LayoutResult:
    """Rewrite the files and commit; nothing is committed if there is nothing to do.

    ``runner``: None runs in threads of this process.

    A bin whose files others changed is mended (see ``mend``), or keeps its old files. An OPTIMIZE without any bin left
    commits nothing.

    Raises: ConcurrentDeleteReadError if a REORG has no bin left: rows that it should purge may be in the table again;
        another ConflictError if the table's schema or protocol changed; CommitOutcomeUnknownError; DeltaError
        (DELTA_NUM_RECORDS_MISMATCH) if a file does not have the number of rows in the log; errors of the tasks.
    """
    root, options = plan.target.snapshot.table_root, plan.options
    runner = runner or LocalRunner(discard=partial(discard_files, root, options.storage_options))
    if not plan.bins:
        return LayoutResult(root, None, result_metrics(plan, (), parallelism=runner.parallelism), place)
    with step(_STEPS[plan.kind], root, total=len(plan.bins), unit="bins", log=logger):
        outputs = _run(plan, runner)
    # moved rows keep their row ids
    tags = {} if plan.target.row_id_columns is None else {PRESERVED_TAG: "true"}
    with commit_or_discard(root, options.storage_options, outputs) as end:
        _check_rows(plan, outputs)
        end_of_layout = _End(plan, outputs, end)
        try:
            committed = end.commit(
                _transaction(plan, outputs),
                operation_of(plan, end_of_layout.added, Mends()),
                user_metadata=options.user_metadata,
                tags=tags,
                mend=end_of_layout.mend if mends_races(plan.target.snapshot, options) else None,
            )
        except NothingToCommitError:
            logger.info("%s of %s commits nothing: others changed all files that it rewrote.", plan.kind, root)
            none = replace(plan, bins=(), target=replace(plan.target, files=()))
            return LayoutResult(root, None, result_metrics(none, (), parallelism=runner.parallelism), place)
    plan, added = end_of_layout.plan, end_of_layout.added
    spent_ms = int(time.time() * 1000) - plan.started_ms
    message = "%s of %s: %s files became %s in version %s, in %s ms."
    logger.info(message, plan.kind, root, len(plan.target.files), len(added), committed.version, spent_ms)
    return LayoutResult(root, committed.version, result_metrics(plan, added, parallelism=runner.parallelism), place)


class _End:
    """The end of a command, which is mended after each lost race. ``plan``: with the bins that are committed."""

    def __init__(self, plan: LayoutPlan, outputs: Sequence[TaskOutput], end: CommandEnd) -> None:
        self.plan = plan
        self.added = [file for output in outputs for file in output.files]
        self._outputs = outputs
        self._end = end
        self._state: LayoutMend | None = None
        self._mends = Mends()
        self._vectors: list[TaskOutput] = []

    def mend(self, net: NetChanges) -> MendedChanges | None:
        """The changes after these; None if the command must run again.

        Raises: NothingToCommitError if an OPTIMIZE has no bin left.
        """
        if net.row_tracking_enabled:
            # moved rows lack their ids
            return None
        if self._state is None:
            self._state = LayoutMend(self.plan, self._outputs)
        self._mends = self._mends.and_one(self._state.after(net))
        bins = list(self._state.bins())
        if not any(some.files for some in bins):
            if self.plan.kind == "OPTIMIZE":
                raise NothingToCommitError
            return None
        options, root = self.plan.options, self.plan.target.snapshot.table_root
        files = [file for some in bins for file in some.files]
        adds = self._marked_adds(bins)
        written = {add.path for add in adds}
        empty = [file for some in bins for file in some.output.files if file.path not in written]
        # no commit names or will name these files
        unused = [*self._state.dropped(), *self._vectors[:-1], TaskOutput(tuple(empty))]
        discard_files(root, options.storage_options, unused)
        self.added = [file for some in bins for file in some.output.files if file.path in written]
        remaining = [Bin(some.files, some.tags) for some in bins if some.files]
        self.plan = replace(self.plan, bins=remaining, target=replace(self.plan.target, files=files))
        now_ms = int(time.time() * 1000)
        return MendedChanges(
            operation_of(self.plan, self.added, self._mends),
            adds,
            [removal(file, deletion_timestamp_ms=now_ms, data_change=False) for file in files],
            (),
            {path_key(file.path) for file in files},
        )

    def _marked_adds(self, bins: Sequence[MendedBin]) -> list[AddFile]:
        """The new files, with vectors for the rows that are gone. A file without rows is left out."""
        target = self.plan.target.snapshot
        marked = [
            (file, rows)
            for some in bins
            for file, rows in zip(some.output.files, some.deleted, strict=True)
            if 0 < len(rows) < file.num_records
        ]
        prefix = files_state(target, self.plan.options).random_prefix_length
        vectors = write_deletion_vectors(
            target.storage, target.table_root, [rows for _, rows in marked], random_prefix_length=prefix
        )
        self._vectors.append(TaskOutput(vectors=tuple(vectors)))
        self._end.add(self._vectors[-1:])
        vector_of = {file.path: vector for (file, _), vector in zip(marked, vectors, strict=True)}
        adds = []
        for some in bins:
            left = [f for f, rows in zip(some.output.files, some.deleted, strict=True) if len(rows) < f.num_records]
            adds += _adds(left, some.tags, self.plan.provider, vector_of)
        return adds


def _run(plan: LayoutPlan, runner: TaskRunner) -> list[TaskOutput]:
    """Run one task for each bin."""
    scan = plan.target.scan
    write = with_row_ids(files_state(plan.target.snapshot, plan.options), plan.target.row_id_columns)
    files = iter(table_files(plan.target, scan))
    bins = [tuple(islice(files, len(some.files))) for some in plan.bins]
    threads = min(_MOST_THREADS, max(1, runner.parallelism // len(bins)))
    if not plan.by:
        write = replace(write, target_file_bytes=_ONE_FILE, max_records_per_file=0)
        return runner.run(compact_files, [CompactFiles(scan, write, files, threads) for files in bins])
    return runner.run(cluster_files, [_cluster_task(plan, write, files, threads) for files in bins])


def _cluster_task(plan: LayoutPlan, write: WriteState, files: tuple[TableFile, ...], threads: int) -> ClusterFiles:
    most = plan.sizes.max_file_bytes
    size = sum(file.scan.size_bytes for file in files)
    rows = sum(_assumed_rows(plan.target.files[file.number]) for file in files)
    # many rows at one point of the curve must not make a file of unlimited size
    write = replace(write, target_file_bytes=2 * most, max_records_per_file=0)
    return ClusterFiles(plan.target.scan, write, files, plan.by, plan.curve, max(1, size // most), rows, threads)


def _assumed_rows(file: AddFile) -> int:
    """The number of live rows for the size of a sample; a high estimate if the log does not have it."""
    count = live_rows([file])
    return max(0, file.size) // _LEAST_ROW_BYTES if count is None else count


def _check_rows(plan: LayoutPlan, outputs: Sequence[TaskOutput]) -> None:
    """Compare the numbers of rows. Raises: DeltaError (DELTA_NUM_RECORDS_MISMATCH)."""
    root, files = plan.target.snapshot.table_root, plan.target.files
    read = {one.number: one.live_rows for output in outputs for one in output.replaced}
    for number, count in read.items():
        promised = live_rows([files[number]])
        if promised is not None and promised != count:
            raise DeltaError(
                f"the file {files[number].path} of the table {root} has {promised} live rows according to the log, but "
                f"{count} were read. Nothing was committed; verify the table.",
                code="DELTA_NUM_RECORDS_MISMATCH",
                table=root,
                file=files[number].path,
            )
    written = sum(file.num_records for output in outputs for file in output.files)
    if len(read) != len(files) or sum(read.values()) != written:
        raise DeltaError(
            f"{sum(read.values())} rows were read from {len(read)} of {len(files)} files of the table {root}, but "
            f"{written} rows were written. Nothing was committed; run the command again.",
            code="DELTA_NUM_RECORDS_MISMATCH",
            table=root,
        )


def _transaction(plan: LayoutPlan, outputs: Sequence[TaskOutput]) -> Transaction:
    snapshot = plan.target.snapshot
    transaction = Transaction(snapshot)
    transaction.record_files(plan.target.paths)
    require_visible(snapshot.storage, snapshot.table_root, (f.path for output in outputs for f in output.files))
    for some, output in zip(plan.bins, outputs, strict=True):
        transaction.add(_adds(output.files, some.tags, plan.provider))
    now_ms = int(time.time() * 1000)
    transaction.remove(removal(f, deletion_timestamp_ms=now_ms, data_change=False) for f in plan.target.files)
    return transaction


def _adds(
    files: Sequence[WrittenFile],
    tags: dict[str, str],
    provider: str | None,
    vectors: Mapping[str, DeletionVectorDescriptor] | None = None,
) -> list[AddFile]:
    adds = FileChanges(rewritten=list(files), vectors=dict(vectors or {})).adds(data_change=False)
    if not tags and provider is None:
        return adds
    return [msgspec.structs.replace(add, tags=dict(tags), clustering_provider=provider) for add in adds]
