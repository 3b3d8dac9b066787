"""What a read of changes reads, and how the changes of each commit are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.exact_sum import exact_sum
from delta_pyds.html_table import table as html_table
from delta_pyds.redaction import shown
from delta_pyds.table.change_feed.changes import FileChange

ChangeWay = Literal["recorded", "files", "rowIds", "values", "none"]
"""The way in which the changes of a commit are found: they were recorded, all rows of its files came or left (files),
or rows are compared (rowIds, values); none if it changed nothing."""

_WORDS: Final[Mapping[str, str]] = {
    "recorded": "recorded",
    "files": "whole files that came or left",
    "rowIds": "computed by row ids",
    "values": "computed by values",
    "none": "no changes",
}
_MOST_BYTES = 2**63 - 1
COMMITS_SCHEMA: Final = pa.schema(
    [
        ("version", pa.int64()),
        ("way", pa.string()),
        ("change_files", pa.int64()),
        ("data_files", pa.int64()),
        ("vectors", pa.int64()),
        ("size_bytes", pa.int64()),
        ("ruled_out_files", pa.int64()),
    ]
)


def read_of_commit(
    version: int, changes: Sequence[FileChange], kept: pa.BooleanArray | None, *, recorded: bool
) -> dict[str, Any]:
    """What is read for the changes of one commit, as a row of ``COMMITS_SCHEMA``.

    Args:
        changes: with the files that are compared marked.
        kept: which of them may hold wanted rows; None if all may.
        recorded: whether the commit recorded its changes.
    """
    read = changes if kept is None else [c for c, keep in zip(changes, kept.to_pylist(), strict=True) if keep]
    # a file whose vector changed may have rows that left and rows that came back
    sizes = {c.path: c.size or 0 for c in read}
    change_files = {c.path for c in read if c.kind == "cdc"}
    vectors = {(c.path, v) for c in read for v in (c.deletion_vector, c.selected) if v is not None}
    return {
        "version": version,
        "way": _way(changes, recorded=recorded),
        "change_files": len(change_files),
        "data_files": len(sizes) - len(change_files),
        "vectors": len(vectors),
        # a log may have any sizes
        "size_bytes": min(sum(sizes.values()), _MOST_BYTES),
        "ruled_out_files": len({c.path for c in changes}) - len(sizes),
    }


def _way(changes: Sequence[FileChange], *, recorded: bool) -> ChangeWay:
    if not changes:
        return "none"
    if recorded:
        return "recorded"
    compared = [c.compared for c in changes if c.compared is not None]
    if not compared:
        return "files"
    return "values" if compared[0].row_ids is None else "rowIds"


@dataclass(frozen=True)
class ChangesReport:
    """How a read of changes finds them, commit by commit.

    ``commits``: an Arrow table with ``version``, ``way``, ``change_files``, ``data_files``, ``vectors``, ``size_bytes``
    and ``ruled_out_files``. The way is ``recorded``, ``files`` (all rows of files that came or left), ``rowIds``,
    ``values`` or ``none``. Files and bytes are those that are read; a file with few changed rows counts as a whole.
    Files that are compared may be read again, for their changed rows. ``net``: all commits count as one, the last.
    """

    table_root: str
    first: int
    last: int
    net: bool
    where: str | None
    commits: pa.Table

    @property
    def version(self) -> int:
        """The last version."""
        return self.last

    @property
    def num_commits(self) -> int:
        """The number of commits in the range."""
        return self.last - self.first + 1

    @property
    def ways(self) -> Mapping[str, int]:
        """The number of commits for each way; with ``net`` of the one that they count as."""
        counts: Any = pc.value_counts(self.commits.column("way"))
        return {str(entry["values"]): entry["counts"].as_py() for entry in counts}

    @property
    def num_change_files(self) -> int:
        return self._total("change_files")

    @property
    def num_data_files(self) -> int:
        return self._total("data_files")

    @property
    def num_vectors(self) -> int:
        return self._total("vectors")

    @property
    def size_bytes(self) -> int:
        return self._total("size_bytes")

    @property
    def num_ruled_out(self) -> int:
        return self._total("ruled_out_files")

    def _total(self, name: str) -> int:
        return exact_sum(self.commits.column(name))

    def to_text(self, limit: int = 20) -> str:
        """The totals, and a line for each of the first ``limit`` runs of commits with one way, for display."""
        what = "net changes" if self.net else "changes"
        ruled_out = f"; {_counted(self.num_ruled_out, 'file')} ruled out" if self.num_ruled_out else ""
        condition = f" where {shown(self.where)}" if self.where else ""
        totals = _reads(self.num_change_files, self.num_data_files, self.num_vectors, self.size_bytes)
        lines = [
            f"{shown(self.table_root)}: {what} of version{_versions(self.first, self.last)}{condition}",
            f"{_counted(self.num_commits, 'commit')}, {totals} read{ruled_out}",
        ]
        runs = list(self._runs())
        for first, last, way, numbers in runs[:limit]:
            reads = "" if way == "none" else f": {_reads(*numbers)}"
            lines.append(f"  version{_versions(first, last)}  {_WORDS[way]}{reads}")
        if len(runs) > limit:
            lines.append(f"  ... and {len(runs) - limit} more")
        return "\n".join(lines)

    __str__ = to_text

    def _repr_html_(self, limit: int = 20) -> str:
        rows = [
            (_versions(first, last).removeprefix("s").strip(), _WORDS[way], *numbers)
            for first, last, way, numbers in self._runs()
        ]
        caption = ": ".join(self.to_text(limit=0).splitlines()[:2])
        names = ("versions", "changes", "change files", "data files", "vectors", "bytes")
        return html_table(names, rows[:limit], caption=caption, more=max(0, len(rows) - limit))

    def _runs(self) -> Iterator[tuple[int, int, str, Sequence[int]]]:
        """Yield runs of versions with one way: first, last, way; files, vectors and bytes."""
        if self.net:
            for row in self.commits.to_pylist():
                yield self.first, self.last, row["way"], _numbers([row])
            return
        for way, rows in groupby(self.commits.to_pylist(), key=lambda row: row["way"]):
            run = list(rows)
            yield run[0]["version"], run[-1]["version"], way, _numbers(run)


def _numbers(rows: Sequence[Mapping[str, Any]]) -> Sequence[int]:
    return [sum(row[name] for row in rows) for name in ("change_files", "data_files", "vectors", "size_bytes")]


def _versions(first: int, last: int) -> str:
    return f" {first}" if first == last else f"s {first} to {last}"


def _reads(change_files: int, data_files: int, vectors: int, size_bytes: int) -> str:
    parts = ((change_files, "change file"), (data_files, "data file"), (vectors, "vector"))
    counted = [_counted(number, name) for number, name in parts if number] or ["no files"]
    return ", ".join([*counted, f"{size_bytes:,} bytes"])


def _counted(number: int, name: str) -> str:
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"
