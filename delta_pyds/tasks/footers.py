"""Tasks of a conversion, which read the footers of Parquet files, and their outputs.

For a file with expected columns the output is the text of its statistics. For any other file it is the statistics of
all leaves, because the columns of all files together decide which columns have statistics. Small, picklable, without
classes of the log and Arrow.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from delta_pyds.protocol.schema import StructField

Columns = tuple[StructField, ...]
# path, null count and bounds of a leaf column; None for unknown values
LeafStatistics = tuple[tuple[str, ...], "int | None", "tuple[str | None, str | None] | None"]


@dataclass(frozen=True)
class ReadFooters:
    """Read the footers of files. ``paths``: full paths, all below ``root``.

    ``prefix_length``: the length of strings in bounds. ``known``: the expected columns of the files, and the leaves
    that have statistics. ``collect_statistics``: False for no statistics at all. ``threads``: how many the task uses.
    """

    root: str
    paths: tuple[str, ...]
    prefix_length: int
    known: tuple[Columns, Set[tuple[str, ...]]] | None
    collect_statistics: bool
    threads: int = 1


@dataclass(frozen=True)
class FileFooter:
    """The footer of one file. ``columns``: an index into ``FootersRead.columns``.

    ``stats``: the text of ``add.stats``, for a file with the expected columns. ``statistics``: the statistics of all
    leaves, for any other file.
    """

    columns: int
    num_rows: int
    stats: str | None = None
    statistics: tuple[LeafStatistics, ...] | None = None


@dataclass(frozen=True)
class FootersRead:
    """The output of a task. ``files``: in the order of the paths. ``columns``: the distinct columns of the files."""

    columns: tuple[Columns, ...]
    files: tuple[FileFooter, ...]
