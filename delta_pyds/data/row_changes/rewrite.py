"""Rewrites files of the table with the remaining rows. Protocol: "Row Tracking"."""

from __future__ import annotations

from dataclasses import replace

from delta_pyds.columnar.roaring import deserialize, live_mask
from delta_pyds.columnar.row_origins import unpack
from delta_pyds.data.read.deletion_vector import inline_vector
from delta_pyds.data.read.reader import read
from delta_pyds.data.row_changes.files import write_files
from delta_pyds.tasks.row_changes import RewriteFiles, WithoutRows
from delta_pyds.tasks.write_state import TaskOutput


def rewrite_files(task: RewriteFiles) -> TaskOutput:
    """Write new files with the remaining rows. Raises: as ``read`` and ``DataFileWriter``."""
    names = list(task.write.schema.names)
    staying = (
        batch.rename_columns(names) for file in task.files for batch in read(task.scan, file.scan) if batch.num_rows
    )
    files = write_files(task.write, staying)
    return TaskOutput(files, copied_rows=sum(file.num_records for file in files))


def write_without_rows(task: WithoutRows) -> TaskOutput:
    """Write a file again without some of its rows. Raises: as ``read`` and ``DataFileWriter``."""
    deleted, origins = deserialize(task.deleted), unpack(task.origins)
    file = replace(task.file, deletion_vector=inline_vector(deleted))
    remaining = origins.filter(live_mask(deleted, 0, len(origins)))
    return TaskOutput(write_files(task.write, read(task.scan, file), origins=remaining))
