"""The version checksum, and its comparison with a replayed state. Protocol: "Version Checksum File"."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from delta_pyds.errors import ChecksumMismatchError, FileNotFoundInStorageError
from delta_pyds.log.listing import LogFile
from delta_pyds.protocol.actions import AddFile, DomainMetadata, Metadata, Protocol, SetTransaction, file_key
from delta_pyds.protocol.foreign_json import Int64, InvalidJSONError, decode_json, short
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage

_logger = safe_logger(__name__)


class FileSizeHistogram(msgspec.Struct, frozen=True, rename="camel"):
    """Files and bytes per bin; a bin starts at its boundary (inclusive), the first at 0."""

    sorted_bin_boundaries: list[Int64]
    file_counts: list[Int64]
    total_bytes: list[Int64]


class DeletedRecordCountsHistogram(msgspec.Struct, frozen=True, rename="camel"):
    """Files per decade of deleted records."""

    deleted_record_counts: list[Int64]


class VersionChecksum(msgspec.Struct, frozen=True, rename="camel"):
    """The state of a version according to its writer. Old writers wrote only the first four numbers."""

    table_size_bytes: Int64
    num_files: Int64
    num_metadata: Int64
    num_protocol: Int64
    txn_id: str | None = None
    in_commit_timestamp_opt: Int64 | None = None
    set_transactions: list[SetTransaction] | None = None
    domain_metadata: list[DomainMetadata] | None = None
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    file_size_histogram: FileSizeHistogram | None = None
    # the name under which the reference wrote fileSizeHistogram for years
    histogram_opt: FileSizeHistogram | None = None
    all_files: list[AddFile] | None = None
    num_deleted_records_opt: Int64 | None = None
    num_deletion_vectors_opt: Int64 | None = None
    deleted_record_counts_histogram_opt: DeletedRecordCountsHistogram | None = None

    @property
    def size_histogram(self) -> FileSizeHistogram | None:
        return self.file_size_histogram or self.histogram_opt


@dataclass(frozen=True)
class ReplayedState:
    """The state of a version according to a replay of the log. Parts that are None are not compared.

    ``set_transactions`` and ``domain_metadata`` are the live ones (no
    tombstones). ``file_keys``: ``file_key`` of all live files.
    ``file_size_histogram``: has the boundaries of the checksum's.
    """

    table_root: str
    version: int
    num_files: int
    table_size_bytes: int
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    in_commit_timestamp: int | None = None
    set_transactions: Sequence[SetTransaction] | None = None
    domain_metadata: Sequence[DomainMetadata] | None = None
    num_deletion_vectors: int | None = None
    num_deleted_records: int | None = None
    file_size_histogram: FileSizeHistogram | None = None
    file_keys: frozenset[tuple[str, str | None]] | None = None


def read_checksum(storage: Storage, file: LogFile) -> VersionChecksum | None:
    """Read a checksum file.

    Returns: None if it is missing or (with a logged warning) damaged. A reader must work without it.
    Raises: StorageError.
    """
    try:
        return decode_json(storage.read(file.path), VersionChecksum)
    except FileNotFoundInStorageError:
        return None
    except InvalidJSONError as error:
        _logger.warning("The version checksum %s is ignored: %s", file.path, error)
        return None


def verify_checksum(checksum: VersionChecksum, state: ReplayedState) -> None:
    """Compare every part that both sides have.

    Raises: ChecksumMismatchError listing all differences.
    """
    differences = [
        f"{what} is {short(replayed)} by replay but {short(recorded)} in the checksum file"
        for what, recorded, replayed in _pairs(checksum, state)
        if recorded is not None and replayed is not None and recorded != replayed
    ]
    differences += [
        f"the checksum file counts {count} {action} actions, but a table has 1"
        for action, count in (("metaData", checksum.num_metadata), ("protocol", checksum.num_protocol))
        if count != 1
    ]
    if differences:
        raise ChecksumMismatchError(
            f"Version {state.version} of table {state.table_root!r} contradicts its version checksum: "
            + "; ".join(differences)
            + ". The log may have been changed after it was written: compare it with a backup before using the table.",
            table=state.table_root,
            version=state.version,
            differences=differences,
        )


def same_definition(checksum: VersionChecksum, protocol: Protocol, metadata: Metadata) -> bool:
    """Whether the checksum's protocol and metadata, if it has them, are these."""
    pairs: list[tuple[str, Any, Any]] = []
    if checksum.protocol is not None:
        pairs += _fields("protocol", checksum.protocol, protocol, unordered=True)
    if checksum.metadata is not None:
        pairs += _fields("metaData", checksum.metadata, metadata)
    return all(recorded == known for _, recorded, known in pairs)


def _pairs(checksum: VersionChecksum, state: ReplayedState) -> list[tuple[str, Any, Any]]:
    """The values to compare: (name, recorded, replayed), in a form for ``==``."""
    pairs: list[tuple[str, Any, Any]] = [
        ("numFiles", checksum.num_files, state.num_files),
        ("tableSizeBytes", checksum.table_size_bytes, state.table_size_bytes),
        ("inCommitTimestamp", checksum.in_commit_timestamp_opt, state.in_commit_timestamp),
        ("numDeletionVectors", checksum.num_deletion_vectors_opt, state.num_deletion_vectors),
        ("numDeletedRecords", checksum.num_deleted_records_opt, state.num_deleted_records),
        (
            "setTransactions",
            _transactions(checksum.set_transactions),
            _transactions(state.set_transactions),
        ),
        ("domainMetadata", _domains(checksum.domain_metadata), _domains(state.domain_metadata)),
    ]
    if checksum.protocol is not None and state.protocol is not None:
        pairs += _fields("protocol", checksum.protocol, state.protocol, unordered=True)
    if checksum.metadata is not None and state.metadata is not None:
        pairs += _fields("metaData", checksum.metadata, state.metadata)
    recorded_histogram, replayed_histogram = checksum.size_histogram, state.file_size_histogram
    if recorded_histogram is not None and replayed_histogram is not None:
        pairs += _fields("fileSizeHistogram", recorded_histogram, replayed_histogram)
    if checksum.all_files is not None and state.file_keys is not None:
        recorded_keys = frozenset(map(file_key, checksum.all_files))
        pairs.append(("the list of files only in allFiles", sorted(recorded_keys - state.file_keys, key=repr), []))
        pairs.append(("the list of files not in allFiles", [], sorted(state.file_keys - recorded_keys, key=repr)))
    return pairs


def _fields(what: str, recorded: msgspec.Struct, replayed: msgspec.Struct, *, unordered: bool = False) -> Any:
    for field in msgspec.structs.fields(type(recorded)):
        pair = (getattr(recorded, field.name), getattr(replayed, field.name))
        one, other = (_comparable(value, unordered) for value in pair)
        yield f"{what}.{field.encode_name}", one, other


def _comparable(value: Any, unordered: bool) -> Any:
    """The value in a form for ``==``: absent, null and empty are equal."""
    if isinstance(value, msgspec.Struct):
        return {name: _comparable(item, unordered) for name, item in msgspec.structs.asdict(value).items()}
    if value is None or value == {} or value == []:
        return ()
    if isinstance(value, list) and unordered:
        return tuple(sorted(value))
    return value


def _transactions(actions: Sequence[SetTransaction] | None) -> dict[str, tuple[int, int | None]] | None:
    if actions is None:
        return None
    return {action.app_id: (action.version, action.last_updated) for action in actions}


def _domains(actions: Sequence[DomainMetadata] | None) -> dict[str, str] | None:
    if actions is None:
        return None
    return {action.domain: action.configuration for action in actions if not action.removed}


def file_size_histogram(sizes: Any, boundaries: Sequence[int]) -> FileSizeHistogram:
    """Count files and bytes per bin. ``sizes`` is an Arrow array of int64 without nulls."""
    import pyarrow.compute as pc

    ascending = sizes.take(pc.array_sort_indices(sizes)) if len(sizes) else sizes
    running = pc.cumulative_sum(ascending)
    # only the values that it compares become Python objects
    rows = range(len(sizes))
    edges = [bisect_left(rows, boundary, key=lambda row: ascending[row].as_py()) for boundary in boundaries[1:]]
    counts, totals, before, bytes_before = [], [], 0, 0
    for edge in [*edges, len(sizes)]:
        bytes_here = running[edge - 1].as_py() if edge else 0
        counts.append(edge - before)
        totals.append(bytes_here - bytes_before)
        before, bytes_before = edge, bytes_here
    return FileSizeHistogram(list(boundaries), counts, totals)
