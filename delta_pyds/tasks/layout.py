"""Tasks of compaction and clustering. They return ``TaskOutput``s.

Small, picklable, without classes of the log and Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from delta_pyds.tasks.row_changes import TableFile
from delta_pyds.tasks.scan_state import ScanState
from delta_pyds.tasks.write_state import WriteState

Curve = Literal["zorder", "hilbert"]


@dataclass(frozen=True)
class CompactFiles:
    """Write the live rows of files of one partition to one new file, in the order of the files.

    ``scan`` reads all columns, and row ids if the table tracks rows. ``threads``: the task's threads for reading.
    """

    scan: ScanState
    write: WriteState
    files: tuple[TableFile, ...]
    threads: int = 1


@dataclass(frozen=True)
class ClusterFiles:
    """Write the live rows of files of one partition to new files, ordered along a space-filling curve.

    ``by``: the columns of the curve, as paths of logical names. ``num_files``: the target number of new files.
    ``num_rows``: the approximate number of rows, for the sample that determines the ranges. ``threads``: the task's
    threads for reading.
    """

    scan: ScanState
    write: WriteState
    files: tuple[TableFile, ...]
    by: tuple[tuple[str, ...], ...]
    curve: Curve
    num_files: int
    num_rows: int
    threads: int = 1
