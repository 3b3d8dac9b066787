"""Tasks of commands that change rows. They return ``TaskOutput``s.

A command runs tasks of one kind after another over files of the table: first they find the rows, then they rewrite the
remaining rows of the files, or write change files. Small, picklable, without classes of the log and Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from delta_pyds.tasks.changed_rows import ChangeState
from delta_pyds.tasks.scan_state import ScanFile, ScanState
from delta_pyds.tasks.write_state import ColumnSource, WriteState


@dataclass(frozen=True)
class TableFile:
    """A file of the table. ``number``: its position among the files of the command."""

    number: int
    scan: ScanFile


@dataclass(frozen=True)
class FindRows:
    """Find the live rows for which ``scan.predicate`` is true."""

    scan: ScanState
    files: tuple[TableFile, ...]


@dataclass(frozen=True)
class UpdateRows:
    """Update the live rows for which ``scan.predicate`` is true, and write them to new files.

    ``scan`` reads all columns, and row ids if the table tracks rows. ``assigned``: positions in ``change.write.schema``
    of the updated columns, each with an expression over the old row. ``rewrite``: whole files are rewritten with their
    unchanged rows; else only the updated rows are written. ``number``: the task's, among the command's tasks.
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
    """Write the rows of files that are not in their deletion vectors to new files.

    ``scan`` has no predicate: the vector of each file names the rows to drop.
    """

    scan: ScanState
    write: WriteState
    files: tuple[TableFile, ...]


@dataclass(frozen=True)
class WithoutRows:
    """Write a file again that a task of this command wrote, without ``deleted``: a bitmap of its rows.

    ``scan`` returns all columns of ``write``. ``origins``: those of all rows of the file.
    """

    scan: ScanState
    write: WriteState
    file: ScanFile
    origins: bytes
    deleted: bytes


@dataclass(frozen=True)
class ChangedFile:
    """A file with changed rows. ``name``: its position among the files of the command, or the path of a new file."""

    name: int | str
    scan: ScanFile


@dataclass(frozen=True)
class WriteChangeFiles:
    """Write the rows of files that ``scan`` selects as change rows. Protocol: "Change Data Files"."""

    scan: ScanState
    write: WriteState
    files: tuple[ChangedFile, ...]
    change: Literal["insert", "delete"]
