"""Plans shared by files: planning a small file takes longer than reading it, and most files of a scan are similar.

Invariant: a plan is used for another file only if both have the same Parquet schema, key-value pairs, decoding of INT96
and partition values, and the plan does not depend on row group footers. Errors of a shared plan name the file that it
was made for. So the caller makes the file's own plan before it raises an error.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.data.read.data_file import DataFile
from delta_pyds.data.read.file_plan import FilePlan
from delta_pyds.data.read.output import RowNumbers, output_schema
from delta_pyds.storage.base import Storage
from delta_pyds.storage.parquet_ends import ParquetEnds
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.tasks.scan_state import ScanFile, ScanState

# Files that are read in parts at once, with 64 kB cached for each.
_MOST_OPENED = 32


@dataclass(frozen=True)
class _Last:
    values: tuple[str | None, ...]
    schema: Any  # pyarrow.parquet.ParquetSchema
    key_values: Mapping[bytes, bytes]
    has_nanosecond_int96: bool
    plan: FilePlan


class SharedPlans:
    """The plan of the last file of a scan, for the next one. Threads may share it.

    >>> plans = SharedPlans(state)
    >>> for file in files:
    ...     yield from read(state, file, plans)
    """

    def __init__(self, state: ScanState) -> None:
        self.state = state
        self.schema = output_schema(state)
        self.row_numbers = RowNumbers()
        # a predicate and skipping depend on the footer; which leaf of a nested column to decode depends on sizes
        self._may_share = state.predicate is None and state.skip is None
        self._last: _Last | None = None
        self._lock = threading.Lock()
        self._ends = ParquetEnds("columns" if state.file_leaves else "all", state.file_leaves)
        self._opened: BoundedCache[str, Future[Any]] = BoundedCache(_MOST_OPENED)

    @cached_property
    def storage(self) -> Storage:
        """The storage of the files."""
        return resolve_storage(self.state.table_root, self.state.storage_options)

    def source_of(self, file: ScanFile) -> Any:
        """The source of the bytes of a file or a part of it. All parts of a remote file share one read of its end."""
        if self.storage.scheme == "file" or (file.start == 0 and file.length is None):
            return self._open(file)
        with self._lock:
            known = self._opened.get(file.path)
            first = known or Future()
            if known is None:
                self._opened.put(file.path, first)
        if known is not None:
            reopen = getattr(known.result(), "reopen", None)
            return self._open(file) if reopen is None else reopen()
        try:
            first.set_result(self._open(file))
        except BaseException as error:
            # the other parts fail with the same error
            first.set_exception(error)
            raise
        return first.result()

    def _open(self, file: ScanFile) -> Any:
        return self._ends.open(self.storage, file.path, file.size_bytes)

    def plan_of(self, file: ScanFile, data: DataFile) -> tuple[FilePlan, bool]:
        """The plan of a file, and whether it was made for another one. Raises: as ``FilePlan``."""
        if not self._may_share or file.change_data:
            return FilePlan(self.state, file, data), False
        last = self._last
        if last is not None and last.values == file.partition_values:
            with data.named_errors:
                # compares names, types, repetition and field ids without creating Python objects
                alike = (
                    data.metadata.schema.equals(last.schema)
                    and data.key_values == last.key_values
                    and data.has_nanosecond_int96 == last.has_nanosecond_int96
                )
            if alike:
                if last.plan.lacks:
                    data.check_names()
                data.check_absent(last.plan.absent)
                return last.plan, True
        plan = FilePlan(self.state, file, data)
        self._last = _Last(
            file.partition_values, data.metadata.schema, data.key_values, data.has_nanosecond_int96, plan
        )
        return plan, False
