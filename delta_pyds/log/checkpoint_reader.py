"""Checkpoints of every kind: small actions as objects, file actions as Arrow rows.

A classic checkpoint is one Parquet file, a multi-part one several. A V2
checkpoint is a JSON or Parquet file that may refer to sidecars. The content of
a file decides, not its name: a V2 checkpoint may have a classic name.

Protocol: "Checkpoints", "V2 Spec", "Classic checkpoint", "Sidecar Files".
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar

from delta_pyds.errors import CorruptLogError, FileNotFoundInStorageError, MissingLogFilesError
from delta_pyds.log.adds import AddRequest, FileBatch, PartScan, commit_adds
from delta_pyds.log.checkpoint_part import CheckpointPart
from delta_pyds.log.commit_reader import read_commit
from delta_pyds.log.file_table import Touched
from delta_pyds.log.listing import is_settled
from delta_pyds.log.segment import CheckpointFiles
from delta_pyds.protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
    SingleAction,
    file_key,
)
from delta_pyds.protocol.paths import resolve_sidecar_path
from delta_pyds.storage.base import TAIL_BYTES, FileStatus, Storage

_A = TypeVar("_A", bound=Action)

# This many bytes of the files' ends are fetched with their sizes, so a short file needs one request.
_ALL_TAILS_BYTES = 8 << 20
_LONGEST_TAIL_BYTES = 1 << 20
# Parts in a store that are opened ahead, and parts whose first row group is requested ahead.
_OPENED_AHEAD = 8
_BEGUN_AHEAD = 2
# Concurrent requests for the status of sidecars. A listing of their directory would return those of all checkpoints.
_THREADS = 16


class Checkpoint:
    """One complete checkpoint. Each file is opened once, when it is needed."""

    def __init__(self, storage: Storage, table_root: str, files: CheckpointFiles) -> None:
        self._storage = storage
        self._table_root = table_root
        self.files = files
        # checked now: later, a recent file and its replacement could not be distinguished
        self._settled = all(map(is_settled, files.files))

    @property
    def version(self) -> int:
        return self.files.version

    @cached_property
    def _json_actions(self) -> tuple[SingleAction, ...]:
        return tuple(
            action
            for file in self.files.files
            if file.path.endswith(".json")
            for action in read_commit(self._storage, file)
        )

    @cached_property
    def _parts(self) -> tuple[CheckpointPart, ...]:
        files = [file for file in self.files.files if not file.path.endswith(".json")]
        tail = _tail_bytes(len(files))
        return tuple(
            CheckpointPart(self._storage, file.path, None, self._content_of(file), tail, file.size_bytes)
            for file in files
        )

    def open_ahead(self) -> None:
        """Open the first file in the background, if it is in a store."""
        for part in self._parts[:1]:
            part.open_ahead()

    @cached_property
    def _sidecar_files(self) -> tuple[FileStatus, ...]:
        """The status of the sidecars, requested before they are read."""
        listed = [a.sidecar for a in self._json_actions if a.sidecar is not None]
        for part in _opened_in_turn(self._parts):
            listed += part.actions("sidecar", Sidecar)
        found = _locate_sidecars(self._storage, self._table_root, listed, self.files.files[0].path)
        self._settled = self._settled and all(map(is_settled, found))
        return found

    @cached_property
    def _sidecars(self) -> tuple[CheckpointPart, ...]:
        top_level, tail = self.files.files[0].path, _tail_bytes(len(self._sidecar_files))
        return tuple(
            CheckpointPart(self._storage, file.path, top_level, self._content_of(file), tail, file.size_bytes)
            for file in self._sidecar_files
        )

    def _content_of(self, file: Hashable) -> Hashable:
        return (self._storage, file) if self._settled else None

    def is_v2(self) -> bool:
        """Whether only readers of V2 checkpoints can read it, regardless of its name.

        Raises: as ``require_sidecars``.
        """
        return self.files.kind in ("v2-json", "v2-parquet") or bool(self._sidecar_files)

    def require_sidecars(self) -> None:
        """Raises: MissingLogFilesError for a missing sidecar, CorruptLogError for one of another size than recorded."""
        _ = self._sidecar_files

    def has_same_sidecars(self) -> bool:
        """Whether the sidecars that were read, if any, are still the same files."""
        known = self.__dict__.get("_sidecar_files", ())
        return all(map(is_settled, known)) and _statuses(self._storage, [f.path for f in known]) == list(known)

    @cached_property
    def protocol(self) -> Protocol | None:
        return self._single("protocol", Protocol, [a.protocol for a in self._json_actions])

    @cached_property
    def metadata(self) -> Metadata | None:
        return self._single("metaData", Metadata, [a.meta_data for a in self._json_actions])

    @cached_property
    def transactions(self) -> tuple[SetTransaction, ...]:
        return self._all("txn", SetTransaction, [a.txn for a in self._json_actions])

    @cached_property
    def domains(self) -> tuple[DomainMetadata, ...]:
        return self._all("domainMetadata", DomainMetadata, [a.domain_metadata for a in self._json_actions])

    def _single(self, name: str, kind: type[_A], inline: Sequence[_A | None]) -> _A | None:
        for action in inline:
            if action is not None:
                return action
        for part in _opened_in_turn(self._parts):
            found = part.first(name, kind)
            if found is not None:
                return found
        return None

    def _all(self, name: str, kind: type[_A], inline: Sequence[_A | None]) -> tuple[_A, ...]:
        found = [a for a in inline if a is not None]
        for part in _opened_in_turn(self._parts):
            found += part.actions(name, kind)
        return tuple(found)

    def adds(self, request: AddRequest, touched: Touched) -> Iterator[FileBatch]:
        """Yield the adds that ``request`` selects and that no later commit touched, in file order.

        ``touched``: keys (path, deletion vector ids) of the file actions of later
        commits, which replace this checkpoint's actions for those files.
        """
        inline = [a.add for a in self._json_actions if a.add is not None]
        if inline:
            yield from commit_adds([f for f in inline if not _is_touched(f, touched)], request)
        content = self._content
        scans = [PartScan(part, request, touched, content) for part in self.file_parts]
        try:
            for number, (scan, _) in enumerate(zip(scans, _opened_in_turn(self.file_parts), strict=True)):
                for later in scans[number + 1 : number + 1 + _BEGUN_AHEAD]:
                    later.begin_ahead()
                yield from scan.batches()
        finally:
            for scan in scans:
                scan.close()

    @cached_property
    def _content(self) -> Hashable:
        """A key of the checkpoint's content, for caches; None if a file may change unnoticed.

        It covers the size, time and generation of every file: a sidecar may have been damaged and restored.
        """
        files = (self.files.files, self._sidecar_files)
        if not self._settled:
            return None
        return self._storage, hashlib.blake2b(repr(files).encode(), digest_size=16).hexdigest()

    @property
    def file_parts(self) -> tuple[CheckpointPart, ...]:
        """The Parquet files that hold file actions."""
        return (*self._parts, *self._sidecars)

    def inline_removes(self, touched: Touched) -> list[RemoveFile]:
        """The tombstones in a JSON checkpoint that no later commit touched."""
        removes = [a.remove for a in self._json_actions if a.remove is not None]
        return [f for f in removes if not _is_touched(f, touched)]


def _tail_bytes(files: int) -> int:
    return max(TAIL_BYTES, min(_LONGEST_TAIL_BYTES, _ALL_TAILS_BYTES // max(files, 1)))


def _opened_in_turn(parts: Sequence[CheckpointPart]) -> Iterator[CheckpointPart]:
    """The parts; the next ones are opened in the background."""
    for number, part in enumerate(parts):
        for later in parts[number + 1 : number + 1 + _OPENED_AHEAD]:
            later.open_ahead()
        yield part


def _is_touched(file: AddFile | RemoveFile, touched: Touched) -> bool:
    path, vector = file_key(file)
    return vector in touched.get(path, ())


def _locate_sidecars(
    storage: Storage, table_root: str, sidecars: Sequence[Sidecar], checkpoint: str
) -> tuple[FileStatus, ...]:
    """The status of the sidecars' files, in order. ``checkpoint``: the file that names them.

    Raises: MissingLogFilesError; CorruptLogError for a file of another size than recorded. Both
        have the parameters ``path`` (the sidecar) and ``checkpoint``.
    """
    paths = [resolve_sidecar_path(table_root, sidecar.path) for sidecar in sidecars]
    found = _statuses(storage, paths)
    for path, sidecar, status in zip(paths, sidecars, found, strict=True):
        if status is None:
            raise _missing_sidecar(path, checkpoint)
        if status.size_bytes != sidecar.size_in_bytes:
            raise CorruptLogError(
                f"the sidecar {path} has {status.size_bytes} bytes, but the checkpoint {checkpoint} records "
                f"{sidecar.size_in_bytes}: it is not the file that was written. Restore it, or delete the checkpoint "
                "if the log still has all its commits.",
                code="DELTA_CORRUPT_CHECKPOINT",
                path=path,
                checkpoint=checkpoint,
            )
    return tuple(status for status in found if status is not None)


def _missing_sidecar(path: str, checkpoint: str) -> MissingLogFilesError:
    return MissingLogFilesError(
        f"the checkpoint file {path}, which {checkpoint} refers to, does not exist, so the table's files cannot be "
        "listed. Restore it, or delete its checkpoint if the log still has all its commits.",
        code="DELTA_MISSING_PART_FILES",
        path=path,
        checkpoint=checkpoint,
    )


def _statuses(storage: Storage, paths: Sequence[str]) -> list[FileStatus | None]:
    """The status of each path; None for a missing file."""
    if storage.scheme == "file" or len(paths) <= 1:
        return [_status(storage, path) for path in paths]
    with ThreadPoolExecutor(min(_THREADS, len(paths)), thread_name_prefix="delta-sidecars") as pool:
        return list(pool.map(lambda path: _status(storage, path), paths))


def _status(storage: Storage, path: str) -> FileStatus | None:
    try:
        return storage.status(path)
    except FileNotFoundInStorageError:
        return None
