"""The result of a command that changes rows, for its caller."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

from delta_pyds.html_table import ShownAsTable

WhereRun = Literal["process", "tasks", "spark"]


@dataclass(frozen=True)
class Place:
    """Where a command found its rows, and the reason as a sentence for the user.

    ``process``: our evaluator in the user's process. ``tasks``: our evaluator in tasks of the session. ``spark``: a
    query of the session.
    """

    where_run: WhereRun
    reason: str


@dataclass(frozen=True)
class Timing:
    """The start of a command by ``time.monotonic()`` and the durations of its parts, for its metrics."""

    started_s: float
    scan_ms: int = 0
    materialize_source_ms: int = 0
    execution_ms: int = 0

    def found(self) -> Timing:
        """Record that the rows are found now."""
        return replace(self, scan_ms=self._since())

    def ended(self) -> Timing:
        """Record that everything is done now, except the commit."""
        return replace(self, execution_ms=self._since())

    @property
    def rewrite_ms(self) -> int:
        return max(0, self.execution_ms - self.scan_ms)

    def _since(self) -> int:
        return int(1000 * (time.monotonic() - self.started_s))


@dataclass(frozen=True)
class RowChangeResult(ShownAsTable):
    """``version``: the new version; None if nothing changed. ``num_files_read``: the number of candidate files read.

    A number of rows is -1 if files were removed whose rows neither the command nor the log counted. ``auto_compact``:
    the table's small files are compacted after commits.
    """

    version: int | None
    num_affected_rows: int
    num_updated_rows: int
    num_deleted_rows: int
    num_inserted_rows: int
    num_files_read: int
    place: Place
    auto_compact: bool = False

    def __str__(self) -> str:
        did = "changed nothing" if self.version is None else f"made version {self.version}"
        counts = [
            f"{number} rows {what}"
            for number, what in (
                (self.num_updated_rows, "updated"),
                (self.num_deleted_rows, "deleted"),
                (self.num_inserted_rows, "inserted"),
            )
            if number > 0
        ]
        rows = f": {', '.join(counts)}" if counts else ""
        return f"{did}{rows}; {self.num_files_read} files read; ran in {self.place.where_run}, {self.place.reason}"
