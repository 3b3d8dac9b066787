"""Reads the footers of Parquet files, for the log of a converted table."""

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
    """Read the footers of the task's files in another process. Raises: as ``read_footers_from``."""
    return read_footers_from(resolve_storage(task.root), task)


def read_footers_from(storage: Storage, task: ReadFooters) -> FootersRead:
    """Read the footers of the task's files.

    Raises:
        CorruptDataFileError: a file is not a Parquet file.
        UnsupportedOperationError: a column has a type that Delta does not support.
        StorageError: a file cannot be read.
    """

    def chosen(columns: Columns) -> Set[tuple[str, ...]] | None:
        if not task.collect_statistics:
            return _NONE
        return task.known[1] if task.known is not None and task.known[0] == columns else None

    summaries = ParquetSummaries(storage, task.root, prefix_length=task.prefix_length, statistics_of=chosen)
    columns: list[Columns] = []

    def answer(summary: ParquetSummary) -> FileFooter:
        # consecutive files mostly have the same columns
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
