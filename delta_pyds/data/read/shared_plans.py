"""Plans that files share: of a scan of many small files most are alike, and planning one takes longer than reading it.

Invariant: a plan serves another file only if both have the same columns in all that Parquet says of them, the same
key-value pairs and partition values, and nothing is decided by the footers of their row groups. What it then says of a
file in an error is of the file that it was made for: who uses a plan that was shared makes the file's own before an
error goes up.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.data.read.data_file import DataFile, Naming
from delta_pyds.data.read.file_plan import FilePlan
from delta_pyds.data.read.output import output_schema
from delta_pyds.storage.base import Storage
from delta_pyds.storage.parquet_ends import ParquetEnds
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.tasks.scan_state import ScanFile, ScanState

# Files that are read in parts at a time, of which 64 kB are kept each.
_MOST_OPENED = 32


@dataclass(frozen=True)
class _Last:
    values: tuple[str | None, ...]
    schema: Any  # pyarrow.parquet.ParquetSchema
    key_values: Mapping[bytes, bytes]
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
        # a predicate and its skipping look into the file; the second look at a nested column is chosen by sizes
        self._may_share = state.predicate is None and state.skip is None
        self._last: _Last | None = None
        self._lock = threading.Lock()
        self._ends = ParquetEnds("columns" if state.file_leaves else "all", state.file_leaves)
        self._opened: BoundedCache[str, Future[Any]] = BoundedCache(_MOST_OPENED)

    @cached_property
    def storage(self) -> Storage:
        """Where the files are."""
        return resolve_storage(self.state.table_root, self.state.storage_options)

    def source_of(self, file: ScanFile) -> Any:
        """What the bytes of a file, or of a part of it, come from. All parts share the one look at an object's end."""
        if self.storage.scheme == "file" or (file.start == 0 and file.length is None):
            return self._open(file)
        with self._lock:
            known = self._opened.get(file.path)
            first = known or Future()
            if known is None:
                self._opened.put(file.path, first)
        if known is not None:
            again = getattr(known.result(), "again", None)
            return self._open(file) if again is None else again()
        try:
            first.set_result(self._open(file))
        except BaseException as error:
            # the other parts fail with it
            first.set_exception(error)
            raise
        return first.result()

    def _open(self, file: ScanFile) -> Any:
        return self._ends.open(self.storage, file.path, file.size_bytes)

    def plan_of(self, file: ScanFile, data: DataFile) -> tuple[FilePlan, bool]:
        """The plan of a file, and whether it was made for another one. Raises: what ``FilePlan`` raises."""
        if not self._may_share or file.change_data:
            return FilePlan(self.state, file, data), False
        last = self._last
        if last is not None and last.values == file.partition_values:
            with Naming(self.state.table_root, file.path):
                # names, types, repetition and field ids, without an object of Python for any of them
                alike = data.metadata.schema.equals(last.schema) and data.key_values == last.key_values
            if alike:
                if last.plan.lacks:
                    data.check_names()
                return last.plan, True
        plan = FilePlan(self.state, file, data)
        self._last = _Last(file.partition_values, data.metadata.schema, data.key_values, plan)
        return plan, False
