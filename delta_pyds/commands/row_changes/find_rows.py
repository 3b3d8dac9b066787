"""The files of a command, distributed to tasks that find its rows by our own evaluator."""

from __future__ import annotations

from collections.abc import Sequence

from delta_pyds.commands.row_changes.plan import TargetFiles
from delta_pyds.commands.task_runner import TaskRunner, bundles
from delta_pyds.data.row_changes.find import find_rows
from delta_pyds.tasks.row_changes import FindRows, TableFile
from delta_pyds.tasks.scan_file import scan_file
from delta_pyds.tasks.scan_state import ScanState
from delta_pyds.tasks.write_state import TaskOutput


def table_files(target: TargetFiles, scan: ScanState) -> list[TableFile]:
    """All files with their deletion vectors."""
    return [TableFile(n, scan_file(file, scan, file.deletion_vector)) for n, file in enumerate(target.files)]


def file_bundles(files: Sequence[TableFile], runner: TaskRunner) -> list[tuple[TableFile, ...]]:
    """Bundles of similar size, one for each task that runs at once."""
    return bundles(files, runner.parallelism, lambda file: file.scan.size_bytes)


def run_find(files: Sequence[TableFile], scan: ScanState, runner: TaskRunner) -> list[TaskOutput]:
    """Find the rows for which the scan's predicate is true. Raises: as ``find_rows``."""
    return runner.run(find_rows, [FindRows(scan, some) for some in file_bundles(files, runner)])
