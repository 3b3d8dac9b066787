"""The change that a commit makes to the numbers of a version checksum. Protocol: "Version Checksum File"."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TypeVar

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

_K = 1024
_M = 1024 * _K
_G = 1024 * _M

# Bytes. The reference's boundaries, because it compares bin by bin.
SIZE_BOUNDARIES = (
    0, *(8 * _K << i for i in range(8)), 2 * _M, 4 * _M,
    *range(8 * _M, 41 * _M, 4 * _M), *range(48 * _M, 121 * _M, 8 * _M), *range(124 * _M, 145 * _M, 4 * _M),
    *range(160 * _M, 577 * _M, 16 * _M), *range(640 * _M, 1409 * _M, 64 * _M), *range(1536 * _M, 2049 * _M, 128 * _M),
    *range(2304 * _M, 4097 * _M, 256 * _M), *(8 * _G << i for i in range(6)),
)  # fmt: skip
# Rows deleted from a file.
DELETED_RECORD_BOUNDARIES = (0, *(10**i for i in range(8)), 2_147_483_647)

# These operations add existing files again and remove no files.
_OPERATIONS_THAT_ADD_AGAIN = frozenset({"COMPUTE STATS", "ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL"})
# These operations only remove files that are not data files, to let vacuum find them.
_OPERATIONS_THAT_REMOVE_NO_FILE = frozenset({"Deletion Vector Tombstones"})
# These operations may change anything.
_UNPREDICTABLE_OPERATIONS = frozenset({"Manual Update"})

_A = TypeVar("_A", SetTransaction, DomainMetadata)


@dataclass
class CommitChange:
    """The sum of the changes by the actions of one commit. ``unknown``: the sum cannot be computed."""

    files: int = 0
    size_bytes: int = 0
    vectors: int = 0
    deleted_records: int = 0
    size_counts: list[int] = field(default_factory=lambda: [0] * len(SIZE_BOUNDARIES))
    size_totals: list[int] = field(default_factory=lambda: [0] * len(SIZE_BOUNDARIES))
    deleted_counts: list[int] = field(default_factory=lambda: [0] * len(DELETED_RECORD_BOUNDARIES))
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    unknown: bool = False
    adds_again: bool = False
    removes_no_file: bool = False
    unsized_removes: bool = False
    rearranging_adds: bool = False
    removes: int = 0
    # hashes, to keep a million paths out of memory; a collision only costs the checksum
    keys: set[int] = field(default_factory=set)

    def add_action(self, action: SingleAction) -> None:
        if action.add is not None:
            self._add_key(action.add)
            self.rearranging_adds |= not action.add.data_change
            self._count(1, action.add.size, action.add)
        elif action.remove is not None:
            self._add_removed(action.remove)
        elif action.txn is not None:
            self._add_once(self.transactions, action.txn.app_id, action.txn)
        elif action.domain_metadata is not None:
            self._add_once(self.domains, action.domain_metadata.domain, action.domain_metadata)
        elif action.meta_data is not None:
            self.unknown |= self.metadata is not None
            self.metadata = action.meta_data
        elif action.protocol is not None:
            self.unknown |= self.protocol is not None
            self.protocol = action.protocol
        elif action.commit_info is not None:
            operation = action.commit_info.operation
            self.adds_again = operation in _OPERATIONS_THAT_ADD_AGAIN
            self.removes_no_file = operation in _OPERATIONS_THAT_REMOVE_NO_FILE
            self.unknown |= operation in _UNPREDICTABLE_OPERATIONS

    def _add_removed(self, file: RemoveFile) -> None:
        self._add_key(file)
        self.removes += 1
        if file.size is None:
            self.unsized_removes = True
        else:
            self._count(-1, file.size, file)

    def _add_key(self, file: AddFile | RemoveFile) -> None:
        """Note the action's file. Two actions for one file make the change unknown: lines of a commit have no order."""
        key = hash(file_key(file))
        self.unknown |= key in self.keys
        self.keys.add(key)

    def _add_once(self, found: dict[str, _A], key: str, action: _A) -> None:
        self.unknown |= key in found
        found[key] = action

    def _count(self, sign: int, size: int, file: AddFile | RemoveFile) -> None:
        if size < 0:
            self.unknown = True
            return
        vector = file.deletion_vector
        deleted = 0 if vector is None else vector.cardinality
        self.files += sign
        self.size_bytes += sign * size
        self.vectors += sign * (vector is not None)
        self.deleted_records += sign * deleted
        size_bin = bisect_right(SIZE_BOUNDARIES, size) - 1
        self.size_counts[size_bin] += sign
        self.size_totals[size_bin] += sign * size
        self.deleted_counts[bisect_right(DELETED_RECORD_BOUNDARIES, deleted) - 1] += sign

    def net_change(self) -> CommitChange | None:
        """The net change of the commit; None if it is unknown.

        A file that is added with ``dataChange`` false either exists already or replaces removed files. If the commit
        removes no file, it exists already, or the writer made a mistake. Then the change is unknown.
        """
        counted = any(self.size_counts)
        if self.unknown or (self.unsized_removes and not self.removes_no_file):
            return None
        if (self.adds_again and self.removes) or (self.removes_no_file and counted):
            return None
        if self.adds_again or self.removes_no_file:
            return CommitChange(
                metadata=self.metadata, protocol=self.protocol, transactions=self.transactions, domains=self.domains
            )
        return None if self.rearranging_adds and not self.removes else self
