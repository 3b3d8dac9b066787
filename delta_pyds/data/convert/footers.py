"""Footers of Parquet files to what the log says of the files."""

from __future__ import annotations

from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor

from delta_pyds.data.convert.parquet_summary import ParquetSummaries, ParquetSummary
from delta_pyds.data.write.statistics import statistics_json
from delta_pyds.storage.base import Storage
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.tasks.footers import Columns, FileFooter, FootersRead, ReadFooters

_NONE: Set[tuple[str, ...]] = frozenset()


def read_footers(task: ReadFooters) -> FootersRead:
    """As a task of its own, which finds the storage by the root. Raises: what ``read_footers_from`` raises."""
    return read_footers_from(resolve_storage(task.root), task)


def read_footers_from(storage: Storage, task: ReadFooters) -> FootersRead:
    """Read the footers of the task's files.

    Raises: CorruptDataFileError for what is no Parquet file; UnsupportedOperationError for a column of a type that no
        table has; what reading from the storage raises.
    """

    def chosen(columns: Columns) -> Set[tuple[str, ...]] | None:
        if not task.collect_statistics:
            return _NONE
        return task.known[1] if task.known is not None and task.known[0] == columns else None

    summaries = ParquetSummaries(storage, task.root, prefix_length=task.prefix_length, statistics_of=chosen)
    columns: list[Columns] = []

    def answer(summary: ParquetSummary) -> FileFooter:
        # files in a row mostly have the same ones
        if not columns or columns[-1] != summary.columns:
            columns.append(summary.columns)
        number = len(columns) - 1
        if not task.collect_statistics:
            return FileFooter(number, summary.num_rows)
        if chosen(summary.columns) is None:
            return FileFooter(number, summary.num_rows, statistics=summary.statistics)
        return FileFooter(number, summary.num_rows, statistics_json(summary.num_rows, summary.statistics))

    if task.threads == 1:
        return FootersRead(files=tuple([answer(summaries.of(path)) for path in task.paths]), columns=tuple(columns))
    with ThreadPoolExecutor(task.threads, thread_name_prefix="deltapy-footer") as pool:
        try:
            files = tuple([answer(summary) for summary in pool.map(summaries.of, task.paths)])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return FootersRead(tuple(columns), files)
