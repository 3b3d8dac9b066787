"""The state that planning sends to tasks that change rows. They return ``TaskOutput``s.

A command that changes rows hands out files of the table in tasks of one kind after another: find the rows, then write
anew what stays of their files, or change files. Small, picklable, free of the log's classes and of Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from delta_pyds.tasks.changed_rows import ChangeState
from delta_pyds.tasks.scan_state import ScanFile, ScanState
from delta_pyds.tasks.write_state import ColumnSource, WriteState


@dataclass(frozen=True)
class TableFile:
    """A file of the table. ``number``: its place among the files that the command hands out."""

    number: int
    scan: ScanFile


@dataclass(frozen=True)
class FindRows:
    """Find the live rows for which ``scan.predicate`` is true."""

    scan: ScanState
    files: tuple[TableFile, ...]


@dataclass(frozen=True)
class UpdateRows:
    """Give the live rows for which ``scan.predicate`` is true other values, and write them to new files.

    ``scan`` reads all columns, and row ids where the table tracks rows. ``assigned``: the columns that get a value, by
    position in ``change.write.schema``, with the expression of it over the old row. ``rewrite``: whole files are
    written anew, with the rows that do not change; else only the rows that do. ``number``: of the task among its like.
    ``ansi``: as in ``TaskSession``.
    """

    number: int
    scan: ScanState
    change: ChangeState
    files: tuple[TableFile, ...]
    assigned: tuple[tuple[int, ColumnSource], ...]
    rewrite: bool
    ansi: bool = True


@dataclass(frozen=True)
class RewriteFiles:
    """Write the rows of files that are not in their deletion vectors into new files.

    ``scan`` has no predicate; the vector of each file says which rows of it go.
    """

    scan: ScanState
    write: WriteState
    files: tuple[TableFile, ...]


@dataclass(frozen=True)
class WriteChangeFiles:
    """Write the rows that ``scan`` selects of files as change rows. Protocol: "Change Data Files"."""

    scan: ScanState
    write: WriteState
    files: tuple[ScanFile, ...]
    change: Literal["insert", "delete"]
