"""Encoding of a transaction as one commit file. Protocol: "Actions", "Delta Log Entries"."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from delta_pyds.log.commit_writer import encode_commit
from delta_pyds.log.committer import ProposedCommit
from delta_pyds.protocol.actions import Action, AddFile, CommitInfo, DomainMetadata, Metadata, Protocol
from delta_pyds.protocol.paths import path_key
from delta_pyds.table.transaction.commit_draft import Draft
from delta_pyds.table.transaction.commit_info import Operation, commit_info
from delta_pyds.table.transaction.conflict import TransactionInfo
from delta_pyds.table.transaction.rebase import (
    LatestState,
    enable_in_commit_timestamps,
    has_in_commit_timestamps,
    move_type_changes,
    next_in_commit_timestamp,
)
from delta_pyds.table.transaction.row_tracking import PRESERVED_TAG, assigns_row_ids, high_water_domain, number_rows


@dataclass(frozen=True)
class Encoded:
    """The commit of one version; ``protocol`` and ``metadata`` are the table's after it."""

    proposal: ProposedCommit
    info: CommitInfo
    protocol: Protocol
    metadata: Metadata


class CommitEncoder:
    """Encodes one transaction, again for each version that it tries.

    The order of actions is the reference's: commitInfo, metaData, protocol,
    domainMetadata, txn, files added, files removed. The row tracking domain is
    last, or before the other domains if other commits came first.
    """

    def __init__(
        self,
        draft: Draft,
        operation: Operation,
        current: TransactionInfo,
        txn_id: str,
        *,
        user_metadata: str | None,
        tags: dict[str, str],
    ) -> None:
        self._draft = draft
        self._operation = operation
        self._transaction_info = current
        self._txn_id = txn_id
        self._user_metadata = user_metadata
        self._tags = tags
        self._planned: int | None = None
        self._read_version: int | None = None
        self._plain_adds: bytes | None = None

    def replace_changes(
        self, draft: Draft, operation: Operation, current: TransactionInfo, *, read_version: int
    ) -> None:
        """Encode these changes from now on. They are those of an operation that read this version."""
        self._draft, self._operation, self._transaction_info = draft, operation, current
        self._read_version = read_version
        self._plain_adds = None

    def encode(self, latest: LatestState, now_ms: int, *, rebased: bool) -> Encoded:
        """The commit right after ``latest``. The first call fixes the version that was read."""
        draft, version = self._draft, latest.version + 1
        if self._planned is None:
            self._planned = version
            self._read_version = None if latest.version < 0 else latest.version
        protocol = draft.protocol or latest.protocol
        metadata = draft.metadata or latest.metadata
        assert protocol is not None and metadata is not None  # a table cannot be created without
        timestamp = None
        enabled_before = has_in_commit_timestamps(latest.protocol, latest.metadata)
        if has_in_commit_timestamps(protocol, metadata):
            timestamp = next_in_commit_timestamp(latest, now_ms, self._transaction_info.table_root)
        if draft.metadata is not None:
            metadata = move_type_changes(metadata, planned=self._planned, version=version)
        # without new metadata, the property was set before the feature, and takes effect with this commit
        if timestamp is not None and (draft.metadata is not None or not enabled_before):
            metadata = enable_in_commit_timestamps(
                metadata, latest, version=version, timestamp_ms=timestamp, enabled_before=enabled_before
            )
        info = self._info(latest, now_ms, timestamp)
        adds, mark = self._adds(latest, protocol, metadata, version)
        head: list[Action] = [info]
        if metadata is not latest.metadata:
            head.append(metadata)
        if draft.protocol is not None:
            head.append(draft.protocol)
        if mark is not None and rebased:
            head.insert(1, mark)
        head += draft.domains.values()
        head += draft.applications.values()
        parts = [encode_commit(head), adds, encode_commit(draft.change_files), *draft.removes.encoded(latest.row_ids)]
        if mark is not None and not rebased:
            parts.append(encode_commit([mark]))
        proposal = ProposedCommit(
            version,
            b"".join(parts),
            self._txn_id,
            info.in_commit_timestamp or info.timestamp or 0,
            protocol=draft.protocol,
            metadata=None if metadata is latest.metadata else metadata,
            metadata_before=None if metadata is latest.metadata else latest.metadata,
            domains=(*draft.domains.values(), *(() if mark is None else (mark,))),
        )
        return Encoded(proposal, info, protocol, metadata)

    def _info(self, latest: LatestState, now_ms: int, timestamp: int | None) -> CommitInfo:
        tags = dict(self._tags)
        if latest.row_tracking_enabled_meanwhile:
            # rows that were read earlier had no ids to preserve
            tags[PRESERVED_TAG] = "false"
        return commit_info(
            self._operation,
            timestamp_ms=now_ms,
            in_commit_timestamp=timestamp,
            read_version=self._read_version,
            isolation_level=self._transaction_info.isolation,
            is_blind_append=self._transaction_info.blind_append,
            data_change=self._draft.changes_data,
            txn_id=self._txn_id,
            user_metadata=self._user_metadata,
            tags=tags,
        )

    def _adds(
        self, latest: LatestState, protocol: Protocol, metadata: Metadata, version: int
    ) -> tuple[bytes, DomainMetadata | None]:
        adds = self._draft.adds
        if latest.settled:
            adds = [a for a in adds if path_key(a.path) not in latest.settled]
        if not assigns_row_ids(protocol, metadata):
            if self._plain_adds is None or latest.settled:
                self._plain_adds = encode_commit(adds)
            return self._plain_adds, None
        numbered = number_rows(
            self._with_known_ids(adds, latest),
            high_water_mark=max(latest.row_id_mark, self._draft.row_id_mark),
            version=version,
            table=self._transaction_info.table_root,
        )
        rose = numbered.high_water_mark > latest.row_id_mark
        return encode_commit(numbered.adds), (high_water_domain(numbered.high_water_mark) if rose else None)

    def _with_known_ids(self, adds: list[AddFile], latest: LatestState) -> list[AddFile]:
        """The adds with the row ids of the actions that they replace: existing files keep their ids."""
        known: dict[str, tuple[int | None, int | None]] = {}
        again = {path_key(a.path) for a in adds if a.base_row_id is None}
        for path, remove in self._draft.removes.find(again).items():
            known[path] = remove.base_row_id, remove.default_row_commit_version
        for path in {path_key(a.path) for a in adds} & latest.row_ids.keys():
            known[path] = latest.row_ids[path].base_row_id, latest.row_ids[path].default_row_commit_version
        if not known:
            return adds
        return [
            msgspec.structs.replace(a, base_row_id=known[key][0], default_row_commit_version=known[key][1])
            if (key := path_key(a.path)) in known
            else a
            for a in adds
        ]
