"""Log maintenance on request: checkpoints and log compaction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_pyds.catalog.managed import CHECKPOINT, COMPACT_LOG, check_allowed
from delta_pyds.catalog.opening import committer_of
from delta_pyds.errors import StorageError, UserError
from delta_pyds.log.compaction import write_compaction
from delta_pyds.progress import step
from delta_pyds.storage.table_path import PathLike
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from delta_pyds.table.transaction.maintenance import checkpoint_and_clean

if TYPE_CHECKING:
    from delta_pyds.catalog import Catalog


def checkpoint(
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> int:
    """Write a checkpoint of the latest version, and clean the log if the table enables that.

    Rows and versions stay as they are; the table only opens faster. Commits that a catalog has ratified are published
    first.

    Args:
        path: The path of the table.
        table: Instead of a path, the name of the table in ``catalog``.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it.
        storage_options: Options of the store, as its fsspec package takes them.

    Returns:
        The version of the checkpoint.

    Raises:
        TableNotFoundError: There is no table.
        DeltaError: The table cannot be opened; see ``load_snapshot``.
        UnsupportedFeatureError: The table has a feature that delta_pyds cannot write.
        UnsupportedOperationError: The catalog of the table writes checkpoints itself.
        StorageError: The checkpoint cannot be written, or a ratified commit cannot be published.

    Protocol: "Checkpoints".

    >>> delta_pyds.checkpoint("/data/events")
    41
    """
    snapshot = load_snapshot(path, table=table, catalog=catalog, storage_options=storage_options)
    snapshot.configuration.check_writable()
    snapshot.storage.require_put_if_absent(snapshot.table_root)
    check_allowed(snapshot.storage, CHECKPOINT)
    _require_published(snapshot, snapshot.version)
    with step("checkpoint", snapshot.table_root, total=1, unit="checkpoints") as advance:
        checkpoint_and_clean(snapshot.storage, snapshot.replay, now_ms=int(time.time() * 1000))
        advance(1)
    return snapshot.version


def compact_log(
    path: PathLike | None,
    first_version: int,
    last_version: int,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """Write one log compaction file that replaces the commits from the first to the last version for readers.

    The commits stay: readers that support compactions open fewer files.

    Args:
        path: The path of the table; None with ``table``.
        first_version: The first version of the range, from 0 on.
        last_version: The last version of the range, after the first; it is included.
        table: Instead of a path, the name of the table in ``catalog``.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it.
        storage_options: Options of the store, as its fsspec package takes them.

    Returns:
        The path of the new file.

    Raises:
        UserError: The range of versions is invalid (DELTA_VERSION_NOT_FOUND).
        MissingLogFilesError: A commit of the range is gone.
        TableNotFoundError: There is no table.
        DeltaError: The table cannot be opened; see ``load_snapshot``.
        UnsupportedOperationError: The catalog of the table compacts the log itself.
        StorageError: The file cannot be written, or a ratified commit cannot be published.

    Protocol: "Log Compaction Files".

    >>> delta_pyds.compact_log("/data/events", 20, 29)
    '/data/events/_delta_log/00000000000000000020.00000000000000000029.compacted.json'
    """
    snapshot = load_snapshot(path, table=table, catalog=catalog, storage_options=storage_options)
    snapshot.configuration.check_writable()
    if not 0 <= first_version < last_version <= snapshot.version:
        raise UserError(
            f"versions {first_version} to {last_version} of {snapshot.table_root} cannot be compacted: give a first "
            f"version and a later last one, from 0 to {snapshot.version}.",
            code="DELTA_VERSION_NOT_FOUND",
            table=snapshot.table_root,
        )
    check_allowed(snapshot.storage, COMPACT_LOG)
    _require_published(snapshot, last_version)
    return write_compaction(snapshot.storage, snapshot.table_root, first_version, last_version)


def _require_published(snapshot: Snapshot, version: int) -> None:
    """Check that the version is published. Protocol: "Maintenance Operations on Catalog-managed Tables"."""
    if not committer_of(snapshot.storage, snapshot.table_root).publish(version):
        raise StorageError(
            f"version {version} of {snapshot.table_root} is ratified by its catalog but cannot be published now, so no "
            "checkpoint or compaction of it was written. The log of this process shows the obstacle.",
            table=snapshot.table_root,
            version=version,
        )
