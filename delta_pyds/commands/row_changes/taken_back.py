"""Files that a command wrote, without the rows that it takes back after a lost race.

Rows are marked first. Where no deletion vector can mark them, the file is written again without them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import bitmap_of, deserialize, serialize
from delta_pyds.columnar.row_origins import may_come_from, rows_of_files, unpack
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.data.row_changes.files import write_without_rows
from delta_pyds.tasks.row_changes import WithoutRows
from delta_pyds.tasks.scan_file import written_scan, written_scan_file
from delta_pyds.tasks.scan_state import ScanState
from delta_pyds.tasks.write_state import TaskOutput, WriteState, WrittenFile


def with_deleted(file: WrittenFile, rows: Callable[[pa.Array], BitMap64]) -> WrittenFile:
    """The file with more deleted rows. ``rows``: chooses rows by their origins."""
    assert file.origins is not None
    found = rows(unpack(file.origins))
    if not found:
        return file
    deleted = found | deleted_of(file)
    return replace(file, deleted=serialize(deleted), num_deleted=len(deleted))


def deleted_of(file: WrittenFile) -> BitMap64:
    """The rows of a written file that are marked as deleted."""
    return BitMap64() if file.deleted is None else deserialize(file.deleted)


def without_rows_of(output: TaskOutput, names: Container[int | str]) -> TaskOutput:
    """The output with all rows of these files marked as deleted. ``names``: as in ``TaskOutput.origin_files``."""
    indices = [index for index, name in enumerate(output.origin_files) if name in names]

    def marked(file: WrittenFile) -> WrittenFile:
        assert file.origins is not None
        if not may_come_from(file.origins, indices, source=False):
            return file
        return with_deleted(file, lambda origins: bitmap_of(rows_of_files(origins, indices)))

    return replace(output, files=tuple(map(marked, output.files)), change_files=tuple(map(marked, output.change_files)))


def write_again(
    files: Sequence[tuple[WrittenFile, WriteState]], scan: ScanState, runner: TaskRunner, made: list[TaskOutput]
) -> dict[str, tuple[WrittenFile, ...]]:
    """Write files again without their deleted rows. A file without other rows is not written.

    ``files``: with the states that they were written with. ``made``: gets the outputs of the tasks.
    Returns: the new files by the path of the old one.
    """
    again: dict[str, tuple[WrittenFile, ...]] = {file.path: () for file, _ in files}
    remaining = [(file, write) for file, write in files if file.num_deleted < file.num_records]
    tasks = []
    for file, write in remaining:
        assert file.origins is not None and file.deleted is not None
        reading = written_scan(scan, write)
        tasks.append(WithoutRows(reading, write, written_scan_file(file, reading), file.origins, file.deleted))
    outputs = runner.run(write_without_rows, tasks) if tasks else []
    made += outputs
    again.update({file.path: output.files for (file, _), output in zip(remaining, outputs, strict=True)})
    return again


def with_new_files(output: TaskOutput, again: Mapping[str, tuple[WrittenFile, ...]]) -> TaskOutput:
    """The output with files that were written again in place of the old ones."""

    def new(files: Iterable[WrittenFile]) -> tuple[WrittenFile, ...]:
        return tuple(one for file in files for one in again.get(file.path, (file,)))

    return replace(output, files=new(output.files), change_files=new(output.change_files))


def without_paths(output: TaskOutput, paths: Container[str]) -> TaskOutput:
    """An output that only has the data files and change files, except those with these paths."""
    files, change_files = (
        tuple(file for file in some if file.path not in paths) for some in (output.files, output.change_files)
    )
    return TaskOutput(files, change_files=change_files)
