"""The files that retained versions of a table need, which a vacuum must not delete.

Invariants: a version is retained if it was the latest at some time since the cutoff, and can be reconstructed. Its data
files, deletion vectors and change files are needed. A path in the log that cannot be compared with a listing protects
every file with the same name.

Protocol: "Add File and Remove File", "Deletion Vectors", "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.errors import CorruptLogError, DeletionVectorError, TimeTravelError
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.commit_reader import decode_commit, fetch_commits
from delta_pyds.log.file_table import KEY_COLUMNS
from delta_pyds.log.listing import LogFile, list_log
from delta_pyds.protocol.actions import SingleAction
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.paths import NON_CANONICAL_PATH, is_absolute, path_key
from delta_pyds.storage.base import Storage
from delta_pyds.table.history import CommitTimes
from delta_pyds.table.snapshot import Snapshot

# the storage type of a deletion vector inside the log
_INLINE = "i"


@dataclass
class NeededFiles:
    """Paths relative to the root, decoded, in Arrow or as texts. ``names`` protect files in any directory."""

    paths: list[pa.Array] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def add(self, paths: pa.Array) -> None:
        """Add paths as they are in the log."""
        odd = pc.match_substring_regex(paths, NON_CANONICAL_PATH)
        for path in paths.filter(odd).unique().to_pylist():
            self._add_odd(path)
        plain = paths.filter(pc.invert(odd)) if odd.true_count else paths
        if len(plain):
            self.paths.append(plain)

    def add_vectors(self, vectors: pa.StructArray) -> None:
        """Add the files of deletion vectors; one file may have many vectors.

        Raises: CorruptLogError for an invalid vector.
        """
        kind, text = vectors.field("storageType"), vectors.field("pathOrInlineDv")
        present = pc.and_(vectors.is_valid(), pc.is_valid(kind))
        kind, text = kind.filter(present), text.filter(present)
        for stored in kind.unique().to_pylist():
            if stored != _INLINE:
                for path in text.filter(pc.equal(kind, stored)).unique().to_pylist():
                    self._add_vector(DeletionVectorDescriptor(stored, path or "", 0, 0))

    def add_actions(self, actions: Iterable[SingleAction]) -> None:
        """Add all files that the actions name."""
        paths: list[str] = []
        for action in actions:
            file = action.add or action.remove
            if file is not None:
                paths.append(file.path)
                if file.deletion_vector is not None:
                    self._add_vector(file.deletion_vector)
            if action.cdc is not None:
                paths.append(action.cdc.path)
        if paths:
            self.add(pa.array(paths, pa.string()))

    def without(self, files: pa.Table) -> pa.Table:
        """The files that are not needed. Their ``path`` is relative to the root."""
        if not files.num_rows:
            return files
        listed = files.column("path")
        needed = pa.chunked_array([*self.paths, pa.array(self.others, pa.string())], pa.string())
        files = files.filter(pc.invert(pc.is_in(listed, value_set=needed)))
        if self.names and files.num_rows:
            names = pc.replace_substring_regex(files.column("path"), pattern=r"^.*/", replacement="")
            files = files.filter(pc.invert(pc.is_in(names, value_set=pa.array(self.names, pa.string()))))
        return files

    def _add_odd(self, path: str) -> None:
        key = path_key(path)
        parts = key.split("/")
        if is_absolute(path) or ".." in unquote(path).split("/"):
            # the file belongs to another table, or to this one under another spelling of its root
            self.names.update((parts[-1], path.rsplit("/", 1)[-1]))
            return
        # if a writer did not encode its path, the literal path names the file: it must not be deleted either
        self.others.update((key, path))

    def _add_vector(self, vector: DeletionVectorDescriptor) -> None:
        stored, text = vector.storage_type, vector.path_or_inline_dv
        if stored == _INLINE:
            return
        if stored == "p" and text:
            self._add_odd(text)
            return
        try:
            if stored != "u":
                raise DeletionVectorError(
                    f"a deletion vector of the storage type {stored!r} and the path {text!r:.100} cannot be found.",
                    code="DELTA_DELETION_VECTOR_MALFORMED_DESCRIPTOR",
                )
            path = vector.relative_path()
        except DeletionVectorError as e:
            raise CorruptLogError(f"{e.message} Its file is unknown, so nothing is deleted.", code=e.code) from None
        self.others.add(path)
        parts = path.split("/")
        if not {"", ".", ".."}.isdisjoint(parts):
            self.names.add(parts[-1])


def first_retained_version(snapshot: Snapshot, cutoff_ms: int) -> int:
    """The latest version at the cutoff, or the first that can be reconstructed; at most the snapshot's."""
    times = CommitTimes(
        snapshot.storage,
        snapshot.table_root,
        properties=snapshot.configuration.properties,
        latest_version=snapshot.version,
    )
    try:
        return times.last_at_or_before(cutoff_ms)
    except TimeTravelError:
        # the cutoff is before all remaining versions
        return snapshot.version if times.earliest is None else times.earliest


def needed_files(snapshot: Snapshot, cutoff_ms: int, first_version: int) -> NeededFiles:
    """The files of the versions from ``first_version`` to the snapshot's, with tombstones since ``cutoff_ms``.

    A file of one of these versions is in the last one, or was removed by a commit after the first one. Tombstones are
    not enough: checkpoints drop them, and a slow writer may date one long before its commit. So commits are read too.

    Raises: MissingLogFilesError, CorruptLogError: then nothing must be deleted.
    """
    needed = NeededFiles()
    for batch in snapshot.adds(AddRequest(columns=KEY_COLUMNS)):
        _add_files(needed, batch.files)
    for tombstones in snapshot.replay.tombstones(cutoff_ms):
        _add_files(needed, tombstones)
    commits = commits_between(snapshot.storage, snapshot.table_root, first_version + 1, snapshot.version)
    for file, data in fetch_commits(snapshot.storage, commits):
        needed.add_actions(removals(data, file))
    return needed


def files_added_since(storage: Storage, table_root: str, version: int) -> tuple[NeededFiles, int]:
    """All files that commits after ``version`` name. Returns: the files, and the last of these versions."""
    needed = NeededFiles()
    for file, data in fetch_commits(storage, commits_between(storage, table_root, version + 1, None)):
        needed.add_actions(decode_commit(data, file.path))
        version = max(version, file.version)
    return needed, version


def _add_files(needed: NeededFiles, files: pa.RecordBatch) -> None:
    needed.add(files.column("path"))
    needed.add_vectors(files.column("deletionVector"))


def commits_between(storage: Storage, table_root: str, first: int, last: int | None) -> list[LogFile]:
    """The commits from ``first`` to ``last``. Raises: CorruptLogError if one is missing."""
    if last is not None and first > last:
        return []
    commits = list(list_log(storage, table_root, first, last, missing_ok=True).commits)
    if last is not None and [file.version for file in commits] != list(range(first, last + 1)):
        raise CorruptLogError(
            f"the log of table {table_root!r} lacks commits between the versions {first} and {last}, so the files that "
            "these versions need are unknown, and nothing was deleted. Restore the commits, or clean the log.",
            code="DELTA_VERSIONS_NOT_CONTIGUOUS",
            table=table_root,
        )
    return commits


def removals(data: bytes, file: LogFile) -> list[SingleAction]:
    """The actions of a commit that remove a file or name a change file. Other lines are not decoded."""
    lines = [line for line in data.splitlines() if b'"remove"' in line or b'"cdc"' in line]
    return decode_commit(b"\n".join(lines), file.path) if lines else []
