"""Version checksum files, compared with the replayed state.

Protocol: "Version Checksum File".
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from delta_pyds.log.checksum import FileSizeHistogram, VersionChecksum
from delta_pyds.log.listing import LogFile
from delta_pyds.protocol.actions import AddFile, file_key
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json, short
from delta_pyds.storage.base import Storage
from delta_pyds.verification.checkpoints import differences
from delta_pyds.verification.report import Findings
from delta_pyds.verification.state import TableState

_REQUIRED = ("tableSizeBytes", "numFiles", "numMetadata", "numProtocol", "metadata", "protocol")
# fields that writers left out for years, and that readers do not need
_LATE = ("metadata", "protocol")


def check_checksum(storage: Storage, file: LogFile, state: TableState, findings: Findings) -> None:
    """Compare a checksum file with the state at its version."""
    data = storage.read(file.path)
    try:
        raw = decode_json(data)
    except InvalidJSONError as e:
        findings.error("checksum.unreadable", file.path, f"it is not JSON: {e}.")
        return
    for name in _REQUIRED:
        if not isinstance(raw, dict) or raw.get(name) is None:
            report = findings.warning if name in _LATE else findings.error
            report("checksum.field", file.path, f"{name} is missing.")
    try:
        checksum = decode_json(data, VersionChecksum)
    except InvalidJSONError as e:
        findings.error("checksum.unreadable", file.path, f"it cannot be parsed: {e}.")
        return
    _Comparison(checksum, state, file.path, findings).run()


class _Comparison:
    def __init__(self, checksum: VersionChecksum, state: TableState, where: str, findings: Findings) -> None:
        self._checksum = checksum
        self._state = state
        self._where = where
        self._findings = findings

    def _error(self, rule: str, message: str) -> None:
        self._findings.error(f"checksum.{rule}", self._where, message)

    def _compare(self, rule: str, name: str, recorded: Any, replayed: Any) -> None:
        if recorded != replayed:
            self._error(rule, f"{name} is {short(recorded)}, but {short(replayed)} by replay.")

    def run(self) -> None:
        c, s = self._checksum, self._state
        self._compare("files", "numFiles", c.num_files, len(s.live))
        self._compare("files", "tableSizeBytes", c.table_size_bytes, s.size_bytes)
        self._compare("definition", "numMetadata", c.num_metadata, 1)
        self._compare("definition", "numProtocol", c.num_protocol, 1)
        if c.num_deletion_vectors_opt is not None:
            self._compare("vectors", "numDeletionVectorsOpt", c.num_deletion_vectors_opt, s.num_vectors)
        if c.num_deleted_records_opt is not None:
            self._compare("vectors", "numDeletedRecordsOpt", c.num_deleted_records_opt, s.num_deleted_records)
        if c.deleted_record_counts_histogram_opt is not None:
            recorded = c.deleted_record_counts_histogram_opt.deleted_record_counts
            self._compare("vectors", "deletedRecordCounts", recorded, s.deleted_record_counts)
        self._definition()
        self._commit()
        self._transactions()
        self._domains()
        for histogram in (c.file_size_histogram, c.histogram_opt):
            if histogram is not None:
                self._histogram(histogram)
        if c.all_files is not None:
            self._all_files(c.all_files)

    def _definition(self) -> None:
        c, s = self._checksum, self._state
        if c.protocol is not None and s.protocol is not None:
            for name in differences(c.protocol, s.protocol):
                self._error("definition", f"its protocol differs from the replayed one in {name}.")
        if c.metadata is not None and s.metadata is not None:
            for name in differences(c.metadata, s.metadata):
                self._error("definition", f"its metadata differs from the replayed one in {name}.")

    def _commit(self) -> None:
        c, s = self._checksum, self._state
        enabled = s.view.properties.in_commit_timestamps and s.view.supports(Feature.IN_COMMIT_TIMESTAMP)
        if enabled and s.in_commit_timestamp is not None:
            self._compare("timestamp", "inCommitTimestampOpt", c.in_commit_timestamp_opt, s.in_commit_timestamp)
        elif not enabled and c.in_commit_timestamp_opt is not None:
            self._error("timestamp", "inCommitTimestampOpt is set, but in-commit timestamps are off.")
        if c.txn_id is not None and s.transaction_id is not None:
            self._compare("txn-id", "txnId", c.txn_id, s.transaction_id)

    def _transactions(self) -> None:
        if self._checksum.set_transactions is None:
            return
        recorded = {t.app_id: t for t in self._checksum.set_transactions}
        if len(recorded) != len(self._checksum.set_transactions):
            self._error("transactions", "setTransactions names an application twice.")
        may_expire = self._state.view.properties.transaction_retention_ms is not None
        for app_id in sorted(recorded.keys() | self._state.transactions.keys()):
            one, other = recorded.get(app_id), self._state.transactions.get(app_id)
            if one != other and not (one is None and may_expire):
                self._error(
                    "transactions", f"the transaction of {app_id} is {short(one)}, but {short(other)} by replay."
                )

    def _domains(self) -> None:
        if self._checksum.domain_metadata is None:
            return
        for d in self._checksum.domain_metadata:
            if d.removed:
                self._error("domains", f"the removed domain {d.domain} is listed.")
        recorded = {d.domain: d.configuration for d in self._checksum.domain_metadata if not d.removed}
        replayed = {n: d.configuration for n, d in self._state.live_domains().items()}
        for name in sorted(recorded.keys() | replayed.keys()):
            self._compare("domains", f"the domain {name}", recorded.get(name), replayed.get(name))

    def _histogram(self, recorded: FileSizeHistogram) -> None:
        edges = recorded.sorted_bin_boundaries
        if not edges or edges[0] != 0 or any(a >= b for a, b in pairwise(edges)):
            self._error("histogram", f"its boundaries do not start at 0 or do not ascend: {short(edges)}.")
            return
        replayed = self._state.histogram(edges)
        for name, have, wanted in (
            ("fileCounts", recorded.file_counts, replayed.counts),
            ("totalBytes", recorded.total_bytes, replayed.bytes),
        ):
            if have != wanted:
                self._error("histogram", f"{name} of the file size histogram differs from the replayed one.")

    def _all_files(self, files: list[AddFile]) -> None:
        recorded = {file_key(f): f for f in files}
        if len(recorded) != len(files):
            self._error("all-files", "allFiles names a file twice.")
        for key in sorted(recorded.keys() | self._state.live.keys(), key=repr):
            one, other = recorded.get(key), self._state.live.get(key)
            if one is None or other is None:
                where = "by replay, but not in allFiles" if one is None else "in allFiles, but not by replay"
                self._error("all-files", f"{key[0]} is in the table {where}.")
            elif (one.size, one.partition_values, one.base_row_id) != (
                other.size,
                other.partition_values,
                other.base_row_id,
            ):
                self._error("all-files", f"{key[0]} is another action in allFiles than by replay.")
