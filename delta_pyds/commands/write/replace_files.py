"""Removes the files of a table, or of the partitions that a predicate selects: the first half of an overwrite.

Protocol: "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from delta_pyds.commands.commit import FileChanges, live_rows
from delta_pyds.expr.nodes import Expr
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.paths import path_key
from delta_pyds.table.scan.live_files import REMOVAL_COLUMNS, live_files, removal
from delta_pyds.table.scan.partition_match import files_matching
from delta_pyds.table.scan.scan import Scan
from delta_pyds.table.transaction.mend import NetChanges
from delta_pyds.tasks.write_state import WrittenFile


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
    _later: dict[str, AddFile | None] = field(default_factory=dict)

    def run(self, _: Sequence[WrittenFile], *, now_ms: int) -> FileChanges:
        """The removals."""
        changes, files = FileChanges(), self._files()
        if self.counts_rows:
            files = iter(found := list(files))
            changes.deleted_rows = live_rows(found)
        changes.removes = [removal(f, deletion_timestamp_ms=now_ms, data_change=self.data_change) for f in files]
        return changes

    def after(self, net: NetChanges) -> int:
        """Take the files of later commits into account. Returns: 0, because no row is read."""
        self._later |= net.files
        return 0

    def _files(self) -> Iterator[AddFile]:
        columns = (*REMOVAL_COLUMNS, "stats") if self.counts_rows else REMOVAL_COLUMNS
        for file in self._matching(live_files(self.scan, columns)):
            if not self._later or path_key(file.path) not in self._later:
                yield file
        yield from self._matching(file for file in self._later.values() if file is not None)

    def _matching(self, files: Iterator[AddFile]) -> Iterator[AddFile]:
        snapshot = self.scan.snapshot
        root, zone = snapshot.table_root, self.scan.state.time_zone
        return files_matching(files, self.predicate, snapshot.schema, table=root, time_zone=zone)
