"""What the tasks of a convert are given, and what they answer: footers of files that a table takes over.

Small, picklable, free of the log's classes and of Arrow. Of a file whose columns were known before, the answer is the
text of its statistics; of any other one it is all that the footer says, because which columns have statistics is
decided by the columns of all files.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from delta_pyds.protocol.schema import StructField

Columns = tuple[StructField, ...]
# path, nulls and bounds of a leaf column; None for what is not known
LeafStatistics = tuple[tuple[str, ...], "int | None", "tuple[str | None, str | None] | None"]


@dataclass(frozen=True)
class ReadFooters:
    """Read the footers of files. ``paths``: the whole ones, of one directory ``root``.

    ``prefix_length``: of strings in bounds. ``known``: columns that files have, and which of their leaves have
    statistics. ``collect_statistics``: whether any have. ``threads``: of the task.
    """

    root: str
    paths: tuple[str, ...]
    prefix_length: int
    known: tuple[Columns, Set[tuple[str, ...]]] | None
    collect_statistics: bool
    threads: int = 1


@dataclass(frozen=True)
class FileFooter:
    """``columns``: which of the answer's. ``stats``: the log's text, where the columns were known before.

    ``statistics``: of all leaves, where they were not.
    """

    columns: int
    num_rows: int
    stats: str | None = None
    statistics: tuple[LeafStatistics, ...] | None = None


@dataclass(frozen=True)
class FootersRead:
    """``files``: in the order of the task's paths. ``columns``: each that some of them have, once."""

    columns: tuple[Columns, ...]
    files: tuple[FileFooter, ...]
