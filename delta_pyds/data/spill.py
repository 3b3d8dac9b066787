"""Spilling of rows to the local disk until the others of their kind are there.

Invariant: a spill's file is unlinked before its rows are used, so a killed process leaves at most the file that it was
just writing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable

import pyarrow as pa

from delta_pyds.errors import StorageError


class Spill:
    """Batches in one file on the local disk, read back by their numbers.

    Raises: StorageError if the local disk does not take them.
    """

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        directory = _directory() or tempfile.gettempdir()
        try:
            self._map = _written(directory, schema, batches)
        except OSError as error:
            raise StorageError(
                f"rows that wait for others could not be written to {directory!r}: "
                f"{error.strerror or error}. Free space there, or set spark.local.dir to another directory.",
                path=directory,
            ) from error
        self._reader = pa.ipc.open_file(self._map)

    def batch(self, number: int) -> pa.RecordBatch:
        """The batch of that number, memory-mapped."""
        return self._reader.get_batch(number)


def _written(directory: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.MemoryMappedFile:
    descriptor, path = tempfile.mkstemp(prefix="delta_pyds-", suffix=".arrow", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return pa.memory_map(path)
    finally:
        os.unlink(path)


def _directory() -> str | None:
    """Spark's directory for spilling, if it is set; otherwise None for the system's default."""
    for directory in os.environ.get("SPARK_LOCAL_DIRS", "").split(","):
        if directory and os.access(directory, os.W_OK):
            return directory
    return None
