"""The files that the log has removed, for a vacuum without a listing.

Invariant: files are deleted only by plain relative paths without hidden parts. Such paths lead neither into the log nor
out of the table. Absolute paths are ignored, even below the root: a table names its own files by relative paths, and a
clone names the files of its source by absolute paths.

Protocol: "Add File and Remove File", "Deletion Vectors", "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from delta_pyds.commands.maintenance.listing import FILES, path_below
from delta_pyds.commands.maintenance.needed_files import commits_between, removals
from delta_pyds.errors import FileNotFoundInStorageError, UnsupportedOperationError
from delta_pyds.log.commit_reader import fetch_commits
from delta_pyds.log.listing import list_log
from delta_pyds.protocol.actions import SingleAction
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.paths import is_absolute, join, log_directory
from delta_pyds.storage.base import Storage
from delta_pyds.table.snapshot import Snapshot

# the reference's file for the progress of the vacuums of a table
LAST_VACUUM = "_last_vacuum_info"


class LastVacuum(msgspec.Struct, frozen=True, rename="camel"):
    """``latest_commit_version_outside_of_retention_window``: files that commits up to it removed have been deleted."""

    latest_commit_version_outside_of_retention_window: int | None = None


def read_last_vacuum(storage: Storage, table_root: str, latest_version: int) -> int | None:
    """The version up to which removed files have been deleted; None if no valid version is recorded."""
    try:
        text = storage.read(join(log_directory(table_root), LAST_VACUUM))
        version = decode_json(text, LastVacuum).latest_commit_version_outside_of_retention_window
    except (FileNotFoundInStorageError, InvalidJSONError):
        return None
    return None if version is None or not 0 <= version <= latest_version else version


def write_last_vacuum(storage: Storage, table_root: str, version: int) -> None:
    """Record that the files removed by commits up to ``version`` have been deleted."""
    storage.put(join(log_directory(table_root), LAST_VACUUM), msgspec.json.encode(LastVacuum(version)))


@dataclass(frozen=True)
class RemovedFiles:
    """``done_version``: all files that commits up to it removed are in ``files``, or were deleted before."""

    files: pa.Table
    done_version: int


def removed_files(
    snapshot: Snapshot, last_version: int, is_hidden: Callable[[str], bool], *, cutoff_ms: int, now_ms: int
) -> RemovedFiles:
    """The files that commits after the last vacuum removed, up to ``last_version``: data, vectors, change files.

    If a writer's clock is ahead, its tombstone may be younger than the cutoff although its commit is older. Then the
    file stays, and the next vacuum reads the commit again, unless the time is after ``now_ms``.

    Raises: UnsupportedOperationError (DELTA_CANNOT_VACUUM_LITE) if the log no longer has all of these commits.
    """
    storage, root = snapshot.storage, snapshot.table_root
    noted = read_last_vacuum(storage, root, snapshot.version)
    first = 0 if noted is None else noted + 1
    done = max(last_version, first - 1)
    if first <= last_version:
        earliest = next((file.version for file in list_log(storage, root, first, last_version).commits), None)
        if earliest != first:
            raise UnsupportedOperationError(
                f"the log of table {root} no longer has its commits from version {first} on, so the files that they "
                "removed are unknown. Run a full vacuum, which lists the table's files instead.",
                code="DELTA_CANNOT_VACUUM_LITE",
                table=root,
                version=first,
            )
    sizes: dict[str, int] = {}
    for file, data in fetch_commits(storage, commits_between(storage, root, first, last_version)):
        for action in removals(data, file):
            if action.remove is not None and cutoff_ms <= (action.remove.deletion_timestamp or 0) <= now_ms:
                done = min(done, file.version - 1)
            for path, size in _files(action):
                relative = None if is_absolute(path) else path_below(path, root)
                if relative is not None and not any(map(is_hidden, relative.split("/"))):
                    sizes[relative] = size
    columns = [pa.array(sizes, pa.string()), pa.array(sizes.values(), pa.int64())]
    return RemovedFiles(pa.Table.from_arrays(columns, schema=FILES), done)


def present(storage: Storage, table_root: str, files: pa.Table, threads: int) -> pa.Table:
    """The files that exist, so that files deleted before are not counted; one request for each file.

    Raises: StorageError for a file that cannot be checked.
    """
    with ThreadPoolExecutor(threads, thread_name_prefix="deltapy-look") as pool:
        paths = (join(table_root, path) for path in files.column("path").to_pylist())
        return files.filter(pa.array(pool.map(storage.exists, paths), pa.bool_()))


def _files(action: SingleAction) -> list[tuple[str, int]]:
    files: list[tuple[str, int]] = []
    remove = action.remove
    if remove is not None:
        files.append((unquote(remove.path), remove.size or 0))
        vector = remove.deletion_vector
        if vector is not None and vector.storage_type == "u":
            files.append((vector.relative_path(), vector.size_in_bytes))
    if action.cdc is not None:
        files.append((unquote(action.cdc.path), action.cdc.size))
    return files
