"""Rows that wait on the local disk.

Invariant: a spill's file is unlinked before its rows are used, so a killed process leaves at most the file that it was
just writing.
"""

from __future__ import annotations

import os
import random
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
                f"temporary rows could not be written to {directory!r}: "
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
    """One of Spark's directories for spilling, if they are set; otherwise None for the system's default."""
    found = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    writable = [directory for directory in found if directory and os.access(directory, os.W_OK)]
    # any of them, so that no disk gets the spills of all tasks
    return random.choice(writable) if writable else None
