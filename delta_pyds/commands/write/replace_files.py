"""Removes the files of a table, or of the partitions that a predicate selects: the first half of an overwrite.

Protocol: "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from delta_pyds.commands.commit import FileChanges, live_rows
from delta_pyds.expr.nodes import Expr
from delta_pyds.protocol.actions import AddFile, RemoveFile
from delta_pyds.protocol.paths import path_key
from delta_pyds.table.scan.live_files import REMOVAL_COLUMNS, live_files, removal
from delta_pyds.table.scan.partition_match import files_matching
from delta_pyds.table.scan.scan import Scan
from delta_pyds.table.transaction.mend import NetChanges
from delta_pyds.tasks.write_state import WrittenFile


class _Removed(NamedTuple):
    """``num_rows``: of the log; None if it has no number, or the rows are not counted."""

    file: RemoveFile
    num_rows: int | None


@dataclass
class FileRemoval:
    """The removal of the files in some partitions. Nothing is committed.

    ``scan``: reads all these files, and perhaps others. ``predicate``: over partition columns. ``counts_rows``: whether
    the log's numbers of rows are added up (``FileChanges.deleted_rows``).
    """

    scan: Scan
    predicate: Expr
    counts_rows: bool = False
    data_change: bool = True
    # a path may be live twice, with two deletion vectors: the transaction refuses that
    _removed: dict[str, list[_Removed]] | None = None
    _later: dict[str, AddFile | None] = field(default_factory=dict)

    def run(self, _: Sequence[WrittenFile], *, now_ms: int) -> FileChanges:
        """The removals."""
        if self._removed is None:
            columns = (*REMOVAL_COLUMNS, "stats") if self.counts_rows else REMOVAL_COLUMNS
            self._removed = {}
            self._remove(self._removed, live_files(self.scan, columns), now_ms)
        # a mend looks at the files of the winners only
        for path in self._later:
            self._removed.pop(path, None)
        self._remove(self._removed, (file for file in self._later.values() if file is not None), now_ms)
        self._later.clear()
        removed = [one for some in self._removed.values() for one in some]
        changes = FileChanges(removes=[one.file for one in removed])
        if self.counts_rows:
            counts = [one.num_rows for one in removed]
            changes.deleted_rows = None if None in counts else sum(filter(None, counts))
        return changes

    def after(self, net: NetChanges) -> int:
        """Take the files of later commits into account. Returns: 0, because no row is read."""
        self._later |= net.files
        return 0

    def _remove(self, removed: dict[str, list[_Removed]], files: Iterator[AddFile], now_ms: int) -> None:
        for file in self._matching(files):
            one = removal(file, deletion_timestamp_ms=now_ms, data_change=self.data_change)
            num_rows = live_rows([file]) if self.counts_rows else None
            removed.setdefault(path_key(file.path), []).append(_Removed(one, num_rows))

    def _matching(self, files: Iterator[AddFile]) -> Iterator[AddFile]:
        snapshot = self.scan.snapshot
        root, zone = snapshot.table_root, self.scan.state.time_zone
        return files_matching(files, self.predicate, snapshot.schema, table=root, time_zone=zone)
