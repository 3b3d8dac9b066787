"""The files that a log says were removed, for a vacuum that lists nothing.

Invariant: what a log names is deleted only below the root, by a plain relative path none of whose parts is hidden: it
can lead neither into the log nor out of the table. A path that is absolute is passed over, though it be below the root:
a table names its own files relatively, and a clone the files of its source absolutely.

Protocol: "Add File and Remove File", "Deletion Vectors", "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from delta_pyds.commands.maintenance.listing import FILES, FoundFiles, path_below
from delta_pyds.commands.maintenance.needed_files import commits_between, removals
from delta_pyds.errors import FileNotFoundInStorageError, UnsupportedOperationError
from delta_pyds.log.commit_reader import fetch_commits
from delta_pyds.log.listing import list_log
from delta_pyds.protocol.actions import SingleAction
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.paths import is_absolute, join, log_directory
from delta_pyds.storage.base import Storage
from delta_pyds.table.snapshot import Snapshot

# where the reference notes how far the vacuums of a table have come
LAST_VACUUM = "_last_vacuum_info"


class LastVacuum(msgspec.Struct, frozen=True, rename="camel"):
    """``latest_commit_version_outside_of_retention_window``: what commits up to it removed has been deleted."""

    latest_commit_version_outside_of_retention_window: int | None = None


def read_last_vacuum(storage: Storage, table_root: str) -> int | None:
    """The version up to which removed files are gone; None where nobody noted one that can be understood."""
    try:
        text = storage.read(join(log_directory(table_root), LAST_VACUUM))
        return decode_json(text, LastVacuum).latest_commit_version_outside_of_retention_window
    except (FileNotFoundInStorageError, InvalidJSONError):
        return None


def write_last_vacuum(storage: Storage, table_root: str, version: int) -> None:
    """Note that what commits up to ``version`` removed has been deleted."""
    storage.put(join(log_directory(table_root), LAST_VACUUM), msgspec.json.encode(LastVacuum(version)))


def removed_files(snapshot: Snapshot, last_version: int, is_hidden: Callable[[str], bool]) -> FoundFiles:
    """What the commits after the last vacuum removed, up to ``last_version``: data, deletion vectors, change files.

    Raises: UnsupportedOperationError (DELTA_CANNOT_VACUUM_LITE) where the log no longer has all of these commits.
    """
    storage, root = snapshot.storage, snapshot.table_root
    done = read_last_vacuum(storage, root)
    first = 0 if done is None else done + 1
    if first > last_version:
        return FoundFiles()
    earliest = next((file.version for file in list_log(storage, root, first, last_version).commits), None)
    if earliest != first:
        raise UnsupportedOperationError(
            f"the log of table {root} no longer has its commits from version {first} on, so what they removed is not "
            "known. Run a full vacuum, which lists the table's files instead.",
            code="DELTA_CANNOT_VACUUM_LITE",
            table=root,
            version=first,
        )
    sizes: dict[str, int] = {}
    for file, data in fetch_commits(storage, commits_between(storage, root, first, last_version)):
        for action in removals(data, file):
            for path, size in _files(action):
                relative = None if is_absolute(path) else path_below(path, root)
                if relative is not None and not any(map(is_hidden, relative.split("/"))):
                    sizes[relative] = size
    paths = pa.array(sizes, pa.string())
    return FoundFiles([pa.RecordBatch.from_arrays([paths, pa.array(sizes.values(), pa.int64())], schema=FILES)])


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
