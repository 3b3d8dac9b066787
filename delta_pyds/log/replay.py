"""Log replay: from a log segment to the state of the table.

Commits after the checkpoint become objects and are read once; the
checkpoint's files stay in Arrow and are read when a scan asks for them.

Protocol: "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from delta_pyds.errors import CorruptLogError, ProtocolError
from delta_pyds.log.adds import AddRequest, FileBatch, commit_adds
from delta_pyds.log.checkpoint_reader import Checkpoint
from delta_pyds.log.commit_reader import read_commits
from delta_pyds.log.compaction import doubled_key
from delta_pyds.log.segment import LogSegment
from delta_pyds.log.tombstones import checkpoint_tombstones, commit_tombstones
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


@dataclass(frozen=True)
class ReconciledCommits:
    """What the commits after the checkpoint say, reconciled among themselves.

    ``touched``: for each path's key, the deletion vector ids with which a commit
    added or removed it. ``adds``: those among them that are in the table, in
    commit order. ``removes``: the others, which are tombstones.
    """

    protocol: Protocol | None
    metadata: Metadata | None
    transactions: dict[str, SetTransaction]
    domains: dict[str, DomainMetadata]
    adds: tuple[AddFile, ...]
    touched: dict[str, frozenset[str | None]]
    removes: tuple[RemoveFile, ...] = ()


def reconcile(commits: list[list[SingleAction]], doubled_files: set[int] | None = None) -> ReconciledCommits:
    """Fold commits, oldest first, into a ``ReconciledCommits``: the newest action of each key wins.

    Within a commit the later line wins, as it does when a commit is applied line by line. ``doubled_files``:
    gets the places of the commits that hold two actions of one file.
    """
    doubled = set() if doubled_files is None else doubled_files
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = {}
    domains: dict[str, DomainMetadata] = {}
    adds: list[AddFile] = []
    removes: list[RemoveFile] = []
    # by path and vector, the place of the oldest commit so far that named the file
    seen: dict[str, dict[str | None, int]] = {}
    for place in range(len(commits) - 1, -1, -1):
        for action in reversed(commits[place]):
            file = action.add or action.remove
            if file is not None:
                path, vector = file_key(file)
                ids = seen.setdefault(path, {})
                newer = ids.get(vector)
                ids[vector] = place
                if newer == place:
                    doubled.add(place)
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

    Invariant: nothing here holds the checkpoint's list of files. ``known``: protocol and metadata of that version, if
    they were read before: then nothing is read before something else is asked for.
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
        """Raises: CorruptLogError naming every compaction as ``paths`` that does not say what came last."""
        if self.checkpoint is not None:
            self.checkpoint.open_ahead()  # while the commits are read
        read = list(read_commits(self._storage, self.segment.commits))
        doubled_files: set[int] = set()
        reconciled = reconcile([actions for _, actions in read], doubled_files)
        doubled: dict[str, str] = {}
        for place, (file, actions) in enumerate(read):
            if file.name.kind is not LogFileKind.COMPACTION:
                continue
            # of files, of which there may be many, it is known
            asked = actions if place in doubled_files else [a for a in actions if a.add is None and a.remove is None]
            if (key := doubled_key(asked)) is not None:
                doubled[file.path] = key
        if doubled:
            raise self._not_reconciled(doubled)
        return reconciled

    def _not_reconciled(self, doubled: dict[str, str]) -> CorruptLogError:
        path, key = next(iter(doubled.items()))
        others = f" (and {len(doubled) - 1} others)" if len(doubled) > 1 else ""
        return CorruptLogError(
            f"the log compaction {path}{others} holds two actions for {key}, so it does not say what is in the table. "
            "Delete it if the commits that it stands for are still there, else restore these.",
            path=path,
            paths=tuple(doubled),
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
            f"{where} should hold one. The log is damaged; restore the file, or delete the checkpoint if all "
            "commits before it are still there.",
            code="DELTA_STATE_RECOVER_ERROR",
            table=segment.table_root,
            version=segment.version,
            action=action,
        )

    @cached_property
    def transactions(self) -> dict[str, SetTransaction]:
        """The latest version that each application wrote, by its id."""
        older = {t.app_id: t for t in self.checkpoint.transactions} if self.checkpoint else {}
        return {**older, **self.tail.transactions}

    @cached_property
    def domains(self) -> dict[str, DomainMetadata]:
        """Domain metadata by domain, without the removed ones."""
        older = {d.domain: d for d in self.checkpoint.domains} if self.checkpoint else {}
        return {k: d for k, d in {**older, **self.tail.domains}.items() if not d.removed}

    def adds(self, request: AddRequest) -> Iterator[FileBatch]:
        """Yield the table's files, those of the checkpoint first, in bounded memory."""
        if self.checkpoint is not None:
            yield from self.checkpoint.adds(request, self.tail.touched)
        yield from commit_adds(self.tail.adds, request)

    def tombstones(self, since_ms: int) -> Iterator[pa.RecordBatch]:
        """Yield the files that were removed at ``since_ms`` (since the epoch) or later, as ``TOMBSTONE_COLUMNS``.

        Never empty batches; those of the checkpoint first, in bounded memory.
        """
        if self.checkpoint is not None:
            yield from checkpoint_tombstones(self.checkpoint, self.tail.touched, since_ms)
        yield from commit_tombstones(self.tail.removes, since_ms)
