"""The state that planning sends to tasks that lay rows out anew. They return ``TaskOutput``s.

Small, picklable, free of the log's classes and of Arrow.
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
    """Write the live rows of files, which are of one partition, into one new file, file after file.

    ``scan`` reads all columns, and row ids where the table tracks rows. ``threads``: of the task, that read.
    """

    scan: ScanState
    write: WriteState
    files: tuple[TableFile, ...]
    threads: int = 1


@dataclass(frozen=True)
class ClusterFiles:
    """Write the live rows of files, which are of one partition, into new files along a curve.

    ``by``: paths of logical names, the columns that the curve goes through. ``num_files``: how many new files there
    should be. ``num_rows``: about as many as the files have, for the sample of values that ranges are made of.
    ``threads``: of the task, that read.
    """

    scan: ScanState
    write: WriteState
    files: tuple[TableFile, ...]
    by: tuple[tuple[str, ...], ...]
    curve: Curve
    num_files: int
    num_rows: int
    threads: int = 1
