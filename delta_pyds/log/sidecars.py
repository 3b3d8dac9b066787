"""The sidecar files that a V2 checkpoint names, as they are now: whether they are the promised ones, and stay the same.

Protocol: "Sidecar Files", "Sidecar File Information".
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from delta_pyds.errors import CorruptLogError, FileNotFoundInStorageError, MissingLogFilesError
from delta_pyds.protocol.actions import Sidecar
from delta_pyds.protocol.paths import resolve_sidecar_path
from delta_pyds.storage.base import FileStatus, Storage

# Questions to a remote store at a time. A listing of the directory would show the sidecars of all checkpoints.
_THREADS = 16


def sidecar_files(
    storage: Storage, table_root: str, sidecars: Sequence[Sidecar], checkpoint: str
) -> tuple[FileStatus, ...]:
    """The files of the sidecars, in order. ``checkpoint``: the file that names them.

    Raises: MissingLogFilesError; CorruptLogError for a file of another size than its action says. Both
        name the sidecar as ``path`` and the ``checkpoint``.
    """
    paths = [resolve_sidecar_path(table_root, sidecar.path) for sidecar in sidecars]
    found = statuses(storage, paths)
    for path, sidecar, status in zip(paths, sidecars, found, strict=True):
        if status is None:
            raise missing_sidecar(path, checkpoint)
        if status.size_bytes != sidecar.size_in_bytes:
            raise CorruptLogError(
                f"the sidecar {path} has {status.size_bytes} bytes, and the checkpoint {checkpoint} says "
                f"{sidecar.size_in_bytes}: it is not the file that was written. Restore it, or delete the checkpoint "
                "if all commits of the log are still there.",
                code="DELTA_CORRUPT_CHECKPOINT",
                path=path,
                checkpoint=checkpoint,
            )
    return tuple(status for status in found if status is not None)


def missing_sidecar(path: str, checkpoint: str) -> MissingLogFilesError:
    return MissingLogFilesError(
        f"the checkpoint file {path}, which {checkpoint} refers to, does not exist, so the table's files cannot be "
        "listed. Restore it, or delete the checkpoint it belongs to if all commits of the log are still there.",
        code="DELTA_MISSING_PART_FILES",
        path=path,
        checkpoint=checkpoint,
    )


def statuses(storage: Storage, paths: Sequence[str]) -> list[FileStatus | None]:
    """The files at the paths; None where there is none."""
    if storage.scheme == "file" or len(paths) <= 1:
        return [_status(storage, path) for path in paths]
    with ThreadPoolExecutor(min(_THREADS, len(paths)), thread_name_prefix="delta-sidecars") as pool:
        return list(pool.map(lambda path: _status(storage, path), paths))


def _status(storage: Storage, path: str) -> FileStatus | None:
    try:
        return storage.status(path)
    except FileNotFoundInStorageError:
        return None
