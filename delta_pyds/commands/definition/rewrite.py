"""Files rewritten for a new definition of the table: the same live rows, in other files.

Invariant: every live row of the files is in the new ones, once, with its row id; the number of written rows is the
number in the log. Nothing is committed here.

Protocol: "Deletion Vectors", "Row Tracking".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from delta_pyds.commands.commit import CommandEnd, FileChanges
from delta_pyds.commands.row_changes.plan import CommandOptions, files_state, target_files
from delta_pyds.commands.task_runner import TaskRunner, bundles
from delta_pyds.data.row_changes.files import with_row_ids
from delta_pyds.data.row_changes.rewrite import rewrite_files
from delta_pyds.errors import DeltaError
from delta_pyds.protocol.actions import AddFile
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.scan.live_files import removal
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.row_counts import row_counts
from delta_pyds.tasks.row_changes import RewriteFiles, TableFile
from delta_pyds.tasks.scan_file import scan_file
from delta_pyds.tasks.write_state import TaskOutput


@dataclass
class Rewritten:
    """The new files and those that they replace. ``copied_rows``: the number of rows in the new files."""

    changes: FileChanges = field(default_factory=FileChanges)
    outputs: list[TaskOutput] = field(default_factory=list)
    copied_rows: int = 0

    @property
    def metrics(self) -> dict[str, int]:
        """The metrics under the reference's names."""
        removes = self.changes.removes
        return {
            "numRewrittenFiles": len(removes),
            "numOutputBytes": sum(file.size_bytes for output in self.outputs for file in output.files),
            "numRemovedBytes": sum(file.size or 0 for file in removes),
            "numCopiedRows": self.copied_rows,
            "numDeletionVectorsRemoved": sum(file.deletion_vector is not None for file in removes),
        }


def rewrite(
    snapshot: Snapshot,
    files: Sequence[AddFile],
    after: TableConfiguration,
    runner: TaskRunner,
    options: CommandOptions,
    end: CommandEnd,
) -> Rewritten:
    """Write the live rows of ``files``, with all fields of their ``add``, for the table that ``after`` describes.

    ``end``: the end of the command; it gets the outputs of the tasks.

    Raises: DeltaError (DELTA_NUM_RECORDS_MISMATCH) if rows are missing; errors of the tasks.
    """
    target = target_files(snapshot, files, options)
    scan = target.scan
    write = with_row_ids(files_state(snapshot, options, configuration=after), target.row_id_columns)
    handed = [TableFile(n, scan_file(file, scan, file.deletion_vector)) for n, file in enumerate(files)]
    tasks = [
        RewriteFiles(scan, write, some) for some in bundles(handed, runner.parallelism, lambda f: f.scan.size_bytes)
    ]
    outputs = runner.run(rewrite_files, tasks)
    end.add(outputs)
    done = Rewritten(outputs=outputs, copied_rows=sum(output.copied_rows for output in outputs))
    now_ms = int(time.time() * 1000)
    done.changes.take(outputs, files, now_ms=now_ms)
    done.changes.removes += [removal(file, deletion_timestamp_ms=now_ms, data_change=False) for file in files]
    counts = [row_counts(file.stats).num_records for file in files]
    if all(count is not None for count in counts):
        deleted = sum(f.deletion_vector.cardinality for f in files if f.deletion_vector is not None)
        expected = sum(count or 0 for count in counts) - deleted
        if expected != done.copied_rows:
            raise DeltaError(
                f"{done.copied_rows} rows of the table {snapshot.table_root} were copied to new files instead of "
                f"{expected}: the statistics of a file may have a wrong number of rows. Nothing was committed; verify "
                "the table.",
                code="DELTA_NUM_RECORDS_MISMATCH",
                table=snapshot.table_root,
            )
    return done
