"""Log replay: from a log segment to the state of the table.

Commits after the checkpoint are read once and become objects. The checkpoint's
files stay Arrow rows and are read for each scan.

Protocol: "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.errors import CorruptLogError, ProtocolError
from delta_pyds.log.adds import AddRequest, FileBatch, commit_adds
from delta_pyds.log.checkpoint_part import BATCH_ROWS
from delta_pyds.log.checkpoint_reader import Checkpoint
from delta_pyds.log.commit_reader import read_commits
from delta_pyds.log.compaction import duplicate_key
from delta_pyds.log.file_table import TOMBSTONE_COLUMNS, Touched, UntouchedRows, conform_files, files_to_batch
from delta_pyds.log.segment import LogSegment
from delta_pyds.protocol.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    SingleAction,
    file_key,
)
from delta_pyds.protocol.paths import LogFileKind
from delta_pyds.storage.base import Storage

_TOMBSTONE_COLUMNS = tuple(TOMBSTONE_COLUMNS)


@dataclass(frozen=True)
class ReconciledCommits:
    """The actions of the commits after the checkpoint, reconciled.

    ``touched``: each path's key with the deletion vector ids with which a commit
    added or removed it. ``adds``: the files among them that are in the table, in
    commit order. ``removes``: the others, which are tombstones.
    """

    protocol: Protocol | None
    metadata: Metadata | None
    transactions: dict[str, SetTransaction]
    domains: dict[str, DomainMetadata]
    adds: tuple[AddFile, ...]
    touched: dict[str, frozenset[str | None]]
    removes: tuple[RemoveFile, ...] = ()


def reconcile(commits: list[list[SingleAction]], duplicate_files: set[int] | None = None) -> ReconciledCommits:
    """Reconcile commits: the newest action of each key wins, and within a commit the later line.

    Args:
        commits: the actions of each commit, oldest commit first.
        duplicate_files: receives the indexes of commits with two actions for one file.

    Protocol: "Action Reconciliation".
    """
    duplicates = set() if duplicate_files is None else duplicate_files
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = {}
    domains: dict[str, DomainMetadata] = {}
    adds: list[AddFile] = []
    removes: list[RemoveFile] = []
    # by path and vector: the index of the oldest commit so far that names the file
    seen: dict[str, dict[str | None, int]] = {}
    for index in range(len(commits) - 1, -1, -1):
        for action in reversed(commits[index]):
            file = action.add or action.remove
            if file is not None:
                path, vector = file_key(file)
                ids = seen.setdefault(path, {})
                newer = ids.get(vector)
                ids[vector] = index
                if newer == index:
                    duplicates.add(index)
                elif newer is None:
                    if action.add is not None:
                        adds.append(action.add)
                    elif action.remove is not None:
                        removes.append(action.remove)
            elif action.txn is not None:
                transactions.setdefault(action.txn.app_id, action.txn)
            elif action.domain_metadata is not None:
                domains.setdefault(action.domain_metadata.domain, action.domain_metadata)
            elif action.meta_data is not None:
                metadata = metadata or action.meta_data
            elif action.protocol is not None:
                protocol = protocol or action.protocol
    touched = {path: frozenset(ids) for path, ids in seen.items()}
    live, dead = tuple(reversed(adds)), tuple(reversed(removes))
    return ReconciledCommits(protocol, metadata, transactions, domains, live, touched, dead)


class LogReplay:
    """The state of a table at the version of its segment.

    Invariant: the checkpoint's list of files is never completely in memory.

    ``known``: the version's protocol and metadata, if they are known. Then the log is read only for other state.
    """

    def __init__(self, storage: Storage, segment: LogSegment, known: tuple[Protocol, Metadata] | None = None) -> None:
        self._storage = storage
        self.segment = segment
        if known is not None:
            self.protocol, self.metadata = known

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        files = self.segment.checkpoint
        return None if files is None else Checkpoint(self._storage, self.segment.table_root, files)

    @cached_property
    def tail(self) -> ReconciledCommits:
        """The reconciled commits after the checkpoint.

        Raises: CorruptLogError with the parameter ``paths``: all compactions with two actions for one key.
        """
        if self.checkpoint is not None:
            self.checkpoint.open_ahead()  # in the background, while the commits are read
        read = list(read_commits(self._storage, self.segment.commits))
        duplicate_files: set[int] = set()
        reconciled = reconcile([actions for _, actions in read], duplicate_files)
        duplicates: dict[str, str] = {}
        for index, (file, actions) in enumerate(read):
            if file.name.kind is not LogFileKind.COMPACTION:
                continue
            # files may be many; their duplicates have been found already
            asked = actions if index in duplicate_files else [a for a in actions if a.add is None and a.remove is None]
            if (key := duplicate_key(asked)) is not None:
                duplicates[file.path] = key
        if duplicates:
            raise self._not_reconciled(duplicates)
        return reconciled

    def _not_reconciled(self, duplicates: dict[str, str]) -> CorruptLogError:
        path, key = next(iter(duplicates.items()))
        others = f" (and {len(duplicates) - 1} others)" if len(duplicates) > 1 else ""
        return CorruptLogError(
            f"the log compaction {path}{others} has two actions for {key}, so the state of the table is ambiguous. "
            "Delete the compaction if the commits that it covers still exist; else restore them first.",
            path=path,
            paths=tuple(duplicates),
            table=self.segment.table_root,
            version=self.segment.version,
        )

    @cached_property
    def protocol(self) -> Protocol:
        found = self.tail.protocol or (self.checkpoint.protocol if self.checkpoint else None)
        if found is None:
            raise self._missing("protocol")
        return found

    @cached_property
    def metadata(self) -> Metadata:
        found = self.tail.metadata or (self.checkpoint.metadata if self.checkpoint else None)
        if found is None:
            raise self._missing("metaData")
        return found

    def _missing(self, action: str) -> ProtocolError:
        segment = self.segment
        where = f"the checkpoint of version {segment.checkpoint.version}" if segment.checkpoint else "the first commit"
        return ProtocolError(
            f"the log of table {segment.table_root} has no {action} action up to version {segment.version}: "
            f"{where} should have one. The log is damaged: restore the file, or delete the checkpoint if the log still "
            "has all commits before it.",
            code="DELTA_STATE_RECOVER_ERROR",
            table=segment.table_root,
            version=segment.version,
            action=action,
        )

    @cached_property
    def transactions(self) -> dict[str, SetTransaction]:
        """The latest transaction of each application, by its id."""
        older = {t.app_id: t for t in self.checkpoint.transactions} if self.checkpoint else {}
        return {**older, **self.tail.transactions}

    @cached_property
    def domains(self) -> dict[str, DomainMetadata]:
        """Domain metadata by domain, without the removed ones."""
        older = {d.domain: d for d in self.checkpoint.domains} if self.checkpoint else {}
        return {k: d for k, d in {**older, **self.tail.domains}.items() if not d.removed}

    def adds(self, request: AddRequest) -> Iterator[FileBatch]:
        """Yield the table's files in bounded memory, those of the checkpoint first."""
        if self.checkpoint is not None:
            yield from self.checkpoint.adds(request, self.tail.touched)
        yield from commit_adds(self.tail.adds, request)

    def tombstones(self, since_ms: int) -> Iterator[pa.RecordBatch]:
        """Yield the files that were removed at ``since_ms`` or later, in bounded memory; those of the checkpoint first.

        Args:
            since_ms: milliseconds since the epoch.

        Returns: batches with ``TOMBSTONE_COLUMNS``; none is empty.
        """
        if self.checkpoint is not None:
            yield from _checkpoint_tombstones(self.checkpoint, self.tail.touched, since_ms)
        yield from _commit_tombstones(self.tail.removes, since_ms)


def _checkpoint_tombstones(checkpoint: Checkpoint, touched: Touched, since_ms: int) -> Iterator[pa.RecordBatch]:
    """Yield the unexpired tombstones of a checkpoint that no later commit touched.

    A tombstone without a time counts as removed at the epoch, as in the reference.
    """
    yield from _commit_tombstones(checkpoint.inline_removes(touched), since_ms)
    untouched = UntouchedRows(touched)
    for part in checkpoint.file_parts:
        with part.translating_errors():
            part.check_files("remove", set())
            for group in part.row_groups_with("remove"):
                for remove in part.rows("remove", group, _TOMBSTONE_COLUMNS):
                    mask = untouched.mask(remove)
                    batch = conform_files(remove if mask is None else remove.filter(mask), _TOMBSTONE_COLUMNS)
                    times = batch.column("deletionTimestamp").fill_null(0)
                    batch = batch.filter(pc.greater_equal(times, pa.scalar(since_ms, pa.int64())))
                    if len(batch):
                        yield batch


def _commit_tombstones(removes: Sequence[RemoveFile], since_ms: int) -> Iterator[pa.RecordBatch]:
    """Yield the unexpired ones of these tombstones."""
    kept = [r for r in removes if (r.deletion_timestamp or 0) >= since_ms]
    for start in range(0, len(kept), BATCH_ROWS):
        yield files_to_batch(kept[start : start + BATCH_ROWS], _TOMBSTONE_COLUMNS)
