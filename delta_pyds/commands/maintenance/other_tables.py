"""Other tables below the root of a table: their files do not belong to it.

Invariant: a directory with a ``_delta_log`` in it, and everything below, belongs to another table. The store is asked,
because a log or a user's inventory may not show other tables.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.errors import FileNotFoundInStorageError
from delta_pyds.protocol.paths import join, log_directory
from delta_pyds.storage.base import Storage


def without_other_tables(storage: Storage, table_root: str, files: pa.Table, threads: int) -> pa.Table:
    """The files that do not belong to another table; one request for each directory. ``path`` is relative to the root.

    Raises: StorageError for a directory that cannot be checked.
    """
    of_file = pc.replace_substring_regex(files.column("path"), pattern=r"/?[^/]*$", replacement="")
    directories = [path for path in pc.unique(of_file).to_pylist() if path]
    asked = sorted({above for directory in directories for above in _with_those_above(directory)})

    def is_table(directory: str) -> bool:
        return _has_log(storage, join(table_root, directory))

    with ThreadPoolExecutor(threads, thread_name_prefix="deltapy-look") as pool:
        tables = {directory for directory, found in zip(asked, pool.map(is_table, asked), strict=True) if found}
    theirs = [directory for directory in directories if not tables.isdisjoint(_with_those_above(directory))]
    if not theirs:
        return files
    return files.filter(pc.invert(pc.is_in(of_file, value_set=pa.array(theirs, pa.string()))))


def _with_those_above(directory: str) -> list[str]:
    parts = directory.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts) + 1)]


def _has_log(storage: Storage, directory: str) -> bool:
    """Whether the directory has a log. An empty one counts: on a disk, a writer may be creating a table there."""
    try:
        storage.list_from(log_directory(directory), "")
    except FileNotFoundInStorageError:
        return False
    return True
