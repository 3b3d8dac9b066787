"""Deletes the rows of a table for which a predicate is true: the first half of ``replaceWhere``.

Protocol: "Deletion Vectors", "Row Tracking", "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from delta_pyds.commands.commit import FileChanges
from delta_pyds.commands.task_runner import TaskRunner, bundles
from delta_pyds.data.row_changes.change_files import write_change_files
from delta_pyds.data.row_changes.find import find_rows
from delta_pyds.data.row_changes.rewrite import rewrite_files
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import LONG, StructField, StructType
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.row_changes import FindRows, RewriteFiles, TableFile, WriteChangeFiles
from delta_pyds.tasks.scan_file import scan_file, written_scan_file
from delta_pyds.tasks.scan_state import ScanFile, ScanState
from delta_pyds.tasks.write_state import MarkedFile, RemovedFile, TaskOutput, WriteState, WrittenFile

T = TypeVar("T")


class RowRemoval:
    """Deletes the rows that a scan's predicate selects.

    A file all of whose rows leave is removed; of another one the rows that leave are marked in a deletion vector, where
    the table has them enabled, or else the rows that stay are written to new files, with their row ids. Then, if the
    table's change data feed is on, readers could not tell the change from the files: change files say it.

    Invariants: nothing is committed; ``outputs`` names what the rounds of tasks that ended have written, also after an
    error. What the round that failed has written is the runner's to discard (see ``TaskRunner``).
    """

    def __init__(self, snapshot: Snapshot, scan: Scan, state: WriteState, runner: TaskRunner) -> None:
        self.outputs: list[TaskOutput] = []
        self._snapshot = snapshot
        self._scan = scan
        self._state = state
        self._runner = runner

    def run(self, written: Sequence[WrittenFile], *, now_ms: int) -> FileChanges:
        """Let the tasks run. ``written``: the new files of the same commit, whose rows change files must tell too.

        Raises: whatever a task raises.
        """
        files = list(live_files(self._scan))
        properties = self._snapshot.configuration.properties
        vectors = properties.deletion_vectors and self._snapshot.configuration.supports(Feature.DELETION_VECTORS)
        found = self._run(
            find_rows,
            [
                FindRows(self._scan.state, bundle, vectors, self._state.random_prefix_length)
                for bundle in self._bundles(_table_files(files, self._scan.state))
            ],
        )
        changes = FileChanges()
        partial = [marked for output in found for marked in output.marked]
        if vectors or not partial:
            changes.take(found, files, now_ms=now_ms)
            return changes
        leaving = [RemovedFile(one.number, one.deleted_rows) for output in found for one in output.changed]
        changes.take([TaskOutput(removed=tuple(leaving))], files, now_ms=now_ms)
        changes.take(self._rewritten(files, partial), files, now_ms=now_ms)
        if properties.change_data_feed:
            changes.take(self._changed([files[one.number] for one in leaving], written), files, now_ms=now_ms)
        return changes

    def _rewritten(self, files: Sequence[AddFile], partial: Sequence[MarkedFile]) -> list[TaskOutput]:
        configuration = self._snapshot.configuration
        tracked = configuration.has_row_tracking
        scan = plan_scan(
            self._snapshot, storage_options=self._state.storage_options, time_zone=self._state.time_zone
        ).state
        # asked for here: the names that a user's scan gives to row ids may be columns of this table
        scan = replace(scan, row_ids=configuration.row_id_columns() if tracked else None)
        # rows that stay are read in the table's present schema, which a merged one only extends
        schema = _with_row_ids(self._snapshot) if tracked else self._snapshot.schema
        staying = [TableFile(one.number, scan_file(files[one.number], scan, one.vector)) for one in partial]
        write = replace(self._state, schema=schema)
        return self._run(rewrite_files, [RewriteFiles(scan, write, bundle) for bundle in self._bundles(staying)])

    def _changed(self, leaving: Sequence[AddFile], written: Sequence[WrittenFile]) -> list[TaskOutput]:
        scan, state = self._scan.state, self._state
        deleted = [scan_file(file, scan, file.deletion_vector) for file in leaving]
        as_written = replace(
            scan,
            output=state.schema,
            inputs=StructType(()),
            partition_columns=tuple(f.physical_name for f in state.schema if f.name in state.partition_columns),
            predicate=None,
            skip=None,
        )
        inserted = [written_scan_file(file, as_written) for file in written]
        deletes = replace(state, schema=scan.output)
        number = self._runner.parallelism
        return self._run(
            write_change_files,
            [
                *(WriteChangeFiles(scan, deletes, some, "delete") for some in bundles(deleted, number, _size)),
                *(WriteChangeFiles(as_written, state, some, "insert") for some in bundles(inserted, number, _size)),
            ],
        )

    def _run(self, function: Callable[[T], TaskOutput], tasks: Sequence[T]) -> list[TaskOutput]:
        outputs = self._runner.run(function, tasks)
        self.outputs += outputs
        return outputs

    def _bundles(self, files: Sequence[TableFile]) -> list[tuple[TableFile, ...]]:
        return bundles(files, self._runner.parallelism, lambda file: _size(file.scan))


def _table_files(files: Sequence[AddFile], scan: ScanState) -> list[TableFile]:
    return [TableFile(n, scan_file(file, scan, file.deletion_vector)) for n, file in enumerate(files)]


def _size(file: ScanFile) -> int:
    return file.size_bytes


def _with_row_ids(snapshot: Snapshot) -> StructType:
    """The schema with the columns that keep a moved row's id and commit version. Protocol: "Row Tracking"."""
    columns = snapshot.configuration.row_id_columns()
    extra = [StructField(name, LONG) for name in (columns.row_id, columns.row_commit_version) if name is not None]
    return StructType((*snapshot.schema.fields, *extra))
