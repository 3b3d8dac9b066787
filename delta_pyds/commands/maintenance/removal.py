"""Deletion of a table, with everything below its root.

Invariant: the log is deleted last, so an interrupted deletion can be repeated. No symbolic link is followed.
"""

from __future__ import annotations

from delta_pyds.errors import DeltaError, FileNotFoundInStorageError, UnsupportedOperationError
from delta_pyds.log.segment import latest_version
from delta_pyds.protocol.paths import LOG_DIRECTORY, join
from delta_pyds.storage.base import Storage
from delta_pyds.table.configuration import MANAGED_BY_CATALOG
from delta_pyds.table.snapshot import open_snapshot


def remove_table(storage: Storage, table_root: str) -> None:
    """Delete every file below the root, of any kind.

    Raises: TableNotFoundError if there is no log (nothing is deleted); as ``check_removable``; StorageError.
    """
    check_removable(storage, table_root)
    latest_version(storage, table_root)
    log = join(table_root, LOG_DIRECTORY)
    _empty(storage, table_root, table_root, keep=LOG_DIRECTORY)
    _empty(storage, table_root, log)
    storage.delete_empty_directory(log, below=table_root)
    storage.delete_empty_directory(table_root, below=table_root.rsplit("/", 1)[0] or "/")


def _empty(storage: Storage, table_root: str, directory: str, keep: str | None = None) -> None:
    try:
        entries = list(storage.list_directory(directory))
    except FileNotFoundInStorageError:
        return
    for entry in entries:
        if entry.name == keep:
            continue
        path = join(directory, entry.name)
        if entry.kind == "directory":
            _empty(storage, table_root, path)
            storage.delete_empty_directory(path, below=table_root)
        else:
            storage.delete(path, below=table_root)


def check_removable(storage: Storage, table_root: str) -> None:
    """Raises: UnsupportedOperationError for the root of a file system or a bucket, and for a table with another table
    below it, whose files would be deleted too; UnsupportedFeatureError for a table that a catalog manages.
    """
    scheme, _, rest = table_root.rpartition("://")
    names = [name for name in rest.split("/") if name]
    if len(names) < (2 if scheme else 1):
        raise UnsupportedOperationError(
            f"the table at {table_root} is the root of a file system or bucket: delete it there.", table=table_root
        )
    _check_manager(storage, table_root)
    other = _table_below(storage, table_root)
    if other is not None:
        raise UnsupportedOperationError(
            f"another table lies at {other}, below the table at {table_root}, and would be deleted with it. Nothing "
            "was deleted: move one of them, or drop only the name (delta_pyds.drop_table(spark, name)).",
            table=table_root,
            other=other,
        )


def _check_manager(storage: Storage, table_root: str) -> None:
    """Refuse a table that a catalog manages: it cannot be deleted by its path. A damaged table can be deleted."""
    try:
        open_snapshot(storage, table_root)
    except DeltaError as error:
        if error.code == MANAGED_BY_CATALOG:
            raise


def _table_below(storage: Storage, table_root: str) -> str | None:
    waiting = [table_root]
    while waiting:
        directory = waiting.pop()
        try:
            names = [entry.name for entry in storage.list_directory(directory) if entry.kind == "directory"]
        except FileNotFoundInStorageError:
            continue
        if LOG_DIRECTORY in names and directory != table_root:
            return directory
        waiting += [join(directory, name) for name in names if name != LOG_DIRECTORY]
    return None
