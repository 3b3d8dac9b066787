"""Manifests: the data files of a table, by partition, for engines that read Parquet without the log.

    generate_manifests(open_snapshot(storage, root))

Invariants: each manifest is complete, and names exactly the files of the snapshot in its partition, one absolute path
per line; manifests of partitions that no longer exist are deleted. The table's log is not changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from delta_pyds.columnar.older_arrow import rows_with_dicts
from delta_pyds.data.write.layout import partition_directory
from delta_pyds.errors import FileNotFoundInStorageError, UserError
from delta_pyds.log.adds import AddRequest
from delta_pyds.protocol.paths import join, resolve_data_path
from delta_pyds.storage.base import Storage
from delta_pyds.storage.resolve import hadoop_path
from delta_pyds.table.snapshot import Snapshot

MANIFESTS = "_symlink_format_manifest"
MODE = "symlink_format_manifest"
_MANIFEST = "manifest"
_THREADS = 16


def generate_manifests(snapshot: Snapshot) -> int:
    """Write the manifests of a snapshot. Returns: their number.

    Raises: UserError if readers of plain Parquet would see other rows than the table has
        (DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS, DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING).
    """
    table = snapshot.table_root
    if snapshot.configuration.column_mapping_mode != "none":
        raise UserError(
            f"no manifests can be generated for table {table}: it maps columns, and readers of the plain files would "
            "not find their names. Read it with an engine that supports Delta.",
            code="DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
            table=table,
        )
    manifests = _manifests(snapshot)
    storage = snapshot.storage
    root = join(table, MANIFESTS)
    stale = set(_existing(storage, root, "")) - manifests.keys()

    def write(item: tuple[str, list[str]]) -> None:
        storage.put(join(root, item[0]), "".join(f"{path}\n" for path in sorted(item[1])).encode())

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="deltapy-manifest") as pool:
        list(pool.map(write, manifests.items()))
    for path in sorted(stale):
        storage.delete(join(root, path), below=table)
        directory = path.rpartition("/")[0]
        while directory and storage.delete_empty_directory(join(root, directory), below=table):
            directory = directory.rpartition("/")[0]
    return len(manifests)


def _manifests(snapshot: Snapshot) -> dict[str, list[str]]:
    """The files of each manifest, by its path below the manifests' directory. An unpartitioned table has one."""
    columns = snapshot.configuration.partition_columns
    base = hadoop_path(snapshot.table_root).rstrip("/")
    found: dict[str, list[str]] = defaultdict(list)
    if not columns:
        found[_MANIFEST] = []
    for batch in snapshot.adds(AddRequest(columns=("path", "partitionValues", "deletionVector"))):
        for row in rows_with_dicts(batch.files):
            vector = row["deletionVector"]
            if vector is not None and vector["storageType"] is not None:
                raise UserError(
                    f"no manifests can be generated for table {snapshot.table_root}: its file {row['path']} has a "
                    "deletion vector, and readers of the plain files would see deleted rows. Set "
                    "delta.enableDeletionVectors=false, and rewrite the files (REORG TABLE ... APPLY (PURGE)).",
                    code="DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
                    table=snapshot.table_root,
                )
            values = row["partitionValues"] or {}
            directory = partition_directory(columns, tuple(values.get(name) or None for name in columns))
            found[f"{directory}/{_MANIFEST}" if directory else _MANIFEST].append(resolve_data_path(base, row["path"]))
    return found


def _existing(storage: Storage, root: str, directory: str) -> Iterator[str]:
    """The existing manifests, below ``root``."""
    try:
        for entry in storage.list_directory(join(root, directory) if directory else root):
            below = f"{directory}/{entry.name}" if directory else entry.name
            if entry.kind == "directory":
                yield from _existing(storage, root, below)
            elif entry.kind == "file" and entry.name == _MANIFEST:
                yield below
    except FileNotFoundInStorageError:
        return
