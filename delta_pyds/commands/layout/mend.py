"""Mends a layout command that lost a race: rows that others deleted meanwhile are deleted in the new files too.

Invariant: the new files have exactly the rows that are live in the replaced files right before the commit. A bin that
cannot guarantee this keeps its old files; the other bins are committed.

A task writes the live rows of its files. It reads file after file, and numbers the rows in this order. A compaction
keeps the order. A task that sorts rows records the numbers (``WrittenFile.origins``).

Protocol: "Deletion Vectors", "Add File and Remove File" (``dataChange``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import bitmap_of, live_mask
from delta_pyds.columnar.row_origins import unpack
from delta_pyds.commands.layout.plan import LayoutPlan
from delta_pyds.commands.row_changes.plan import marks_deletions
from delta_pyds.data.read.deletion_vector import load_deletion_vector
from delta_pyds.errors import FileNotFoundInStorageError
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.paths import path_key
from delta_pyds.table.transaction.mend import NetChanges
from delta_pyds.table.transaction.row_tracking import has_same_row_ids
from delta_pyds.tasks.write_state import TaskOutput

_NONE = BitMap64()


@dataclass(frozen=True)
class MendedBin:
    """A bin that can be committed. ``files``: the files to remove, as they are now; others may be gone already.

    ``deleted``: for each new file, its rows that are not in the table any more.
    """

    files: tuple[AddFile, ...]
    output: TaskOutput
    tags: dict[str, str]
    deleted: tuple[BitMap64, ...]


@dataclass
class _Bin:
    """The state of one bin. ``starts``: by the number of a file, the number of its first live row, and their count.

    ``deleted``: the numbers of rows that others deleted. ``dropped``: the bin keeps its old files.
    """

    output: TaskOutput
    tags: dict[str, str]
    starts: dict[int, tuple[int, int]]
    deleted: BitMap64
    dropped: bool = False

    @property
    def num_rows(self) -> int:
        return sum(count for _, count in self.starts.values())


class LayoutMend:
    """The bins of a command between lost races. For one thread."""

    def __init__(self, plan: LayoutPlan, outputs: Sequence[TaskOutput]) -> None:
        self._plan = plan
        self._files: list[AddFile | None] = list(plan.target.files)
        self._numbers = {path_key(file.path): number for number, file in enumerate(plan.target.files)}
        self._bins = [_bin(output, bin_.tags) for bin_, output in zip(plan.bins, outputs, strict=True)]
        self._bin_of_file = {number: one for one in self._bins for number in one.starts}
        # positions that were deleted when the task read the file, and those that are deleted now
        self._deleted_before: dict[int, BitMap64] = {}
        self._deleted_now: dict[int, BitMap64] = {}

    def after(self, net: NetChanges) -> int:
        """Take these changes. Returns: the number of rows of new files that they deleted."""
        deleted = 0
        for key, now in net.files.items():
            number = self._numbers.get(key)
            if number is None:
                continue
            bin_, was = self._bin_of_file[number], self._files[number]
            if not (bin_.dropped or self._is_same(was, now)):
                try:
                    lost = self._lost(number, now)
                except FileNotFoundInStorageError:
                    # a vacuum deleted a vector that a winner replaced
                    lost = None
                bin_.dropped = lost is None
                if lost is not None:
                    deleted += len(lost - bin_.deleted)
                    bin_.deleted |= lost
            self._files[number] = now
        for bin_ in self._bins:
            # its files are gone, so the new ones would have no row; a bin that never had a row may replace its files
            bin_.dropped |= bin_.num_rows > 0 and all(self._files[number] is None for number in bin_.starts)
        return deleted

    def dropped(self) -> list[TaskOutput]:
        """The outputs of bins that keep their old files."""
        return [bin_.output for bin_ in self._bins if bin_.dropped]

    def bins(self) -> Iterator[MendedBin]:
        """The other bins, as they must be committed."""
        for bin_ in self._bins:
            if not bin_.dropped:
                files = tuple(file for number in bin_.starts if (file := self._files[number]) is not None)
                yield MendedBin(files, bin_.output, bin_.tags, tuple(_deleted_rows(bin_)))

    def _is_same(self, was: AddFile | None, now: AddFile | None) -> bool:
        """Whether a file has the same rows with the same ids."""
        if was is None or now is None or was.deletion_vector != now.deletion_vector:
            return False
        return self._keeps_ids(was, now)

    def _keeps_ids(self, was: AddFile, now: AddFile) -> bool:
        """Whether the rows still have the ids that the new file gives them; True without row tracking."""
        return self._plan.target.row_id_columns is None or has_same_row_ids(was, now)

    def _lost(self, number: int, now: AddFile | None) -> BitMap64 | None:
        """The numbers of a bin's live rows that this change deleted. None if the bin must keep its old files."""
        plan, bin_, was = self._plan, self._bin_of_file[number], self._files[number]
        if not marks_deletions(plan.target.snapshot.configuration) or any(
            plan.by and file.origins is None for file in bin_.output.files
        ):
            return None
        start, count = bin_.starts[number]
        if now is None:
            gone = BitMap64()
            gone.add_range(start, start + count)
            return gone
        before = self._deleted_before.get(number)
        if before is None:
            before = self._deleted_before[number] = self._positions(plan.target.files[number])
        after = self._positions(now)
        if was is None or not self._deleted_now.get(number, before) <= after or not self._keeps_ids(was, now):
            # rows came back, and the new file may lack them; or rows have other ids
            return None
        self._deleted_now[number] = after
        num_positions = count + len(before)
        remaining = live_mask(after, 0, num_positions).filter(live_mask(before, 0, num_positions))
        # a vector may have positions after the last row
        return _numbers_of(pc.invert(remaining.slice(0, count)), start)

    def _positions(self, file: AddFile) -> BitMap64:
        vector, snapshot = file.deletion_vector, self._plan.target.snapshot
        if vector is None:
            return _NONE
        return load_deletion_vector(snapshot.storage, snapshot.table_root, vector).positions


def _bin(output: TaskOutput, tags: dict[str, str]) -> _Bin:
    starts, start = {}, 0
    for one in output.replaced:
        starts[one.number] = start, one.live_rows
        start += one.live_rows
    return _Bin(output, tags, starts, BitMap64())


def _deleted_rows(bin_: _Bin) -> Iterator[BitMap64]:
    """For each new file of a bin, its rows that others deleted."""
    if not bin_.deleted:
        yield from (_NONE for _ in bin_.output.files)
        return
    remaining = live_mask(bin_.deleted, 0, bin_.num_rows)
    start = 0
    for file in bin_.output.files:
        if file.origins is None:
            # the file keeps the order of the rows
            yield _numbers_of(pc.invert(remaining.slice(start, file.num_records)))
        else:
            yield _numbers_of(pc.invert(remaining.take(unpack(file.origins))))
        start += file.num_records


def _numbers_of(mask: pa.BooleanArray, start: int = 0) -> BitMap64:
    """The numbers of the rows for which the mask is true. ``start``: the number of the first row."""
    return bitmap_of(pc.add(pc.indices_nonzero(mask).cast(pa.int64()), start))
