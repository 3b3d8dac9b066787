"""Deletion vectors for the found rows, or new files without these rows. Nothing is committed here.

Invariants: no row is deleted twice. A file without remaining rows is removed. All rows that stay are in the new files,
with their row ids. Before a file is removed as empty, its rows are counted in the file: statistics may be wrong.

Protocol: "Deletion Vectors", "Row Tracking", "Add File and Remove File", "Change Data Files".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from pyroaring import BitMap64

from delta_pyds.catalog.opening import task_options
from delta_pyds.columnar.roaring import deserialize
from delta_pyds.commands.commit import FileChanges, MarkedFile
from delta_pyds.commands.row_changes.plan import TargetFiles, marks_deletions
from delta_pyds.commands.row_changes.taken_back import (
    with_new_files,
    without_paths,
    without_rows_of,
    write_again,
)
from delta_pyds.commands.task_runner import TaskRunner, bundles
from delta_pyds.data.read.deletion_vector import inline_vector, load_deletion_vector
from delta_pyds.data.read.reader import open_rows
from delta_pyds.data.row_changes.change_files import write_change_files
from delta_pyds.data.row_changes.files import of_change_files, rewrite_files, with_row_ids
from delta_pyds.data.row_changes.found_rows import duplicate_source_matches
from delta_pyds.data.write.deletion_vector_writer import write_deletion_vectors
from delta_pyds.errors import DeltaError
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import StructType
from delta_pyds.table.transaction.row_counts import row_counts
from delta_pyds.tasks.row_changes import ChangedFile, RewriteFiles, TableFile, WriteChangeFiles
from delta_pyds.tasks.scan_file import scan_file, written_scan, written_scan_file
from delta_pyds.tasks.scan_state import ScanState
from delta_pyds.tasks.write_state import FoundRows, ReplacedFile, TaskOutput, WriteState, WrittenFile

T = TypeVar("T")
# deletion vectors that are loaded at once: each is one request to the store
_LOADED_AT_ONCE = 8


@dataclass(frozen=True)
class Rewritten:
    """New files with rows of other files: those that remain, or those that change files record.

    ``rows``: the deleted rows that the result depends on, by number of their file in the table, or by path of a new
    file. ``write``: how the files were written.
    """

    rows: Mapping[int | str, BitMap64]
    output: TaskOutput
    write: WriteState


@dataclass(frozen=True)
class MarkedRows:
    """A deletion vector with these rows of one file. ``output``: of the task that wrote it."""

    rows: BitMap64
    vector: DeletionVectorDescriptor
    output: TaskOutput


@dataclass(frozen=True)
class _RowsToDelete:
    """Rows to delete in one file. ``all_deleted``: also those deleted earlier. ``num_records``: rows of the file."""

    number: int
    rows: BitMap64
    all_deleted: BitMap64
    num_records: int

    @property
    def whole(self) -> bool:
        return len(self.all_deleted) >= self.num_records


class Finish:
    """The end of one command, without the commit.

    ``write``: how files of the table are written. ``records_deletions``: the command's tasks wrote no change files. If
    files of a table with a change data feed are rewritten, change files of all deleted rows are written here.
    ``one_match``: a row that two tasks found is a duplicate source match of the merge. Otherwise it is an internal
    error; with ``repeats``, the row is deleted, and each further find is counted in ``repeated_rows``.

    ``earlier``: the end of the same command before it lost a race. Its vectors and rewritten files are used again if
    the same rows are deleted.

    ``made``: the outputs of all tasks that ran here, also after an error; a caller that does not commit discards them.
    ``rewritten``: the files that were rewritten here or before, and are part of the result. ``recorded``: the same for
    change files. ``marked``: for deletion vectors, by number of the file in the table, or by path of a new file.
    The runner discards files of a failed round of tasks (see ``TaskRunner``).
    """

    def __init__(
        self,
        target: TargetFiles,
        write: WriteState,
        runner: TaskRunner,
        *,
        records_deletions: bool = False,
        one_match: bool = False,
        repeats: bool = False,
        earlier: Finish | None = None,
    ) -> None:
        self.made: list[TaskOutput] = []
        self.rewritten: list[Rewritten] = []
        self.recorded: list[Rewritten] = []
        self.marked: dict[int | str, MarkedRows] = {}
        self._earlier = earlier
        if earlier is not None:
            # the ends before it are not needed any more
            earlier._earlier = None
        self.repeated_rows = 0
        self._target = target
        self._write = write
        self._runner = runner
        self._records_deletions = records_deletions
        self._one_match = one_match
        self._repeats = repeats
        self._root = target.snapshot.table_root
        self._storage = target.snapshot.storage

    def run(self, outputs: Sequence[TaskOutput], *, now_ms: int, written: Sequence[WrittenFile] = ()) -> FileChanges:
        """Run the tasks that are needed. ``outputs``: the outputs of the tasks that found rows and wrote new ones.

        ``written``: new files of the same commit that are in no output; change files must have their rows too.
        Raises: DeltaError for outputs that contradict each other or the table; errors of the tasks.
        """
        self._renew_credentials()
        files = self._target.files
        changes = FileChanges()
        changes.take(outputs, files, now_ms=now_ms)
        to_delete = self._rows_to_delete(outputs)
        changes.deleted_rows = sum(len(one.rows) for one in to_delete)
        changes.remove((files[one.number] for one in to_delete), now_ms=now_ms)
        partial = [one for one in to_delete if not one.whole]
        if marks_deletions(self._target.snapshot.configuration):
            self._mark(changes, partial)
            return changes
        if partial:
            changes.take(self._rewritten(partial), files, now_ms=now_ms)
            if self._records_deletions and self._target.snapshot.configuration.properties.change_data_feed:
                changes.take(self._change_files(to_delete, written), files, now_ms=now_ms)
        return changes

    @property
    def superseded(self) -> list[TaskOutput]:
        """The outputs of the earlier end that are not part of this one: no commit names their files."""
        if self._earlier is None:
            return []
        used = {id(some.output) for some in self.marked.values()}
        paths = {file.path for some in (*self.rewritten, *self.recorded) for file in some.output.written}
        unused = [output for output in self._earlier.made if id(output) not in used]
        return [replace(without_paths(output, paths), vectors=output.vectors) for output in unused]

    def _renew_credentials(self) -> None:
        """Get new credentials: those of a catalog may have expired while rows were found."""
        now = task_options(self._storage, self._write.storage_options)
        self._write = replace(self._write, storage_options=now)
        self._target = replace(self._target, scan=replace(self._target.scan, storage_options=now))

    # --- rows to delete

    def _rows_to_delete(self, outputs: Sequence[TaskOutput]) -> list[_RowsToDelete]:
        found: dict[int, BitMap64] = {}
        deleted: dict[int, BitMap64] = {}
        counted: dict[int, int] = {}
        for output in outputs:
            for one in output.found:
                number = self._target.number_of(one.file)
                rows = self._united(found, number, one)
                if rows:
                    found[number] = rows
                if one.num_records is not None:
                    counted[number] = one.num_records
                if one.deleted_before is not None:
                    deleted[number] = deserialize(one.deleted_before)
        self._check_kept(found, outputs)
        for output in outputs:
            for replaced in output.replaced:
                if replaced.number in found:
                    raise self._contradiction(replaced.number, "has rows that were found twice")
                self._check_live(replaced)
        numbers = sorted(found)
        deleted |= self._deleted_before([n for n in numbers if n not in deleted])
        return [self._one(n, found[n], deleted.get(n), counted.get(n)) for n in numbers]

    def _united(self, found: Mapping[int, BitMap64], number: int, one: FoundRows) -> BitMap64:
        rows = deserialize(one.positions)
        before = found.get(number)
        if before is None:
            return rows
        if rows.intersect(before):
            if not self._repeats:
                raise self._found_twice(number)
            self.repeated_rows += len(rows & before)
        return before | rows

    def _check_kept(self, found: Mapping[int, BitMap64], outputs: Sequence[TaskOutput]) -> None:
        """Check that no other task matched the rows that a merge matched and leaves unchanged."""
        seen: dict[int, BitMap64] = {}
        for output in outputs:
            for one in output.found:
                if one.kept is None:
                    continue
                number, rows = self._target.number_of(one.file), deserialize(one.kept)
                for others in (found.get(number), seen.get(number)):
                    if others is not None and rows.intersect(others):
                        raise self._found_twice(number)
                seen[number] = seen[number] | rows if number in seen else rows

    def _check_live(self, replaced: ReplacedFile) -> None:
        file = self._target.files[replaced.number]
        promised = row_counts(file.stats).num_records
        deleted = 0 if file.deletion_vector is None else file.deletion_vector.cardinality
        # writers that do not know the number write 0
        if promised and promised - deleted != replaced.live_rows:
            raise DeltaError(
                f"the log has {promised} rows for the file {file.path} of the table {self._root}, {deleted} of them "
                f"deleted, but {replaced.live_rows} rows were read. Nothing was committed; verify the table.",
                code="DELTA_NUM_RECORDS_MISMATCH",
                table=self._root,
                file=file.path,
            )

    def _found_twice(self, number: int) -> DeltaError:
        if self._one_match:
            return duplicate_source_matches(self._root)
        return self._contradiction(number, "has rows that two tasks found")

    def _contradiction(self, number: int, problem: str) -> DeltaError:
        path = self._target.files[number].path
        return DeltaError(
            f"the file {path} of the table {self._root} {problem}. Nothing was committed; run the command again, and "
            "verify the table if it happens again.",
            table=self._root,
            file=path,
        )

    def _deleted_before(self, numbers: Sequence[int]) -> dict[int, BitMap64]:
        vectors = [(n, v) for n in numbers if (v := self._target.files[n].deletion_vector) is not None]

        def load(vector: DeletionVectorDescriptor) -> BitMap64:
            return load_deletion_vector(self._storage, self._root, vector).positions

        if len(vectors) < _LOADED_AT_ONCE:
            return {n: load(vector) for n, vector in vectors}
        with ThreadPoolExecutor(_LOADED_AT_ONCE, thread_name_prefix="deltapy-vectors") as pool:
            return dict(zip((n for n, _ in vectors), pool.map(load, (v for _, v in vectors)), strict=True))

    def _one(self, number: int, rows: BitMap64, deleted: BitMap64 | None, counted: int | None) -> _RowsToDelete:
        all_deleted = rows if deleted is None else rows | deleted
        if deleted is not None and len(all_deleted) < len(rows) + len(deleted):
            raise self._contradiction(number, "has rows that were found although they had been deleted before")
        num_records = counted
        if num_records is None:
            num_records = row_counts(self._target.files[number].stats).num_records
            if num_records is None or len(all_deleted) >= num_records or all_deleted.max() >= num_records:
                num_records = self._count(number)
        if all_deleted.max() >= num_records:
            raise self._contradiction(number, f"has {num_records} rows, but row {all_deleted.max()} was found in it")
        return _RowsToDelete(number, rows, all_deleted, num_records)

    def _count(self, number: int) -> int:
        scan = replace(self._target.scan, output=StructType(()), inputs=StructType(()), row_ids=None)
        with open_rows(scan, scan_file(self._target.files[number], scan, None)) as rows:
            return rows.num_records()

    # --- changes to their files

    def _mark(self, changes: FileChanges, partial: Sequence[_RowsToDelete]) -> None:
        # new files of a command that lost a race may have rows that must not be in the table
        new_files = (*changes.written, *changes.rewritten)
        written = [(file, file.deleted) for file in new_files if file.deleted is not None]
        rows: dict[int | str, BitMap64] = {one.number: one.all_deleted for one in partial}
        rows |= {file.path: deserialize(deleted) for file, deleted in written}
        if self._earlier is not None:
            self.marked = {n: done for n, done in self._earlier.marked.items() if rows.get(n) == done.rows}
        if new := [n for n in rows if n not in self.marked]:
            prefix_length = self._write.random_prefix_length
            bitmaps = [rows[n] for n in new]
            vectors = write_deletion_vectors(self._storage, self._root, bitmaps, random_prefix_length=prefix_length)
            output = TaskOutput(vectors=tuple(vectors))
            self.marked |= {n: MarkedRows(rows[n], vector, output) for n, vector in zip(new, vectors, strict=True)}
        # also those of an earlier end: this end now has them
        self.made += {id(done.output): done.output for done in self.marked.values()}.values()
        for one in partial:
            changes.mark(MarkedFile(self._target.files[one.number], self.marked[one.number].vector, one.num_records))
        changes.vectors.update((file.path, self.marked[file.path].vector) for file, _ in written)

    def _rewritten(self, partial: Sequence[_RowsToDelete]) -> list[TaskOutput]:
        scan = self._target.scan
        expected = sum(one.num_records - len(one.all_deleted) for one in partial)
        rows: dict[int | str, BitMap64] = {one.number: one.all_deleted for one in partial}
        self.rewritten = self._used_again(() if self._earlier is None else self._earlier.rewritten, rows)
        done = {number for some in self.rewritten for number in some.rows}
        # rows that stay are read in the table's current schema, which a merge only extends
        write = with_row_ids(replace(self._write, schema=self._target.snapshot.schema), self._target.row_id_columns)
        staying = [
            TableFile(one.number, scan_file(self._target.files[one.number], scan, inline_vector(one.all_deleted)))
            for one in partial
            if one.number not in done
        ]
        tasks = [RewriteFiles(scan, write, some) for some in self._bundles(staying, _size)]
        for task, output in zip(tasks, self._run(rewrite_files, tasks), strict=True):
            self.rewritten.append(Rewritten({file.number: rows[file.number] for file in task.files}, output, write))
        outputs = [some.output for some in self.rewritten]
        copied = sum(output.copied_rows for output in outputs)
        if copied != expected:
            raise DeltaError(
                f"{expected} rows of the table {self._root} should be copied to new files, but {copied} were: the "
                "statistics of a file may have a wrong number of rows. Nothing was committed; verify the table.",
                code="DELTA_NUM_RECORDS_MISMATCH",
                table=self._root,
            )
        return outputs

    def _change_files(self, to_delete: Sequence[_RowsToDelete], written: Sequence[WrittenFile]) -> list[TaskOutput]:
        """Write change files of all rows of the commit: readers of changes then use only these files of the commit."""
        scan, state = replace(self._target.scan, row_ids=None), self._write
        rows: dict[int | str, BitMap64] = {one.number: one.rows for one in to_delete}
        rows |= {file.path: BitMap64() for file in written}
        self.recorded = self._used_again(() if self._earlier is None else self._earlier.recorded, rows)
        done = {name for some in self.recorded for name in some.rows}
        deleted = [self._selected(one, scan) for one in to_delete if one.number not in done]
        inserted_scan = written_scan(scan, state)
        new = [file for file in written if file.path not in done]
        inserted = [ChangedFile(file.path, written_scan_file(file, inserted_scan)) for file in new]
        deletes = replace(state, schema=scan.output)
        tasks = [
            *(WriteChangeFiles(scan, deletes, some, "delete") for some in self._bundles(deleted, _size)),
            *(WriteChangeFiles(inserted_scan, state, some, "insert") for some in self._bundles(inserted, _size)),
        ]
        for task, output in zip(tasks, self._run(write_change_files, tasks), strict=True):
            of_task = {name: rows[name] for name in output.origin_files}
            self.recorded.append(Rewritten(of_task, output, of_change_files(task.write)))
        return [some.output for some in self.recorded]

    def _used_again(self, earlier: Sequence[Rewritten], rows: Mapping[int | str, BitMap64]) -> list[Rewritten]:
        """The earlier files, without rows of files that have other deleted rows now."""
        found = []
        for done in earlier:
            same = {name: some for name, some in done.rows.items() if rows.get(name) == some}
            if len(same) == len(done.rows):
                found.append(done)
            elif same:
                output = without_rows_of(done.output, done.rows.keys() - same.keys())
                found.append(Rewritten(same, output, done.write))
        options = self._write.storage_options
        found = [replace(done, write=replace(done.write, storage_options=options)) for done in found]
        changed = [(file, done.write) for done in found for file in done.output.written if file.num_deleted]
        again = write_again(changed, self._target.scan, self._runner, self.made)
        used = []
        for done in found:
            output = with_new_files(done.output, again)
            copied = sum(file.num_records for file in output.files)
            used.append(replace(done, output=replace(output, copied_rows=copied)))
        self.made += [done.output for done in used]
        return used

    def _selected(self, one: _RowsToDelete, scan: ScanState) -> ChangedFile:
        file = self._target.files[one.number]
        selected = replace(scan_file(file, scan, file.deletion_vector), selected=inline_vector(one.rows))
        return ChangedFile(one.number, selected)

    def _run(self, function: Callable[[T], TaskOutput], tasks: Sequence[T]) -> list[TaskOutput]:
        outputs = self._runner.run(function, tasks)
        self.made += outputs
        return outputs

    def _bundles(self, files: Sequence[T], size: Callable[[T], int]) -> Iterable[tuple[T, ...]]:
        return bundles(files, self._runner.parallelism, size)


def _size(file: TableFile | ChangedFile) -> int:
    return file.scan.size_bytes
