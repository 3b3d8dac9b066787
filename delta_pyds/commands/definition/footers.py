"""The footers of a table's files, each read once, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pyarrow.parquet as pq

from delta_pyds.columnar.parquet_footer import open_parquet
from delta_pyds.data.read.data_file import NamedErrors
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.paths import resolve_data_path
from delta_pyds.protocol.schema import num_leaves
from delta_pyds.storage.parquet_ends import ParquetEnds
from delta_pyds.table.snapshot import Snapshot

_THREADS = 8
T = TypeVar("T")


def look_at_footers(
    snapshot: Snapshot, files: Iterable[AddFile], look: Callable[[pq.ParquetFile], T]
) -> list[tuple[AddFile, T]]:
    """Each file with the result of ``look``, which must not read data pages.

    Raises: CorruptDataFileError, StorageError; errors of ``look``. The first error stops the others.
    """
    known, ends = list(files), ParquetEnds("footers", num_leaves(snapshot.schema))

    def one(file: AddFile) -> T:
        path = resolve_data_path(snapshot.table_root, file.path)
        with NamedErrors(snapshot.table_root, path):
            parquet = open_parquet(ends.open(snapshot.storage, path, file.size))
            try:
                return look(parquet)
            finally:
                parquet.close(force=True)

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="deltapy-footer") as pool:
        try:
            return list(zip(known, pool.map(one, known), strict=True))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
