"""Rows as an Arrow stream that every library can read, any number of times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from delta_pyds.data.read.concurrent import default_threads
from delta_pyds.data.read.output import output_schema
from delta_pyds.errors import OptionError
from delta_pyds.tasks.scan_state import ScanState

# decoding takes a quarter less time than with batches of 65,536; batches of wide rows have fewer
_BATCH_ROWS = 1 << 18


class ArrowStream(ABC):
    """Base class of results that are read as Arrow streams. Each stream is planned again, with the same rows.

    Args:
        state: of the rows to return.
        threads: the user's argument.
    Raises: OptionError for an invalid number of threads.
    """

    def __init__(self, state: ScanState, threads: int | None) -> None:
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise OptionError(f"threads is {threads!r}, but must be at least 1, or left out.", option="threads")
        self._state = replace(state, batch_rows=_BATCH_ROWS)
        self._threads = threads or default_threads(state.table_root)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return output_schema(self._state)

    @abstractmethod
    def to_batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows in bounded memory.

        Returns:
            Batches in ``schema``, of at most 262,144 rows.

        Raises:
            CorruptDataFileError: A file cannot be decoded; the error names it.
            FileNotFoundInStorageError: A file is missing.
            DeletionVectorError: A deletion vector is damaged.
            StorageError: The store failed.
        """

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a RecordBatchReader. Close it, or read it to its end: until then files are open.

        Returns:
            A reader of the batches of ``to_batches``; reading raises what ``to_batches`` raises.

        >>> with delta_pyds.scan("/data/events").to_reader() as reader:
        ...     first = reader.read_next_batch()
        """
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Read all rows into memory.

        Returns:
            A table in ``schema``.

        Raises:
            DeltaError: A file cannot be read; see ``to_batches``.

        >>> delta_pyds.scan("/data/events").to_table().num_rows
        """
        with closing(self.to_batches()) as batches:
            return pa.Table.from_batches(batches, self.schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream in Arrow's PyCapsule interface. Libraries exchange data through it without copies."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def _shown(self, versions: str, where: str | None) -> str:
        names = ", ".join(self.schema.names)
        condition = f" where {where}" if where else ""
        return f"{type(self).__name__}({self._state.table_root!r} at {versions}: {names}{condition})"
