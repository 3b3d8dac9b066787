"""The table's state while commits are applied to it.

Invariant: the numbers of a version checksum are updated with every file, so no version needs a pass over all files.

Protocol: "Action Reconciliation".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from delta_pyds.protocol.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    file_key,
)
from delta_pyds.protocol.foreign_json import Int64, InvalidJSONError, decode_json_with
from delta_pyds.verification.actions import Actions
from delta_pyds.verification.view import TableView, view_of

Key = tuple[str, "str | None"]

# Protocol: "Deleted Record Counts Histogram Schema"
_DELETED_RECORD_BINS = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2_147_483_647)


class _Counts(msgspec.Struct, rename="camel"):
    num_records: Int64 | None = None


_counts = msgspec.json.Decoder(_Counts)


def num_records(file: AddFile) -> int | None:
    """The number of rows in the data file by its statistics, including deleted rows."""
    if file.stats is None:
        return None
    try:
        return decode_json_with(_counts, file.stats).num_records
    except InvalidJSONError:
        return None


def num_rows(file: AddFile) -> int | None:
    """The number of live rows by the log."""
    found = num_records(file)
    if found is None or file.deletion_vector is None:
        return found
    return found - file.deletion_vector.cardinality


class SizeHistogram:
    """Files and bytes by bin of size."""

    def __init__(self, boundaries: Sequence[int], files: Iterable[AddFile]) -> None:
        self.boundaries = list(boundaries)
        self.counts = [0] * len(self.boundaries)
        self.bytes = [0] * len(self.boundaries)
        for file in files:
            self.count(file, 1)

    def count(self, file: AddFile, sign: int) -> None:
        at = bisect_right(self.boundaries, file.size) - 1
        self.counts[at] += sign
        self.bytes[at] += sign * file.size


class TableState:
    """A version of the table. ``complete``: all versions up to it exist and were read."""

    def __init__(self) -> None:
        self.version = -1
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self.transactions: dict[str, SetTransaction] = {}
        self.domains: dict[str, DomainMetadata] = {}
        self.live: dict[Key, AddFile] = {}
        self.live_vectors: dict[str, str | None] = {}
        self.tombstones: dict[Key, RemoveFile] = {}
        self.all_tombstones_known = True
        self.size_bytes = 0
        self.num_vectors = 0
        self.num_deleted_records = 0
        self.deleted_record_counts = [0] * len(_DELETED_RECORD_BINS)
        self.in_commit_timestamp: int | None = None
        self.transaction_id: str | None = None
        self._histogram: SizeHistogram | None = None
        self._view: TableView | None = None

    @property
    def view(self) -> TableView:
        """Protocol and metadata, parsed."""
        if self._view is None:
            self._view = view_of(self.protocol, self.metadata)
        return self._view

    def live_domains(self) -> dict[str, DomainMetadata]:
        return {name: d for name, d in self.domains.items() if not d.removed}

    def histogram(self, boundaries: Sequence[int]) -> SizeHistogram:
        """The histogram of all live files. It is updated until other boundaries are requested."""
        if self._histogram is None or self._histogram.boundaries != list(boundaries):
            self._histogram = SizeHistogram(boundaries, self.live.values())
        return self._histogram

    def apply(self, actions: Actions, version: int) -> None:
        """Apply a commit and become the next version."""
        self.version = version
        for remove in actions.removes:
            key = file_key(remove)
            self._leave(key)
            self.tombstones[key] = remove
        for add in actions.adds:
            self.enter(add)
        for transaction in actions.transactions:
            self.transactions[transaction.app_id] = transaction
        for domain in actions.domains:
            self.domains[domain.domain] = domain
        if actions.metadata or actions.protocols:
            self.metadata = actions.metadata[-1] if actions.metadata else self.metadata
            self.protocol = actions.protocols[-1] if actions.protocols else self.protocol
            self._view = None
        info = actions.commit_infos[0] if actions.commit_infos else {}
        time, transaction_id = info.get("inCommitTimestamp"), info.get("txnId")
        self.in_commit_timestamp = time if isinstance(time, int) else None
        self.transaction_id = transaction_id if isinstance(transaction_id, str) else None

    def enter(self, add: AddFile) -> None:
        key = file_key(add)
        self._leave(key)
        self.tombstones.pop(key, None)
        self.live[key] = add
        self.live_vectors[key[0]] = key[1]
        self._count(add, 1)

    def _leave(self, key: Key) -> None:
        old = self.live.pop(key, None)
        if old is not None:
            self._count(old, -1)
            if self.live_vectors.get(key[0]) == key[1]:
                self.live_vectors.pop(key[0], None)

    def _count(self, file: AddFile, sign: int) -> None:
        self.size_bytes += sign * file.size
        deleted = 0
        if file.deletion_vector is not None:
            deleted = file.deletion_vector.cardinality
            self.num_vectors += sign
            self.num_deleted_records += sign * deleted
        self.deleted_record_counts[bisect_right(_DELETED_RECORD_BINS, max(deleted, 0)) - 1] += sign
        if self._histogram is not None:
            self._histogram.count(file, sign)
