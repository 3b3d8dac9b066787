"""Mends a command that changes rows after it lost a race: it decides again on the rows that the winners changed.

    mend = RowMend(plan, outputs, on_rows, runner)
    mended = mend.after(net)     # None: only the whole command can run again
    mended.plan, mended.outputs  # as if the command had run after the winners

Let D be the rows that the winners took away, and N the rows that they brought. The command decides on each row of the
table alone, or with the rows of its source. So its result after the winners is its first result, without its result on
D, and with its result on N. A row that a compaction moved to another file is in both.

Each command can run on given rows (``CommandOnRows``). Everything else is the same for all commands: lost rows are
removed from bitmaps, rows that were written for them are marked as deleted, and counts are reduced.

Protocol: "Deletion Vectors", "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import bitmap_of, deserialize, serialize
from delta_pyds.columnar.row_origins import may_come_from, rows_of_files, source_rows, table_rows, unpack
from delta_pyds.commands.row_changes.plan import RowChangePlan, marks_deletions, with_files
from delta_pyds.commands.row_changes.taken_back import deleted_of, with_deleted, with_new_files, write_again
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.data.read.deletion_vector import inline_vector, load_deletion_vector
from delta_pyds.data.row_changes.files import of_change_files, with_row_ids
from delta_pyds.log.adds import commit_adds
from delta_pyds.log.file_table import FILE_COLUMNS
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.paths import path_key
from delta_pyds.table.scan.live_files import adds_of
from delta_pyds.table.scan.partition_match import files_matching
from delta_pyds.table.scan.scan import Scan
from delta_pyds.table.transaction.mend import NetChanges
from delta_pyds.table.transaction.row_counts import row_counts
from delta_pyds.table.transaction.row_tracking import has_same_row_ids
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.scan_file import scan_file
from delta_pyds.tasks.write_state import FoundRows, ReplacedFile, TaskOutput, WrittenFile

_NONE = BitMap64()


class SourceRows(Protocol):
    """The rows of a merge's source: whether one is inserted depends on all rows of the table."""

    def first_result(self, plan: RowChangePlan, files: Sequence[TableFile]) -> TaskOutput:
        """The merge's first result on these rows: counts and matches. Nothing is written."""
        ...

    def settle(
        self, plan: RowChangePlan, lost: TaskOutput, brought: Sequence[TaskOutput]
    ) -> tuple[BitMap64, list[TaskOutput]]:
        """The rows of the source that must not be inserted any more, and the outputs that insert others.

        ``lost``: the first result on the rows that are gone. ``brought``: the result on new rows.
        """
        ...


@dataclass(frozen=True)
class CommandOnRows:
    """A command that can run on given rows.

    ``run_on``: runs it on rows of the plan's files; it may raise a NotRepeatableError. ``candidates``: the scan that
    rules out files of which the command changes no row. ``source``: of a merge. Any other command does one ``action``
    on all rows that it finds.
    ``changes_each_match``: a lost row that the merge did not change has no effect on its result, so it is not read.
    ``check``: raises a NotRepeatableError if the decision on a row depends on other rows, even if no row is new.
    ``confirm``: called after the queries of a mend; raises a NotRepeatableError if they may have another meaning now.
    """

    run_on: Callable[[RowChangePlan, Sequence[TableFile]], list[TaskOutput]]
    candidates: Scan
    action: Action | None = None
    source: SourceRows | None = None
    changes_each_match: bool = False
    check: Callable[[RowChangePlan], None] | None = None
    confirm: Callable[[], None] | None = None


@dataclass(frozen=True)
class Mended:
    """The command as if it had run after the winners.

    ``outputs``: of all its tasks. ``superseded``: files that no commit may name any more. ``read_files``: the
    ``path_key`` of the files that the result depends on. ``num_rows``: the number of rows that were decided again.
    """

    plan: RowChangePlan
    outputs: list[TaskOutput]
    superseded: list[TaskOutput]
    read_files: Set[str]
    num_rows: int


@dataclass
class _Difference:
    """The difference between two versions for the files of a command.

    ``lost``: rows that are gone, by the number of their file; None for all rows of a removed file. It is empty for a
    file that got another vector and lost no row. ``brought``: new rows, also deleted rows that are back.
    """

    lost: dict[int, BitMap64 | None] = field(default_factory=dict)
    brought: list[TableFile] = field(default_factory=list)

    def lost_of(self, number: int, rows: BitMap64) -> BitMap64:
        """Those of the given rows of a file that are gone."""
        if number not in self.lost:
            return _NONE
        gone = self.lost[number]
        return rows if gone is None else rows & gone


class RowMend:
    """A command between lost races. For one thread. ``runner``: writes files again without some rows.

    ``made``: the outputs of all tasks that ran here, also after an error; a caller that does not commit discards them.
    """

    def __init__(
        self, plan: RowChangePlan, outputs: Sequence[TaskOutput], on_rows: CommandOnRows, runner: TaskRunner
    ) -> None:
        self.made: list[TaskOutput] = []
        self._plan = plan
        self._outputs = list(outputs)
        self._on_rows = on_rows
        self._runner = runner
        self._numbers: dict[str, int] | None = None
        self._read: set[str] = set()
        self._checked = False
        self._gone: set[int] = set()
        self._vectors: dict[str, BitMap64] = {}

    def after(self, net: NetChanges) -> Mended | None:
        """The command after these changes. None if only the whole command can run again.

        Raises: as the command's tasks; NotRepeatableError; DeltaError for a deletion vector that cannot be read.
        """
        if net.row_tracking_enabled:
            # written rows lack the ids of the rows that they come from
            return None
        reads = self._plan.options.reads_table
        if net.changes_other_reads if reads else (reads is None and net.changes_data):
            # the decision on any row may depend on the winners' changes
            return None
        changed, added = self._by_number(net)
        before = self._plan
        if len(self._numbers or ()) < len(before.target.files) + len(added):
            # a path is live twice, with two vectors, and it is unknown which of them a winner changed
            return None
        if any(self._has_other_row_ids(number, now) for number, now in changed.items()):
            return None
        self._plan = with_files(before, changed, added, net.versions[-1])
        names = self._plan.target.names
        if names is not None and len(names) < len(self._plan.target.files):
            # a winner added a known file under another spelling of its path, and Spark has one name for both
            return None
        difference = self._difference(before, changed, len(added))
        if before.whole_files:
            return self._mended(self._live_files(), [], 0)
        if self._on_rows.check is not None and not self._checked:
            self._on_rows.check(self._plan)
            self._checked = True
        if any(self._lacks_origins(output, difference) for output in self._outputs):
            return None
        outputs = self._outputs
        lost_files = [
            _table_file(before, number, rows) for number, rows in difference.lost.items() if rows is None or rows
        ]
        brought = _united(difference.brought, self._rewritten_files(difference))
        source, not_inserted = self._on_rows.source, _NONE
        inserted: list[TaskOutput] = []
        if source is None:
            assert self._on_rows.action is not None
            counts = {int(self._on_rows.action): self._num_lost(difference)}
            new = self._run_on(brought)
        else:
            changes_each = self._on_rows.changes_each_match
            lost = source.first_result(before, self._changed_rows(before, difference) if changes_each else lost_files)
            new = self._run_on(brought)
            not_inserted, inserted = source.settle(self._plan, lost, new)
            self.made += inserted
            if not_inserted and any(map(_lacks_origins_of_inserts, outputs)):
                return None
            counts = dict(lost.counts)
        if self._on_rows.confirm is not None and (brought or source is not None):
            self._on_rows.confirm()
        if inserts := sum(_num_inserted(output, not_inserted) for output in outputs):
            counts[int(Action.INSERT)] = inserts
        outputs = [self._without_rows(output, difference, not_inserted) for output in outputs]
        # the outputs do not have the lost rows any more, but still count them
        outputs.append(TaskOutput(counts={action: -count for action, count in counts.items()}))
        outputs, superseded = self._written_again(outputs)
        new += inserted
        self._outputs = [*outputs, *new]
        decided = [*((before, file) for file in lost_files), *((self._plan, file) for file in brought)]
        num_rows = sum(_num_rows(*rows) for rows in decided)
        return self._mended(self._plan, superseded, num_rows)

    def _run_on(self, files: Sequence[TableFile]) -> list[TaskOutput]:
        """The command's result on these rows."""
        outputs = self._on_rows.run_on(self._plan, files) if files else []
        self.made += outputs
        return outputs

    def _mended(self, plan: RowChangePlan, superseded: list[TaskOutput], num_rows: int) -> Mended:
        return Mended(plan, self._outputs, superseded, self._read, num_rows)

    # --- the difference

    def _by_number(self, net: NetChanges) -> tuple[dict[int, AddFile | None], list[AddFile]]:
        """The latest entries of the command's changed files by number, and the new files that may have rows for it."""
        if self._numbers is None:
            # once for all mends, so that a mend costs nothing for a file that no winner touched
            self._numbers = {path_key(path): n for n, path in enumerate(self._plan.target.values("path"))}
            self._read = set(self._numbers)
        known = self._numbers
        changed = {known[key]: file for key, file in net.files.items() if key in known}
        added = self._selected([file for key, file in net.files.items() if key not in known and file is not None])
        known.update({path_key(file.path): number for number, file in enumerate(added, len(known))})
        self._read.update(key for key, file in net.files.items() if key in known and file is not None)
        self._read.difference_update(key for key, file in net.files.items() if file is None)
        return changed, added

    def _has_other_row_ids(self, number: int, now: AddFile | None) -> bool:
        """Whether a winner gave the rows of a file other ids, which written rows lack."""
        target = self._plan.target
        if now is None or target.row_id_columns is None or number in self._gone or self._plan.whole_files:
            return False
        return not has_same_row_ids(target.files[number], now)

    def _selected(self, files: Sequence[AddFile]) -> list[AddFile]:
        """The files whose partition values and statistics do not rule them out."""
        plan = self._plan
        if plan.whole_files:
            # skipping may keep too many files, so it never decides which files are removed
            snapshot, zone = plan.target.snapshot, plan.options.time_zone
            return list(files_matching(files, plan.read, snapshot.schema, table=snapshot.table_root, time_zone=zone))
        request = self._on_rows.candidates.request(tuple(FILE_COLUMNS))
        return [file for batch in commit_adds(files, request) for file in adds_of(batch.files)]

    def _difference(self, before: RowChangePlan, changed: Mapping[int, AddFile | None], num_added: int) -> _Difference:
        found = _Difference()
        self._cache_loaded_vectors(before, changed)
        for number, now in changed.items():
            if number in self._gone:
                if now is not None:
                    # a removed file is back
                    found.brought.append(_table_file(self._plan, number, None))
            elif now is None:
                found.lost[number] = None
            elif not before.whole_files:
                old, new = self._deleted(before.target.files[number]), self._deleted(now)
                gone, back = new - old, old - new
                if gone or back:
                    # even if no row is lost: another vector now gets the rows that were found
                    found.lost[number] = gone
                if back:
                    found.brought.append(_table_file(self._plan, number, back))
        first = len(before.target.files)
        found.brought += [_table_file(self._plan, number, None) for number in range(first, first + num_added)]
        self._gone = (self._gone - changed.keys()) | {number for number, now in changed.items() if now is None}
        return found

    def _cache_loaded_vectors(self, before: RowChangePlan, numbers: Collection[int]) -> None:
        """Cache the vectors of these files that a task has loaded."""
        for output in self._outputs:
            for one in output.found:
                if one.deleted_before is not None and (number := before.target.number_of(one.file)) in numbers:
                    vector = before.target.files[number].deletion_vector
                    if vector is not None:
                        self._vectors.setdefault(vector.unique_id, deserialize(one.deleted_before))

    def _deleted(self, file: AddFile) -> BitMap64:
        vector = file.deletion_vector
        if vector is None:
            return _NONE
        found = self._vectors.get(vector.unique_id)
        if found is None:
            snapshot = self._plan.target.snapshot
            found = load_deletion_vector(snapshot.storage, snapshot.table_root, vector).positions
            self._vectors[vector.unique_id] = found
        return found

    # --- the outputs

    def _changed_rows(self, before: RowChangePlan, difference: _Difference) -> list[TableFile]:
        """The lost rows that the command changed."""
        changed: dict[int, BitMap64] = {}
        for output in self._outputs:
            for number, rows in self._found(output, difference):
                if lost := difference.lost_of(number, rows):
                    changed[number] = changed.get(number, _NONE) | lost
        return [_table_file(before, number, rows) for number, rows in changed.items()]

    def _num_lost(self, difference: _Difference) -> int:
        """The number of changed rows that are gone, or in files that are rewritten again."""
        found = (len(difference.lost_of(*rows)) for output in self._outputs for rows in self._found(output, difference))
        return sum(found) + sum(one.updated_rows for one in self._replaced(difference))

    def _replaced(self, difference: _Difference) -> Iterable[ReplacedFile]:
        """The files that a task rewrote and a winner changed."""
        return (one for output in self._outputs for one in output.replaced if one.number in difference.lost)

    def _found(self, output: TaskOutput, difference: _Difference) -> Iterable[tuple[int, BitMap64]]:
        """The rows that a task found in files with lost rows, by the number of their file."""
        for one in output.found:
            number = self._plan.target.number_of(one.file)
            if number in difference.lost:
                yield number, deserialize(one.positions)

    def _lacks_origins(self, output: TaskOutput, difference: _Difference) -> bool:
        """Whether a task wrote rows for lost rows, and it is unknown which."""
        if all(file.origins is not None for file in output.written):
            return False
        return any(difference.lost_of(*rows) for rows in self._found(output, difference))

    def _rewritten_files(self, difference: _Difference) -> list[TableFile]:
        """The files that must be rewritten again, as they are now."""
        numbers = [one.number for one in self._replaced(difference)]
        return [_table_file(self._plan, number, None) for number in dict.fromkeys(numbers) if number not in self._gone]

    def _without_rows(self, output: TaskOutput, difference: _Difference, not_inserted: BitMap64) -> TaskOutput:
        """The output without lost rows, and without the inserts of these source rows. Its counts stay the same."""
        found = []
        for one in output.found:
            number = self._plan.target.number_of(one.file)
            if number not in difference.lost:
                found.append(one)
            elif number not in self._gone:
                found.append(self._without_positions(one, number, difference))
        staying = tuple(one for one in output.replaced if one.number not in difference.lost)
        replaced = {one.number for one in output.replaced}
        numbers = {index: self._plan.target.number_of(file) for index, file in enumerate(output.origin_files)}
        lost = {index: number for index, number in numbers.items() if number in difference.lost}
        whole = [index for index, n in lost.items() if n in replaced or difference.lost[n] is None]
        partly = {index: n for index, n in lost.items() if n not in replaced and difference.lost[n]}

        def rows(origins: pa.Array) -> BitMap64:
            gone = _rows_inserted_for(origins, not_inserted) | bitmap_of(rows_of_files(origins, whole))
            for index, number in partly.items():
                at, positions = table_rows(origins, index)
                some = difference.lost_of(number, bitmap_of(positions))
                gone |= bitmap_of(at.filter(_is_in(positions, some)))
            return gone

        def cleaned(files: Sequence[WrittenFile]) -> tuple[WrittenFile, ...]:
            return tuple(
                with_deleted(file, rows)
                if file.origins is not None and may_come_from(file.origins, lost, source=bool(not_inserted))
                else file
                for file in files
            )

        return replace(
            output,
            found=tuple(found),
            files=cleaned(output.files),
            change_files=cleaned(output.change_files),
            replaced=staying,
            copied_rows=output.copied_rows
            - sum(one.live_rows - one.updated_rows for one in output.replaced if one.number in difference.lost),
        )

    def _without_positions(self, one: FoundRows, number: int, difference: _Difference) -> FoundRows:
        rows, kept = deserialize(one.positions), one.kept
        if kept is not None:
            some = deserialize(kept)
            kept = serialize(some - difference.lost_of(number, some))
        remaining = serialize(rows - difference.lost_of(number, rows))
        deleted = serialize(self._deleted(self._plan.target.files[number]))
        return replace(one, positions=remaining, kept=kept, deleted_before=deleted)

    def _written_again(self, outputs: Sequence[TaskOutput]) -> tuple[list[TaskOutput], list[TaskOutput]]:
        """Write files again without their deleted rows, where no deletion vector can mark them.

        Returns: the outputs with the new files, and the files that they had before.
        """
        marks, state = marks_deletions(self._plan.target.snapshot.configuration), self._plan.state
        write, of_changes = with_row_ids(state.write, state.row_id_columns), of_change_files(state.write)
        files = [(file, write) for output in outputs for file in output.files if file.num_deleted]
        if marks:
            files = [(file, write) for file, write in files if file.num_deleted == file.num_records]
        files += [(file, of_changes) for output in outputs for file in output.change_files if file.num_deleted]
        again = write_again(files, self._plan.target.scan, self._runner, self.made)
        return [with_new_files(output, again) for output in outputs], [TaskOutput(tuple(file for file, _ in files))]

    def _live_files(self) -> RowChangePlan:
        """The plan with its live files only, for a command that removes whole files: no output has numbers of files."""
        files = [file for number, file in enumerate(self._plan.target.files) if number not in self._gone]
        return replace(self._plan, target=replace(self._plan.target, files=files))


def _lacks_origins_of_inserts(output: TaskOutput) -> bool:
    inserted = output.counts.get(int(Action.INSERT), 0) > 0
    return inserted and any(file.origins is None for file in output.written)


def _table_file(plan: RowChangePlan, number: int, rows: BitMap64 | None) -> TableFile:
    """Live rows of a file; all of them without ``rows``."""
    file, scan = plan.target.files[number], plan.target.scan
    whole = scan_file(file, scan, file.deletion_vector)
    return TableFile(number, whole if rows is None else replace(whole, selected=inline_vector(rows)))


def _united(some: Sequence[TableFile], whole: Sequence[TableFile]) -> list[TableFile]:
    """All rows, each once. ``whole``: files of which all live rows are wanted."""
    numbers = {file.number for file in whole}
    return [*whole, *(file for file in some if file.number not in numbers)]


def _num_rows(plan: RowChangePlan, rows: TableFile) -> int:
    """The number of these rows according to the log; 0 if the log does not have it."""
    if rows.scan.selected is not None:
        return rows.scan.selected.cardinality
    vector = rows.scan.deletion_vector
    total = row_counts(plan.target.files[rows.number].stats).num_records or 0
    return max(0, total - (0 if vector is None else vector.cardinality))


def _rows_inserted_for(origins: pa.Array, source: BitMap64) -> BitMap64:
    """The rows of a written file that were inserted for these rows of the source."""
    if not source:
        return BitMap64()
    at, rows = source_rows(origins)
    return bitmap_of(at.filter(_is_in(rows, source)))


def _num_inserted(output: TaskOutput, source: BitMap64) -> int:
    """The number of rows that a task inserted for these rows of the source."""
    count = 0
    for file in output.files if source else ():
        if file.origins is not None:
            count += len(_rows_inserted_for(unpack(file.origins), source) - deleted_of(file))
    return count


def _is_in(values: pa.Array, wanted: BitMap64) -> pa.Array:
    found = wanted & bitmap_of(values)
    return pc.is_in(values, value_set=pa.array(list(found), pa.int64()))
